"""Caps of runs that nobody types: by tag, by environment, over retries and over a backfill."""

import json

import dagster as dg
import pytest

from assets.judging import budgets
from assets.judging.budgets import (
    DEFAULT_CAP,
    NO_CAP,
    VARIABLE,
    RunBudget,
    capped,
    default_cap_text,
    parse_cap,
    require_environment,
    require_room,
)
from assets.settings import BUDGET_TAG, SPENT_TAG
from judgeline.judges.budget import Budget, Cost

ROOT, PARENT, BACKFILL = "dagster/root_run_id", "dagster/parent_run_id", "dagster/backfill"


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def unwatched(monkeypatch):
    """Runs of this process as if the daemon, or the interface, had launched them."""
    monkeypatch.setattr(budgets, "is_watched", lambda context: False)


def asking(n_calls, budget=None, *, dies=False):
    """A job that asks for calls one by one until it is refused, and says how many it got."""
    got = []

    @dg.asset(name="asking")
    def asset(context: dg.AssetExecutionContext) -> None:
        cap = capped(context, budget or Budget())
        got.append(sum(cap.spend(Cost(calls=1)) for _ in range(n_calls)))
        if isinstance(cap, RunBudget):
            cap.record()
        if dies:
            raise RuntimeError("the worker is gone")

    return dg.Definitions([asset], jobs=[dg.define_asset_job("job")]).resolve_job_def("job"), got


def run(instance, job, **tags):
    return job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)


@pytest.mark.parametrize("is_watched", [True, False], ids=["typed", "launched"])
@pytest.mark.parametrize(
    ("tag", "variable", "resource", "expected"),
    [
        ("3calls", "5calls", 7, 3),
        ("5calls", "3calls", 7, 3),
        ("7calls", "5calls", 3, 3),
        (None, "2calls", None, 2),
        ("2calls", None, None, 2),
        (None, None, 4, 4),
        (None, "  ", 4, 4),  # a deployment passes on a variable that nobody set
        (NO_CAP, None, None, 2000),
        (None, NO_CAP, None, 2000),
        (NO_CAP, "1500calls", None, 1500),
        (None, None, None, None),
    ],
)
def test_tightest_cap_replaces_the_default(
    instance, monkeypatch, tag, variable, resource, expected, is_watched
):
    monkeypatch.setattr(budgets, "is_watched", lambda _: is_watched)
    if variable is not None:
        monkeypatch.setenv(VARIABLE, variable)
    require_environment()
    default = 2000 if is_watched else parse_cap(DEFAULT_CAP, "here").calls
    job, got = asking(2000, Budget(resource))
    run(instance, job, **({BUDGET_TAG: tag} if tag else {}))
    assert got == [default if expected is None else expected]


@pytest.mark.parametrize(
    ("tags", "n_calls", "expected"),
    [
        ({BUDGET_TAG: "5calls"}, 4, [4, 4, 4]),  # no retries: a cap for each
        ({BUDGET_TAG: "10calls", BACKFILL: "abc"}, 4, [4, 4, 2]),
        ({BACKFILL: "abc"}, 400, [400, 400, 200]),  # the default cap
    ],
)
def test_the_runs_of_a_backfill_share_one_cap(instance, unwatched, tags, n_calls, expected):
    job, got = asking(n_calls)
    for _ in expected:
        run(instance, job, **tags)
    assert got == expected


@pytest.mark.parametrize(
    ("tags", "is_refused"),
    [({}, True), ({BACKFILL: "abc"}, True), ({BUDGET_TAG: "1536calls"}, False),
     ({BUDGET_TAG: NO_CAP}, False), ({BUDGET_TAG: "9calls"}, True),
     ({BUDGET_TAG: "9calls", "dagster/schedule_name": "weekly"}, False),
     ({"dagster/sensor_name": "new_models"}, False)],
)  # fmt: skip
def test_a_run_that_its_cap_cannot_finish_fails_before_the_first_call(
    instance, unwatched, tags, is_refused
):
    @dg.asset
    def asking(context: dg.AssetExecutionContext) -> None:
        require_room(context, capped(context, Budget()), 1536)

    done = dg.materialize([asking], instance=instance, tags=tags, raise_on_error=False)
    assert done.success != is_refused
    if is_refused:
        (failure,) = done.get_step_failure_events()
        said = failure.step_failure_data.user_failure_data.description
        assert said.startswith("Raise the cap: launch it again with the run tag judgeline/budget")
        left = "9" if BUDGET_TAG in tags else "1,000"
        assert f"needs about 1,536 calls, and its cap of {left} calls" in said


def test_a_retry_has_what_the_run_before_it_left(instance):
    job, got = asking(4, dies=True)
    first = run(instance, job, **{BUDGET_TAG: "10calls"})
    tags = instance.get_run_by_id(first.run_id).tags
    assert json.loads(tags[SPENT_TAG])["calls"] == 4
    for parent in (first.run_id, "another"):  # a retry inherits every tag of its parent
        inherited = {**tags, PARENT: parent, ROOT: first.run_id}
        run(instance, job, **inherited)
    assert got == [4, 4, 2]


def test_runs_of_a_backfill_at_the_same_time_learn_of_each_other(instance):
    got = []

    @dg.asset(name="inner")
    def inner(context: dg.AssetExecutionContext) -> None:
        cap = capped(context, Budget())
        got.append(sum(cap.spend(Cost(calls=1)) for _ in range(6)))
        cap.record()

    @dg.asset(name="outer")
    def outer(context: dg.AssetExecutionContext) -> None:
        cap = capped(context, Budget())
        assert cap.spend(Cost(calls=1))
        dg.materialize([inner], instance=instance, tags=tags)
        cap.record()  # as it does every few seconds
        got.append(1 + sum(cap.spend(Cost(calls=1)) for _ in range(9)))

    tags = {BUDGET_TAG: "10calls", BACKFILL: "abc"}
    dg.materialize([outer], instance=instance, tags=tags)
    assert got == [6, 4]


def test_assets_of_one_run_share_its_cap(instance):
    got = []

    def make(name):
        @dg.asset(name=name)
        def asset(context: dg.AssetExecutionContext) -> None:
            cap = capped(context, Budget())
            got.append(sum(cap.spend(Cost(1, 10, 5)) for _ in range(3)))
            cap.record()

        return asset

    dg.materialize(
        [make("one"), make("two")], instance=instance, tags={BUDGET_TAG: "100calls 75tokens"}
    )
    assert got == [3, 2]


def test_a_resource_shared_by_runs_is_drawn_on_too(instance):
    shared = Budget(5)
    job, got = asking(3, shared)
    for _ in range(2):
        run(instance, job, **{BUDGET_TAG: "100calls"})
    assert got == [3, 2]
    assert shared.spent.calls == 5


@pytest.mark.parametrize(
    ("text", "variable", "told"),
    [
        ("lots", "", "the run tag judgeline/budget: the budget 'lots' is none"),
        ("  ", "", "caps nothing"),
        ("3USD", "2EUR", "USD"),
    ],
)
def test_bad_text_is_told_before_anything_is_asked(instance, monkeypatch, text, variable, told):
    monkeypatch.setenv(VARIABLE, variable)
    job, got = asking(1)
    result = run(instance, job, **{BUDGET_TAG: text})
    assert not result.success
    error = next(event for event in result.all_events if event.is_step_failure)
    assert told in error.step_failure_data.error.cause.message
    assert got == []


def test_a_run_that_nobody_typed_has_a_default_cap_and_its_log_says_so(instance, unwatched):
    job, got = asking(5000)
    result = run(instance, job)
    assert got == [parse_cap(DEFAULT_CAP, "here").calls] == [1000]
    logged = [entry.user_message for entry in instance.all_logs(result.run_id)]
    (line,) = [text for text in logged if DEFAULT_CAP in text]
    assert VARIABLE in line
    assert NO_CAP in line


def test_the_default_cap_is_for_judges_that_cost_money(instance, unwatched):
    @dg.asset
    def free(context: dg.AssetExecutionContext) -> None:
        assert capped(context, Budget(), costs_money=False).reserve(Cost(calls=5000))

    assert dg.materialize([free], instance=instance).success


@pytest.mark.parametrize(
    ("variable", "said"), [("", DEFAULT_CAP), (NO_CAP, "no cap"), ("7calls", "7calls")]
)
def test_the_interface_says_what_caps_the_runs_that_it_starts(monkeypatch, variable, said):
    monkeypatch.setenv(VARIABLE, variable)
    assert said in default_cap_text()
    assert VARIABLE in default_cap_text()


@pytest.mark.parametrize("text", ["banana", "5EUR 3USD"])
def test_a_variable_that_caps_nothing_is_told_before_anything_runs(monkeypatch, text):
    monkeypatch.setenv("JUDGELINE_BUDGET", text)
    with pytest.raises(ValueError, match=r"JUDGELINE_BUDGET|twice|currenc"):
        require_environment()
    monkeypatch.delenv("JUDGELINE_BUDGET")
    require_environment()

"""Budgets and retries of runs that ask judges: a cap holds for a run, its retries and backfill."""

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import dagster as dg
from sqlalchemy.exc import OperationalError

from assets.settings import BUDGET_TAG, SPENT_TAG, run_of, tag_of
from judgeline.judges.budget import Budget, Cost, JointBudget
from judgeline.judges.live.endpoint import OutOfReachError

VARIABLE = "JUDGELINE_BUDGET"
"""Environment variable that caps each run, and each backfill, where it is at work."""

DEFAULT_CAP = "1000calls 2Mtokens"
"""Cap on runs that nobody typed and nothing else caps, where they ask judges that cost money."""

NO_CAP = "none"
"""What the variable, or the tag, says where there is to be no cap."""

IN_PROCESS = "InProcessCodeLocationOrigin"
"""Dagster's class for the place of code that a process runs itself; no public name tells it."""

_UNTYPED = "Runs of sensors, schedules and the web interface"
_BACKFILL, _ROOT = "dagster/backfill", "dagster/root_run_id"
_BY_ITSELF = {"dagster/schedule_name", "dagster/sensor_name"}
_PAUSE_S = 5.0


def capped(
    context: dg.AssetExecutionContext, budget: Budget, *, costs_money: bool = True
) -> Budget:
    """Return the budget of a run under the caps of its tag, the environment, or the default."""
    texts = {
        f"the run tag {BUDGET_TAG}": tag_of(context, BUDGET_TAG),
        f"the environment variable {VARIABLE}": _of_environment(),
    }
    run = run_of(context)
    is_uncapped = not any(texts.values()) and _is_uncapped(budget)
    if run and costs_money and is_uncapped and not is_watched(context):
        context.log.info(default_cap_text())
        texts["the default cap"] = DEFAULT_CAP
    stated = [parse_cap(text, where) for where, text in texts.items() if text not in (None, NO_CAP)]
    if not stated:
        return budget
    if run is None:  # called as a function: there is nothing to remember
        return JointBudget([budget, *stated])
    return RunBudget(context.instance, run, [budget], stated)


def require_room(context: dg.AssetExecutionContext, budget: Budget, n_calls: int) -> None:
    """Fail a run that a person launched, and that its cap cannot finish, before its first call.

    A run of a schedule or sensor asks for what its cap allows: the next one asks for the rest.
    """
    run = run_of(context)
    if not isinstance(budget, RunBudget) or not run or _BY_ITSELF & run.tags.keys():
        return
    left = budget.of_run.calls_left
    if left is None or n_calls <= left:
        return
    raise dg.Failure(
        f"Raise the cap: launch it again with the run tag {BUDGET_TAG} = {n_calls}calls, or with "
        f"{NO_CAP!r} for no cap, or set {VARIABLE}. This run needs about {n_calls:,} calls, and "
        f"its cap of {budget.of_run} leaves {left:,}. Nobody was asked.",
        allow_retries=False,
    )


def _is_uncapped(budget: Budget) -> bool:
    return str(budget) == str(Budget())


def default_cap_text() -> str:
    """Return the sentence on the budget cap of automatic runs, and on how to change it."""
    text = _of_environment()
    if text == NO_CAP:
        return f"{_UNTYPED} have no cap: {VARIABLE} is {NO_CAP!r}"
    if text is not None:
        return f"Each run asks judges for at most {text}, by {VARIABLE}"
    return (
        f"{_UNTYPED} ask judges behind an endpoint for at most {DEFAULT_CAP}, unless they have a "
        f"budget of their own. {VARIABLE} sets another cap, and the run tag {BUDGET_TAG} that of "
        f"one run; {NO_CAP!r} lifts it"
    )


def require_environment() -> None:
    """Raise ValueError if the variable `VARIABLE` is set and no cap."""
    if (text := _of_environment()) not in (None, NO_CAP):
        JointBudget([parse_cap(text, f"the environment variable {VARIABLE}")])


def _of_environment() -> str | None:
    return os.environ.get(VARIABLE, "").strip() or None


def parse_cap(text: str, where: str) -> Budget:
    """Return the budget that a text describes; `where` names the text's place in an error."""
    try:
        cap = Budget.parse(text.split())
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    if _is_uncapped(cap):
        raise ValueError(
            f"{where} is empty, which caps nothing; write such as 2000calls or 5USD, or remove it"
        )
    return cap


class RunBudget(JointBudget):
    """Budget of one run, or of a backfill's runs together; the run's tags keep the cost so far."""

    def __init__(
        self,
        instance: dg.DagsterInstance,
        run: dg.DagsterRun,
        own: Sequence[Budget],
        shared: Sequence[Budget],
    ) -> None:
        super().__init__([*own, *shared])
        self._instance, self._run, self._shared = instance, run, tuple(shared)
        self._before = _spent_by(_family(instance, run)).get(run.run_id, Cost())
        self._count_others()
        self._recorded_at = time.monotonic()

    @property
    def of_run(self) -> JointBudget:
        """The caps that are stated for the run, without those of drift watch or candidates."""
        return JointBudget([*self._shared])

    def settle(self, most: Cost, spent: Cost) -> None:
        """Replace a reservation by the cost of the request; record it after a pause."""
        super().settle(most, spent)
        if time.monotonic() - self._recorded_at >= _PAUSE_S:
            with transient_ignored():  # the next time will do
                self.record()

    def record(self) -> None:
        """Write the spending so far into the tags of the run."""
        self._recorded_at = time.monotonic()
        total = self._before.plus(self.spent)
        told = json.dumps({"run": self._run.run_id, **total._asdict()})
        self._instance.add_run_tags(self._run.run_id, {SPENT_TAG: told})
        self._count_others()

    def _count_others(self) -> None:
        spent = _spent_by(_family(self._instance, self._run))
        others = [cost for run_id, cost in spent.items() if run_id != self._run.run_id]
        for cap in self._shared:
            cap.count_elsewhere(reduce(Cost.plus, others, self._before))


def _family(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterable[dg.DagsterRun]:
    """Return the runs under one budget: those of a backfill, or a run and its retries."""
    if backfill := run.tags.get(_BACKFILL):
        return instance.get_runs(dg.RunsFilter(tags={_BACKFILL: backfill}))
    root = run.tags.get(_ROOT) or run.run_id
    first = instance.get_run_by_id(root)
    retries = instance.get_runs(dg.RunsFilter(tags={_ROOT: root}))
    return [*([first] if first else []), *retries]


def _spent_by(runs: Iterable[dg.DagsterRun]) -> dict[str, Cost]:
    """Return the cost of each run by id; the tag that a retry inherits does not count."""
    spent: dict[str, Cost] = {}
    for run in runs:
        told: dict[str, Any] = json.loads(run.tags.get(SPENT_TAG, "{}"))
        if told.pop("run", None) == run.run_id:
            spent[run.run_id] = Cost(**told)
    return spent


MAX_RETRIES = 3
FIRST_WAIT_S = 60.0
"""Seconds until the first further attempt; each later one waits four times as long."""

TRANSIENT = (OutOfReachError, ConnectionError, TimeoutError, OperationalError)
"""Failures of the way to an endpoint, a store or the database of runs."""


@contextmanager
def retried_later(context: dg.AssetExecutionContext) -> Iterator[None]:
    """Request a retry of an automatic step after a transient error."""
    try:
        yield
    except Exception as error:
        if is_watched(context) or not is_transient(error):
            raise
        wait_s = FIRST_WAIT_S * 4**context.retry_number
        raise dg.RetryRequested(max_retries=MAX_RETRIES, seconds_to_wait=wait_s) from error


@contextmanager
def transient_ignored() -> Iterator[None]:
    """Ignore an error of the way to an endpoint, a store or the database of runs."""
    try:
        yield
    except Exception as error:
        if not is_transient(error):
            raise


def is_transient(error: BaseException | None) -> bool:
    """Return whether an error, or a cause of it, is transient."""
    while error is not None and not isinstance(error, TRANSIENT):
        error = error.__cause__
    return error is not None


def is_watched(context: dg.AssetExecutionContext) -> bool:
    """Return whether a run was started in a process of its own, as `judgeline run` does."""
    return is_typed(context.run)


def is_typed(run: dg.DagsterRun) -> bool:
    """Return whether a command executes a run itself, rather than a server of the code."""
    if run.remote_job_origin is None:
        return True
    place = run.remote_job_origin.repository_origin.code_location_origin
    return type(place).__name__ == IN_PROCESS

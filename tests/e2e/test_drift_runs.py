"""The drift watch under runs of the lineage, with a judge behind a real server that may change."""

import datetime
import hashlib
import json
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest
import yaml
from fault_server import FaultServer, serving, shown_texts

from assets.partitions import corpus_judge_key, register
from assets.reliability.drift import FIRST_REPLICATE
from judgeline.judges.store.writing import FLUSH_SECONDS
from judgeline.reliability.drift import THRESHOLD, UNITS
from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import RESPONSES
from pipelines.commands.run import run_lineage
from pipelines.definitions import build_definitions
from pipelines.sensors.weekly import NOBODY_WATCHED, drift_watch
from resources.config.catalog import Catalog
from resources.tables.store import ParquetTables

N_BATTLES, N_WATCHED, N_MODELS = 120, 60, 6
PARTITION = corpus_judge_key("c", "j")


def battles() -> pd.DataFrame:
    """Battles whose texts say how good they are, and votes drawn from that."""
    rng = np.random.default_rng(5)
    rows = []
    for number in range(N_BATTLES):
        a, b = rng.choice(N_MODELS, 2, replace=False)
        first, second = (np.clip(3.5 + 0.6 * m + rng.normal(0, 1), 1, 10) for m in (a, b))
        wins = rng.random() < 1 / (1 + np.exp(second - first))
        rows.append(
            {
                "battle_id": f"b{number}", "question_id": f"q{number}", "model_a": f"m{a}",
                "model_b": f"m{b}", "human_outcome": float(wins),
                "instruction": f"Question {number}", "completion_a": f"quality {first:.2f}",
                "completion_b": f"quality {second:.2f}", "language": "en",
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


@dataclass
class Model:
    """What the server's model says: noisy marks of what the texts call their quality."""

    noise: float = 0.6
    slope: float = 1.0
    lead: float = 0.0
    asked: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def __call__(self, body: dict) -> str:
        texts = shown_texts(body)
        rng = np.random.default_rng(
            list(hashlib.sha256("\0".join((*texts, str(self.asked[texts]))).encode()).digest())
        )
        self.asked[texts] += 1
        said = {}
        for response, text, lead in zip(RESPONSES, texts[1:3], (self.lead, 0.0), strict=True):
            quality = 5.5 + self.slope * (float(text.split()[1]) - 5.5) + lead
            marks = np.clip(np.rint(quality + rng.normal(0, self.noise, 6)), 1, 10)
            said[response] = {n: int(mark) for n, mark in zip(CRITERIA, marks, strict=True)}
        return json.dumps(said)


@dataclass
class Watched:
    """A home with one corpus, a judge on a server, and an instance."""

    home: Path
    instance: dg.DagsterInstance
    server: FaultServer
    model: Model
    drift: dict | None = field(default_factory=lambda: {"battles": N_WATCHED})
    judge: dict = field(default_factory=dict)
    panel: dict | None = None

    @property
    def resources(self) -> dict:
        corpus = {"reader": "battles", "location": str(self.home / "battles.jsonl")}
        corpus |= {"judges": ["j"], "rating": {"n_resamples": 5}}
        corpus |= {} if self.drift is None else {"drift": self.drift}
        corpus |= {} if self.panel is None else {"panel": self.panel}
        judge = {"kind": "openai", "model": "tiny", "base_url": self.server.url}
        judge |= {"display_name": "J", "family": "none", "endpoint_name": "here", **self.judge}
        recorded = {"kind": "recorded", "display_name": "R", "family": "none"}
        files = {"corpora": {"c": corpus}, "judges": {"j": judge, "r": recorded}}
        for name, entries in files.items():
            (self.home / f"{name}.yaml").write_text(yaml.safe_dump(entries), encoding="utf-8")
        return dict(zip(("catalog", "tables"), resources_of(self.home), strict=True))

    @property
    def n_asked(self) -> int:
        return sum(self.model.asked.values())

    @property
    def n_epochs(self) -> int:
        return int(self.stored("drift_answers")["epoch"].max())

    def run(self, *select: str) -> None:
        outcome = run_lineage(
            corpus="c", select=list(select) or None, instance=self.instance, **self.resources
        )
        assert outcome.errors == []

    def watch(self, **options: object) -> dg.ExecuteInProcessResult:
        job = build_definitions(**self.resources).resolve_job_def("drift_job")
        return job.execute_in_process(
            partition_key=PARTITION, instance=self.instance, raise_on_error=False, **options
        )

    def check(self, result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
        (found,) = result.get_asset_check_evaluations()
        assert found.check_name == "judge_has_not_drifted"
        return found

    def stored(self, asset: str) -> pd.DataFrame:
        return self.resources["tables"].create_io_manager(None).stored(asset, "c", "j")


def watch_apart(home: Path) -> None:
    """Ask for an epoch in a process of its own, to be killed."""
    catalog, tables = resources_of(home)
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, corpora=["c"], judges=["j", "r"])
        job = build_definitions(catalog=catalog, tables=tables).resolve_job_def("drift_job")
        job.execute_in_process(partition_key=PARTITION, instance=instance)


def resources_of(home: Path) -> tuple[Catalog, ParquetTables]:
    catalog = Catalog(
        corpora_file=str(home / "corpora.yaml"), judges_file=str(home / "judges.yaml")
    )
    return catalog, ParquetTables(base_uri=str(home / "tables"))


@pytest.fixture(scope="module")
def make_watched(tmp_path_factory) -> Iterator[Callable[..., Watched]]:
    """Make homes with a judge on one server, each over an instance that leaves nothing behind."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as open_until_the_end:
        server = open_until_the_end.enter_context(serving(FaultServer()))

        def make(*select: str, **options: object) -> Watched:
            """Make one, and run what is selected."""
            instance = open_until_the_end.enter_context(dg.DagsterInstance.ephemeral())
            home = tmp_path_factory.mktemp("home")
            patch.setenv("JUDGELINE_HOME", str(home))
            battles().to_json(home / "battles.jsonl", orient="records", lines=True)
            server.answer = model = Model()
            server.fault = lambda texts, n: None
            register(instance, corpora=["c"], judges=["j", "r"])
            watched = Watched(home, instance, server, model, **options)
            if select:
                watched.run(*select)
            return watched

        yield make


@pytest.fixture(scope="module")
def story(make_watched):
    """Three epochs: two without a change, then the model halves its marks' spread."""
    watched = make_watched("+reliability_panel", panel={"battles": 40, "runs": 2})
    n_before = watched.n_asked
    checks = [watched.check(watched.watch()) for _ in range(2)]
    watched.model.slope = 0.4
    checks.append(watched.check(watched.watch()))
    return watched, n_before, checks


def test_a_noisy_judge_that_did_not_change_passes(story):
    _, _, checks = story
    assert [check.passed for check in checks[:2]] == [True, True]
    assert f"beyond chance in {len(UNITS)} statistics" in checks[1].description


def test_compressed_scores_fail_the_check_which_names_them(story):
    _, _, (*_, check) = story
    assert not check.passed
    assert check.severity == dg.AssetCheckSeverity.ERROR
    assert not check.blocking
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    assert "mean_absolute_score from " in check.description
    assert "standard errors, 60 battles, since epoch 3 of " + today in check.description
    assert "pin a dated model" in check.description
    assert "mean_absolute_score" in check.metadata["moved"].value


def test_every_epoch_asks_the_panel_once_and_the_baseline_costs_nothing(story):
    watched, n_before, _ = story
    answers = watched.stored("drift_answers")
    assert n_before == 2 * N_BATTLES + 2 * 40
    assert watched.n_asked == n_before + 3 * 2 * N_WATCHED
    assert answers.groupby("epoch").size().to_dict() == dict.fromkeys(range(4), 2 * N_WATCHED)
    assert answers.groupby("epoch")["replicate"].unique().map(list).to_dict() == {
        0: [0],
        **{epoch: [FIRST_REPLICATE + epoch] for epoch in (1, 2, 3)},
    }
    panels = answers.groupby("epoch")["battle_id"].agg(set)
    assert all(panel == panels[0] for panel in panels)
    assert set(watched.stored("reliability_panel")["battle_id"]) < panels[0]
    first = watched.stored("verdicts").set_index("identity")["answer"]
    baseline = answers[answers["epoch"].eq(0)].set_index("identity")["answer"]
    pd.testing.assert_series_equal(baseline, first.reindex(baseline.index))


def test_the_drift_has_a_row_per_epoch_and_statistic(story):
    watched, _, _ = story
    drift = watched.stored("judge_drift")
    assert drift["epoch"].tolist() == np.repeat([1, 2, 3], len(UNITS)).tolist()
    assert drift["statistic"].tolist() == list(UNITS) * 3
    last = drift[drift["epoch"].eq(3)].set_index("statistic")
    assert last.loc["mean_absolute_score", "change"] < 0
    assert last.loc["mean_absolute_score", "z"] < -5
    assert last.loc["margin", "now"] < last.loc["margin", "baseline"]
    assert last.loc["mean_absolute_score", "e_value"] >= THRESHOLD
    assert last["fresh_e_value"].drop("distance").tolist() == pytest.approx([1] * 7)  # none is new
    assert last["verdict"].eq("judge").all()
    assert last["asked_at"].str.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00").all()
    event = watched.instance.get_latest_materialization_event(dg.AssetKey("judge_drift"))
    metadata = event.asset_materialization.metadata
    assert "data:image/svg+xml;base64," in metadata["epochs"].value
    assert metadata["z mean_absolute_score"].value < -5


@pytest.mark.slow
def test_a_position_bias_that_creeps_in_is_named(make_watched):
    watched = make_watched("+verdicts")
    watched.model.lead = 1.0
    check = watched.check(watched.watch())
    assert not check.passed
    assert "position_effect" in check.metadata["moved"].value.split(", ")
    drift = watched.stored("judge_drift").set_index("statistic")
    assert drift.loc["position_effect", "change"] == pytest.approx(1.0, abs=0.3)


@pytest.mark.slow
def test_a_judge_that_stops_answering_has_moved(make_watched):
    watched = make_watched("+verdicts")
    watched.server.answer = lambda body: "I would rather not."
    check = watched.check(watched.watch())
    assert not check.passed
    assert "scored_share from 100.0% to 0.0%" in check.description


def test_what_a_second_run_mended_is_unreadable_in_the_baseline(make_watched):
    """Epochs ask once; answers of two attempts would make them seem worse."""
    watched = make_watched()
    lost = {f"Question {number}" for number in range(8)}

    def mumble(body: dict) -> str:
        texts = shown_texts(body)
        return "Hm." if lost & set(texts) else watched.model(body)

    watched.server.answer = mumble
    watched.run("+verdicts")
    watched.server.answer = watched.model
    watched.run("verdicts")
    assert watched.stored("verdicts")["status"].eq("ok").all()
    watched.drift = {"battles": N_BATTLES}
    assert watched.watch().success
    answers = watched.stored("drift_answers").groupby("epoch")
    unreadable = answers["status"].agg(lambda status: status.eq("parse_error").sum())
    assert unreadable.to_dict() == {0: 16, 1: 0}
    without = answers["adherence_a"].agg(lambda mark: mark.isna().sum())
    assert without.to_dict() == {0: 16, 1: 0}


@pytest.mark.slow
def test_an_endpoint_that_is_down_is_no_epoch(make_watched):
    watched = make_watched("+verdicts", judge={"timeout_s": 5.0})
    n_before = watched.n_asked
    watched.server.fault = lambda texts, n: "odd-400"
    assert not watched.watch().success
    watched.server.fault = lambda texts, n: None
    assert watched.stored("drift_answers") is None
    assert watched.watch().success
    n_rejected = int(watched.stored("drift_answers")["status"].eq("rejected").sum())
    assert 0 < n_rejected <= 20  # turned down before the run gave up, and kept as that
    assert watched.n_asked == n_before + 2 * N_WATCHED - n_rejected
    assert watched.n_epochs == 1


def test_the_smaller_budget_caps_an_epoch_and_the_next_run_asks_the_rest(make_watched):
    watched = make_watched("+verdicts", drift={"battles": N_WATCHED, "budget": "50calls"})
    n_before = watched.n_asked
    for n_asked in (50, 100):
        assert not watched.watch().success
        assert watched.n_asked == n_before + n_asked
    assert watched.watch().success
    assert watched.n_asked == n_before + 2 * N_WATCHED
    assert max(watched.model.asked.values()) == 2  # verdict and epoch: none was asked for twice


@pytest.mark.slow
def test_a_killed_run_leaves_its_epoch_to_the_next_and_no_call_is_made_twice(make_watched):
    watched = make_watched("+verdicts", judge={"concurrency": 4})
    answered, stuck = watched.model.asked, []

    def fault(texts: tuple[str, ...], n: int) -> str | None:
        if sum(answered.values()) < 2 * N_BATTLES + 50:
            return None
        stuck.append(texts)
        return "slow"

    watched.server.fault, watched.server.slow_s = fault, 20.0
    process = multiprocessing.get_context("spawn").Process(target=watch_apart, args=(watched.home,))
    watched.resources  # noqa: B018  writes the configuration
    process.start()
    try:
        while not stuck:
            assert process.is_alive()
            time.sleep(0.05)
        time.sleep(3 * FLUSH_SECONDS)  # what was answered is stored; the others have no answer
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert watched.stored("drift_answers") is None
    n_before = sum(answered.values())
    watched.server.fault = lambda texts, n: None
    assert watched.watch().success
    assert sum(answered.values()) == 2 * N_BATTLES + 2 * N_WATCHED
    assert 2 * N_BATTLES + 50 <= n_before < sum(answered.values())
    assert max(answered.values()) == 2  # its verdict and its epoch
    assert watched.stored("drift_answers")["epoch"].unique().tolist() == [0, 1]


@pytest.mark.slow
def test_a_lost_table_brings_no_old_answers_back_as_new(make_watched, monkeypatch):
    watched = make_watched("+verdicts")
    watched.watch()
    n_asked = watched.n_asked
    (watched.home / "tables" / "drift_answers" / "c" / "j.parquet").unlink()
    assert watched.watch().success  # as if the run had been stopped before it wrote the table
    assert watched.n_asked == n_asked
    (watched.home / "tables" / "drift_answers" / "c" / "j.parquet").unlink()
    monkeypatch.setattr("assets.reliability.drift.JUST_NOW", datetime.timedelta(0))
    assert watched.watch().success
    assert watched.n_asked == n_asked + 2 * N_WATCHED
    assert watched.n_epochs == 2


@pytest.mark.slow
def test_a_judge_that_was_configured_anew_is_not_compared_with_its_past(make_watched):
    watched = make_watched("+verdicts")
    watched.watch()
    n_asked, before = watched.n_asked, watched.stored("drift_answers")
    watched.judge = {"revision": "another"}
    result = watched.watch()
    assert result.success
    assert watched.n_asked == n_asked
    pd.testing.assert_frame_equal(watched.stored("drift_answers"), before)
    watched.run("+verdicts")
    watched.model.slope = 0.4
    assert not watched.check(watched.watch()).passed
    answers = watched.stored("drift_answers")
    pd.testing.assert_frame_equal(answers.head(len(before)), before)
    assert answers.groupby("judge_version", sort=False)["epoch"].agg(set).tolist() == [
        {0, 1},
        {0, 2},
    ]


@pytest.mark.slow
def test_without_a_drift_block_nothing_is_asked_and_it_is_said(make_watched):
    watched = make_watched("+verdicts", drift=None)
    n_asked = watched.n_asked
    assert watched.check(watched.watch()).passed
    assert watched.n_asked == n_asked
    event = watched.instance.get_latest_materialization_event(dg.AssetKey("drift_answers"))
    assert "add 'drift:" in event.asset_materialization.metadata["note"].value


@pytest.mark.slow
def test_runs_of_the_lineage_ask_for_no_epoch(make_watched):
    watched = make_watched()
    watched.run()
    assert watched.n_asked == 2 * N_BATTLES
    assert watched.stored("drift_answers") is None


# the schedule


def _tick(watched: Watched, instance: dg.DagsterInstance) -> tuple[list, list]:
    with dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=datetime.datetime(2026, 1, 5, 5, tzinfo=datetime.UTC),
        resources={"catalog": watched.resources["catalog"]},
    ) as context:
        found = list(drift_watch(context))
    skipped = [one.skip_message for one in found if isinstance(one, dg.SkipReason)]
    return [one for one in found if isinstance(one, dg.RunRequest)], skipped


def test_the_schedule_asks_judges_at_work(make_watched, tmp_path):
    watched = make_watched()
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        register(instance, corpora=["c"], judges=["j", "r"])
        requests, (skipped,) = _tick(watched, instance)
        assert requests == []
        assert "recorded judges cannot" in skipped
        event = dg.AssetMaterialization("leaderboard", partition=PARTITION)
        instance.report_runless_asset_event(event)
        (request,), skipped = _tick(watched, instance)
        assert (str(request.partition_key), skipped) == ("c|j", [])
        assert _tick(watched, instance)[0][0].run_key == request.run_key
        watched.drift = None
        assert _tick(watched, instance) == ([], [NOBODY_WATCHED])

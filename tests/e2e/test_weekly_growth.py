"""A corpus that grows from week to week: judges are asked about its new battles and no others."""

from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest
import yaml
from fault_server import Body, FaultServer, serving, shown_texts
from installation import Installation, contested, graded

from pipelines.definitions import build_definitions
from pipelines.instance.homes import open_instance
from pipelines.sensors.weekly import refreshed_corpora, weekly_refresh
from resources.config.catalog import Catalog

pytestmark = pytest.mark.slow

MONDAY = datetime(2031, 1, 6, 5, tzinfo=UTC)
N_FIRST, N_MORE = 300, 40


class Weeks:
    """An installation that a calendar drives: schedule, corpus job, sensor, a job per judge."""

    def __init__(self, installation: Installation) -> None:
        self.installation, self.week = installation, 0
        self.defs = build_definitions(tables=installation.tables)

    def run(self, job: str, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        by_itself = {"dagster/sensor_name": "refreshed_corpora"}  # as the daemon launches it
        return self.defs.resolve_job_def(job).execute_in_process(
            partition_key=request.partition_key, asset_selection=request.asset_selection,
            tags={**request.tags, **by_itself}, instance=self.installation.instance,
            raise_on_error=False,
        )  # fmt: skip

    def tick(self) -> list[tuple[str, bool]]:
        """Let a Monday pass; return the jobs that ran, in order, and whether they succeeded."""
        self.week += 1
        with dg.build_schedule_context(
            instance=self.installation.instance,
            scheduled_execution_time=MONDAY + timedelta(weeks=self.week),
        ) as context:  # which opens an instance of its own
            requests = list(weekly_refresh(context, catalog=Catalog()))
        ran = []
        for request in requests:
            if isinstance(request, dg.SkipReason):
                continue
            result = self.run("corpus_job", request)
            ran.append(("corpus_job", result.success))
            ran += self.follow(result) if result.success else []
        return ran

    def follow(self, result: dg.ExecuteInProcessResult) -> list[tuple[str, bool]]:
        with dg.build_run_status_sensor_context(
            "refreshed_corpora",
            result.get_run_success_event(),
            self.installation.instance,
            result.dagster_run,
        ) as context:
            requests = list(refreshed_corpora(context, catalog=Catalog()))
        wanted = [request for request in requests if isinstance(request, dg.RunRequest)]
        return [(str(r.job_name), self.run(str(r.job_name), r).success) for r in wanted]


def test_only_new_battles_are_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()

    def counting(body: Body) -> str:
        asked[shown_texts(body)[0]] += 1
        return graded(body)

    with serving(FaultServer(answer=counting)) as server, ExitStack() as opened:
        here = Installation(tmp_path / "here", server.url, N_FIRST)
        config = tmp_path / "here" / "config"
        corpora = yaml.safe_load((config / "corpora.yaml").read_text())
        corpora["c"] |= {"judges": ["j"], "refresh": {"budget": f"{2 * N_MORE}calls"}}
        (config / "corpora.yaml").write_text(yaml.safe_dump(corpora))
        for name, value in here.variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("DAGSTER_HOME", raising=False)
        here.instance = opened.enter_context(open_instance())
        assert here.run(select=["+leaderboard"]).exit_code == 0
        assert sum(asked.values()) == 2 * N_FIRST
        weeks = Weeks(here)

        assert weeks.tick() == []  # nothing is new

        asked.clear()
        more = contested(N_FIRST + N_MORE).tail(N_MORE).reset_index(drop=True)
        grown = _below(contested(N_FIRST), more)
        grown.to_parquet(tmp_path / "here" / "battles.parquet")
        assert weeks.tick() == [("corpus_job", True), ("judge_job", True)]
        assert set(asked) == set(more["instruction"])
        assert set(asked.values()) == {2}  # both orders, once each
        assert len(here.stored("battles", "c")) == N_FIRST + N_MORE
        assert here.metadata("verdicts")["n_asked"] == 2 * N_MORE
        assert here.metadata("verdicts")["expected_calls"] == 2 * N_MORE

        asked.clear()
        assert weeks.tick() == []
        assert not asked

        for mark in ("y", "z"):  # twice as many as the budget covers
            grown = _below(grown, more.assign(**_renamed(more, mark)))
        grown.to_parquet(tmp_path / "here" / "battles.parquet")
        assert weeks.tick() == [("corpus_job", True), ("judge_job", False)]  # beyond its budget
        assert sum(asked.values()) == 2 * N_MORE
        assert weeks.tick() == [("corpus_job", True), ("judge_job", True)]  # the rest, a week later
        assert sum(asked.values()) == 4 * N_MORE
        assert set(asked.values()) == {2}
        assert weeks.tick() == []


def _below(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([first, second], ignore_index=True)


def _renamed(battles: pd.DataFrame, mark: str) -> dict[str, pd.Series]:
    return {name: mark + battles[name] for name in ("battle_id", "instruction")}

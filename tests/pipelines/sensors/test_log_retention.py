"""Captured logs of runs that ended long ago are deleted; events never are."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from pipelines.sensors import log_retention
from pipelines.sensors.log_retention import (
    DEFAULT_DAYS,
    kept_days,
    old_evaluations,
    prune,
    prune_logs,
    weekly_pruning,
)

FUTURE = datetime.now(UTC) + timedelta(days=1)
PAST = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


@dg.job
def talk():
    @dg.op
    def say():
        print("said")  # noqa: T201

    say()


def captured(instance: dg.DagsterInstance, run_id: str) -> Path:
    return Path(instance.compute_log_manager._base_dir) / run_id


def left_logs(instance: dg.DagsterInstance, run_id: str) -> Path:
    folder = captured(instance, run_id) / "compute_logs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "step.out").write_text("said")
    return folder.parent


def test_only_logs_of_runs_that_ended_before_go_and_events_stay(instance):
    run = talk.execute_in_process(instance=instance)
    logs = left_logs(instance, run.run_id)
    n_events = len(instance.all_logs(run.run_id))
    assert prune(instance, PAST) == 0
    assert logs.exists()
    assert prune(instance, FUTURE) == 1
    assert not logs.exists()
    assert len(instance.all_logs(run.run_id)) == n_events
    assert prune(instance, FUTURE) == 1  # nothing left of it, which is no error


def test_logs_of_a_run_under_way_stay(instance):
    run = instance.create_run_for_job(talk)
    logs = left_logs(instance, run.run_id)
    assert prune(instance, FUTURE) == 0
    assert logs.exists()


def test_more_runs_than_a_page_are_all_found(instance, monkeypatch):
    monkeypatch.setattr("pipelines.sensors.log_retention._PAGE", 2)
    runs = [talk.execute_in_process(instance=instance).run_id for _ in range(5)]
    folders = [left_logs(instance, run_id) for run_id in runs]
    assert prune(instance, FUTURE) == 5
    assert not any(folder.exists() for folder in folders)


def test_days_are_read_from_the_environment(monkeypatch):
    monkeypatch.delenv("JUDGELINE_LOG_DAYS", raising=False)
    assert kept_days() == DEFAULT_DAYS
    monkeypatch.setenv("JUDGELINE_LOG_DAYS", "7")
    assert kept_days() == 7
    for wrong in ("0", "-3", "a week", "1.5"):
        monkeypatch.setenv("JUDGELINE_LOG_DAYS", wrong)
        with pytest.raises(ValueError, match=f"JUDGELINE_LOG_DAYS is '{wrong}'"):
            kept_days()


def test_the_job_runs_weekly_without_being_switched_on(instance):
    assert prune_logs.execute_in_process(instance=instance).success
    assert weekly_pruning.default_status == dg.DefaultScheduleStatus.RUNNING
    assert weekly_pruning.cron_schedule == "30 3 * * 0"


@dg.asset(automation_condition=dg.AutomationCondition.eager())
def follower():
    pass


def test_evaluations_of_conditions_are_kept_for_minutes(instance, monkeypatch):
    found = dg.evaluate_automation_conditions(defs=[follower], instance=instance).results
    storage = instance.schedule_storage
    storage.add_auto_materialize_asset_evaluations(
        1, [one.serializable_evaluation.with_run_ids(set()) for one in found]
    )
    look = dg.build_sensor_context(instance=instance)
    old_evaluations(look)
    assert len(storage.get_auto_materialize_asset_evaluations(follower.key, limit=5)) == 1
    monkeypatch.setattr(log_retention, "EVALUATIONS_KEPT", timedelta(seconds=-5))
    old_evaluations(look)
    assert storage.get_auto_materialize_asset_evaluations(follower.key, limit=5) == []

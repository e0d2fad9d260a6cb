"""Upkeep: whose runs are given up, what is tried again, which logs go, and how often it looks."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.events import EngineEventData

from judgeline.paths import ROOT
from pipelines.definitions import SENSORS, defs
from pipelines.instance import homes, processes
from pipelines.instance.homes import (
    HOST_TAG,
    PROCESS_TAG,
    in_process_on_named_host,
    is_gone,
    recover,
)
from pipelines.instance.processes import this_host
from pipelines.sensors import upkeep
from pipelines.sensors.durations import sensor_seconds
from pipelines.sensors.upkeep import (
    ask_again,
    kept_days,
    lost_runs,
    old_evaluations,
    prune,
    prune_logs,
    weekly_pruning,
)

NO_PROCESS = 2**22 + 1  # above the highest number that a process can have
FUTURE = datetime.now(UTC) + timedelta(days=1)
PAST = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


def started_run(instance: dg.DagsterInstance, pid: int, host: str | None = None) -> str:
    """A run that said in which process, and perhaps on which host, it is under way."""

    @dg.job
    def stuck(): ...

    tags = {HOST_TAG: host} if host else {}
    run = instance.create_run_for_job(stuck, tags=tags)
    metadata = {"pid": dg.MetadataValue.text(str(pid))}
    instance.report_engine_event("under way", run, EngineEventData(metadata=metadata))
    began = dg.DagsterEvent(dg.DagsterEventType.PIPELINE_START.value, "stuck")
    instance.report_dagster_event(began, run.run_id)
    return run.run_id


def tick(instance: dg.DagsterInstance) -> str:
    with dg.build_sensor_context(instance=instance, definitions=defs) as context:
        return lost_runs(context).skip_message


def status(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    return instance.get_run_by_id(run_id).status


def test_a_run_that_dies_before_it_begins_is_given_up_too(instance):
    @dg.job
    def stuck(): ...

    run = instance.create_run_for_job(stuck, status=dg.DagsterRunStatus.STARTING)
    assert tick(instance) == "no run of this host lost its process"  # it has not said which it is
    metadata = {"pid": dg.MetadataValue.text(str(NO_PROCESS))}
    instance.report_engine_event("started process", run, EngineEventData(metadata=metadata))
    assert tick(instance) == f"failed {run.run_id}"


def test_a_forgotten_attempt_is_asked_for_again_once(instance, monkeypatch):
    promised = {"dagster/will_retry": "true"}

    @dg.job
    def failed(): ...

    def run(**tags):
        return instance.create_run_for_job(
            failed, status=dg.DagsterRunStatus.FAILURE, tags=promised | tags
        ).run_id

    forgotten, retried = run(), run(**{"dagster/auto_retry_run_id": "another"})
    soon = datetime.now(UTC) + timedelta(minutes=1)
    assert ask_again(instance, soon) == []  # a terminal's: the daemon could not start them
    monkeypatch.setattr("pipelines.sensors.upkeep.is_typed", lambda run: False)
    assert ask_again(instance, datetime.now(UTC) - timedelta(minutes=1)) == []  # not yet
    assert ask_again(instance, soon) == [forgotten]
    failures = instance.get_records_for_run(
        forgotten, of_type=dg.DagsterEventType.RUN_FAILURE
    ).records
    assert len(failures) == 1  # what the daemon looks for
    assert ask_again(instance, soon) == []
    assert not instance.all_logs(retried)


def test_the_sensor_fails_runs_of_this_host_whose_process_is_gone(instance):
    ours = started_run(instance, NO_PROCESS, this_host())
    theirs = started_run(instance, NO_PROCESS, "another-host")
    alive = started_run(instance, os.getpid(), this_host())
    assert tick(instance) == f"failed {ours}"
    assert status(instance, ours) == dg.DagsterRunStatus.FAILURE
    assert status(instance, theirs) == dg.DagsterRunStatus.STARTED
    assert status(instance, alive) == dg.DagsterRunStatus.STARTED
    assert tick(instance) == "no run of this host lost its process"


def test_a_run_that_ends_while_it_is_looked_at_has_not_failed(instance, monkeypatch):
    run_id = started_run(instance, NO_PROCESS, this_host())
    listed = instance.get_runs()
    success = dg.DagsterEvent(dg.DagsterEventType.PIPELINE_SUCCESS.value, "stuck")
    instance.report_dagster_event(success, run_id)
    monkeypatch.setattr(instance, "get_runs", lambda filters: listed)  # a moment ago
    assert tick(instance) == "no run of this host lost its process"
    assert status(instance, run_id) == dg.DagsterRunStatus.SUCCESS


def test_a_run_that_names_no_host_is_ours_only_where_others_cannot_record(instance, monkeypatch):
    run = started_run(instance, NO_PROCESS)
    with monkeypatch.context() as patch:
        patch.setattr(homes, "is_private", lambda instance: False)  # as on PostgreSQL
        assert tick(instance) == "no run of this host lost its process"
    assert tick(instance) == f"failed {run}"


def test_the_sensor_leaves_other_launchers_to_run_monitoring(instance, monkeypatch):
    class ClusterLauncher: ...

    started_run(instance, NO_PROCESS, this_host())
    monkeypatch.setattr(type(instance), "run_launcher", property(lambda self: ClusterLauncher()))
    assert tick(instance) == "run monitoring watches the runs of ClusterLauncher"


def test_a_process_with_the_number_of_one_that_ended_is_another(instance, monkeypatch):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        run = started_run(instance, process.pid)
        assert not is_gone(instance, run)
        monkeypatch.setattr(processes, "_CLOCK_SLACK_S", -3600.0)  # as if it had spoken an hour ago
        assert is_gone(instance, run)
    finally:
        process.communicate(b"\n")


def test_a_process_that_ended_and_was_not_collected_is_gone(instance):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # wait, and leave it a zombie
    run = started_run(instance, ended.pid)
    assert recover(instance) == [run]
    assert recover(instance) == []
    ended.wait()


def test_a_step_of_the_clock_ends_no_run_and_a_number_given_again_does(instance, monkeypatch):
    """The run's process notes its start by ticks; an attempt takes over tags, and not its mark."""
    done = dg.execute_job(dg.reconstructable(looking), instance=instance)
    tags = instance.get_run_by_id(done.run_id).tags
    monkeypatch.setattr(processes, "_CLOCK_SLACK_S", -3600.0)  # the clock went an hour forward
    assert not is_gone(instance, done.run_id)
    _, pid, ticks, boot = tags[PROCESS_TAG].split()
    for other in (f"{pid} {int(ticks) + 1} {boot}", f"{pid} {ticks} another-boot", NO_PROCESS):
        instance.add_run_tags(done.run_id, {PROCESS_TAG: f"{done.run_id} {other}"})
        assert is_gone(instance, done.run_id)
    attempt = instance.create_run_for_job(looking, tags={PROCESS_TAG: tags[PROCESS_TAG]})
    assert not is_gone(instance, attempt.run_id)  # it has not said yet which process it is


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_a_process_began_when_it_was_started():
    before = time.time()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
        ticks = int(stat.rpartition(")")[2].split()[19])
        process.communicate(b"\n")
    assert processes._began(ticks) == pytest.approx(before, abs=30)  # the boot is known to a second


@dg.op
def look(context: dg.OpExecutionContext) -> None:
    assert context.instance.get_run_by_id(context.run_id).tags[HOST_TAG] == this_host()


@dg.job(executor_def=in_process_on_named_host)
def looking() -> None:
    look()


def test_a_launched_run_says_on_which_host_it_is(instance):
    result = dg.execute_job(dg.reconstructable(looking), instance=instance)
    assert result.success


@dg.job
def talk():
    @dg.op
    def say():
        print("said")  # noqa: T201

    say()


def left_logs(instance: dg.DagsterInstance, run_id: str) -> Path:
    folder = Path(instance.compute_log_manager._base_dir) / run_id / "compute_logs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "step.out").write_text("said")
    return folder.parent


def test_only_logs_of_runs_that_ended_before_go_and_events_stay(instance):
    run, begun = talk.execute_in_process(instance=instance), instance.create_run_for_job(talk)
    of_begun = left_logs(instance, begun.run_id)
    logs = left_logs(instance, run.run_id)
    n_events = len(instance.all_logs(run.run_id))
    assert prune(instance, PAST) == 0
    assert logs.exists()
    assert prune(instance, FUTURE) == 1
    assert not logs.exists()
    assert len(instance.all_logs(run.run_id)) == n_events
    assert prune(instance, FUTURE) == 1  # nothing left of it, which is no error
    assert of_begun.exists()  # its run is under way


def test_old_logs_of_ticks_go_and_new_ones_stay(instance):
    """A look of a sensor that logs leaves a file, whose key begins with the repository."""
    logs = Path(instance.compute_log_manager._base_dir) / "__repository__" / "sensor"
    logs.mkdir(parents=True)
    for name, moment in (("old", PAST), ("new", FUTURE)):
        (logs / f"{name}.err").write_text("said")
        os.utime(logs / f"{name}.err", (moment.timestamp(), moment.timestamp()))
    prune(instance, datetime.now(UTC))
    assert [file.name for file in logs.iterdir()] == ["new.err"]


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
    monkeypatch.setattr(upkeep, "EVALUATIONS_KEPT", timedelta(seconds=-5))
    old_evaluations(look)
    assert storage.get_auto_materialize_asset_evaluations(follower.key, limit=5) == []


LISTED = """
from pipelines.definitions import SENSORS
print(*(f"{one.name}={one.minimum_interval_seconds}" for one in SENSORS))
"""


def test_every_sensor_looks_as_often_as_the_environment_says() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTED],
        cwd=ROOT,
        env={**os.environ, "JUDGELINE_SENSOR_SECONDS": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = {name: int(value) for name, value in (one.split("=") for one in done.stdout.split())}
    each, purge = {sensor.name for sensor in SENSORS}, {"old_evaluations": 120}
    assert found == dict.fromkeys(each, 7) | {"lost_runs": 14} | purge


@pytest.mark.parametrize(
    ("variable", "read", "default"),
    [("JUDGELINE_SENSOR_SECONDS", sensor_seconds, 30), ("JUDGELINE_LOG_DAYS", kept_days, 90)],
)
def test_durations_are_whole_numbers_of_the_environment(variable, read, default, monkeypatch):
    for unset in (None, ""):
        monkeypatch.delenv(variable, raising=False) if unset is None else monkeypatch.setenv(
            variable, unset
        )
        assert read() == default
    monkeypatch.setenv(variable, "7")
    assert read() == 7
    for wrong in ("0", "-3", "2.5", "soon"):
        monkeypatch.setenv(variable, wrong)
        with pytest.raises(ValueError, match=rf"{variable} is '{wrong}'.*unset"):
            read()

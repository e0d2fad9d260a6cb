"""The Dagster instance of this installation: where runs are recorded, and clearing up after one."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from resources.paths import ROOT, home

_DEFAULT_HOME = ".judgeline"
_NOT_CAPTURED = {
    "module": "dagster.core.storage.noop_compute_log_manager",
    "class": "NoOpComputeLogManager",
}


def prepare_home() -> Path:
    """Return the folder to use as DAGSTER_HOME; one that is set already is left alone.

    Otherwise it is the home of this installation, into which the root's ``dagster.yaml`` is
    written with its folders made absolute: Dagster would read them relative to the current
    folder of every process.
    """
    if chosen := os.environ.get("DAGSTER_HOME"):
        return Path(chosen)
    settings = yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))
    return _write(_absolute(settings, home()), "dagster.yaml")


def open_instance() -> dg.DagsterInstance:
    """Return the persistent instance that `judgeline run` and the UI share; close it after use.

    Capturing what steps print takes processes of their own, which an interrupt at the terminal
    would reach too. Here the terminal shows it already, so that it is not captured.
    """
    folder = prepare_home()
    if "DAGSTER_HOME" in os.environ:
        return dg.DagsterInstance.from_config(str(folder))
    settings = yaml.safe_load((folder / "dagster.yaml").read_text(encoding="utf-8"))
    _write({**settings, "compute_logs": _NOT_CAPTURED}, "run.yaml")
    return dg.DagsterInstance.from_config(str(folder), "run.yaml")


def recover(instance: dg.DagsterInstance) -> list[str]:
    """Fail the runs whose process is gone, free what they held, and return their ids.

    A killed process leaves its run STARTED for ever, and with it a slot of every pool it was
    in. Runs of live processes, and runs that never said which process they are, stay as they
    are. For instances whose runs all happen on this host.
    """
    unfinished = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    gone = []
    for run in instance.get_runs(dg.RunsFilter(statuses=unfinished)):
        pids = set(_worker_pids(instance, run.run_id))
        if pids and not any(_is_alive(pid) for pid in pids):
            instance.report_run_failed(run, "The process of this run is gone.")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            gone.append(run.run_id)
    return gone


def _write(settings: dict[str, Any], name: str) -> Path:
    """Write an instance file into the home, whole or not at all, and return the home."""
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"cannot keep runs and tables in {folder} ({error.strerror}); set JUDGELINE_HOME to a "
            "folder that can be written"
        ) from error
    part = folder / f"{name}.{os.getpid()}.part"
    part.write_text(yaml.safe_dump(settings), encoding="utf-8")
    part.replace(folder / name)
    return folder


def _absolute(settings: Any, folder: Path) -> Any:
    if isinstance(settings, dict):
        return {name: _absolute(value, folder) for name, value in settings.items()}
    if isinstance(settings, str) and settings.startswith(f"{_DEFAULT_HOME}/"):
        return str(folder.absolute() / settings.removeprefix(f"{_DEFAULT_HOME}/"))
    return settings


def _worker_pids(instance: dg.DagsterInstance, run_id: str) -> Iterator[int]:
    events = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
    for record in events.records:
        metadata = record.event_log_entry.dagster_event.event_specific_data.metadata
        if "pid" in metadata:
            yield int(metadata["pid"].value)


def _is_alive(pid: int) -> bool:
    """Return whether a process runs; one that ended and waits to be collected does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False if Path("/proc/self").exists() else _answers(pid)
    return stat.rpartition(")")[2].split()[0] != "Z"


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

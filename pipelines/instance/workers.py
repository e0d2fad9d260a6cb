"""Workers of runs: their host and process, and whether they are alive."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg

HOST_TAG = "judgeline/host"
"""Tag of a run with the name of the host on which its worker runs."""
ENDED = {dg.DagsterRunStatus[name] for name in ("SUCCESS", "FAILURE", "CANCELED")}
UNFINISHED = [status for status in dg.DagsterRunStatus if status not in ENDED]

_CLOCK_SLACK_S = 60.0


class Worker(NamedTuple):
    """A process that works on a run, and the time of that record in seconds since the epoch."""

    pid: int
    told_at: float


def compute_in_one_thread() -> None:
    """Have numpy compute in one thread where the environment names no number; before its import.

    The lineage's matrices are narrow: threads would wait for each other, three times as long in
    all, and the last bits of ratings would depend on the number of cores.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def this_host() -> str:
    """Return the name under which runs of this host are known."""
    return socket.gethostname()


def is_here(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Return whether a run's worker is, or was, a process of this host.

    A run that does not say where it runs is one of this host only where nobody else can record
    runs: in a file, or in memory.
    """
    named = run.tags.get(HOST_TAG)
    return is_private(instance) if named is None else named == this_host()


def is_gone(instance: dg.DagsterInstance, run_id: str) -> bool:
    """Return whether all recorded processes of a run have ended.

    False for a run of which none has said so.
    """
    workers = list(_workers(instance, run_id))
    return bool(workers) and not any(_is_alive(worker) for worker in workers)


def is_private(instance: dg.DagsterInstance) -> bool:
    """Return whether only this host can record runs: in SQLite files, or in memory."""
    return "sqlite" in type(instance.run_storage).__name__.lower() or instance.is_ephemeral


def _workers(instance: dg.DagsterInstance, run_id: str) -> Iterator[Worker]:
    events = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
    for record in events.records:
        entry: Any = record.event_log_entry
        metadata = entry.dagster_event.event_specific_data.metadata
        if "pid" in metadata:
            yield Worker(int(metadata["pid"].value), entry.timestamp)


def _is_alive(worker: Worker) -> bool:
    """Return whether a worker runs; one that ended and waits to be collected does not.

    Numbers of processes are given again, after a restart of the machine to any: a process that
    began after the worker spoke is another one.
    """
    try:
        stat = Path(f"/proc/{worker.pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False if Path("/proc/self").exists() else _answers(worker.pid)
    fields = stat.rpartition(")")[2].split()
    return fields[0] != "Z" and _began(int(fields[19])) <= worker.told_at + _CLOCK_SLACK_S


def _began(ticks: int) -> float:
    """Return when a process began, in seconds since the epoch, from its ticks since the boot."""
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    booted = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    return booted + ticks / os.sysconf("SC_CLK_TCK")


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class OnNamedHost(dg.Executor):
    """An executor that first tags the run with its host, and leaves the rest to another.

    The tag says who may find that the run's process is gone: see `recover`.
    """

    def __init__(self, inner: dg.Executor) -> None:
        self._inner = inner

    @property
    def retries(self) -> Any:
        """Whether steps are retried: as the inner executor says."""
        return self._inner.retries

    @property
    def step_dependency_config(self) -> Any:
        """What steps wait for: as the inner executor says."""
        return self._inner.step_dependency_config

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        """Tag the run, then execute it; yields what the inner executor yields."""
        plan_context.instance.add_run_tags(plan_context.run_id, {HOST_TAG: this_host()})
        yield from self._inner.execute(plan_context, execution_plan)


@dg.executor("in_process", dg.in_process_executor.config_schema)  # type: ignore[call-overload]
def in_process_on_named_host(context: dg.InitExecutorContext) -> dg.Executor:
    """Execute the steps one after another in the run's process, which says where it is."""
    make: Any = dg.in_process_executor.executor_creation_fn
    return OnNamedHost(make(context))

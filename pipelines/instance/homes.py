"""The Dagster instance of this installation: its files, its workers, and clearing up after one."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import yaml
from filelock import FileLock

from judgeline.atomic import make_durable_folder
from judgeline.paths import ROOT, home, in_home
from pipelines.instance.processes import is_alive, mark_of, this_host

HOST_TAG = "judgeline/host"
"""Tag of a run with the name of the host on which its worker runs."""
PROCESS_TAG = "judgeline/process"
"""Tag of a run with its id, since attempts take over tags, and the mark of its process."""
ENDED = {dg.DagsterRunStatus[name] for name in ("SUCCESS", "FAILURE", "CANCELED")}
UNFINISHED = [status for status in dg.DagsterRunStatus if status not in ENDED]


def compute_in_one_thread() -> None:
    """Have numpy compute in one thread where the environment names no number; before its import.

    The lineage's matrices are narrow: threads would wait for each other, three times as long in
    all, and the last bits of ratings would depend on the number of cores.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def is_here(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Return whether a run's worker is, or was, a process of this host.

    A run that does not say where it runs is one of this host only where nobody else can record
    runs: in a file, or in memory.
    """
    named = run.tags.get(HOST_TAG)
    return is_private(instance) if named is None else named == this_host()


def is_gone(instance: dg.DagsterInstance, run_id: str) -> bool:
    """Return whether a run has recorded processes, and all of them have ended."""
    run = instance.get_run_by_id(run_id)
    named, _, mark = (run.tags.get(PROCESS_TAG, "") if run else "").partition(" ")
    if named == run_id:
        return mark_of(int(mark.split()[0])) != mark
    workers = list(_workers(instance, run_id))
    return bool(workers) and not any(is_alive(*worker) for worker in workers)


def is_private(instance: dg.DagsterInstance) -> bool:
    """Return whether only this host can record runs: in SQLite files, or in memory."""
    return "sqlite" in type(instance.run_storage).__name__.lower() or instance.is_ephemeral


def _workers(instance: dg.DagsterInstance, run_id: str) -> Iterator[tuple[int, float]]:
    """Yield the processes of a run, and when each said so in seconds since the epoch."""
    events = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
    for record in events.records:
        entry: Any = record.event_log_entry
        metadata = entry.dagster_event.event_specific_data.metadata
        if "pid" in metadata:
            yield int(metadata["pid"].value), entry.timestamp


class OnNamedHost(dg.Executor):
    """An executor that tags the run with its place, for `recover`; the rest another does."""

    def __init__(self, inner: dg.Executor) -> None:
        self._inner = inner

    @property
    def retries(self) -> Any:
        """Return the retry mode of the inner executor."""
        return self._inner.retries

    @property
    def step_dependency_config(self) -> Any:
        """Return the dependency rule of the inner executor."""
        return self._inner.step_dependency_config

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        """Tag the run with its host and process, then yield the events of the inner executor."""
        run_id, mark = plan_context.run_id, mark_of(os.getpid())
        place = {HOST_TAG: this_host(), PROCESS_TAG: f"{run_id} {mark}"}
        plan_context.instance.add_run_tags(run_id, place)
        yield from self._inner.execute(plan_context, execution_plan)


@dg.executor("in_process", dg.in_process_executor.config_schema)  # type: ignore[call-overload]
def in_process_on_named_host(context: dg.InitExecutorContext) -> dg.Executor:
    """Execute the steps one after another in the run's process, which says where it is."""
    make: Any = dg.in_process_executor.executor_creation_fn
    return OnNamedHost(make(context))


POSTGRES = (
    "DAGSTER_PG_HOST",
    "DAGSTER_PG_PORT",
    "DAGSTER_PG_DB",
    "DAGSTER_PG_USERNAME",
    "DAGSTER_PG_PASSWORD",
)
"""Variables of a PostgreSQL server: all are needed; the first chooses it instead of SQLite."""
_PATIENCE_S = 10
_NOT_CAPTURED = {
    "module": "dagster.core.storage.noop_compute_log_manager",
    "class": "NoOpComputeLogManager",
}


def prepare_home() -> Path:
    """Return the folder to use as DAGSTER_HOME; one that is set already is left alone.

    Otherwise it is the home of this installation, into which the root's ``dagster.yaml`` is
    written with its folders made absolute: Dagster would read them relative to the current
    folder of every process. Where the environment chooses PostgreSQL it is the file that is
    made for it, which holds the names of variables and no password.
    """
    if chosen := os.environ.get("DAGSTER_HOME"):
        return Path(chosen)
    file = ROOT / "dagster.yaml"
    if os.environ.get(POSTGRES[0]):
        require_postgres()
        file = ROOT / "deploy" / "dagster.postgres.yaml"
    settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    return _write(_absolute(settings), "dagster.yaml")


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
    with FileLock(folder / ".opening.lock"):  # two programs would both make a new home's tables
        instance = dg.DagsterInstance.from_config(str(folder), "run.yaml")
        instance.get_dynamic_partitions("none")  # the first question makes them
    return instance


def recover(instance: dg.DagsterInstance) -> list[str]:
    """Fail the runs whose process is gone, free their places in pools, and return their ids.

    A killed process leaves its run STARTED for ever, and with it a slot of every pool it was
    in. Runs of live processes, runs of other hosts, and runs that never said which process or
    host they are of, stay as they are; run monitoring gives up those that never begin.
    """
    unfinished = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    if is_private(instance):  # elsewhere a run that begins may not have said yet where it is
        unfinished.append(dg.DagsterRunStatus.STARTING)
    gone = []
    for run in instance.get_runs(dg.RunsFilter(statuses=unfinished)):
        if not (is_here(instance, run) and is_gone(instance, run.run_id)):
            continue
        now = instance.get_run_by_id(run.run_id)  # it may have ended since it was listed
        if now is not None and now.status in unfinished:
            instance.report_run_failed(run, "The process of this run is gone.")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            gone.append(run.run_id)
    return gone


def _write(settings: dict[str, Any], name: str) -> Path:
    """Write an instance file into the home, whole or not at all, and return the home."""
    folder = home()
    try:
        make_durable_folder(folder)
    except OSError as error:
        raise ValueError(
            f"cannot keep runs and tables in {folder} ({error.strerror}); set JUDGELINE_HOME to a "
            "folder that can be written"
        ) from error
    part = folder / f"{name}.{os.getpid()}.part"
    part.write_text(yaml.safe_dump(settings), encoding="utf-8")
    part.replace(folder / name)
    return folder


def _absolute(settings: Any) -> Any:
    if isinstance(settings, dict):
        return {name: _absolute(value) for name, value in settings.items()}
    return in_home(settings) if isinstance(settings, str) else settings


def require_postgres() -> None:
    """Wait for a connection to the PostgreSQL server that the environment names."""
    host, port, database, user, password = _postgres_settings()
    try:
        import dagster_postgres  # noqa: F401  the instance file needs it
        import psycopg2
    except ImportError as error:
        raise ValueError(
            f"{POSTGRES[0]} is set, but {error.name} is not installed; install what PostgreSQL "
            "needs with: pip install -c constraints.txt -e '.[app,postgres]'"
        ) from error
    try:
        psycopg2.connect(
            host=host,
            port=port,
            dbname=database,
            user=user,
            password=password,
            connect_timeout=_PATIENCE_S,
        ).close()
    except psycopg2.OperationalError as error:
        answer = " ".join(str(error).replace(password, "[password]").split())
        raise ValueError(
            f"user {user!r} cannot reach database {database!r} of PostgreSQL at {host}:{port} "
            f"({answer}); see whether it runs and has that user and database, correct "
            f"{', '.join(POSTGRES)}, or unset {POSTGRES[0]} to keep runs in SQLite"
        ) from None


def _postgres_settings() -> tuple[str, int, str, str, str]:
    given = {name: os.environ.get(name, "") for name in POSTGRES}
    if missing := [name for name, value in given.items() if not value]:
        raise ValueError(
            f"{POSTGRES[0]} chooses PostgreSQL, which also needs {', '.join(missing)}: set them, "
            f"or unset {POSTGRES[0]} to keep runs in SQLite"
        )
    host, port, database, user, password = given.values()
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{POSTGRES[1]} is {port!r}, not a port from 1 to 65535; correct it")
    return host, int(port), database, user, password

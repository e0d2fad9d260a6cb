"""The event log over kept connections: as safe as Dagster's own, with several processes."""

import inspect
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage

from pipelines.instance.homes import open_instance
from pipelines.instance.storage import OPEN_FILES, PooledEventLog, SqliteStorage

ROOT = Path(__file__).resolve().parents[3]


def line(run_id: str, text: str) -> EventLogEntry:
    return EventLogEntry(
        error_info=None, level=20, user_message=text, run_id=run_id, timestamp=time.time(),
        step_key=None, job_name="job", dagster_event=None,
    )  # fmt: skip


def texts(log: SqliteEventLogStorage, run_id: str) -> list[str]:
    records = log.get_records_for_run(run_id).records
    return [record.event_log_entry.user_message for record in records]


@pytest.fixture
def log(tmp_path):
    log = PooledEventLog(str(tmp_path))
    yield log
    log.dispose()


@pytest.fixture
def connections(monkeypatch):
    """Every connection to SQLite from here on."""
    made, connect = [], sqlite3.dbapi2.connect

    def counted(*args, **options):
        made.append(args)
        return connect(*args, **options)

    monkeypatch.setattr(sqlite3.dbapi2, "connect", counted)
    return made


def test_the_installation_keeps_its_connections(tmp_path, monkeypatch, connections):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.delenv("DAGSTER_PG_HOST", raising=False)
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path))
    with open_instance() as instance:
        log = instance.event_log_storage
        log.store_event(line("run", "first"))
        instance.add_dynamic_partitions("corpus", ["tiny"])
        assert [*instance.get_runs(), *instance.all_instigator_state()] == []
        assert instance.has_dynamic_partition("corpus", "tiny")
        connections.clear()
        for number in range(20):
            log.store_event(line("run", str(number)))
            assert instance.has_dynamic_partition("corpus", "tiny")
            assert [*instance.get_runs(), *instance.all_instigator_state()] == []
        assert len(connections) == 0
        assert texts(log, "run") == ["first", *map(str, range(20))]
    assert (tmp_path / "storage" / "history" / "runs" / "run.db").exists()


def test_a_fork_reads_runs_over_connections_of_its_own(tmp_path):
    runs = SqliteStorage(str(tmp_path)).run_storage
    runs.set_cursor_values({"a": "parent"})
    child = os.fork()
    if not child:  # pragma: no cover  in a process of its own
        try:
            seen = runs.get_cursor_values({"a"})
            runs.set_cursor_values({"a": "child"})
            runs.dispose()
            os._exit(seen != {"a": "parent"})
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert runs.get_cursor_values({"a"}) == {"a": "child"}
    runs.dispose()
    assert not [name for name in open_files(tmp_path) if name.startswith("runs.db")]


REPLACED = {
    "__init__": "self base_dir inst_data",
    "_connect": "self shard",
    "_initdb": "self engine for_index_shard",
    "path_for_shard": "self run_id",
    "conn_string_for_shard": "self shard_name",
    "store_event": "self event",
    "delete_events": "self run_id",
    "wipe": "self",
    "dispose": "self",
    "has_table": "self table_name",
}


def test_the_methods_of_dagster_that_are_replaced_or_used_are_as_they_were():
    found = {
        name: " ".join(inspect.signature(getattr(SqliteEventLogStorage, name)).parameters)
        for name in REPLACED
    }
    assert found == REPLACED


def test_dagster_opens_every_file_by_the_method_that_is_replaced(log):
    source = inspect.getsource(SqliteEventLogStorage)
    assert "self._connect(run_id)" in source
    assert "self._connect(INDEX_SHARD_NAME)" in source
    assert isinstance(log._db_lock, type(threading.Lock()))
    assert isinstance(log._base_dir, str)


def test_the_journal_is_kept_and_not_forced(log):
    with log.index_connection() as connection:
        modes = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous")
        ]
    assert modes == ["wal", 1]


WRITER = """
import sys
sys.path.insert(0, "tests/pipelines/instance")
from test_storage import line
from pipelines.instance.storage import PooledEventLog
folder, name = sys.argv[1:]
log = PooledEventLog(folder)
number = 0
while True:
    log.store_event(line("shared", f"{name} {number}"))
    log.store_event(line(name, f"{name} {number}"))
    print(number, flush=True)  # acknowledged
    number += 1
"""


def test_no_acknowledged_event_is_lost_when_a_process_is_killed(tmp_path, log):
    log.store_event(line("shared", "here"))  # its connections stay open all along
    writers = {
        name: subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", WRITER, str(tmp_path), name],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=(tmp_path / f"{name}.err").open("w", encoding="utf-8"),
            text=True,
        )
        for name in ("killed", "other", "third")
    }
    for name, writer in writers.items():  # the killed one while the others write on
        told = [writer.stdout.readline() for _ in range(60)]
        assert all(told), (tmp_path / f"{name}.err").read_text(encoding="utf-8")
        writer.send_signal(signal.SIGKILL)
        told += writer.stdout.readlines()
        writer.wait()
        acknowledged = [f"{name} {number}" for number in range(len(told))]
        for reader in (log, SqliteEventLogStorage(str(tmp_path))):
            assert texts(reader, name)[: len(told)] == acknowledged
            assert set(acknowledged) <= set(texts(reader, "shared"))
    with sqlite3.connect(tmp_path / "shared.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_threads_share_a_log(log):
    def write(name):
        for number in range(30):
            log.store_event(line("run", f"{name} {number}"))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    assert sorted(texts(log, "run")) == sorted(f"{n} {i}" for n in range(6) for i in range(30))


def test_a_fork_opens_connections_of_its_own(tmp_path, log):
    log.store_event(line("run", "parent"))
    child = os.fork()
    if not child:  # pragma: no cover  in a process of its own
        try:
            log.store_event(line("run", "child"))
            log.dispose()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    log.store_event(line("run", "parent again"))
    assert texts(SqliteEventLogStorage(str(tmp_path)), "run") == ["parent", "child", "parent again"]


def open_files(folder: Path) -> set[str]:
    names = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except FileNotFoundError:
            continue
        if target.startswith(str(folder)):
            names.add(Path(target).name)
    return names


def test_few_files_stay_open_and_old_runs_are_read_again(tmp_path, log):
    runs = [f"run{number}" for number in range(3 * OPEN_FILES)]
    for run in runs:
        log.store_event(line(run, run))
    assert len({name.split(".")[0] for name in open_files(tmp_path)}) <= OPEN_FILES
    assert [texts(log, run) for run in runs] == [[run] for run in runs]
    log.dispose()
    assert open_files(tmp_path) == set()


def test_a_deleted_run_is_closed(tmp_path, log):
    log.store_event(line("run", "gone"))
    log.delete_events("run")
    assert not any(name.startswith("run") for name in open_files(tmp_path))
    assert texts(log, "run") == []


@pytest.mark.parametrize("whose", ["own", "another's"])
def test_a_wiped_log_takes_events_again(tmp_path, log, whose):
    log.store_event(line("run", "before"))
    (log if whose == "own" else SqliteEventLogStorage(str(tmp_path))).wipe()
    log.store_event(line("run", "after"))
    assert texts(SqliteEventLogStorage(str(tmp_path)), "run") == ["after"]


@pytest.mark.parametrize("whose", ["own", "another's"])
def test_a_deleted_partition_is_forgotten(tmp_path, log, whose):
    log.add_dynamic_partitions("judge", ["one", "two"])
    assert log.has_dynamic_partition("judge", "one")
    assert log.has_dynamic_partition("judge", "one")
    deleting = log if whose == "own" else SqliteEventLogStorage(str(tmp_path))
    deleting.delete_dynamic_partition("judge", "one")
    assert not log.has_dynamic_partition("judge", "one")
    assert log.has_dynamic_partition("judge", "two")
    deleting.add_dynamic_partitions("judge", ["one"])
    assert log.has_dynamic_partition("judge", "one")


def test_a_run_is_watched_while_its_writer_keeps_its_connection(tmp_path, log):
    watching, seen = PooledEventLog(str(tmp_path)), []
    log.store_event(line("run", "first"))
    watching.watch("run", None, lambda event, _cursor: seen.append(event.user_message))
    for text in ("second", "third"):
        log.store_event(line("run", text))
    until = time.monotonic() + 20
    while "third" not in seen and time.monotonic() < until:
        time.sleep(0.02)
    watching.dispose()
    assert seen == ["first", "second", "third"]

"""Runs, events and schedules in SQLite over kept connections.

Dagster opens a connection for every event and every question, and closes it again, which writes
the whole journal back each time. Here the event log keeps one connection to each of the files
that were used last, and runs and schedules keep theirs.
"""

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.compute_log_manager import ComputeLogManager
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.runs import SqliteRunStorage
from dagster._core.storage.schedules import SqliteScheduleStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.event import listen
from sqlalchemy.pool import QueuePool

from judgeline.paths import in_home

_OF_TICKS = SINGLETON_REPOSITORY_NAME  # first part of the key of a tick's log; of a run's, its id
OPEN_FILES = 8
"""Files of events that stay open in a process, of one run each; three descriptors a file."""


class SqliteStorage(DagsterSqliteStorage):
    """Dagster's SQLite files, at Dagster's places, over connections that are kept."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(base_dir, inst_data)
        self._run_storage = KeptRuns(self._run_storage._conn_string)
        self._schedule_storage = KeptSchedules(self._schedule_storage._conn_string)
        self._event_log_storage = PooledEventLog(self._event_log_storage._base_dir)

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> "SqliteStorage":
        """Return the storage that an instance file describes."""
        return cls.from_local(in_home(config_value["base_dir"]), inst_data=inst_data)


class _Kept:
    """A file of Dagster's over connections that are kept; a fork leaves them to its parent."""

    def __init__(self, conn_string: str) -> None:
        self._pid, self._of_parents = os.getpid(), list[Engine]()
        self._engine = _engine(conn_string)
        super().__init__(conn_string)  # type: ignore[call-arg]

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Give a connection in a transaction."""
        if self._pid != os.getpid():
            self._of_parents.append(self._engine)
            self._pid, self._engine = os.getpid(), _engine(str(self._engine.url))
        with self._engine.begin() as connection:
            yield connection

    def dispose(self) -> None:
        """Close the connections of this process."""
        if self._pid == os.getpid():
            self._engine.dispose()


class KeptRuns(_Kept, SqliteRunStorage):
    """Dagster's file of runs."""


class KeptSchedules(_Kept, SqliteScheduleStorage):
    """Dagster's file of sensors, schedules and their ticks."""


class ComputeLogs(LocalComputeLogManager):
    """Dagster's files of captured output, in the home also where `dg dev` starts the instance."""

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> "ComputeLogs":
        """Return the manager that an instance file describes."""
        return cls(in_home(config_value["base_dir"]), inst_data=inst_data)


def delete_logs_of_ticks(manager: ComputeLogManager, before: float) -> int:
    """Delete files of what sensors and schedules logged before a time; return how many."""
    if not isinstance(manager, LocalComputeLogManager):
        return 0
    files = [file for file in Path(manager._base_dir, _OF_TICKS).rglob("*") if file.is_file()]
    old = [file for file in files if file.stat().st_mtime < before]
    for file in old:
        file.unlink(missing_ok=True)
    return len(old)


class PooledEventLog(SqliteEventLogStorage):
    """The event log in SQLite, a file per run and an index, over connections that are kept.

    A commit is in the journal before it is acknowledged, so that it survives a process that is
    killed at any moment; the journal is not forced to the disk at each commit, so that a power
    cut may take the last ones. Dagster's lock lets one thread in at a time. A file that another
    process deleted or replaced is opened anew, and a fork leaves connections to its parent.
    """

    def __init__(self, base_dir: str) -> None:
        self._pid = os.getpid()
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        self._files: dict[str, tuple[int, int] | None] = {}
        self._of_parents: list[object] = []
        self._tables: set[str] = set()
        super().__init__(base_dir)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        self._leave_to_parent()
        with self._db_lock, self._engine_of(shard).begin() as connection:
            yield connection

    def store_event(self, event: EventLogEntry) -> None:
        """Store an event, and touch the run's file: the interface watches it for live logs."""
        super().store_event(event)
        with suppress(FileNotFoundError):
            os.utime(self.path_for_shard(event.run_id))

    def has_table(self, table_name: str) -> bool:
        """Return whether the index has a table; one that it has, it keeps."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    def delete_events(self, run_id: str) -> None:
        """Delete the events of a run, and close its file."""
        super().delete_events(run_id)
        with self._db_lock:
            self._close(run_id)

    def wipe(self) -> None:
        """Delete all events, having closed all files."""
        self._close_all()
        super().wipe()

    def dispose(self) -> None:
        """Close all files, and stop to watch them."""
        self._close_all()
        super().dispose()

    def _engine_of(self, shard: str) -> Engine:
        """Return the engine of a file, having closed the one that was not used for longest."""
        if self._files.get(shard) != self._file(shard):  # new, deleted or replaced
            self._close(shard)
            self._files.pop(shard, None)
        engine = self._engines.pop(shard, None) or self._opened(shard)
        self._engines[shard] = engine
        while len(self._engines) > OPEN_FILES:
            self._close(next(iter(self._engines)))
        return engine

    def _opened(self, shard: str) -> Engine:
        engine = _engine(self.conn_string_for_shard(shard))
        if shard not in self._files:
            self._initdb(engine)
            self._files[shard] = self._file(shard)
        return engine

    def _file(self, shard: str) -> tuple[int, int] | None:
        try:
            status = os.stat(self.path_for_shard(shard))
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _close(self, shard: str) -> None:
        if engine := self._engines.pop(shard, None):
            engine.dispose()

    def _close_all(self) -> None:
        self._leave_to_parent()
        with self._db_lock:
            for shard in list(self._engines):
                self._close(shard)

    def _leave_to_parent(self) -> None:
        """Start anew after a fork; to close a parent's connection would disturb the parent."""
        if self._pid != os.getpid():
            self._pid, self._db_lock = os.getpid(), Lock()
            self._of_parents.append(self._engines)
            self._engines = OrderedDict()


def _engine(url: str) -> Engine:
    """Return an engine that keeps one connection; SQLite's schema tools use a second at times."""
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=-1,
        connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
    )
    listen(engine, "connect", _set_synchronous)
    return engine


def _set_synchronous(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")

"""A folder of rows for each key: many processes add rows, and no row is ever changed."""

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from upath import UPath

from judgeline.atomic import make_durable_folder, write_whole
from judgeline.judges.store.journal import NO_ROW, Journal

_LOCK, _JOURNAL = ".lock", ".journal"
_SMALL_BYTES = 1 << 20
_ATTEMPTS = 20


class Scan(NamedTuple):
    """Rows of a scan, and the damaged or unfinished files without any."""

    table: pa.Table
    damaged: tuple[str, ...]
    unfinished: tuple[str, ...]


class KeyedStore:
    """The rows under a local folder or URI, by key; many processes may read and write at a time.

    A kind of row derives from this class. `row` names the columns, `identity` among them, that
    tell two rows apart: equal ones are copies of one. Columns of `later` are null in older shards
    that lack them. `what` is stored, in the plural; the environment `variable` says where.
    """

    schema: ClassVar[pa.Schema]
    row: ClassVar[tuple[str, ...]]
    later: ClassVar[frozenset[str]] = frozenset()
    what: ClassVar[str]
    variable: ClassVar[str]

    def __init__(self, base: UPath) -> None:
        self.base = base

    @contextlib.contextmanager
    def exclusive(self, key: str, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
        """Hold the lock of a key, so that no other process of this machine buys under it.

        The lock goes with the process, however it ends; rows that it had not stored are stored now.
        Object storage has neither.
        """
        if not is_local(self.base):
            yield
            return
        self.prepare(key)
        lock = FileLock(Path(self.base.path) / key / _LOCK)
        try:
            held = lock.acquire(blocking=False)
        except Timeout:
            if on_wait:
                on_wait()
            held = lock.acquire()
        with held:
            self._store_journal(key)
            yield

    def journal(self, key: str) -> Journal:
        """Return the journal of a key, which outlives a kill on a local disk alone."""
        folder = self.base / key
        return Journal(Path(folder.path) / _JOURNAL if is_local(folder) else None, self.schema)

    def _store_journal(self, key: str) -> None:
        journal = self.journal(key)
        if (left := journal.rows()).num_rows:
            write_shard(self.base / key, left)
        journal.clear()

    @contextlib.contextmanager
    def buying(
        self, key: str, is_lacking: Callable[[], bool], on_wait: Callable[[], None] | None
    ) -> Iterator[bool]:
        """Yield whether anything is lacking, under the lock of its key if so.

        A store that lacks nothing is only read. After a wait it is looked into once more: another
        process may have bought what was lacking.
        """
        if not is_lacking():
            yield False
            return
        with self.exclusive(key, on_wait):
            yield is_lacking()

    def prepare(self, key: str) -> None:
        """Make the folder of a key so that it survives a power cut; object storage has none.

        OSError where nothing could be stored.
        """
        folder, what, variable = self.base / key, self.what, self.variable
        if not is_local(folder):
            _require_writable(folder, what, variable)
            return
        local = Path(folder.path)
        if file := next((one for one in (local, *local.parents) if one.is_file()), None):
            raise FileExistsError(
                f"{file} is a file, and {what} are stored in a folder of that name; move it away, "
                f"or set {variable} to another place"
            )
        make_durable_folder(local)
        if not os.access(folder.path, os.W_OK | os.X_OK):
            raise PermissionError(
                f"cannot write to {folder}, where {what} are stored; change its permissions, or "
                f"copy all {what} to another place and set {variable} to it"
            )

    def append(self, key: str, rows: Sequence[Mapping[str, Any]]) -> UPath:
        """Store rows; when this returns, no kill of the process can lose them."""
        try:
            table = pa.Table.from_pylist(list(rows), self.schema)
        except NO_ROW:
            self._append_singly(key, rows)
            raise
        return write_shard(self.base / key, table)

    def _append_singly(self, key: str, rows: Sequence[Mapping[str, Any]]) -> None:
        fitting = []
        for row in rows:
            with contextlib.suppress(*NO_ROW):
                fitting.append(pa.Table.from_pylist([row], self.schema))
        if fitting:
            write_shard(self.base / key, pa.concat_tables(fitting))

    def scan(self, key: str, columns: Sequence[str], among: pa.Array | None = None) -> Scan:
        """Return some columns of everything stored under a key, or `among` identities.

        Rows in the journal are returned, too: a killed process has left them there.
        """
        waiting = self.journal(key).rows().select(list(columns))  # first: they go to a shard

        def wanted(table: pa.Table) -> pa.Table:
            """Return the wanted rows of a shard, in the types of now."""
            if among is not None:
                table = table.filter(pc.is_in(table["identity"], value_set=among))
            return table.cast(waiting.schema)

        for _ in range(_ATTEMPTS):
            shards, unfinished = list_shards(self.base / key)
            tables, damaged = [wanted(waiting)], []
            try:
                for shard in shards:
                    if (table := read_shard(shard, columns, self.later)) is None:
                        damaged.append(shard)
                    else:
                        tables.append(wanted(table))
            except FileNotFoundError:  # merged meanwhile: what it held is in a newer shard
                continue
            return Scan(
                pa.concat_tables(tables), tuple(map(str, damaged)), tuple(map(str, unfinished))
            )
        raise RuntimeError(
            f"shards in {self.base / key} were merged {_ATTEMPTS} times while being read; "
            "stop the other processes that write there, and run again"
        )

    def compact(self, key: str, *, min_shards: int = 2) -> int:
        """Merge the small shards of a key into one, and return how many were merged.

        Large ones stay, so that the work and the memory do not grow with the store. The merged
        shard is durable before the first old one goes: a crash in between leaves rows twice,
        which readers collapse. Damaged files stay where they are.
        """
        read: dict[UPath, pa.Table | None] = {}
        for shard in list_shards(self.base / key)[0]:
            with contextlib.suppress(FileNotFoundError):  # another process merged it
                if shard.stat().st_size < _SMALL_BYTES:
                    read[shard] = read_shard(shard, self.schema.names, self.later)
        whole = {
            shard: table.cast(self.schema) for shard, table in read.items() if table is not None
        }
        if len(whole) < min_shards:
            return 0
        write_shard(self.base / key, self.without_copies(pa.concat_tables(whole.values())))
        for shard in whole:
            _delete(shard)
        return len(whole)

    def discard(self, key: str, identities: Collection[str]) -> tuple[str, ...]:
        """Delete every row of some identities; return the damaged files, which are left alone.

        What is kept is stored before the file that held it goes: a kill in between leaves rows
        twice, which readers collapse.
        """
        gone = pa.array(list(identities), pa.string())
        with self.exclusive(key):
            while (found := self.scan(key, ["identity"], among=gone)).table.num_rows:
                for shard in list_shards(self.base / key)[0]:
                    with contextlib.suppress(FileNotFoundError):  # merged meanwhile
                        self._discard(shard, gone)
        return found.damaged

    def _discard(self, shard: UPath, gone: pa.Array) -> None:
        table = read_shard(shard, self.schema.names, self.later)
        if table is None:
            return
        kept = table.filter(pc.invert(pc.is_in(table["identity"], value_set=gone)))
        if len(kept) < len(table):
            if len(kept):
                write_shard(shard.parent, kept.cast(self.schema))
            _delete(shard)

    @classmethod
    def without_copies(cls, table: pa.Table) -> pa.Table:
        """Return a table without the copies of rows that a crashed compaction leaves."""
        rows = table.select(list(cls.row)).to_pandas()
        return table.filter(pa.array(~rows.duplicated()))


def _delete(shard: UPath) -> None:
    with contextlib.suppress(FileNotFoundError):  # another process merged it as well
        shard.unlink()


# Shards: files that are written once and whole, in a folder that many processes share

NOT_THERE = (FileNotFoundError, NotADirectoryError)
"""What listing a place raises where nothing was written yet; object storage has no folders."""

TRIAL = ".trial"
_SHOWN = 300

SUFFIX, UNFINISHED = ".parquet", ".part"


def write_shard(folder: UPath, table: pa.Table) -> UPath:
    """Write a table as a new shard and return its place.

    When this returns, the shard survives a kill of the process and, on a local disk, a power
    cut. Names never collide: time, process and chance are in them.
    """
    name = f"{time.time_ns():020d}-{os.getpid()}-{token_hex(8)}{SUFFIX}"
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    shard, written = folder / name, sink.getvalue()
    if is_local(folder):
        write_whole(Path(shard.path), written, UNFINISHED)
    else:  # one PUT is atomic; a rename would be a copy and a delete
        shard.fs.pipe_file(shard.path, written.to_pybytes())
    return shard


def list_shards(folder: UPath) -> tuple[list[UPath], list[UPath]]:
    """Return the shards of a folder by age, and the files that a writer left unfinished."""
    if not is_local(folder):
        folder.fs.invalidate_cache()  # it would not list what other processes wrote meanwhile
    try:
        names = sorted(path.name for path in folder.iterdir())
    except NOT_THERE:
        return [], []
    whole = [folder / name for name in names if name.endswith(SUFFIX)]
    return whole, [folder / name for name in names if name.endswith(UNFINISHED)]


def read_shard(
    shard: UPath, columns: Sequence[str], later: Collection[str] = ()
) -> pa.Table | None:
    """Return columns of a shard, `later` ones null where it lacks them; None if damaged."""
    written = shard.read_bytes()  # what fails here is the storage; what fails below, the shard
    try:
        source = pa.BufferReader(written)
        table = pq.ParquetFile(source, page_checksum_verification=True).read(list(columns))
    except (pa.ArrowException, OSError):
        return None
    for name in columns:
        if name in later and name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(table)))
    return table.select(columns) if {*columns} == {*table.column_names} else None


def _require_writable(folder: UPath, what: str, variable: str) -> None:
    trial = (folder / TRIAL).path
    try:
        folder.fs.pipe_file(trial, b"")
    except Exception as error:  # each kind of storage raises its own
        said = f"{type(error).__name__}: {error}"
        raise PermissionError(
            f"cannot write to {folder}, where {what} are stored ({said[:_SHOWN]}); give the "
            f"credentials the right to, or copy all {what} to another place and set {variable} to "
            "it"
        ) from error
    with contextlib.suppress(Exception):  # it is no shard, and the next trial replaces it
        folder.fs.rm_file(trial)


def is_local(path: UPath) -> bool:
    """Return whether a place is a folder of this machine."""
    return path.protocol in ("", "file", "local")

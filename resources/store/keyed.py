"""A folder of rows for each key: many processes add rows, and no row is ever changed."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock, Timeout
from upath import UPath

from resources.store.shards import is_local, list_shards, make_folder, read_shard, write_shard

_LOCK = ".lock"
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

        The lock goes with the process, however it ends. Object storage has none.
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
            yield

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
        """Make the folder of a key; raises OSError where nothing could be stored."""
        make_folder(self.base / key, self.what, self.variable)

    def append(self, key: str, rows: Sequence[Mapping[str, Any]]) -> UPath:
        """Store rows; when this returns, no kill of the process can lose them."""
        try:
            table = pa.Table.from_pylist(list(rows), self.schema)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            self._append_singly(key, rows)
            raise
        return write_shard(self.base / key, table)

    def _append_singly(self, key: str, rows: Sequence[Mapping[str, Any]]) -> None:
        fitting = []
        for row in rows:
            with contextlib.suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
                fitting.append(pa.Table.from_pylist([row], self.schema))
        if fitting:
            write_shard(self.base / key, pa.concat_tables(fitting))

    def scan(self, key: str, columns: Sequence[str], among: pa.Array | None = None) -> Scan:
        """Return some columns of everything stored under a key, or `among` identities."""
        for _ in range(_ATTEMPTS):
            shards, unfinished = list_shards(self.base / key)
            try:
                tables = [_among(read_shard(shard, columns, self.later), among) for shard in shards]
            except FileNotFoundError:  # merged meanwhile: what it held is in a newer shard
                continue
            empty = self.schema.empty_table().select(list(columns))
            whole = [table.cast(empty.schema) for table in tables if table is not None]
            damaged = [s for s, table in zip(shards, tables, strict=True) if table is None]
            return Scan(
                pa.concat_tables([empty, *whole]),
                tuple(map(str, damaged)),
                tuple(map(str, unfinished)),
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


def _among(table: pa.Table | None, identities: pa.Array | None) -> pa.Table | None:
    if table is None or identities is None:
        return table
    return table.filter(pc.is_in(table["identity"], value_set=identities))


def _delete(shard: UPath) -> None:
    with contextlib.suppress(FileNotFoundError):  # another process merged it as well
        shard.unlink()

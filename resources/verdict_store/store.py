"""What was bought of each judge, looked up by the identity of the call.

A judge's answers lie in a folder of their own, named by the hash of what identifies the judge,
so that a lookup reads no other judge's. Rows are never changed: a second attempt is a second
row, and readers agree on which of them counts and how many there were.
"""

import contextlib
import fcntl
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from upath import UPath

from resources.verdict_store.shards import (
    NOT_THERE,
    is_local,
    list_shards,
    make_folder,
    read_shard,
    write_shard,
)

SCHEMA = pa.schema(
    [
        ("identity", pa.string()),
        ("status", pa.string()),
        ("answered_at", pa.timestamp("us", tz="UTC")),
        ("answer", pa.string()),
        ("failure", pa.string()),
        ("log_probabilities", pa.string()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("judge", pa.string()),
        ("battle_id", pa.string()),
        ("order", pa.string()),
        ("replicate", pa.int64()),
        ("parts", pa.string()),
    ]
)
"""A row is one answer. `status` is how it was read when it came; `judge`, `battle_id` and `order`
are what the call was made for first, which its identity does not hold; `parts` is a JSON object
of what it does hold, long texts by their hash."""

ANSWER = (
    "identity",
    "status",
    "answered_at",
    "answer",
    "failure",
    "log_probabilities",
    "prompt_tokens",
    "completion_tokens",
    "battle_id",
)
"""Columns that make an answer, and say which of several counts."""

_STATUS = _ATTEMPT = ("identity", "status", "answered_at")
_LOCK = ".lock"
_SMALL_BYTES = 1 << 20
_ATTEMPTS = 20


class Scan(NamedTuple):
    """Rows found, and the files that hold none because they are damaged or unfinished."""

    table: pa.Table
    damaged: tuple[str, ...]
    unfinished: tuple[str, ...]


class VerdictStore:
    """The answers under one folder or URI; many processes may read and write at a time.

    Parameters
    ----------
    base : UPath
        Local folder or object storage; made when the first answer comes.
    """

    def __init__(self, base: UPath) -> None:
        self.base = base

    def statuses(self, judge_key: str) -> dict[str, str]:
        """Return the status of every call of a judge that was ever answered, by identity."""
        found = collapse(self.scan(judge_key, _STATUS).table)
        return dict(zip(found["identity"], found["status"], strict=True))

    def find(self, judge_key: str, identities: Collection[str]) -> tuple[pd.DataFrame, Scan]:
        """Return the answers to some calls, and what was scanned for them.

        One row per identity, with the columns of `ANSWER` and the number of attempts.
        """
        scan = self.scan(judge_key, ANSWER, among=pa.array(list(identities), pa.string()))
        return collapse(scan.table), scan

    @contextlib.contextmanager
    def exclusive(
        self, judge_key: str, on_wait: Callable[[], None] | None = None
    ) -> Iterator[None]:
        """Keep other processes of this machine from buying from the same judge meanwhile.

        The lock goes with the process, however it ends. Object storage has none.

        Parameters
        ----------
        judge_key : str
            Whose answers are bought.
        on_wait : callable, optional
            Called once if another process holds the lock.
        """
        if not is_local(self.base):
            yield
            return
        self.prepare(judge_key)
        with (Path(self.base.path) / judge_key / _LOCK).open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if on_wait:
                    on_wait()
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def prepare(self, judge_key: str) -> None:
        """Make a judge's folder; raises OSError where nothing could be stored."""
        make_folder(self.base / judge_key)

    def append(self, judge_key: str, rows: Sequence[Mapping[str, Any]]) -> UPath:
        """Store answers; when this returns, no kill of the process can lose them.

        Raises
        ------
        ValueError
            If an answer does not fit the schema; the others are stored.
        """
        try:
            table = pa.Table.from_pylist(list(rows), SCHEMA)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            self._append_singly(judge_key, rows)
            raise
        return write_shard(self.base / judge_key, table)

    def _append_singly(self, judge_key: str, rows: Sequence[Mapping[str, Any]]) -> None:
        fitting = []
        for row in rows:
            with contextlib.suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
                fitting.append(pa.Table.from_pylist([row], SCHEMA))
        if fitting:
            write_shard(self.base / judge_key, pa.concat_tables(fitting))

    def scan(self, judge_key: str, columns: Sequence[str], among: pa.Array | None = None) -> Scan:
        """Return some columns of everything stored of a judge, repeated attempts included.

        Only calls `among` those identities, where they are given.

        Raises
        ------
        RuntimeError
            If shards vanish faster than they can be read.
        """
        for _ in range(_ATTEMPTS):
            shards, unfinished = list_shards(self.base / judge_key)
            try:
                tables = [_among(read_shard(shard, columns), among) for shard in shards]
            except FileNotFoundError:  # merged meanwhile: what it held is in a newer shard
                continue
            empty = SCHEMA.empty_table().select(list(columns))
            whole = [table.cast(empty.schema) for table in tables if table is not None]
            damaged = [s for s, table in zip(shards, tables, strict=True) if table is None]
            return Scan(
                pa.concat_tables([empty, *whole]),
                tuple(map(str, damaged)),
                tuple(map(str, unfinished)),
            )
        raise RuntimeError(
            f"shards in {self.base / judge_key} were merged {_ATTEMPTS} times while being read; "
            "stop the other processes that write there, and run again"
        )

    def judge_keys(self) -> list[str]:
        """Return the keys of the judges of which anything is stored."""
        try:
            return sorted(path.name for path in self.base.iterdir() if path.is_dir())
        except NOT_THERE:
            return []

    def compact(self, judge_key: str, *, min_shards: int = 2) -> int:
        """Merge the small shards of a judge into one, and return how many were merged.

        Large ones stay, so that the work and the memory do not grow with the store. The merged
        shard is durable before the first old one goes: a crash in between leaves rows twice,
        which readers collapse. Damaged files stay where they are.
        """
        shards = [s for s in list_shards(self.base / judge_key)[0] if _is_small(s)]
        if len(shards) < min_shards:
            return 0
        read = dict(_readable(shards))
        if len(read) < min_shards:
            return 0
        merged = pa.concat_tables(table.cast(SCHEMA) for table in read.values())
        write_shard(self.base / judge_key, _once(merged))
        for shard in read:
            _delete(shard)
        return len(read)


def _among(table: pa.Table | None, identities: pa.Array | None) -> pa.Table | None:
    if table is None or identities is None:
        return table
    return table.filter(pc.is_in(table["identity"], value_set=identities))


def _is_small(shard: UPath) -> bool:
    try:
        return shard.stat().st_size < _SMALL_BYTES
    except FileNotFoundError:  # another process merged it
        return False


def _readable(shards: Sequence[UPath]) -> Iterator[tuple[UPath, pa.Table]]:
    for shard in shards:
        try:
            table = read_shard(shard, SCHEMA.names)
        except FileNotFoundError:  # another process merged it, and keeps what it held
            continue
        if table is not None:
            yield shard, table


def _delete(shard: UPath) -> None:
    try:
        shard.unlink()
    except FileNotFoundError:
        return  # another process merged it as well


def _once(table: pa.Table) -> pa.Table:
    """Return a table without the copies of rows that a crashed compaction leaves."""
    rows = table.select(list(_ATTEMPT)).to_pandas()
    return table.filter(pa.array(~rows.duplicated()))


def collapse(table: pa.Table) -> pd.DataFrame:
    """Return one row per identity, whichever shards, in whatever order, the rows came from.

    Of usable answers the first counts, so that what was concluded from it stays; of failures
    the last. `n_attempts` counts the rows that there were.
    """
    rows = _once(table).to_pandas()
    if rows["identity"].is_unique:
        return rows.assign(n_attempts=1)
    failed = rows["status"].ne("ok")
    time = rows["answered_at"].astype("int64")
    ties = [name for name in ("status", "answer", "battle_id") if name in rows]
    n_attempts = rows.groupby("identity")["status"].transform("size")
    ranked = rows.assign(
        _failed=failed, _time=time.where(~failed, -time), n_attempts=n_attempts
    ).sort_values(["_failed", "_time", *ties], kind="stable")
    kept = ranked.drop_duplicates("identity")
    return kept[[*rows.columns, "n_attempts"]].reset_index(drop=True)

"""Parquet files that are written once and whole, in a folder that many processes share."""

import contextlib
import os
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from secrets import token_hex

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from resources.atomic import make_durable_folder, write_whole

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


def make_folder(folder: UPath, what: str, variable: str) -> None:
    """Make a local folder so that it survives a power cut; object storage has none.

    `what` is stored there, and the environment `variable` says where: for the message.
    """
    if not is_local(folder):
        _require_writable(folder, what, variable)
        return
    local = Path(folder.path)
    if file := next((one for one in (local, *local.parents) if one.is_file()), None):
        raise FileExistsError(
            f"{file} is a file, and {what} are stored in a folder of that name; move it away, or "
            f"set {variable} to another place"
        )
    make_durable_folder(local)
    if not os.access(folder.path, os.W_OK | os.X_OK):
        raise PermissionError(
            f"cannot write to {folder}, where {what} are stored; change its permissions, or copy "
            f"all {what} to another place and set {variable} to it"
        )


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

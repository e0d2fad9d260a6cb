"""A candidate file as rows: JSON lines or Parquet, and nothing that could run."""

import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from resources.candidates.folder import MAX_BYTES
from resources.candidates.schema import RefusedError, told

FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
MAX_ROWS = 1_000_000
MAX_CELLS = 20_000_000
"""Rows times columns: a short line of JSON may name a column that no other has."""


class Rows(NamedTuple):
    """What a file holds: columns by name, all of one length, and the number of each row.

    `number` counts lines of JSON from 1, and rows of Parquet from 0; `unit` is what it counts.
    """

    columns: dict[str, list[Any]]
    number: Sequence[int]
    unit: str


def read_rows(name: str, content: bytes) -> Rows:
    """Return the rows of a candidate file."""
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    if suffix not in FORMATS:
        raise RefusedError(
            "unknown-format",
            f"{told(name)} ends in {told(suffix)}; write one JSON object a line into a file that "
            "ends in .jsonl, or a .parquet file",
        )
    if not content.strip():
        raise RefusedError("empty-file", f"{told(name)} holds nothing; write it again")
    rows = _json_rows(name, content) if FORMATS[suffix] == "jsonl" else _parquet_rows(name, content)
    if not rows.number:
        raise RefusedError("empty-file", f"{told(name)} holds no rows; write it again")
    return rows


def require_size(name: str, size: int) -> None:
    """Raise RefusedError if a file is larger than what is read."""
    if size > MAX_BYTES:
        raise RefusedError(
            "too-large",
            f"{told(name)} has {size:,} bytes, at most {MAX_BYTES:,} are read; leave out questions "
            "that no anchor answered (`judgeline candidates questions` lists those that count)",
        )


def require_extent(name: str, n_rows: int, n_columns: int = 1) -> None:
    """Raise RefusedError if a file has more rows, or more cells, than are read."""
    if n_rows > MAX_ROWS:
        raise RefusedError(
            "too-large",
            f"{told(name)} has {n_rows:,} rows, at most {MAX_ROWS:,} are read; leave out questions "
            "that no anchor answered",
        )
    if n_rows * n_columns > MAX_CELLS:
        raise RefusedError(
            "too-large",
            f"{told(name)} has {n_columns:,} columns in {n_rows:,} rows, at most {MAX_CELLS:,} "
            "cells are read; leave out columns that are no metadata",
        )


def _json_rows(name: str, content: bytes) -> Rows:
    if not content.endswith((b"\n", b"\r")):
        raise RefusedError(
            "no-end",
            f"{told(name)} does not end with a newline, as if its writer had been stopped; write "
            "the last line whole, with a newline after it",
        )
    require_extent(name, content.count(b"\n"))
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise RefusedError(
            "not-utf-8",
            f"{told(name)}, line {line}: byte {told(content[error.start : error.start + 1])} is "
            "not UTF-8; save the file in that encoding",
        ) from None
    numbers = [number for number, line in enumerate(lines, start=1) if line.strip()]
    records = [_record(name, number, lines[number - 1]) for number in numbers]
    columns = list(dict.fromkeys(key for record in records for key in record))
    require_extent(name, len(records), len(columns))
    return Rows({c: [record.get(c) for record in records] for c in columns}, numbers, "line")


def _record(name: str, number: int, line: str) -> dict[str, Any]:
    where = f"{told(name)}, line {number}"
    try:
        record = json.loads(line, object_pairs_hook=_once)
    except RecursionError:
        raise RefusedError("broken-json", f"{where}: nested too deeply; correct it") from None
    except ValueError as error:
        raise RefusedError(
            "broken-json", f"{where}: no JSON object ({error}): found {told(line)}; correct it"
        ) from None
    if not isinstance(record, dict):
        raise RefusedError(
            "broken-json",
            f"{where}: found {told(record)}; expected one object, such as "
            '{"question_id": "17", "completion": "..."}',
        )
    return record


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {told(twice)} occurs twice")
    return found


def _parquet_rows(name: str, content: bytes) -> Rows:
    try:
        file = pq.ParquetFile(BytesIO(content))
        groups = [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]
        require_size(name, sum(group.total_byte_size for group in groups))
        n_rows, n_columns = file.metadata.num_rows, file.metadata.num_columns
        require_extent(name, n_rows, n_columns)
        columns = _unpacked(name, file)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        if isinstance(error, RefusedError):
            raise
        raise RefusedError(
            "broken-parquet",
            f"{told(name)} cannot be read as Parquet ({told(str(error), 200)}); write it again",
        ) from None
    return Rows(columns, range(n_rows), "row")


def _unpacked(name: str, file: pq.ParquetFile) -> dict[str, list[Any]]:
    """Return a Parquet file's columns, unless they are larger than what is read.

    A value that occurs in every row is stored once: some hundred kilobytes may stand for many
    gigabytes. So few rows are unpacked at a time that these cannot be too many.
    """
    groups = [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]
    widest = max((group.total_byte_size for group in groups), default=0)
    columns: dict[str, list[Any]] = {column: [] for column in file.schema_arrow.names}
    n_bytes = 0
    for batch in file.iter_batches(batch_size=min(MAX_BYTES // max(widest, 1) + 1, MAX_ROWS)):
        for column, values in batch.to_pydict().items():
            n_bytes += sum(map(_weight, values))
            require_size(name, n_bytes)
            columns[column] += values
    return columns


def _weight(value: Any) -> int:
    """Return about how many bytes a value takes, with everything in it."""
    if isinstance(value, str | bytes):
        return len(value)
    parts = value.values() if isinstance(value, dict) else value
    return sum(map(_weight, parts)) if isinstance(value, dict | list | tuple) else 1

"""Journal of the rows that wait to be stored, for the next process if this one is killed."""

import contextlib
import io
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

NO_ROW = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""Errors of a row that does not fit its schema."""


class Journal:
    """Rows as lines of JSON under a key, whose lock its only writer holds; none without a `file`.

    A row that was added is with the operating system: it outlives the process, but no power cut.
    What cannot be added, for want of space or as no JSON, is left to the shards.
    """

    def __init__(self, file: Path | None, schema: pa.Schema) -> None:
        self._file, self._schema = file, schema
        self._open: io.FileIO | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a row down."""
        if self._file is None:
            return
        with contextlib.suppress(OSError, TypeError, ValueError):
            line = json.dumps(dict(row), default=_plain).encode() + b"\n"
            self._open = self._open or io.FileIO(self._file, "a")
            self._open.write(line)

    def clear(self) -> None:
        """Forget all rows: they are stored."""
        if self._open is not None:
            self._open.close()
            self._open = None
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def rows(self) -> pa.Table:
        """Return the rows that a killed process left; a line that was cut off is none."""
        tables = [self._schema.empty_table()]
        if self._file is not None and self._file.exists():
            for line in self._file.read_bytes().split(b"\n"):
                with contextlib.suppress(*NO_ROW):
                    tables.append(self._table(json.loads(line)))
        return pa.concat_tables(tables)

    def _table(self, row: dict[str, Any]) -> pa.Table:
        times = [field.name for field in self._schema if pa.types.is_timestamp(field.type)]
        read = {name: datetime.fromisoformat(row[name]) for name in times}
        return pa.Table.from_pylist([row | read], self._schema)


def _plain(value: Any) -> Any:
    """Return a time, or an array of numbers, as JSON has it."""
    return value.isoformat() if isinstance(value, datetime) else np.asarray(value).tolist()

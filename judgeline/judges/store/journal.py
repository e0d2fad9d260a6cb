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
    """Rows as lines of JSON.

    Its only writer holds the lock of its key; without a `file` it keeps nothing.

    A row that was added is with the operating system: it outlives the process, but no power cut.
    What cannot be added, for want of space or as no JSON, is left to the shards.
    """

    def __init__(self, file: Path | None, schema: pa.Schema) -> None:
        self._file, self._schema = file, schema
        self._before = file and file.with_name(f"{file.name}-before")
        self._open: io.FileIO | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a row down."""
        if self._file is None:
            return
        with contextlib.suppress(OSError, TypeError, ValueError):
            line = json.dumps(dict(row), default=_plain).encode()
            self._open = self._open or io.FileIO(self._file, "a")
            self._open.write(b"\n" + line)  # after one that was cut off too

    def turn(self) -> None:
        """Part the rows so far, which are about to be stored, from those that follow."""
        self._close()
        if self._file and self._before and not self._before.exists():
            with contextlib.suppress(OSError):  # none yet
                self._file.rename(self._before)

    def forget(self) -> None:
        """Forget the rows before the last turn: they are stored."""
        if self._before is not None:
            self._before.unlink(missing_ok=True)

    def clear(self) -> None:
        """Forget all rows: they are stored."""
        self._close()
        self.forget()
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def rows(self) -> pa.Table:
        """Return the rows that a killed process left; a line that is no row is passed over."""
        tables = [self._schema.empty_table()]
        since = _bytes_of(self._file)  # read first: a turn takes it to the place of the others
        for written in (_bytes_of(self._before), since):
            for line in written.split(b"\n"):
                with contextlib.suppress(*NO_ROW, KeyError, RecursionError):
                    tables.append(self._table(json.loads(line)))
        return pa.concat_tables(tables)

    def _table(self, row: dict[str, Any]) -> pa.Table:
        times = [field.name for field in self._schema if pa.types.is_timestamp(field.type)]
        read = {name: datetime.fromisoformat(row[name]) for name in times}
        return pa.Table.from_pylist([row | read], self._schema)


def _bytes_of(file: Path | None) -> bytes:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return file.read_bytes() if file else b""
    return b""


def _plain(value: Any) -> Any:
    """Return a time, or an array of numbers, as JSON has it."""
    return value.isoformat() if isinstance(value, datetime) else np.asarray(value).tolist()

"""Writer of streamed verdicts: few are unstored at any moment."""

import errno
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from judgeline.judges.store.keyed import KeyedStore, is_local

FLUSH_ROWS, FLUSH_SECONDS = 200, 2.0
MANY_SHARDS = 64
PATIENCE = 2  # shards that may wait to be written before those who bring answers do

ROOM_BYTES = 16 << 20
"""More than all answers take that can be on their way when the disk fills up."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a disk, a quota or a limit on files that is used up."""

_ROOM = ".room"


class Room:
    """A file that takes up space in a local folder; object storage is never full."""

    def __init__(self, store: KeyedStore, key: str) -> None:
        self._folder, self._what, self._variable = store.base / key, store.what, store.variable
        self._file = Path(self._folder.path) / _ROOM if is_local(self._folder) else None
        self.is_held = False

    def hold(self) -> None:
        """Take up the space."""
        if self._file is None or not hasattr(os, "posix_fallocate"):
            return
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, ROOM_BYTES)
            self.is_held = True
        except OSError as error:
            self._file.unlink(missing_ok=True)
            if error.errno in FULL:
                needed = f"it takes {ROOM_BYTES >> 20} MiB to begin, and nothing was asked"
                raise self.error(needed) from error
        finally:
            os.close(descriptor)

    def give_up(self) -> bool:
        """Free the space; return whether any was held."""
        was_held, self.is_held = self.is_held, False
        if was_held and self._file is not None:
            self._file.unlink(missing_ok=True)
        return was_held

    def error(self, consequence: str) -> OSError:
        """Return the error that names the folder, the consequence and the remedy."""
        return OSError(
            errno.ENOSPC,
            f"No space left for {self._what}: {consequence}. Free space there, or move all "
            f"{self._what} to a larger disk and set {self._variable} to their new place; then run "
            "again: nothing that is stored is asked for again",
            str(self._folder),
        )


class VerdictWriter:
    """A context manager that stores verdicts every `rows` rows or `seconds` seconds.

    The clock runs in a thread of its own: a judge that thinks for long does not keep what it
    said before from being stored. Leaving the context stores the rest, after an error too. A
    place that cannot be written to, or has no space left, raises on entering, before anything is
    bought. Where space runs out later, smaller shards are written, and what they do not take up is
    held in memory and tried again; leaving the context raises then.

    An answer waits for at most so many `rows` or `seconds`, and on a local disk stands in a journal
    meanwhile, which outlives a kill. `on_full` is called when space runs
    out, and should let no more be asked; without it `add` raises.
    """

    def __init__(
        self,
        store: KeyedStore,
        judge_key: str,
        *,
        rows: int = FLUSH_ROWS,
        seconds: float = FLUSH_SECONDS,
        on_full: Callable[[], None] | None = None,
    ) -> None:
        self._store, self._key, self._on_full = store, judge_key, on_full
        self._room, self._is_out_of_space = Room(store, judge_key), False
        self._journal = store.journal(judge_key)
        self._most, self._seconds = rows, seconds
        self._waiting: list[Mapping[str, Any]] = []
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._is_full, self._closing = threading.Event(), False
        self._error: Exception | None = None
        self._n_shards = MANY_SHARDS - 1  # what earlier writers left counts after the first flush
        self._clock = threading.Thread(target=self._tick, name="verdict-writer", daemon=True)

    def __enter__(self) -> Self:
        self._store.prepare(self._key)
        self._room.hold()
        self._clock.start()
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        self._closing = True
        self._is_full.set()
        self._clock.join()
        self._room.give_up()
        self._flush()
        if not self._is_out_of_space:
            return
        full = self._full()
        if error is None:
            raise full
        error.add_note(str(full))

    def _full(self) -> OSError:
        n_lost = len(self._waiting)
        stored = f"{n_lost:,} answers could not be stored" if n_lost else "every answer is stored"
        return self._room.error(f"{stored}, and no more were asked for")

    def add(self, row: Mapping[str, Any]) -> None:
        """Take an answer; raise the error of an earlier write that failed.

        Returns at once, unless the place is slower than the answers come.
        """
        if self._error is not None:
            raise self._error
        if self._is_out_of_space and self._on_full is None:
            raise self._full()
        with self._lock:
            if not self._is_out_of_space:
                self._journal.add(row)
            self._waiting.append(row)
            n_waiting = len(self._waiting)
        if n_waiting >= self._most:
            self._is_full.set()
        if n_waiting >= PATIENCE * self._most:
            self._flush()

    def _flush(self) -> None:
        """Store the rows that wait now; one leaves the queue when it is stored, and not before."""
        with self._writing:
            with self._lock:
                rows = self._waiting[:]
                if rows:
                    self._journal.turn()
            try:
                while rows:
                    n_stored = self._append(rows)
                    del rows[:n_stored]
                    with self._lock:
                        del self._waiting[:n_stored]
                        if not self._waiting:
                            self._journal.clear()
                self._journal.forget()
                if self._n_shards >= MANY_SHARDS:
                    self._n_shards = 0
                    self._store.compact(self._key, min_shards=MANY_SHARDS)
            except OSError as error:
                self._require_full(error)

    def _append(self, rows: list[Mapping[str, Any]]) -> int:
        """Store the first rows, fewer where space runs out, and return how many."""
        size = len(rows)
        while True:
            try:
                self._store.append(self._key, rows[:size])
            except OSError as error:
                self._require_full(error)
                if size == 1 and not self._room.is_held:
                    raise
                size = size if self._room.give_up() else size // 2
            else:
                self._n_shards += 1
                return size

    def _require_full(self, error: OSError) -> None:
        """Let no more be asked if space has run out; raise any other error."""
        if error.errno not in FULL:
            raise error
        with self._lock:
            self._is_out_of_space = True
            self._journal.clear()  # shards need its space more
        if self._on_full is not None:
            self._on_full()

    def _tick(self) -> None:
        while not self._closing:
            self._is_full.wait(self._seconds)
            self._is_full.clear()
            try:
                self._flush()
            except Exception as error:  # raised again by the next add
                self._error = error
                return

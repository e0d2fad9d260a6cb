"""Collects answers as they stream in, and stores them before many could be lost."""

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from resources.verdict_store.keyed import KeyedStore

FLUSH_ROWS, FLUSH_SECONDS = 200, 2.0
MANY_SHARDS = 64
PATIENCE = 2  # shards that may wait to be written before those who bring answers do


class VerdictWriter:
    """A context manager that stores what it is given, every so many rows or seconds.

    The clock runs in a thread of its own: a judge that thinks for long does not keep what it
    said before from being stored. Leaving the context stores the rest, after an error too. A
    place that cannot be written to raises on entering, before anything is bought.

    Parameters
    ----------
    store : KeyedStore
        Where to.
    judge_key : str
        Whose answers.
    rows, seconds : int, float
        Most answers, and longest time in seconds, that an answer waits to be stored.
    """

    def __init__(
        self,
        store: KeyedStore,
        judge_key: str,
        *,
        rows: int = FLUSH_ROWS,
        seconds: float = FLUSH_SECONDS,
    ) -> None:
        self._store, self._key = store, judge_key
        self._most, self._seconds = rows, seconds
        self._waiting: list[Mapping[str, Any]] = []
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._is_full, self._closing = threading.Event(), False
        self._error: Exception | None = None
        self._n_shards = MANY_SHARDS - 1  # what earlier writers left counts after the first flush
        self._clock = threading.Thread(target=self._tick, name="verdict-writer", daemon=True)

    def __enter__(self) -> Self:
        self._store.prepare(self._key)
        self._clock.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closing = True
        self._is_full.set()
        self._clock.join()
        self._flush()

    def add(self, row: Mapping[str, Any]) -> None:
        """Take an answer; raises what went wrong when earlier ones were stored.

        Returns at once, unless the place is slower than the answers come.
        """
        if self._error is not None:
            raise self._error
        with self._lock:
            self._waiting.append(row)
            n_waiting = len(self._waiting)
        if n_waiting >= self._most:
            self._is_full.set()
        if n_waiting >= PATIENCE * self._most:
            self._flush()

    def _flush(self) -> None:
        with self._writing:
            with self._lock:
                rows, self._waiting = self._waiting, []
            if not rows:
                return
            try:
                self._store.append(self._key, rows)
            except BaseException:
                with self._lock:
                    self._waiting = rows + self._waiting
                raise
            self._n_shards += 1
            if self._n_shards >= MANY_SHARDS:
                self._n_shards = 0
                self._store.compact(self._key, min_shards=MANY_SHARDS)

    def _tick(self) -> None:
        while not self._closing:
            self._is_full.wait(self._seconds)
            self._is_full.clear()
            try:
                self._flush()
            except Exception as error:  # raised again by the next add
                self._error = error
                return

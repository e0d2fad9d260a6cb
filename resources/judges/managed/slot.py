"""One run's place in a Dagster pool, and whether the process that took it is still there."""

import contextlib
import fcntl
from pathlib import Path
from typing import IO
from urllib.parse import quote

import dagster as dg


class Slot:
    """A slot that a run holds, or waits for, while it asks a judge.

    From the first try on, a file is locked, which the operating system undoes when the process
    ends, however it ends: a slot whose file nobody locks was left by the dead. Dagster itself
    frees a slot only when its holder says so. Of the methods, those that change anything are
    to be called by one process at a time.
    """

    def __init__(self, instance: dg.DagsterInstance, run_id: str, pool: str) -> None:
        self.instance, self.run_id, self.pool = instance, run_id, pool
        self._storage = instance.event_log_storage
        # a name of its own: freeing the step's would free its slots of other pools as well
        self._name = f"asking-in-{pool}"
        self._lock: IO[str] | None = None

    def claim(self) -> bool:
        """Return whether the slot is ours now; if not, we are queued for one."""
        if self._lock is None:
            self._lock = _locked(self._file(self.run_id), "a")
        if self._lock is None:  # the same run is in the pool already
            return False
        status = self._storage.claim_concurrency_slot(self.pool, self.run_id, self._name)
        return bool(status.is_claimed)

    def give_back(self) -> None:
        """Free the slot, or leave the queue."""
        if self._lock is not None:
            with self._lock:
                self._free(self.run_id)
            self._lock = None

    def holders(self) -> list[str]:
        """Return the runs that hold slots of the pool."""
        return sorted(self._storage.get_concurrency_info(self.pool).active_run_ids)

    def free_the_dead(self) -> list[str]:
        """Free what dead processes hold or are queued for, and return the runs they worked for.

        A place without a file was not taken by us, and nothing is known about it.
        """
        info = self._storage.get_concurrency_info(self.pool)
        places = [*info.claimed_slots, *info.pending_steps]
        runs = {place.run_id for place in places if place.step_key == self._name}
        return [run_id for run_id in sorted(runs) if self._is_freed(run_id)]

    def _is_freed(self, run_id: str) -> bool:
        lock = _locked(self._file(run_id), "r")
        if lock is None:
            return False
        with lock:
            self._free(run_id)
        return True

    def _free(self, run_id: str) -> None:
        self._storage.free_concurrency_slot_for_step(run_id, self._name)
        self._file(run_id).unlink(missing_ok=True)

    def _file(self, run_id: str) -> Path:
        folder = Path(self.instance.root_directory) / "pools"
        folder.mkdir(exist_ok=True)
        return folder / quote(f"{run_id} {self.pool}", safe=" ")


def _locked(file: Path, mode: str) -> IO[str] | None:
    """Return the file, opened and locked; None if there is none, or another holds the lock."""
    with contextlib.ExitStack() as opened:
        try:
            stream = opened.enter_context(file.open(mode, encoding="ascii"))
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (FileNotFoundError, BlockingIOError):
            return None
        opened.pop_all()
        return stream

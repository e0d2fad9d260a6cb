"""What is left of a server whose guard was killed: found, waited for, and killed in the end."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_LOOK_EVERY_S = 0.05
_LONGEST_BURIAL_S = 30.0


def clear_up(session: int | None, mark: str, patience_s: float) -> None:
    """Return when a server and what it started is gone; kill what is left after a while.

    A server is asked to stop by the end of its guard. Where there is no ``/proc``, what left the
    session is not found.

    Parameters
    ----------
    session : int or None
        The session that the server leads, if it is known.
    mark : str
        Text that is in the environment of the server's processes, and of no others.
    patience_s : float
        Seconds until what is left is killed.
    """
    started = time.monotonic()
    while left := list(_members(session, mark)):
        waited = time.monotonic() - started
        if waited > patience_s + _LONGEST_BURIAL_S:
            return
        if waited >= patience_s:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_EVERY_S)
    if session is not None and not Path("/proc/self").exists():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(session, signal.SIGKILL)


def _members(session: int | None, mark: str) -> Iterator[int]:
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stat = (place / "stat").read_text(encoding="utf-8", errors="replace")
            state, _, _, led_by = stat.rpartition(")")[2].split()[:4]
            if state != "Z" and (int(led_by) == session or _has(place, mark)):
                yield int(place.name)


def _has(place: Path, mark: str) -> bool:
    try:
        return mark.encode() in (place / "environ").read_bytes()
    except OSError:  # somebody else's
        return False

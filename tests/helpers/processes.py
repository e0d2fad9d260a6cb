"""Processes of this machine: who runs, who started whom, and patience with them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")


def wait_for(
    what: str,
    check: Callable[[], Found],
    seconds: float = 180.0,
    pause: float = 0.2,
    told: Callable[[], str] = str,
) -> Found:
    """Return what `check` finds as soon as it finds something."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}: {told()}"
        time.sleep(pause)
    return found


def parent_of(pid: int) -> int | None:
    """The parent of a process that runs; one that ended and waits to be collected does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, parent = stat.rpartition(")")[2].split()[:2]
    return None if state == "Z" else int(parent)


def is_alive(pid: int) -> bool:
    return parent_of(pid) is not None


def below(owner: int) -> set[int]:
    """What a process started, and what that started."""
    pids = [int(place.name) for place in Path("/proc").glob("[0-9]*")]
    parents, found = {pid: parent_of(pid) for pid in pids}, {owner}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {owner}


def left_after(pids: set[int], seconds: float) -> set[int]:
    """Those that still run in the end."""
    deadline = time.monotonic() + seconds
    while (left := set(filter(is_alive, pids))) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left

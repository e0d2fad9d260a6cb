"""Processes of this host, and whether they are alive."""

import os
import socket
from pathlib import Path

_CLOCK_SLACK_S = 60.0


def this_host() -> str:
    """Return the name under which runs and processes of this host are known."""
    return socket.gethostname()


def mark_of(pid: int) -> str:
    """Return what tells a process from all others of this host; empty text if it has ended.

    That is its number, its start in ticks since the boot, and the boot: none of them moves with
    the clock. One that ended and waits to be collected has ended. Without /proc it is the number.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return str(pid) if not Path("/proc/self").exists() and _answers(pid) else ""
    fields = stat.rpartition(")")[2].split()
    if fields[0] == "Z":
        return ""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{pid} {fields[19]} {boot}"


def is_alive(pid: int, at: float) -> bool:
    """Return whether a process that was there `at` a time (seconds since the epoch) still runs.

    Numbers of processes are given again: a process that began later is another one.
    """
    number, *start = mark_of(pid).split() or [""]
    return bool(number) and (not start or _began(int(start[0])) <= at + _CLOCK_SLACK_S)


def _began(ticks: int) -> float:
    """Return when a process began, in seconds since the epoch, from its ticks since the boot."""
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    booted = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    return booted + ticks / os.sysconf("SC_CLK_TCK")


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

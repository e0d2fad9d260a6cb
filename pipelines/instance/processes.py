"""Processes of this host, and whether they are alive."""

import os
import socket
from pathlib import Path

_CLOCK_SLACK_S = 60.0


def this_host() -> str:
    """Return the name under which runs and processes of this host are known."""
    return socket.gethostname()


def is_alive(pid: int, at: float) -> bool:
    """Return whether a process that was there `at` a time (seconds since the epoch) still runs.

    One that ended and waits to be collected does not. Numbers of processes are given again, after
    a restart of the machine to any: a process that began later is another one.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False if Path("/proc/self").exists() else _answers(pid)
    fields = stat.rpartition(")")[2].split()
    return fields[0] != "Z" and _began(int(fields[19])) <= at + _CLOCK_SLACK_S


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

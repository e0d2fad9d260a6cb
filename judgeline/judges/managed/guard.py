"""Guard process of a server: it stops the server when our process ends, in whatever way.

Started as a script with nothing but the standard library. Its standard input is a pipe whose
other end only we hold: the end of that pipe, or another parent, means that nobody needs the
server any more. What the server started is taken down with it, even if it left the group.

The process id of the server is written to a pipe, so that the parent can clear up when somebody
kills the guard itself.

    python -I guard.py PARENT_PID PATIENCE_SECONDS REPORT_FD COMMAND...
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_DEATH_SIGNAL, _ADOPT_ORPHANS = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER
_ASKING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LOOK_EVERY_S = 0.2
_LONGEST_BURIAL_S = 30.0


def guard(parent: int, patience_s: float, report: int, command: list[str]) -> int:
    """Run the server's command until it ends or its parent does; return its exit code.

    Signals that ask us to stop are never delivered, only looked for: at no moment can one keep
    us from clearing up.
    """
    _prctl(_ADOPT_ORPHANS, 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, _ASKING)
    server = subprocess.Popen(  # noqa: S603 - the command is ours
        command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_begin_server
    )
    try:
        with contextlib.suppress(BrokenPipeError), os.fdopen(report, "w") as stream:
            stream.write(str(server.pid))
        _watch(server, parent)
    finally:
        _end(server, patience_s)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def _watch(server: subprocess.Popen[bytes], parent: int) -> None:
    while server.poll() is None and os.getppid() == parent:
        if not signal.sigpending().isdisjoint(_ASKING):
            return
        readable, _, _ = select.select([0], [], [], _LOOK_EVERY_S)
        if readable and not os.read(0, 1):
            return


def _end(server: subprocess.Popen[bytes], patience_s: float) -> None:
    """Terminate the server, then kill its remaining processes after `patience_s` seconds."""
    if server.poll() is None:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(patience_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()
    _bury_orphans()


def _bury_orphans() -> None:
    """Kill and collect the processes that the server left; all are our children by now."""
    deadline = time.monotonic() + _LONGEST_BURIAL_S
    while time.monotonic() < deadline:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            collected, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not collected:
            time.sleep(0.02)


def _children() -> Iterator[int]:
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            stat = place.read_text(encoding="utf-8", errors="replace")
            if int(stat.rpartition(")")[2].split()[1]) == os.getpid():
                yield int(place.parent.name)


def _begin_server() -> None:
    _prctl(_DEATH_SIGNAL, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKING)


def _prctl(option: int, value: int) -> None:
    """Set an option of this process where there are such: on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(guard(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))

"""Processes that end with their owner, however it ends.

Each runs a Python module and leads a session of its own. Its standard input is a pipe that only
the owner holds open: where that ends, the process kills itself with all that it has started.

    python -m pipelines.instance.owned MODULE ARGUMENTS...
"""

import ctypes
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path

Process = subprocess.Popen[bytes]
_PR_SET_PDEATHSIG = 1


def start(module: str, *arguments: str, folder: Path, environment: Mapping[str, str]) -> Process:
    """Start a module as `python -m` does, in a folder; it ends with this process."""
    wrapped = [sys.executable, "-W", "ignore", "-m", "pipelines.instance.owned", module, *arguments]
    return subprocess.Popen(  # noqa: S603 - our own interpreter, arguments that are not a shell's
        wrapped, cwd=folder, env=environment, stdin=subprocess.PIPE, start_new_session=True
    )


class Worker(ForkServerProcess):
    """A process that Linux kills when the one that it was forked from ends, however that ends."""

    def run(self) -> None:
        """Do the work."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == 1:  # it has ended since
                os.kill(os.getpid(), signal.SIGKILL)
        super().run()


def stop(processes: Collection[Process], patience_s: float) -> None:
    """Terminate processes; after `patience_s` seconds kill those that remain, sessions included."""
    deadline = time.monotonic() + patience_s
    try:
        for process in processes:
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
    finally:
        for process in processes:
            _kill_session(process.pid)
            process.wait()


def _kill_session(leader: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _end_with_owner(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    _kill_session(os.getpid())


def main() -> None:
    """Run a module as long as the owner lives."""
    pipe = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background ignores it
    threading.Thread(target=_end_with_owner, args=(pipe,), daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

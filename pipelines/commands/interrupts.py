"""SIGINT is never lost: not to the shell that started this process, nor to what runs meanwhile."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_STOPS = {signal.SIGINT, signal.SIGTERM}  # Dagster handles both alike
_AGAIN_S = 0.05


def heed_interrupts() -> None:
    """Restore the handler of SIGINT where it is ignored, and repeat an interrupt that is dropped.

    A shell script has each command that it starts in the background ignore SIGINT. Python drops
    an exception that is raised in a finalizer, an interrupt too.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = _repeat_interrupt


def _repeat_interrupt(dropped: Any) -> None:
    """Send SIGINT again if the exception that Python drops is an interrupt; report any other."""
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return
    timer = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()


@contextmanager
def interrupts_raised() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of a block that was interrupted and went on.

    Dagster drops a signal that arrives after the last step of a job. Signals reach the main
    thread only; elsewhere this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
        writer.close()
        if _STOPS.intersection(reader.recv(1024)):
            raise KeyboardInterrupt

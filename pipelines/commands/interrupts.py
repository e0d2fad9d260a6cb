"""Ctrl-C stops the command, also where Dagster swallows the signal."""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_STOPS = {signal.SIGINT, signal.SIGTERM}  # Dagster handles both alike


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

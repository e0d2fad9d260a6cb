"""Work in child processes, forked after all imports; they stop when this process stops."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import starmap
from typing import Any, TypeVar

import dagster as dg

T = TypeVar("T")

_PATIENCE_S = 1.0


def n_processes() -> int:
    """Return how many processes this machine's cores keep busy; 1 where forking is not safe."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


@contextmanager
def beside(works: Sequence[Callable[[], T]]) -> Iterator[Iterator[T]]:
    """Begin each work in a process of its own; give, or raise, each result in order.

    A block that fails interrupts all.
    """
    context = multiprocessing.get_context("fork")
    started: list[tuple[Any, Any]] = []
    try:
        for work in works:
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_do, args=(work, sender))
            process.start()
            sender.close()
            started.append((process, receiver))
        yield starmap(_result, started)
    except BaseException:
        for process, _ in started:
            process.join(_PATIENCE_S)  # an interrupt from a terminal has reached it already
            if process.is_alive():
                os.kill(process.pid, signal.SIGINT)
        raise
    finally:
        for process, _ in started:
            process.join()


def _do(work: Callable[[], Any], sender: Any) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a script's background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        answer: tuple[Any, BaseException | None] = work(), None
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        answer = None, KeyboardInterrupt()
    except Exception as error:
        kinds = [kind for kind in (ValueError, OSError) if isinstance(error, kind)]
        answer = None, (*kinds, RuntimeError)[0](str(error) or type(error).__name__)
    sender.send(answer)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


def _result(process: Any, receiver: Any) -> Any:
    try:
        value, error = receiver.recv()
    except EOFError:
        process.join()
        raise ChildProcessError(
            f"a process beside this one ended with code {process.exitcode} before it was done; "
            "what it made is kept: run the same command again"
        ) from None
    if error is not None:
        raise error
    return value

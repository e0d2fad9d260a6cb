"""Runs asynchronous work in a thread of its own and hands the results over in order.

A bounded window runs ahead of the consumer; closing the iterator cancels what is in flight.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

_PATIENCE_S = 5.0

T = TypeVar("T")
R = TypeVar("R")


def in_order(
    items: Iterable[T],
    work: Callable[[T], Coroutine[Any, Any, R]],
    *,
    window: int,
    closing: Callable[[], Awaitable[None]],
) -> Iterator[R]:
    """Yield the result of each item in the order of the items.

    Parameters
    ----------
    items : iterable
        Taken one by one, at most `window` ahead of the last result taken.
    work : callable
        Coroutine function of one item; what it raises is raised in its place, and ends it all.
    window : int
        Most items under work or finished and not yet taken.
    closing : callable
        Awaited at the end, also after an error or when the consumer stops early.
    """
    with _background_loop(closing) as loop:
        pending: deque[Future[R]] = deque()
        for item in items:
            pending.append(asyncio.run_coroutine_threadsafe(work(item), loop))
            if len(pending) >= window:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def run_once(work: Coroutine[Any, Any, R], closing: Callable[[], Awaitable[None]]) -> R:
    """Return the result of one coroutine, whether or not another loop runs in this thread."""
    with _background_loop(closing) as loop:
        return asyncio.run_coroutine_threadsafe(work, loop).result()


@contextlib.contextmanager
def _background_loop(
    closing: Callable[[], Awaitable[None]],
) -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="served-judge", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        with contextlib.suppress(TimeoutError):  # a stubborn connection dies with its loop
            asyncio.run_coroutine_threadsafe(_wind_up(closing), loop).result(_PATIENCE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_PATIENCE_S)
        if not thread.is_alive():
            loop.close()


async def _wind_up(closing: Callable[[], Awaitable[None]]) -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await closing()

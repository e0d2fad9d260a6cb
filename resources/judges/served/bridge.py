"""Runs asynchronous work in a thread of its own and hands each result over as it comes.

Closing the iterator cancels what is in flight.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

_PATIENCE_S = 5.0
_MOST_WAITING = 100  # results that nobody has taken yet; more work waits until some are

T = TypeVar("T")
R = TypeVar("R")


class _End(Exception):  # noqa: N818  nothing went wrong
    """No more results will come."""


def as_completed(
    items: Iterable[T],
    work: Callable[[T], Coroutine[Any, Any, R]],
    *,
    n_workers: int,
    closing: Callable[[], Awaitable[None]],
) -> Iterator[tuple[int, R]]:
    """Yield the position and the result of each item, in the order in which they are done.

    Parameters
    ----------
    items : iterable
        Taken one by one, as workers are free.
    work : callable
        Coroutine function of one item. What it raises ends it all, and is raised here once the
        results that came before were taken.
    n_workers : int
        Most items under work.
    closing : callable
        Awaited at the end, also after an error or when the consumer stops early.
    """
    results: queue.SimpleQueue[tuple[int, R] | Exception] = queue.SimpleQueue()
    with _background_loop(closing) as loop:
        crew = _work_off(iter(enumerate(items)), work, n_workers, results)
        asyncio.run_coroutine_threadsafe(crew, loop)
        while not isinstance(result := results.get(), Exception):
            yield result
    if not isinstance(result, _End):
        raise result


async def _work_off(
    items: Iterator[tuple[int, T]],
    work: Callable[[T], Coroutine[Any, Any, R]],
    n_workers: int,
    results: "queue.SimpleQueue[tuple[int, R] | Exception]",
) -> None:
    async def worker() -> None:
        for position, item in items:
            results.put((position, await work(item)))
            while results.qsize() > _MOST_WAITING:
                await asyncio.sleep(0.01)

    end: Exception = _End()
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(n_workers):
                group.create_task(worker())
    except* Exception as errors:
        end = _first(errors)
    results.put(end)


def _first(errors: BaseExceptionGroup[Any]) -> Exception:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


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

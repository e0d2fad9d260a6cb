"""Runs asynchronous work in a thread of its own and hands each result over as it comes."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator
from typing import Any, TypeVar

_PATIENCE_S = 5.0
_LOOK_S = 0.5  # at most so long an interrupt waits
_GRACE_S = 30.0  # for what is in flight when something goes wrong: it was paid for
_MOST_WAITING = 100  # results that nobody has taken yet; more work waits until some are

T = TypeVar("T")
R = TypeVar("R")

_Results = queue.SimpleQueue[tuple[int, R] | BaseException]


class _End(Exception):  # noqa: N818  nothing went wrong
    """No more results will come."""


def as_completed(
    items: Iterable[T],
    work: Callable[[T], Coroutine[Any, Any, R]],
    *,
    n_workers: int,
    closing: Callable[[], Awaitable[None]],
) -> Generator[tuple[int, R]]:
    """Yield the position and the result of each item, in the order in which they are done.

    What `work` raises is raised here, after what was in flight has ended and its results were
    taken. After an interrupt what is done is still yielded, and what is in flight cancelled.
    `closing` is awaited at the end, also when the consumer stops early.
    """
    results: _Results[R] = queue.SimpleQueue()
    end: BaseException
    with _background_loop(closing) as loop:
        crew = _work_off(iter(enumerate(items)), work, n_workers, results)
        hired = asyncio.run_coroutine_threadsafe(crew, loop)
        try:
            while not isinstance(result := _taken(results), BaseException):
                yield result
            end = result
        except GeneratorExit:
            raise
        except BaseException as interrupt:
            hired.cancel()
            end = interrupt
            while not results.empty() and not isinstance(result := results.get(), BaseException):
                yield result
    if isinstance(end, asyncio.CancelledError):
        raise RuntimeError("a request was cancelled from within; run again") from end
    if not isinstance(end, _End):
        raise end


def _taken(results: "_Results[R]") -> tuple[int, R] | BaseException:
    """Return the next result; waits are short, since one without an end may miss a signal."""
    while True:
        with contextlib.suppress(queue.Empty):
            return results.get(timeout=_LOOK_S)


async def _work_off(
    items: Iterator[tuple[int, T]],
    work: Callable[[T], Coroutine[Any, Any, R]],
    n_workers: int,
    results: _Results[R],
) -> None:
    """Queue the results, and at last an error or `_End`."""
    failures: list[BaseException] = []

    async def worker() -> None:
        try:
            for position, item in items:
                results.put((position, await work(item)))
                while results.qsize() > _MOST_WAITING:
                    await asyncio.sleep(0.01)
                if failures:
                    return
        except BaseException as failure:  # one that is let through would end the loop's thread
            failures.append(failure)

    workers = [asyncio.create_task(worker()) for _ in range(n_workers)]
    try:
        busy = set(workers)
        while busy and not failures:
            _, busy = await asyncio.wait(busy, return_when=asyncio.FIRST_COMPLETED)
        if busy:
            await asyncio.wait(busy, timeout=_GRACE_S)
    finally:
        results.put(failures[0] if failures else _End())


def run_once(work: Coroutine[Any, Any, R], closing: Callable[[], Awaitable[None]]) -> R:
    """Return the result of one coroutine, whether or not another loop runs in this thread."""
    ((_, result),) = as_completed([None], lambda _: work, n_workers=1, closing=closing)
    return result


@contextlib.contextmanager
def _background_loop(closing: Callable[[], Awaitable[None]]) -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="served-judge", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        try:
            with contextlib.suppress(TimeoutError):  # a stubborn connection dies with its loop
                asyncio.run_coroutine_threadsafe(_wind_up(closing), loop).result(_PATIENCE_S)
        finally:
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

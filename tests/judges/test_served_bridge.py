"""Results of asynchronous work: each once, as they come, and none lost that was paid for."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from judgeline.judges.live import bridge
from judgeline.judges.live.bridge import as_completed


async def nothing() -> None:
    """Close nothing."""


def results(items: int, work, n_workers: int = 4) -> Iterator[tuple[int, int]]:
    return as_completed(range(items), work, n_workers=n_workers, closing=nothing)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "served-judge"]


def test_quick_ones_come_first_and_every_one_once() -> None:
    async def work(item: int) -> int:
        await asyncio.sleep(0.3 if item == 0 else 0.0)
        return item * item

    given = list(results(50, work))
    assert given[-1] == (0, 0)
    assert sorted(given) == [(item, item * item) for item in range(50)]


def test_what_is_in_flight_when_one_fails_is_still_given() -> None:
    started: list[int] = []

    async def work(item: int) -> int:
        started.append(item)
        await asyncio.sleep(0.05 if item == 2 else 0.3)
        if item == 2:
            raise ConnectionError("no credit left")
        return item

    given = []
    with pytest.raises(ConnectionError, match="no credit"):
        take(given, results(100, work))
    assert sorted(started) == [0, 1, 2, 3]  # nobody takes another item
    assert sorted(given) == [(0, 0), (1, 1), (3, 3)]
    assert threads() == []


def take(taken: list[tuple[int, int]], given: Iterator[tuple[int, int]]) -> None:
    """Take everything into a list, what comes before an error too."""
    for one in given:
        taken.append(one)  # noqa: PERF402  a list made at once would be lost with the error


@pytest.mark.parametrize("failure", [SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError])
def test_whatever_ends_the_work_ends_the_waiting(failure: type[BaseException]) -> None:
    async def work(item: int) -> int:
        if item == 3:
            raise failure
        return item

    with pytest.raises(failure):
        list(results(10, work))
    assert threads() == []


def test_work_that_is_cancelled_from_within_is_an_error() -> None:
    async def work(item: int) -> int:
        if item == 3:
            raise asyncio.CancelledError
        return item

    with pytest.raises(RuntimeError, match="cancelled from within"):
        list(results(10, work))


def test_an_interrupt_gives_what_is_done_and_takes_no_more() -> None:
    started: list[int] = []

    async def work(item: int) -> int:
        started.append(item)
        return item

    given = results(1000, work)
    taken = [next(given)]
    deadline = time.monotonic() + 5
    while len(started) <= bridge._MOST_WAITING and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    taken.append(given.throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        take(taken, given)
    assert {position for position, _ in taken} == set(started)
    assert bridge._MOST_WAITING < len(started) < 1000
    assert threads() == []


def test_a_client_that_cannot_be_closed_leaves_no_thread() -> None:
    async def broken() -> None:
        raise RuntimeError("pool broken")

    async def work(item: int) -> int:
        return item

    with pytest.raises(RuntimeError, match="pool broken"):
        list(as_completed(range(3), work, n_workers=2, closing=broken))
    assert threads() == []

"""A slot of a Dagster pool, held while a server runs or a hosted endpoint is asked.

Two judges never share a GPU unasked, and a hosted endpoint is asked by as few runs at a time as
its pool allows.
"""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import dagster as dg

from resources.judges.managed.hosting import Hosting, hosting
from resources.judges.managed.slot import Slot

ONE_SERVER = 1
"""Limit of a pool of GPUs that nobody gave one, whatever the default limit is."""

_LOOK_EVERY_S = 1.0
_TELL_EVERY_S = 60.0


@contextmanager
def hosting_of(context: dg.AssetExecutionContext, tell: Callable[[str], None]) -> Iterator[Hosting]:
    """Give a place for servers within a step; its slots are those of the step's run."""

    def tell_of_server(text: str) -> None:
        tell(f"vllm: {text}")

    run_id = context.run.run_id
    claim = partial(claimed, context.instance, run_id, limit=ONE_SERVER, tell=tell_of_server)
    with hosting(tell, claim) as place:
        yield place


@contextmanager
def claimed(
    instance: dg.DagsterInstance,
    run_id: str,
    pool: str,
    *,
    limit: int | None = None,
    tell: Callable[[str], None],
) -> Iterator[None]:
    """Hold a slot of a pool; wait for one while others hold them all.

    The interface shows the pool, who is in it and who waits, and there its limit is changed.
    Whoever waits frees the slot of a process that died. `limit` is that of a pool without one; by
    default the instance's default, and where that says nothing no slot is needed.
    """
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        yield
        return
    with _alone(instance):
        is_limited = _has_limit(instance, pool, limit)
    if not is_limited:
        yield
        return
    slot = Slot(instance, run_id, pool)
    try:
        _wait(slot, tell)
        yield
    finally:
        with _alone(instance):
            slot.give_back()


def _has_limit(instance: dg.DagsterInstance, pool: str, limit: int | None) -> bool:
    """Return whether a pool has a limit, given to it now if it had none.

    A default limit that was changed since is taken over, as Dagster does for its own steps.
    """
    storage = instance.event_log_storage
    known = {one.name: one for one in storage.get_pool_limits()}.get(pool)
    if limit is not None:
        if known is None:
            storage.set_concurrency_slots(pool, limit)
        return True
    default = storage.get_pool_config().default_pool_limit
    if known is not None and not (known.from_default and known.limit != default):
        return True
    return bool(default is not None and storage.initialize_concurrency_limit_to_default(pool))


def _wait(slot: Slot, tell: Callable[[str], None]) -> None:
    told = -_TELL_EVERY_S
    while not _claims(slot, tell):
        if time.monotonic() - told >= _TELL_EVERY_S:
            told = time.monotonic()
            runs = ", ".join(slot.holders()) or "(none)"
            tell(f"waiting for pool {slot.pool}, held by run {runs}")
        time.sleep(_LOOK_EVERY_S)


def _claims(slot: Slot, tell: Callable[[str], None]) -> bool:
    with _alone(slot.instance):
        freed = slot.free_the_dead()
        is_claimed = slot.claim()
    for run_id in freed:
        tell(f"the process of run {run_id} is gone; its place in pool {slot.pool} is free")
    return is_claimed


@contextmanager
def _alone(instance: dg.DagsterInstance) -> Iterator[None]:
    """Keep other processes of this host out for a moment.

    Dagster claims a slot by reading a free row and then writing it. It relies on the lock that
    ``SELECT ... FOR UPDATE`` takes, which SQLite does not have: two processes can both believe
    that the one slot is theirs.
    """
    folder = Path(instance.root_directory)
    folder.mkdir(parents=True, exist_ok=True)  # of a fresh instance it is a promise
    with (folder / "pools.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the end of the process, however it comes, gives it back
        yield

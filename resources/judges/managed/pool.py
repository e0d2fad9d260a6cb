"""A slot of a Dagster pool, held while a server runs: two judges never share a GPU unasked."""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import dagster as dg

from resources.judges.managed.hosting import Hosting, hosting
from resources.judges.managed.slot import Slot

_LOOK_EVERY_S = 1.0
_TELL_EVERY_S = 60.0


@contextmanager
def hosting_of(context: dg.AssetExecutionContext, tell: Callable[[str], None]) -> Iterator[Hosting]:
    """Give a place for servers within a step; its slots are those of the step's run."""
    claim = partial(claimed, context.instance, context.run.run_id, tell=tell)
    with hosting(tell, claim) as place:
        yield place


@contextmanager
def claimed(
    instance: dg.DagsterInstance, run_id: str, pool: str, *, tell: Callable[[str], None]
) -> Iterator[None]:
    """Hold a slot of a pool; wait for one while others hold them all.

    A pool without a limit gets one slot, whatever the default limit is: the pool in which
    judges answer may be raised for judges that need no GPU.

    Parameters
    ----------
    instance : DagsterInstance
        Whose pools these are. One that keeps no pools, as in memory, has nobody to share with.
    run_id : str
        The run that holds the slot. When the process that holds it dies, whoever waits for one
        frees it.
    pool : str
        The pool.
    tell : callable
        Is told who holds the slots while this waits.
    """
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        yield
        return
    with _alone(instance):
        if pool not in storage.get_concurrency_keys():
            storage.set_concurrency_slots(pool, 1)
    slot = Slot(instance, run_id, pool)
    try:
        _wait(slot, tell)
        yield
    finally:
        with _alone(instance):
            slot.give_back()


def _wait(slot: Slot, tell: Callable[[str], None]) -> None:
    told = -_TELL_EVERY_S
    while not _claims(slot, tell):
        if time.monotonic() - told >= _TELL_EVERY_S:
            told = time.monotonic()
            runs = ", ".join(slot.holders()) or "(none)"
            tell(f"vllm: waiting for pool {slot.pool}, held by run {runs}")
        time.sleep(_LOOK_EVERY_S)


def _claims(slot: Slot, tell: Callable[[str], None]) -> bool:
    with _alone(slot.instance):
        freed = slot.free_the_dead()
        is_claimed = slot.claim()
    for run_id in freed:
        tell(f"vllm: the process of run {run_id} is gone; its place in pool {slot.pool} is free")
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

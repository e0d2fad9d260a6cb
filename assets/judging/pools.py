"""Pools: how many runs at a time ask an endpoint, or start a server on the GPUs of a host."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import dagster as dg
from filelock import FileLock, Timeout
from sqlalchemy import text

from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.live.endpoint import find_endpoint
from judgeline.judges.managed.options import Hosting, Lease, VllmOptions

ONE_SERVER = 1
"""Limit of a pool of GPUs that nobody gave one, whatever the default limit is."""


Held = AbstractContextManager[object]

_LOCK_OF_ALL_HOSTS = "SELECT pg_advisory_xact_lock(hashtext('judgeline pools'))"

_LOOK_EVERY_S = 1.0

_TELL_EVERY_S = 60.0


def hosting_of(
    context: dg.AssetExecutionContext,
    tell: Callable[[str], None],
    warn: Callable[[str], None],
    lease: Lease | None = None,
) -> Hosting:
    """Return the hosting of servers within a step; its slots are those of the step's run."""

    def claim(pool: str) -> Held:
        """Return the context of a slot; only a server needs the run."""
        own = context.instance, context.run.run_id
        return claimed(*own, pool, limit=ONE_SERVER, tell=lambda line: tell(f"vllm: {line}"))

    return Hosting(tell, claim, warn, lease=lease)


@contextmanager
def claimed(
    instance: dg.DagsterInstance,
    run_id: str,
    pool: str,
    *,
    limit: int | None = None,
    tell: Callable[[str], None],
) -> Iterator[None]:
    """Hold a slot of a pool, waiting for one; `limit` is that of a pool without any."""
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
    """Return whether a pool has a limit, given to it, or taken over from a changed default, now."""
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


def _wait(slot: "Slot", tell: Callable[[str], None]) -> None:
    told = -_TELL_EVERY_S
    while True:
        with _alone(slot.instance):
            freed = slot.free_the_dead()
            is_claimed = slot.claim()
        for run_id in freed:
            tell(f"the process of run {run_id} is gone; its place in pool {slot.pool} is free")
        if is_claimed:
            return
        if time.monotonic() - told >= _TELL_EVERY_S:
            told = time.monotonic()
            runs = ", ".join(slot.holders()) or "(none)"
            tell(f"waiting for pool {slot.pool}, held by run {runs}")
        time.sleep(_LOOK_EVERY_S)


@contextmanager
def _alone(instance: dg.DagsterInstance) -> Iterator[None]:
    """Hold the lock of all pools: Dagster claims a slot by reading a free row, then writing it."""
    storage: Any = instance.event_log_storage  # of SQL: no other has limits
    with storage.index_transaction() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text(_LOCK_OF_ALL_HOSTS))
            yield
            return
    with FileLock(_folder(instance).with_suffix(".lock")):
        yield


def _folder(instance: dg.DagsterInstance) -> Path:
    """Return the folder of the files that are locked; a fresh instance has only promised it."""
    folder = Path(instance.root_directory) / "pools"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Slot:
    """A slot of a run; the operating system unlocks its file when the process ends."""

    def __init__(self, instance: dg.DagsterInstance, run_id: str, pool: str) -> None:
        self.instance, self.run_id, self.pool = instance, run_id, pool
        self._storage = instance.event_log_storage
        # a name of its own: freeing the step's would free its slots of other pools as well
        self._name = f"asking-in-{pool}"
        self._lock: Held | None = None

    def claim(self) -> bool:
        """Return whether the slot is ours now; if not, we are queued for one."""
        self._lock = self._lock or _locked(self._file(self.run_id))
        if self._lock is None:  # the same run is in the pool already
            return False
        status = self._storage.claim_concurrency_slot(self.pool, self.run_id, self._name)
        return bool(status.is_claimed)

    def give_back(self) -> None:
        """Free the slot, or leave the queue."""
        if self._lock is not None:
            with self._lock:
                self._free(self.run_id)
            self._lock = None

    def holders(self) -> list[str]:
        """Return the runs that hold slots of the pool."""
        return sorted(self._storage.get_concurrency_info(self.pool).active_run_ids)

    def free_the_dead(self) -> list[str]:
        """Free the places of dead processes, each with an unlocked file, and return their runs."""
        info = self._storage.get_concurrency_info(self.pool)
        places: list[Any] = [*info.claimed_slots, *info.pending_steps]
        runs = {place.run_id for place in places if place.step_key == self._name}
        return [run_id for run_id in sorted(runs) if self._is_freed(run_id)]

    def _is_freed(self, run_id: str) -> bool:
        file = self._file(run_id)
        lock = _locked(file) if file.exists() else None
        if lock is None:
            return False
        with lock:
            self._free(run_id)
        return True

    def _free(self, run_id: str) -> None:
        self._storage.free_concurrency_slot_for_step(run_id, self._name)
        self._file(run_id).unlink(missing_ok=True)

    def _file(self, run_id: str) -> Path:
        return _folder(self.instance) / quote(f"{run_id} {self.pool}", safe=" ")


def _locked(file: Path) -> Held | None:
    """Return the lock of a file, held until its context ends; None if another holds it."""
    try:
        return FileLock(file).acquire(blocking=False)
    except Timeout:
        return None


Turn = Callable[[], AbstractContextManager[object]]


def pool_of(judge: JudgeDefinition) -> str | None:
    """Return the pool in which a judge is asked, by endpoint or GPUs; None if it needs none."""
    if judge.kind == "vllm":
        return (judge.vllm or VllmOptions()).pool
    if judge.kind != "openai" or judge.batch:
        return None
    name = judge.endpoint_name or urlsplit(find_endpoint(judge.slug, judge).url).netloc
    return f"endpoint-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"


def turn_of(
    context: dg.AssetExecutionContext, judge: JudgeDefinition, tell: Callable[[str], None]
) -> Turn:
    """Return a hosted judge's place in its pool; a server that is started claims one by itself."""
    pool = pool_of(judge)
    if pool is None or judge.kind == "vllm":
        return nullcontext
    return partial(claimed, context.instance, context.run.run_id, pool, tell=tell)

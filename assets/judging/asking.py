"""Annotation by an asset: in its pool's slot, through the verdict store, within the budget."""

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import dagster as dg
import pandas as pd
from filelock import FileLock, Timeout
from sqlalchemy import text

from assets.judging.budgets import RunBudget, capped, retried_later, transient_ignored
from assets.partitions import corpus_and_judge
from judgeline.judges.annotation import annotate, evidence_entries
from judgeline.judges.budget import Budget, Price
from judgeline.judges.buying import RETRIED, Account, Buyer, models_named, paced
from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.forms.registered import FormName
from judgeline.judges.judge import Judge, origin_of
from judgeline.judges.judge_plan import expect_calls, plan_of, told
from judgeline.judges.live.endpoint import find_endpoint
from judgeline.judges.managed.options import Hosting, VllmOptions
from resources.config.catalog import Catalog
from resources.opening import open_judge
from resources.stores import StoredVerdicts

ONE_SERVER = 1
"""Limit of a pool of GPUs that nobody gave one, whatever the default limit is."""

Held = AbstractContextManager[object]

_LOCK_OF_ALL_HOSTS = "SELECT pg_advisory_xact_lock(hashtext('judgeline pools'))"
_LOOK_EVERY_S = 1.0
_TELL_EVERY_S = 60.0


def hosting_of(
    context: dg.AssetExecutionContext, tell: Callable[[str], None], warn: Callable[[str], None]
) -> Hosting:
    """Return the hosting of servers within a step; its slots are those of the step's run."""
    claim = partial(
        claimed,
        context.instance,
        context.run.run_id,
        limit=ONE_SERVER,
        tell=lambda line: tell(f"vllm: {line}"),
    )
    return Hosting(tell, claim, warn)


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


PROGRESS = "judging: "
"""What the log messages begin with that say how far a judge is."""

Turn = Callable[[], AbstractContextManager[object]]
Annotate = Callable[..., pd.DataFrame]
"""A function that asks an opened judge about battles; see `annotate`."""


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


def ask_judge(
    context: dg.AssetExecutionContext,
    battles: pd.DataFrame,
    *,
    form: FormName = "rubric",
    annotate: Annotate = annotate,
    catalog: Catalog,
    verdict_store: StoredVerdicts,
    budget: Budget,
    n_replicates: int | None = None,
    n_covered: int = 0,
    first_replicate: int = 0,
) -> dg.MaterializeResult[pd.DataFrame]:
    """Return the verdicts of the partition's judge in one form, with calls, tokens and cost."""
    corpus, slug = corpus_and_judge(context)
    judge = catalog.judge(slug)
    budget = capped(context, budget, costs_money=judge.kind == "openai")

    def say(text: str, level: int = logging.INFO) -> None:
        _log(context, f"{slug}: {text}", level)

    buyer = Buyer(
        verdict_store.open(),
        budget,
        RETRIED.union(verdict_store.retry_also),
        on_wait=lambda: _log(context, f"{slug} waits: another run is asking it"),
        turn=turn_of(context, judge, say),
    )
    if n_covered:
        buyer = buyer.repeating(n_covered)
    definition = catalog.corpus(corpus)
    calls = expect_calls(
        judge,
        form,
        partial(open_judge, judge, definition, form=form),
        battles,
        buyer,
        n_replicates=n_replicates,
        first_replicate=first_replicate,
    )
    plan = plan_of(judge, context.partition_key, {form: calls})
    context.log.info(f"{PROGRESS}{'; '.join(told(plan))}; budget: {buyer.budget}")
    expected = {f"expected_{name}": value for name, value in plan.entries().items()}
    with (
        retried_later(context),
        hosting_of(context, say, partial(say, level=logging.WARNING)) as hosting,
        ExitStack() as after,
    ):
        if isinstance(budget, RunBudget):
            after.callback(budget.record)
        opened = open_judge(judge, definition, hosting, form)
        answers = annotate(
            opened,
            battles,
            slug=slug,
            n_replicates=n_replicates or judge.replicates,
            on_progress=paced(judge.slug, judge.price_per_million, partial(_log, context)),
            buyer=buyer,
        )
    entries = _account(context, opened, answers, buyer.account, judge.price_per_million)
    return dg.MaterializeResult(
        value=answers, metadata={**expected, **account_of(answers), **entries}
    )


def _account(
    context: dg.AssetExecutionContext,
    opened: Judge,
    answers: pd.DataFrame,
    account: Account,
    price: Price | None,
) -> dict[str, Any]:
    """Return as metadata the account of the answers, and the judge and prompt behind them."""
    for file in account.damaged:
        context.log.warning(f"{file} is damaged; what it held was asked for again")
    named, note = models_named(answers)
    if note:
        context.log.warning(f"{PROGRESS}{note}")
    entries = account.entries(opened, price) | named
    if len(answers):  # a judge that was not asked may not know itself yet
        entries |= origin_of(opened)
    if opened.form.needs_alternatives:
        entries |= evidence_entries(answers)
    return entries


def _log(context: dg.AssetExecutionContext, text: str, level: int = logging.INFO) -> None:
    """Log a judge's progress; a passing error of the log is ignored: answers are worth more."""
    with transient_ignored():
        context.log.log(level, f"{PROGRESS}{text}")


def account_of(answers: pd.DataFrame) -> dict[str, Any]:
    """Return as metadata how many battles, or completions, were asked about, and how it went."""
    about = "battle" if "battle_id" in answers else "completion"
    counts = answers["status"].value_counts()
    tokens = answers[["prompt_tokens", "completion_tokens"]].sum()
    return {
        f"n_{about}s": int(answers[f"{about}_id"].nunique()),
        "n_failed": int(len(answers) - counts.get("ok", 0)),
        "statuses": dg.MetadataValue.md(counts.to_markdown()),
        **{name: int(value) for name, value in tokens.items()},
    }


def why_not_asked(judge: JudgeDefinition, form: FormName, battles: pd.DataFrame) -> str | None:
    """Return the reason, with the remedy, why a judge is not asked in a form; None if it is."""
    if form not in judge.asks:
        return (
            f"judge {judge.slug!r} is not asked in the form {form!r}: add it to the judge's 'asks' "
            "in judges.yaml"
        )
    if battles[["completion_a", "completion_b"]].isna().all(axis=None):
        return (
            f"judge {judge.slug!r} is not asked in the form {form!r}, since the corpus has no "
            "texts: choose one that publishes them"
        )
    return None

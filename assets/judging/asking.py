"""Annotation by an asset: in its pool's slot, through the verdict store, within the budget."""

import logging
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial, wraps
from typing import Any

import dagster as dg
import pandas as pd

from assets.judging.budgets import RunBudget, capped, require_room, retried_later, transient_ignored
from assets.judging.pools import hosting_of, turn_of
from assets.messages import PROGRESS
from assets.partitions import corpus_and_judge
from judgeline.judges.annotation import annotate, evidence_entries
from judgeline.judges.budget import Budget, Price
from judgeline.judges.buying import Account, Buyer, models_named, paced
from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.forms.registered import FORM_TABLES, FormName
from judgeline.judges.judge import Judge, origin_of
from judgeline.judges.judge_plan import expect_calls, plan_of, told
from judgeline.judges.managed.options import Lease
from judgeline.judges.opening import was_probed
from resources.config.catalog import Catalog
from resources.opening import open_judge
from resources.stores import StoredVerdicts

Annotate = Callable[..., pd.DataFrame]
"""A function that asks an opened judge about battles; see `annotate`."""

Table = Callable[..., dg.MaterializeResult[pd.DataFrame]]
"""The function of an asset that makes a table."""


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
    say = partial(_say, context, slug)
    named, buyer = _named(judge, form), _buyer(context, judge, verdict_store, budget)
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
    if judge.kind != "openai" or was_probed(judge, form):  # else stored answers are not known
        require_room(context, budget, plan.n_calls)
    expected = {f"expected_{name}": value for name, value in plan.entries().items()}
    with (
        retried_later(context),
        hosting_of(
            context, say, partial(say, level=logging.WARNING), verdict_store.lease
        ) as hosting,
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
            on_progress=paced(named, judge.price_per_million, partial(_log, context)),
            buyer=buyer,
        )
    entries = _account(context, opened, answers, buyer.account, judge.price_per_million)
    return dg.MaterializeResult(
        value=answers, metadata={**expected, **account_of(answers), **entries}
    )


def _named(judge: JudgeDefinition, form: FormName) -> str:
    """Return the name of a judge in a line about one form, with that form if there are others."""
    return judge.slug if len(judge.asks) == 1 else f"{judge.slug}, {form}:"


def _say(
    context: dg.AssetExecutionContext, slug: str, text: str, level: int = logging.INFO
) -> None:
    """Log a sentence about a judge, under its name."""
    _log(context, f"{slug}: {text}", level)


def _buyer(
    context: dg.AssetExecutionContext,
    judge: JudgeDefinition,
    verdict_store: StoredVerdicts,
    budget: Budget,
) -> Buyer:
    """Return the buyer of a judge's answers, which waits for its turn where others ask it."""
    return Buyer(
        verdict_store.open(),
        budget,
        verdict_store.retried,
        on_wait=lambda: _log(context, f"{judge.slug} waits: another run is asking it"),
        turn=turn_of(context, judge, partial(_say, context, judge.slug)),
    )


def releasing(make: Table) -> Table:
    """Return the function of a table, after which a server ends that no later table needs."""

    @wraps(make)
    def made(context: dg.AssetExecutionContext, **given: Any) -> dg.MaterializeResult[pd.DataFrame]:
        try:
            return make(context, **given)
        finally:
            _release(context, given["catalog"], given["verdict_store"].lease)

    return made


def _release(context: dg.AssetExecutionContext, catalog: Catalog, lease: Lease) -> None:
    """End a lease unless this run is still to make a table for which the judge is asked."""
    lease.done.add(context.asset_key.path[-1])
    if not lease.is_open:
        return
    corpus, slug = corpus_and_judge(context)
    later = {FORM_TABLES[form].name for form in catalog.judge(slug).asks}
    later |= set() if catalog.corpus(corpus).panel is None else {"reliability_panel"}
    here = {key.path[-1] for key in context.job_def.asset_layer.executable_asset_keys}
    if not here & later - lease.done:
        lease.end()


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

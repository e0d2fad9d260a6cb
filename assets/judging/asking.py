"""Annotation by an asset: through the verdict store, within the budget, with progress.

The assets that ask are verdicts, score_verdicts, choice_verdicts, reliability_panel and
drift_answers; they differ in what they ask.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import dagster as dg
import pandas as pd

from assets.judging.budgets import RunBudget, capped
from assets.judging.pools import turn_of
from assets.judging.retries import is_transient, retried_later
from assets.partitions import corpus_and_judge
from resources.config.catalog import Catalog
from resources.config.judges import JudgeDefinition
from resources.judges.annotation import evidence_entries
from resources.judges.budget import Budget
from resources.judges.buying import RETRIED, Account, Buyer, Progress
from resources.judges.calls import origin_of
from resources.judges.catalog import open_judge
from resources.judges.expected_calls import Expected, expect_calls
from resources.judges.forms.options import FormName
from resources.judges.judge import Judge
from resources.judges.judge_plan import plan_of, told
from resources.judges.ledger import Ledger, models_named, several_models_message
from resources.judges.managed.pool import hosting_of
from resources.judges.remedies import reasons_of, remedies_text
from resources.store.resource import StoredVerdicts
from resources.tables.expectations import evaluate

PROGRESS = "judging: "
"""What the log messages begin with that say how far a judge is."""
MOST_SECONDS_BETWEEN_WORDS = 30.0
MIN_PARSED = 0.5
WARN_PARSED = 0.95


class Annotate(Protocol):
    """What asks an opened judge about battles."""

    def __call__(
        self,
        judge: Judge,
        battles: pd.DataFrame,
        *,
        slug: str,
        n_replicates: int = 1,
        on_progress: Progress | None = None,
        buyer: Buyer | None = None,
    ) -> pd.DataFrame:
        """Return the answers of a judge as a table of verdicts."""
        ...


def ask_judge(
    context: dg.AssetExecutionContext,
    battles: pd.DataFrame,
    annotate: Annotate,
    *,
    form: FormName,
    catalog: Catalog,
    verdict_store: StoredVerdicts,
    budget: Budget,
    n_replicates: int | None = None,
    n_covered: int = 0,
    first_replicate: int = 0,
) -> dg.MaterializeResult[pd.DataFrame]:
    """Return the verdicts of the judge of this partition, in one form, and what they took.

    Parameters
    ----------
    context : AssetExecutionContext
        Of an asset of a corpus and a judge; its log is told how far the judge is.
    battles : DataFrame
        What to ask about.
    annotate : Annotate
        What asks it. Before anything is asked for it waits for a place in the judge's pool.
    form : str
        The form that the judge is opened in.
    catalog, verdict_store, budget : resources
        Where judges are defined, answers kept, and what may be spent.
    n_replicates : int, optional
        How often each question is asked; by default as often as the judge is configured.
    n_covered : int
        First runs of each question that another asset asks too, and pays for: see
        `Buyer.repeating`.
    first_replicate : int
        What `annotate` numbers its first run, for what is said of the calls beforehand.

    Raises
    ------
    BudgetError
        If the budget is spent; what was bought is kept.
    RetryRequested
        If the endpoint does not answer now, in a run that nobody watches; see `retried_later`.
    ValueError
        If the judge cannot be opened, a battle has no text, or a cap on the run says nothing.
    """
    corpus, slug = corpus_and_judge(context)
    judge = catalog.judge(slug)
    budget = capped(context, budget, costs_money=judge.kind == "openai")
    say, warn = partial(_say, context, slug), partial(_warn, context, slug)
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
        definition,
        battles,
        buyer,
        n_replicates=n_replicates,
        first_replicate=first_replicate,
    )
    expected = _state(context, judge, form, calls, buyer.budget)
    ledger = Ledger(slug, judge.price_per_million)
    with retried_later(context), hosting_of(context, say) as hosting, _recorded(budget):
        opened = open_judge(
            judge, definition, on_news=say, hosting=hosting, form=form, on_warning=warn
        )
        answers = annotate(
            opened,
            battles,
            slug=slug,
            n_replicates=n_replicates or judge.replicates,
            on_progress=_told(context, ledger),
            buyer=buyer,
        )
    entries = _account(context, opened, answers, ledger, buyer)
    return dg.MaterializeResult(
        value=answers, metadata={**expected, **account_of(answers), **entries}
    )


def _account(
    context: dg.AssetExecutionContext,
    opened: Judge,
    answers: pd.DataFrame,
    ledger: Ledger,
    buyer: Buyer,
) -> dict[str, Any]:
    """Return as metadata what the answers took, and which judge and prompt gave them."""
    for file in buyer.account.damaged:
        context.log.warning(f"{file} is damaged; what it held was asked for again")
    asked = opened.form
    named = models_named(answers)
    if note := several_models_message(named):
        context.log.warning(f"{PROGRESS}{note}")
    entries = ledger.entries(buyer.account, opened) | named
    if len(answers):  # a judge that was not asked may not know itself yet
        entries |= origin_of(opened)
    if asked.needs_alternatives:
        entries |= evidence_entries(answers, asked)
    return _as_metadata(entries)


def _state(
    context: dg.AssetExecutionContext,
    judge: JudgeDefinition,
    form: FormName,
    calls: Expected,
    budget: Budget,
) -> dict[str, Any]:
    """Say in the run's log what asking would take, before it begins; return it as metadata."""
    plan = plan_of(judge, context.partition_key, {form: calls})
    context.log.info(f"{PROGRESS}{'; '.join(told(plan))}; budget: {budget}")
    return {f"expected_{name}": value for name, value in plan.entries().items()}


@contextmanager
def _recorded(budget: Budget) -> Iterator[None]:
    """Keep at the end, however it comes, what was spent under the caps of a run."""
    try:
        yield
    finally:
        if isinstance(budget, RunBudget):
            budget.record()


def _say(context: dg.AssetExecutionContext, slug: str, text: str) -> None:
    _log(context, f"{slug}: {text}")


def _warn(context: dg.AssetExecutionContext, slug: str, text: str) -> None:
    _log(context, f"{slug}: {text}", logging.WARNING)


def _log(context: dg.AssetExecutionContext, text: str, level: int = logging.INFO) -> None:
    """Log how far a judge is, if that can be kept: answers on their way are worth more than it."""
    try:
        context.log.log(level, f"{PROGRESS}{text}")
    except Exception as error:
        if not is_transient(error):
            raise


def _told(context: dg.AssetExecutionContext, ledger: Ledger) -> Callable[[Account], None]:
    """Return what says how far a judge is: often at first, then less, since each word is kept."""
    last = 0.0

    def tell(account: Account) -> None:
        nonlocal last
        pause = min(MOST_SECONDS_BETWEEN_WORDS, max(1.0, account.seconds / 20))
        if account.seconds - last < pause and account.n_asked < account.n_needed:
            return
        last = account.seconds
        _log(context, ledger.told(account))

    return tell


def _as_metadata(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return named values as an asset's metadata: numbers and text as they are, others as JSON."""
    plain = (int, float, str)
    return {
        name: value if isinstance(value, plain) else dg.MetadataValue.json(value)
        for name, value in entries.items()
    }


def account_of(answers: pd.DataFrame) -> dict[str, Any]:
    """Return as metadata how many battles, or completions, were asked about, and how it went."""
    about = "battle" if "battle_id" in answers else "completion"
    counts = answers["status"].value_counts()
    tokens = answers[["prompt_tokens", "completion_tokens"]].sum()
    return {
        f"n_{about}s": int(answers[f"{about}_id"].nunique()),
        "n_failed": int(len(answers) - counts.get("ok", 0)),
        "statuses": dg.MetadataValue.table(
            [dg.TableRecord({"status": k, "answers": int(n)}) for k, n in counts.items()],
            schema=dg.TableSchema([dg.TableColumn("status"), dg.TableColumn("answers", "int")]),
        ),
        **{name: int(value) for name, value in tokens.items()},
    }


def parse_rate(
    verdicts: pd.DataFrame, least: float, severity: dg.AssetCheckSeverity
) -> dg.AssetCheckResult:
    """Return whether at least a share `least` of the answers could be read."""
    import great_expectations.expectations as gxe

    counts = verdicts["status"].value_counts()
    told = ", ".join(f"{status} {count}" for status, count in counts.items())
    rate = float(verdicts["status"].eq("ok").mean()) if len(verdicts) else 0.0
    return evaluate(
        pd.DataFrame({"statuses": [told or "no verdicts"], "parsed": [rate]}),
        [
            gxe.ExpectColumnValuesToBeBetween(
                column="parsed", min_value=least, notes=f"at least {least:.0%} of answers parse"
            )
        ],
        ids=["statuses"],
        remedy=remedies_text(reasons_of(verdicts[verdicts["status"].ne("ok")])),
        severity=severity,
    )

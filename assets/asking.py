"""Asks a judge on behalf of an asset: within its budget, through the store, telling how far it is.

What belongs here: what every table that costs money shares. What does not: what is asked, and
what becomes of the answers (the assets that call `ask`).
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Protocol

import dagster as dg
import pandas as pd

from assets.partitions import corpus_and_judge
from resources.catalog import Catalog
from resources.judges.budget import Budget
from resources.judges.buying import RETRIED, RETRIED_ONCE, Account, Buyer, Progress
from resources.judges.catalog import open_judge
from resources.judges.definitions import JudgeDefinition
from resources.judges.judge import Judge
from resources.judges.ledger import Ledger
from resources.judges.managed.pool import hosting_of
from resources.verdict_store.resource import StoredVerdicts

PROGRESS = "judging: "
"""What the log messages begin with that say how far a judge is."""
MOST_SECONDS_BETWEEN_WORDS = 30.0


class Annotation(Protocol):
    """Has a judge answer and returns a row per answer, as `annotate` with its table bound does."""

    def __call__(self, judge: Judge, /, *, on_progress: Progress, buyer: Buyer) -> pd.DataFrame:
        """Return the answers as a table, bought through the buyer."""
        ...


def ask(
    context: dg.AssetExecutionContext,
    annotation: Annotation,
    *,
    catalog: Catalog,
    verdict_store: StoredVerdicts,
    budget: Budget,
    opening: Callable[..., Judge] = open_judge,
    retried_once: Collection[str] = RETRIED_ONCE,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return what a partition's judge answers, and the ledger of it as metadata.

    Parameters
    ----------
    context : AssetExecutionContext
        Of a partition of corpus and judge; its log is told how far the judge is.
    annotation : callable
        What is asked: takes the opened judge, ``on_progress`` and ``buyer``.
    catalog, verdict_store, budget : resources
        Where the judge is declared, where its answers are kept, and the cap on what it is asked.
    opening : callable
        Opens the judge, as `open_judge` does for the rubric.
    retried_once : collection of str
        Failures that are asked again once where the store has them, beside those of transport.

    Raises
    ------
    BudgetError
        If the budget does not cover what is missing; everything bought is stored.
    """
    corpus, slug = corpus_and_judge(context)
    judge = catalog.judge(slug)
    buyer = Buyer(
        verdict_store.open(),
        budget,
        RETRIED.union(verdict_store.retry_also),
        on_wait=lambda: context.log.info(f"{PROGRESS}{slug} waits: another run is asking it"),
        retried_once=retried_once,
    )
    ledger = Ledger(slug, judge.price_per_million)
    told = partial(_say, context, slug)
    with hosting_of(context, told) as hosting:
        opened = opening(judge, catalog.corpus(corpus), on_news=told, hosting=hosting)
        answers = annotation(opened, on_progress=_told(context, ledger), buyer=buyer)
    for file in buyer.account.damaged:
        context.log.warning(f"{file} is damaged; what it held was asked for again")
    return answers, as_metadata(ledger.entries(buyer.account, opened))


def came_with_corpus(judge: JudgeDefinition, recorded_verdicts: pd.DataFrame) -> bool:
    """Return whether a judge's verdicts are those published with the corpus: nobody is asked."""
    return judge.kind == "recorded" or bool(recorded_verdicts["judge"].eq(judge.slug).any())


def counted(answers: pd.DataFrame) -> dict[str, Any]:
    """Return what became of answers, by status, and their tokens, as metadata."""
    counts = answers["status"].value_counts()
    tokens = answers[["prompt_tokens", "completion_tokens"]].sum()
    return {
        "n_failed": int(len(answers) - counts.get("ok", 0)),
        "statuses": dg.MetadataValue.table(
            [dg.TableRecord({"status": k, "answers": int(n)}) for k, n in counts.items()],
            schema=dg.TableSchema([dg.TableColumn("status"), dg.TableColumn("answers", "int")]),
        ),
        **{name: int(value) for name, value in tokens.items()},
    }


def as_metadata(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return named values as an asset's metadata: numbers and text as they are, others as JSON."""
    plain = (int, float, str)
    return {
        name: value if isinstance(value, plain) else dg.MetadataValue.json(value)
        for name, value in entries.items()
    }


def _say(context: dg.AssetExecutionContext, slug: str, text: str) -> None:
    context.log.info(f"{PROGRESS}{slug}: {text}")


def _told(context: dg.AssetExecutionContext, ledger: Ledger) -> Callable[[Account], None]:
    """Return what says how far a judge is: often at first, then less, since each word is kept."""
    last = 0.0

    def tell(account: Account) -> None:
        nonlocal last
        pause = min(MOST_SECONDS_BETWEEN_WORDS, max(1.0, account.seconds / 20))
        if account.seconds - last < pause and account.n_asked < account.n_needed:
            return
        last = account.seconds
        context.log.info(f"{PROGRESS}{ledger.told(account)}")

    return tell

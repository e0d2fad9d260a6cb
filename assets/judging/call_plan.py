"""Asset of a judge's plan: its calls and their cost, before it is asked."""

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import OF_CORPUS_AND_JUDGE
from assets.judging.planning import plan_judge
from assets.partitions import corpus_and_judge, of_corpus
from resources.config.catalog import Catalog
from resources.judges.buying import RETRIED, Buyer
from resources.judges.judge_plan import PLAN_COLUMNS, JudgePlan, told
from resources.store.resource import StoredVerdicts
from resources.tables.store import ParquetStore


# No automation condition: it is for a person who is about to ask a judge.
@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="judging",
    code_version="1",
    ins={"sampled_battles": of_corpus(), "recorded_verdicts": of_corpus()},
)
def call_plan(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    recorded_verdicts: pd.DataFrame,
    catalog: Catalog,
    verdict_store: StoredVerdicts,
    io_manager: dg.ResourceParam[ParquetStore],
) -> dg.MaterializeResult[pd.DataFrame]:
    """One judge: calls, tokens and price if all of its tables were made now. Asks nobody.

    Materialise it before a backfill from the UI, whose dialog cannot state a price.
    """
    corpus, slug = corpus_and_judge(context)
    buyer = Buyer(verdict_store.open(), retried=RETRIED.union(verdict_store.retry_also))
    plan = plan_judge(
        catalog.judge(slug),
        catalog.corpus(corpus),
        sampled_battles,
        recorded_verdicts,
        io_manager,
        buyer,
    )
    words = told(plan)
    context.log.info("; ".join(words))
    return dg.MaterializeResult(
        value=_table(plan),
        metadata={**plan.entries(), "n_stored": plan.n_stored, "told": "\n".join(words)},
    )


def _table(plan: JudgePlan) -> pd.DataFrame:
    row = {"judge": plan.judge, "n_stored": plan.n_stored, "note": "; ".join(told(plan)[1:])}
    entries = {"n_needed" if name == "calls" else name: v for name, v in plan.entries().items()}
    table = pd.DataFrame([{**dict.fromkeys(PLAN_COLUMNS, np.nan), **entries, **row}])
    counts = dict.fromkeys(("n_needed", "n_stored", "prompt_tokens", "completion_tokens"), "Int64")
    money = dict.fromkeys(("price", "most_price"), "float64")
    return table.astype({**counts, **money, "currency": "str"})

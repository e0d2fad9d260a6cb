"""Assets of score and choice distributions: outcomes of battles, and contradictions of a judge."""

import dagster as dg
import pandas as pd

from assets.checks import table_check
from assets.engine import step_asset
from judgeline.steps import trust
from judgeline.tables.rules import within
from resources.tables.expectations import evaluate

WARN_COVERED = 0.95

soft_outcomes = step_asset(trust.soft_outcomes, "1", needs=("choice_verdicts", "score_verdicts"))
consistency = step_asset(trust.consistency, "2", needs=("verdicts",))


@table_check(soft_outcomes)
def sources_cover_the_sample(
    soft_outcomes: pd.DataFrame, sampled_battles: pd.DataFrame
) -> dg.AssetCheckResult:
    """Methods are compared on the battles that every source has: missing ones thin them all."""
    n_sampled = max(len(sampled_battles), 1)
    share = soft_outcomes["source"].value_counts(sort=False) / n_sampled
    note = f"each source has at least {WARN_COVERED:.0%} of the sampled battles"
    return evaluate(
        share.rename("share").rename_axis("source").reset_index(),
        [within("share", WARN_COVERED, note=note)],
        ids=["source"],
        remedy="Look at `status` and `evidence` of the judge's score_verdicts and choice_verdicts: "
        "answers failed, or came without log-probabilities.",
        severity=dg.AssetCheckSeverity.WARN,
    )

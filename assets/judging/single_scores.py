"""Scores that a judge gives one completion by itself, with what else it could have said."""

import dagster as dg
import pandas as pd

from assets.conditions import OF_CORPUS_AND_JUDGE, judge_check
from assets.judging.asking import ask_judge
from assets.judging.forms import (
    REMEDY,
    not_asked,
    parse_rate_of,
    well_covered,
    well_formed,
    why_not_asked,
)
from assets.partitions import corpus_and_judge, of_corpus
from assets.settings import JUDGE, corpus_of
from resources.config.catalog import Catalog
from resources.judges.annotation import annotate
from resources.judges.budget import Budget
from resources.judges.forms.score import SCORE_DTYPES
from resources.store.resource import StoredVerdicts
from resources.tables.expectations import evaluate


# No automation condition: judging costs money, so somebody has to ask for it by name.
@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="judging",
    code_version="2",
    ins={"sampled_battles": of_corpus()},
)
def score_verdicts(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    catalog: Catalog,
    verdict_store: StoredVerdicts,
    budget: dg.ResourceParam[Budget],
) -> dg.MaterializeResult[pd.DataFrame]:
    """One score that a judge gave one completion by itself, or the reason why there is none.

    The score is on the judge's own scale, the expected score in points of 1 to 10. Empty for
    judges that are not asked so.
    """
    _, slug = corpus_and_judge(context)
    corpus_of(context, catalog, JUDGE)
    if note := why_not_asked(catalog.judge(slug), "score", sampled_battles):
        return not_asked(SCORE_DTYPES, note)
    return ask_judge(
        context,
        sampled_battles,
        annotate,
        form="score",
        catalog=catalog,
        verdict_store=verdict_store,
        budget=budget,
    )


@judge_check(score_verdicts, blocking=True)
def scores_are_well_formed(score_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Each score is stored once, with a known fate, and its expectation lies on the scale."""
    import great_expectations.expectations as gxe

    table, expectations = well_formed(
        score_verdicts, ["completion_id", "replicate"], ["score"], ["covered"]
    )
    return evaluate(
        table,
        [
            *expectations,
            gxe.ExpectColumnValuesToBeBetween(
                column="expected_score",
                min_value=1,
                max_value=10,
                notes="expected_score lies in [1, 10]",
            ),
        ],
        ids=["completion_id", "replicate"],
        remedy=REMEDY,
    )


@judge_check(score_verdicts)
def nearly_all_scores_parse(score_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Scores of the few completions that a judge can grade do not stand for the others."""
    return parse_rate_of(score_verdicts)


@judge_check(score_verdicts)
def scores_are_covered(score_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """An expectation over half of what a judge could have said is that of another judge."""
    return well_covered(score_verdicts, ["completion_id", "replicate"])

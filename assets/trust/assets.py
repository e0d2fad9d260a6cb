"""Assets of score and choice distributions: outcomes of battles, and contradictions of a judge."""

import dagster as dg
import pandas as pd

from assets.conditions import follows, judge_check, judge_table
from assets.partitions import corpus_and_judge
from assets.settings import corpus_of
from assets.trust.consistency import (
    ALL,
    COMPARISONS,
    OVERALL,
    consistency_table,
    rubric_outcomes,
)
from assets.trust.scoring import SCORE_SOURCES, outcomes_by_source
from resources.config.catalog import Catalog
from resources.tables.expectations import evaluate
from resources.tables.rules import within

NOT_ASKED = (
    "there are neither single scores nor choices of this judge: the notes of score_verdicts and "
    "choice_verdicts say why (its 'asks' in judges.yaml)"
)
WARN_COVERED = 0.95


@judge_table("1", follows)
def soft_outcomes(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    choice_verdicts: pd.DataFrame,
    score_verdicts: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """One battle by one source: probabilities, perplexity, plain choice, or either kind of score.

    Outcomes are A's share of the win, score differences A minus B in points of 1 to 10.
    """
    _, slug = corpus_and_judge(context)
    judge = catalog.judge(slug)
    corpus_of(context, catalog, "judge.score.scale", "judge.choice.tolerance")
    outcomes = outcomes_by_source(
        sampled_battles,
        choice_verdicts,
        score_verdicts,
        scale=judge.score.scale,
        tolerance=judge.choice.tolerance,
    )
    counts = outcomes["source"].value_counts(sort=False)
    return dg.MaterializeResult(
        value=outcomes,
        metadata={
            "n_sampled": len(sampled_battles),
            "tolerance": judge.choice.tolerance,
            "sources": dg.MetadataValue.md(counts.to_markdown()),
            **({"note": NOT_ASKED} if outcomes.empty else {}),
        },
    )


@judge_table("2", follows)
def consistency(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """How often a judge contradicts itself, as a share of what could be compared.

    Conflicts of its single scores with its comparisons, and subsets of 3, 4 and 5 answers to one
    question whose comparisons are no ranking; by criterion of the rubric, and by category, or by
    language where no battle has a category.
    """
    _, slug = corpus_and_judge(context)
    corpus_of(context, catalog, "judge.choice.tolerance")
    by_source = {
        source: table.set_index("battle_id") for source, table in soft_outcomes.groupby("source")
    }
    compared = {
        (source, OVERALL): by_source[source]["outcome"]
        for source in COMPARISONS
        if source in by_source
    }
    for name, outcome in rubric_outcomes(sampled_battles, verdicts).items():
        compared |= {("rubric", name): outcome} if len(outcome) else {}
    table = consistency_table(
        sampled_battles,
        compared,
        {
            source: by_source[source]["score_difference"]
            for source in SCORE_SOURCES
            if source in by_source
        },
        tolerance=catalog.judge(slug).choice.tolerance,
    )
    whole = table[table["category"].eq(ALL) & table["dimension"].eq(OVERALL)]
    shown = whole.drop(columns=["category", "dimension"]).round(3)
    return dg.MaterializeResult(
        value=table,
        metadata={
            "overall": dg.MetadataValue.md(shown.to_markdown(index=False)),
            **({"note": NOT_ASKED} if soft_outcomes.empty else {}),
        },
    )


@judge_check(soft_outcomes)
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

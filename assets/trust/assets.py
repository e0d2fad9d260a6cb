"""What a judge's single scores and choices say of battles, and where they contradict each other."""

import dagster as dg
import pandas as pd

from assets.conditions import FOLLOWS, OF_CORPUS_AND_JUDGE, judge_check
from assets.partitions import corpus_and_judge, of_corpus
from assets.settings import corpus_of
from assets.trust import scoring as soft_scoring
from assets.trust.consistency import (
    ALL,
    COMPARISONS,
    OVERALL,
    consistency_table,
    rubric_outcomes,
)
from resources.config.catalog import Catalog
from resources.tables.expectations import evaluate
from resources.tables.rules import among, known, unique, within

NOT_ASKED = (
    "there are neither single scores nor choices of this judge: the notes of score_verdicts and "
    "choice_verdicts say why (its 'asks' in config/judges.yaml)"
)
WARN_COVERED = 0.95


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="scoring",
    code_version="1",
    automation_condition=FOLLOWS,
    ins={"sampled_battles": of_corpus()},
)
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
    outcomes = soft_scoring.soft_outcomes(
        sampled_battles,
        choice_verdicts,
        score_verdicts,
        scale=judge.score.scale,
        tolerance=judge.choice.tolerance,
    )
    by_source = outcomes.groupby("source", sort=False)["outcome"]
    summary = pd.DataFrame(
        {
            "battles": by_source.size(),
            "left out": len(sampled_battles) - by_source.size(),
            "ties": by_source.agg(lambda column: column.eq(0.5).mean()),
        }
    )
    return dg.MaterializeResult(
        value=outcomes,
        metadata={
            "n_sampled": len(sampled_battles),
            "tolerance": judge.choice.tolerance,
            "sources": dg.MetadataValue.md(summary.round(3).reset_index().to_markdown(index=False)),
            **({"note": NOT_ASKED} if outcomes.empty else {}),
        },
    )


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="diagnostics",
    code_version="1",
    automation_condition=FOLLOWS,
    ins={"sampled_battles": of_corpus()},
)
def consistency(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """How often a judge contradicts itself, as a share of what could be compared.

    Conflicts of its single scores with its comparisons, and subsets of 3, 4 and 5 answers to one
    question whose comparisons are no ranking; by language, and by criterion of the rubric.
    """
    _, slug = corpus_and_judge(context)
    corpus_of(context, catalog, "judge.choice.tolerance")
    by_source = {
        source: table.set_index("battle_id") for source, table in soft_outcomes.groupby("source")
    }
    by_rubric = rubric_outcomes(sampled_battles, verdicts)
    compared = {("rubric", name): outcome for name, outcome in by_rubric.items() if len(outcome)}
    chosen = {
        (source, OVERALL): by_source[source]["outcome"]
        for source in COMPARISONS
        if source in by_source
    }
    table = consistency_table(
        sampled_battles,
        {**chosen, **compared},
        {
            source: by_source[source]["score_difference"]
            for source in soft_scoring.SCORE_SOURCES
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


@judge_check(soft_outcomes, blocking=True)
def soft_outcomes_are_shares(soft_outcomes: pd.DataFrame) -> dg.AssetCheckResult:
    """Outcomes and score differences lie on their scales, one row per battle and source."""
    return evaluate(
        soft_outcomes,
        [
            unique("battle_id", "source", note="a battle has one row per source"),
            among(
                "source",
                soft_scoring.SOURCES,
                f"source is one of {', '.join(soft_scoring.SOURCES)}",
            ),
            *known("outcome", note="outcome is known"),
            among("outcome", [0.0, 0.5, 1.0], "outcome is 1, 0.5 or 0"),
            within("soft_outcome", 0, 1, note="soft_outcome lies in [0, 1]"),
            within("score_difference", -9, 9, note="score_difference lies in [-9, 9]"),
        ],
        ids=["battle_id", "source"],
        remedy="Remake score_verdicts, choice_verdicts and soft_outcomes; one of them is stale.",
    )


@judge_check(soft_outcomes, sampled_battles=of_corpus("sampled_battles"))
def sources_cover_the_sample(
    soft_outcomes: pd.DataFrame, sampled_battles: pd.DataFrame
) -> dg.AssetCheckResult:
    """Methods are compared on the battles that every source has: missing ones thin them all."""
    n_sampled = max(len(sampled_battles), 1)
    share = soft_outcomes["source"].value_counts(sort=False) / n_sampled
    return evaluate(
        share.rename("share").rename_axis("source").reset_index(),
        [
            within(
                "share",
                WARN_COVERED,
                note=f"each source has at least {WARN_COVERED:.0%} of the sampled battles",
            )
        ],
        ids=["source"],
        remedy="Look at `status` and `evidence` of the judge's score_verdicts and choice_verdicts: "
        "answers failed, or came without log-probabilities.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@judge_check(consistency, blocking=True)
def consistency_is_sound(consistency: pd.DataFrame) -> dg.AssetCheckResult:
    """A ratio is a share of what was counted, and no kind of violation exceeds the whole."""
    parts = consistency[["circular", "equality"]].max(axis=1)
    counted = consistency["n"].gt(0)
    return evaluate(
        consistency.assign(
            surplus=(parts - consistency["ratio"]).fillna(0.0),
            unfounded=consistency["ratio"].notna() != counted,
        ),
        [
            within("ratio", 0, 1, note="ratio lies in [0, 1]"),
            within("surplus", high=0, note="circular and equality are parts of the ratio"),
            among(
                "unfounded",
                [False],
                "there is a ratio where, and only where, something was counted",
            ),
        ],
        ids=["measure", "source", "size", "category", "dimension"],
        remedy="Remake soft_outcomes and consistency together; they are of different samples.",
    )

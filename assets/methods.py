"""Everything is a target: all scoring methods of a judge on the same battles, in one table."""

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import as_coded, as_columns, as_table
from assets.conditions import (
    FANS_IN,
    FOLLOWS,
    OF_CORPUS,
    OF_CORPUS_AND_JUDGE,
    corpus_check,
    judge_check,
)
from assets.gates import settled_judges
from assets.partitions import by_judge, corpus_and_judge, of_every_judge
from judgeline.conformal import calibrate_intervals
from judgeline.heldout import HeldOutRatings
from judgeline.rating_settings import RatingSettings
from judgeline.scoring_methods import rate_by_methods
from judgeline.summary import summarise
from resources.catalog import Catalog
from resources.expectations import evaluate
from resources.method_table import (
    KINDS,
    SUMMARY_COLUMNS,
    count_spending,
    gather_methods,
    tabulate_methods,
)

_SHOWN = ("method", "mae", "spearman", "coverage", "median_width", "n_calls", "completion_tokens")


_LEADING_HERE = (
    "verdicts",
    "choice_verdicts",
    "score_verdicts",
    "scored_battles",
    "soft_outcomes",
    "quantitative_outcomes",
    "method_ratings",
    "scoring_methods",
)


@dg.asset(
    **OF_CORPUS_AND_JUDGE, group_name="scoring", code_version="1", automation_condition=FOLLOWS
)
def method_ratings(
    context: dg.AssetExecutionContext,
    scored_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    quantitative_outcomes: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's rating by one scoring method, in Elo points, all methods on the same battles.

    Ratings by `hard` and `soft` differ from those of heldout_ratings where another method did not
    score a battle.
    """
    corpus, judge = corpus_and_judge(context)
    rating = catalog.corpus(corpus).rating
    gathered = gather_methods(scored_battles, soft_outcomes, quantitative_outcomes)
    battles = gathered.battles
    ratings = rate_by_methods(
        as_coded(battles, rating.hard_outcome),
        gathered.methods,
        RatingSettings(
            l2=rating.l2,
            n_resamples=rating.n_resamples if rating.std_error == "bootstrap" else 0,
            seed=rating.seed,
            stream=(corpus, judge, "methods"),
        ),
        cluster=battles["cluster_id"].to_numpy() if rating.resample_by == "question" else None,
    )
    return dg.MaterializeResult(
        value=as_table(ratings),
        metadata={
            "methods": ["hard", *gathered.methods],
            "n_battles": len(battles),
            "n_scored_battles": len(scored_battles),
            "left_out": dg.MetadataValue.json(dict(gathered.notes)),
        },
    )


@dg.asset(
    **OF_CORPUS_AND_JUDGE, group_name="scoring", code_version="1", automation_condition=FOLLOWS
)
def scoring_methods(
    context: dg.AssetExecutionContext,
    method_ratings: pd.DataFrame,
    scored_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    quantitative_outcomes: pd.DataFrame,
    verdicts: pd.DataFrame,
    choice_verdicts: pd.DataFrame,
    score_verdicts: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A scoring method of the judge: how near and how sure its ratings are, and what they cost.

    Errors and widths in Elo points, the threshold in standard errors. A method that the judge's
    verdicts do not support has a note in place of numbers.
    """
    corpus, _ = corpus_and_judge(context)
    rating = catalog.corpus(corpus).rating
    ratings = as_columns(HeldOutRatings, method_ratings)
    intervals = calibrate_intervals(
        ratings,
        miscoverage=rating.miscoverage,
        n_splits=rating.n_splits,
        seed=rating.seed,
        std_error=rating.std_error,
    )
    table = tabulate_methods(
        gather_methods(scored_battles, soft_outcomes, quantitative_outcomes),
        as_table(summarise(ratings)),
        as_table(intervals),
        count_spending(
            {
                "verdicts": verdicts,
                "choice_verdicts": choice_verdicts,
                "score_verdicts": score_verdicts,
            }
        ),
    )
    shown = table.loc[table["n_battles"] > 0, list(_SHOWN)]
    return dg.MaterializeResult(
        value=table,
        metadata={
            "summary": dg.MetadataValue.md(shown.round(3).to_markdown(index=False)),
            "n_battles": int(table["n_battles"].max()),
        },
    )


@judge_check(scoring_methods)
def methods_share_their_battles(scoring_methods: pd.DataFrame) -> dg.AssetCheckResult:
    """Methods compare on the same battles, and one that has battles has figures."""
    import great_expectations.expectations as gxe

    rated = scoring_methods[scoring_methods["n_battles"] > 0]
    return evaluate(
        rated.assign(
            same=rated["n_battles"].eq(rated["n_battles"].max()),
            explained=np.isfinite(rated["mae"]) | rated["note"].ne(""),
        ),
        [
            gxe.ExpectTableRowCountToBeBetween(min_value=1, notes="a method scored battles"),
            gxe.ExpectColumnValuesToBeInSet(
                column="same", value_set=[True], notes="all methods rest on the same battles"
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="explained",
                value_set=[True],
                notes="a method has an error against human ratings, or a note why not",
            ),
        ],
        ids=["method"],
        remedy="Remake method_ratings and scoring_methods; if it stays, see the flags in "
        "method_ratings.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@dg.asset(
    **OF_CORPUS,
    group_name="comparison",
    code_version="1",
    automation_condition=FANS_IN,
    ins={"scoring_methods": of_every_judge()},
)
def method_comparison(
    context: dg.AssetExecutionContext, scoring_methods: dict[str, pd.DataFrame]
) -> dg.MaterializeResult[pd.DataFrame]:
    """A judge by one scoring method: error, order, coverage, width, calls and tokens.

    Errors and widths in Elo points. Only judges whose last run got through the blocking checks of
    what these numbers are made from; a rubric whose scores cannot be calibrated is one method
    without numbers, no reason to hide the others.
    """
    tables = by_judge(scoring_methods)
    judges, left_out = settled_judges(
        context.instance, context.partition_key, tables, assets=_LEADING_HERE
    )
    if not judges:
        raise ValueError(
            f"no judge of {context.partition_key!r} has scoring methods that passed their checks; "
            "run a judge first"
        )
    table = pd.concat([tables[judge].assign(judge=judge) for judge in judges], ignore_index=True)
    table = table[["judge", *SUMMARY_COLUMNS]]
    known = table[table["mae"].notna()].sort_values("mae")
    shown = ["judge", *_SHOWN]
    return dg.MaterializeResult(
        value=table,
        metadata={
            "by_error": dg.MetadataValue.md(known[shown].round(3).to_markdown(index=False)),
            "judges": judges,
            "left_out": left_out,
        },
    )


@corpus_check(method_comparison)
def methods_have_figures(method_comparison: pd.DataFrame) -> dg.AssetCheckResult:
    """Each judge has one row per scoring method, with every figure on its scale."""
    import great_expectations.expectations as gxe

    scales = {"spearman": (-1, 1), "kendall": (-1, 1), "coverage": (0, 1), "mae": (0, None)}
    return evaluate(
        method_comparison,
        [
            gxe.ExpectCompoundColumnsToBeUnique(
                column_list=["judge", "method"], notes="a judge has one row per method"
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="method", value_set=list(KINDS), notes="the method is a known one"
            ),
            *(
                gxe.ExpectColumnValuesToBeBetween(
                    column=column,
                    min_value=low,
                    max_value=high,
                    notes=f"{column} lies on its scale",
                )
                for column, (low, high) in scales.items()
            ),
        ],
        ids=["judge", "method"],
        remedy="Remake scoring_methods of the judges named here, then the comparison.",
    )

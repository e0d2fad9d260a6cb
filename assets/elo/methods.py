"""Ratings by every scoring method of a judge, and the methods side by side."""

from dataclasses import replace

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import as_columns
from assets.conditions import FOLLOWS, OF_CORPUS_AND_JUDGE, judge_check
from assets.elo.ratings import calibrated, clusters_of, settings_of
from assets.partitions import corpus_and_judge
from assets.settings import corpus_of
from judgeline.elo import HeldOutRatings, rate, summarise
from judgeline.io import as_coded, as_table
from resources.config.catalog import Catalog
from resources.method_table import count_spending, gather_methods, tabulate_methods
from resources.tables.elo import METHOD_RATINGS, SCORING_METHODS
from resources.tables.expectations import evaluate
from resources.tables.rules import among, holds

SHOWN = ("method", "mae", "spearman", "coverage", "median_width", "n_calls", "completion_tokens")

_NO_VOTES = (
    "nobody voted on a scored battle: methods have no human rating to be held against; "
    "reference_ratings need none"
)


@dg.asset(**OF_CORPUS_AND_JUDGE, code_version="3", automation_condition=FOLLOWS)
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
    corpus, _ = corpus_and_judge(context)
    rating = corpus_of(
        context,
        catalog,
        "rating.hard_outcome",
        "rating.l2",
        "rating.n_resamples",
        "rating.std_error",
        "rating.seed",
        "rating.resample_by",
    ).rating
    if scored_battles["human_outcome"].isna().all():
        return METHOD_RATINGS.without(_NO_VOTES)
    gathered = gather_methods(scored_battles, soft_outcomes, quantitative_outcomes)
    battles = gathered.battles
    ratings = rate(
        as_coded(battles, rating.hard_outcome),
        replace(
            settings_of(rating, corpus),
            n_resamples=rating.n_resamples if rating.std_error == "bootstrap" else 0,
            smoothing_levels=(),
        ),
        gathered.methods,
        cluster=clusters_of(rating, battles),
    )
    return dg.MaterializeResult(
        value=as_table(ratings),
        metadata={
            "methods": ["hard", "soft", *gathered.methods],
            "n_battles": len(battles),
            "n_scored_battles": len(scored_battles),
            "left_out": dg.MetadataValue.json(dict(gathered.notes)),
        },
    )


@dg.asset(**OF_CORPUS_AND_JUDGE, code_version="1", automation_condition=FOLLOWS)
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
    rating = corpus_of(
        context, catalog, "rating.miscoverage", "rating.n_splits", "rating.seed", "rating.std_error"
    ).rating
    if method_ratings.empty:
        return SCORING_METHODS.without(_NO_VOTES)
    ratings = as_columns(HeldOutRatings, method_ratings)
    table = tabulate_methods(
        gather_methods(scored_battles, soft_outcomes, quantitative_outcomes),
        as_table(summarise(ratings)),
        calibrated(ratings, rating),
        count_spending(
            {
                "verdicts": verdicts,
                "choice_verdicts": choice_verdicts,
                "score_verdicts": score_verdicts,
            }
        ),
    )
    shown = table.loc[table["n_battles"] > 0, list(SHOWN)]
    return dg.MaterializeResult(
        value=table,
        metadata={
            "summary": dg.MetadataValue.md(shown.round(3).to_markdown(index=False)),
            "n_battles": int(table["n_battles"].max()),
        },
    )


@judge_check(scoring_methods, method_ratings=dg.AssetIn("method_ratings"))
def methods_have_ratings(
    scoring_methods: pd.DataFrame, method_ratings: pd.DataFrame
) -> dg.AssetCheckResult:
    """A method that scored battles rates every model, or says why it does not."""
    compared = scoring_methods[scoring_methods["n_battles"] > 0]
    n_rows = method_ratings.groupby("method").size().reindex(compared["method"]).fillna(0)
    return evaluate(
        compared.assign(
            n_unplaced=method_ratings["model"].nunique() - n_rows.to_numpy(),
            explained=np.isfinite(compared["mae"].astype(float)) | compared["note"].ne(""),
        ),
        [
            among("n_unplaced", [0], "a method has a row for every model"),
            holds(
                "explained", None, "a method has an error against human ratings, or a note why not"
            ),
        ],
        ids=["method"],
        remedy="Remake method_ratings and scoring_methods together: one is older than the other.",
        severity=dg.AssetCheckSeverity.WARN,
    )

"""The scoring methods of a judge side by side, each as a target of the same ratings."""

import zlib
from dataclasses import replace

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import follows, judge_check, judge_table
from assets.elo.ratings import calibrated, clusters_of, settings_of
from assets.partitions import corpus_and_judge
from assets.settings import rating_of
from judgeline.elo import HeldOutRatings, rate, summarise
from judgeline.io import as_coded, as_table
from resources.config.catalog import Catalog
from resources.config.corpora import RatingOptions
from resources.method_table import (
    KINDS,
    GatheredMethods,
    count_spending,
    gather_methods,
    tabulate_methods,
)
from resources.tables.elo import SCORING_METHODS
from resources.tables.expectations import evaluate
from resources.tables.rules import holds
from resources.tables.store import preview

SHOWN = ("method", "mae", "spearman", "coverage", "median_width", "n_calls", "completion_tokens")

_READ = (
    "hard_outcome",
    "l2",
    "n_resamples",
    "std_error",
    "seed",
    "resample_by",
    "miscoverage",
    "n_splits",
)
_NO_VOTES = (
    "nobody voted on a scored battle: methods have no human rating to be held against; "
    "reference_ratings need none"
)


_VERSION = f"3-{zlib.crc32(repr(KINDS).encode()):08x}"  # a new method makes the table due


@judge_table(_VERSION, follows)
def scoring_methods(
    context: dg.AssetExecutionContext,
    scored_battles: pd.DataFrame,
    soft_outcomes: pd.DataFrame,
    quantitative_outcomes: pd.DataFrame,
    verdicts: pd.DataFrame,
    choice_verdicts: pd.DataFrame,
    score_verdicts: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A scoring method of the judge: how near and how sure its ratings are, and what they cost.

    All methods rate on the same battles; ratings by `hard` and `soft` differ from those of
    heldout_ratings where another method did not score a battle. Errors and widths in Elo points,
    the threshold in standard errors. A method that the judge's verdicts do not support has a note
    in place of numbers.
    """
    corpus, _ = corpus_and_judge(context)
    rating = rating_of(context, catalog, *_READ)
    if scored_battles["human_outcome"].isna().all():
        return SCORING_METHODS.without(_NO_VOTES)
    gathered = gather_methods(scored_battles, soft_outcomes, quantitative_outcomes)
    ratings = rate_methods(gathered, rating, corpus)
    spent = {"verdicts": verdicts, "choice_verdicts": choice_verdicts}
    table = tabulate_methods(
        gathered,
        as_table(summarise(ratings)),
        calibrated(ratings, rating),
        count_spending({**spent, "score_verdicts": score_verdicts}),
    )
    shown = table.loc[table["n_battles"] > 0, list(SHOWN)]
    by_model = as_table(ratings).pivot_table("rating", "model", "method")
    by_model = by_model.reindex(columns=["human", "hard", "soft", *gathered.methods])
    return dg.MaterializeResult(
        value=table,
        metadata={
            "summary": dg.MetadataValue.md(shown.round(3).to_markdown(index=False)),
            "ratings": dg.MetadataValue.md(preview(by_model.reset_index(), len(by_model))),
            "n_battles": len(gathered.battles),
            "n_scored_battles": len(scored_battles),
            "left_out": dg.MetadataValue.json(dict(gathered.notes)),
        },
    )


def rate_methods(gathered: GatheredMethods, rating: RatingOptions, corpus: str) -> HeldOutRatings:
    """Return the ratings of all models by every gathered method."""
    return rate(
        as_coded(gathered.battles, rating.hard_outcome),
        replace(
            settings_of(rating, corpus),
            n_resamples=rating.n_resamples if rating.std_error == "bootstrap" else 0,
            smoothing_levels=(),
        ),
        gathered.methods,
        cluster=clusters_of(rating, gathered.battles),
    )


@judge_check(scoring_methods)
def methods_have_ratings(scoring_methods: pd.DataFrame) -> dg.AssetCheckResult:
    """A method that scored battles has an error against human ratings, or says why it has none."""
    compared = scoring_methods[scoring_methods["n_battles"] > 0]
    explained = np.isfinite(compared["mae"].astype(float)) | compared["note"].ne("")
    note = "a method has an error against human ratings, or a note why not"
    return evaluate(
        compared.assign(explained=explained),
        [holds("explained", None, note)],
        ids=["method"],
        remedy="Remake scoring_methods: its scored battles and its methods are of different ages.",
        severity=dg.AssetCheckSeverity.WARN,
    )

"""Asset of bounds from missing verdicts on each rating; with its checks."""

from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import as_columns
from assets.conditions import FOLLOWS, OF_CORPUS_AND_JUDGE, judge_check
from assets.diagnostics.missingness import RETRY
from assets.partitions import of_corpus
from assets.settings import rating_of
from judgeline.diagnostics import MAX_WIDTH, bound_missing, width_limit
from judgeline.elo import BetaFolds, HeldOutRatings
from judgeline.intervals import rank_models
from judgeline.io import as_coded, as_table
from resources.config.catalog import Catalog
from resources.config.corpora import RatingOptions
from resources.tables.expectations import evaluate
from resources.tables.rules import at_least, holds, unique

_READ = ("hard_outcome", "l2", "method", "miscoverage", "std_error")
MAX_DISAGREEMENT = 1e-6
"""Elo points by which a rating may differ from the one in heldout_ratings: rounding only."""


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    code_version="1",
    automation_condition=FOLLOWS,
    ins={"sampled_battles": of_corpus()},
)
def missing_bounds(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's hard or soft rating with the ratings if it lost, or won, its missing battles.

    Elo points. Anchors and slopes stay as they are; the half-width of the interval is beside it.
    """
    rating = rating_of(context, catalog, *_READ)
    missing = sampled_battles[~sampled_battles["battle_id"].isin(scored_battles["battle_id"])]
    bounds = as_table(
        bound_missing(
            as_coded(scored_battles, rating.hard_outcome),
            as_columns(BetaFolds, beta_folds),
            missing["model_a"],
            missing["model_b"],
            l2=rating.l2,
        )
    )
    table = bounds.merge(_half_widths(heldout_ratings, rating), on=["model", "method"], how="left")
    return dg.MaterializeResult(
        value=table, metadata={"n_missing": len(missing), **_widest(table, rating.method)}
    )


def _half_widths(heldout_ratings: pd.DataFrame, rating: RatingOptions) -> pd.DataFrame:
    """Return the half-width of every model's interval by hard and by soft ratings."""
    columns = as_columns(HeldOutRatings, heldout_ratings)
    options: dict[str, Any] = {"miscoverage": rating.miscoverage, "std_error": rating.std_error}
    boards = [
        as_table(rank_models(columns, method=method, **options)) for method in ("hard", "soft")
    ]
    board = pd.concat(boards, ignore_index=True)
    return board[["model", "method"]].assign(half_width=(board["upper"] - board["lower"]) / 2)


def bound_width(missing_bounds: pd.DataFrame) -> pd.Series:
    """Return how far apart bounds are, in Elo points, row by row.

    Infinite where battles are missing and there is no rating to bound; NaN where there is
    neither.
    """
    width = missing_bounds["best_rating"] - missing_bounds["worst_rating"]
    unbounded = width.isna() & missing_bounds["n_missing"].gt(0)
    return width.mask(unbounded, np.inf)


def _widest(table: pd.DataFrame, method: str) -> dict[str, Any]:
    """Return the widest bounds: of hard ratings where they rank, else of soft ones."""
    shown = table[table["method"].eq("hard" if method.startswith("hard") else "soft")]
    width = bound_width(shown).fillna(0.0)
    if not width.gt(0).any():
        return {"widest": 0.0}
    model = str(shown.loc[width.idxmax(), "model"])
    return {
        "widest": float(width.max()),
        "widest_model": model,
        "median_width": float(width.median()),
    }


@judge_check(missing_bounds, blocking=True, heldout_ratings=dg.AssetIn("heldout_ratings"))
def bounds_are_of_the_ratings(
    missing_bounds: pd.DataFrame, heldout_ratings: pd.DataFrame
) -> dg.AssetCheckResult:
    """Bounds belong to the ratings that are shown, and a hard rating lies inside its own."""
    shown = heldout_ratings[["model", "method", "rating"]].rename(columns={"rating": "shown"})
    return evaluate(
        missing_bounds.merge(shown, on=["model", "method"], how="left"),
        [
            unique("model", "method", note="a model has one row by each method"),
            holds(
                "same",
                lambda t: np.isclose(
                    t["rating"], t["shown"], rtol=0, atol=MAX_DISAGREEMENT, equal_nan=True
                ),
                "the rating is the one in heldout_ratings",
            ),
            holds(
                "ordered",
                lambda t: ~t["worst_rating"].gt(t["best_rating"]),
                "the worst rating is at most the best",
            ),
            holds("inside", _is_inside, "a hard rating lies between its worst and its best"),
        ],
        ids=["model", "method"],
        remedy="Remake heldout_ratings and missing_bounds together from the same scored_battles.",
    )


def _is_inside(bounds: pd.DataFrame) -> pd.Series:
    outside = bounds["rating"].lt(bounds["worst_rating"])
    outside |= bounds["rating"].gt(bounds["best_rating"])
    return bounds["method"].ne("hard") | ~outside


@judge_check(missing_bounds)
def missing_battles_matter_little(missing_bounds: pd.DataFrame) -> dg.AssetCheckResult:
    """Bounds wider than half the interval: missing battles outweigh the uncertainty."""
    return evaluate(
        missing_bounds.assign(
            width=bound_width(missing_bounds).fillna(0.0),
            limit=width_limit(missing_bounds["half_width"]),
        ),
        [
            at_least(
                "limit",
                "width",
                "a model's bounds are no further apart than its interval reaches to either "
                f"side, or {MAX_WIDTH:g} Elo where that is unbounded",
            )
        ],
        ids=["model", "method"],
        remedy=f"{RETRY}. Verdicts that came with a corpus can only be had from who "
        "published them.",
        severity=dg.AssetCheckSeverity.WARN,
    )

"""Slopes and ratings of each model by the fit that held it out; scoring methods side by side."""

import zlib
from collections.abc import Mapping
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.checks import table_check
from assets.conditions import AFTER_THE_BOARD, versioned
from assets.engine import step_asset
from assets.provenance import BEFORE_RATINGS, sources_of
from judgeline.elo import HEADLINE, JUDGE_METHODS, HeldOutRatings, summarise
from judgeline.io import as_table, votes_that_wait
from judgeline.steps import elo, methods
from judgeline.steps.coding import coded
from judgeline.steps.step import as_columns
from judgeline.tables.rules import among, at_least, holds, median_within, within
from resources.tables.expectations import evaluate

STD_ERROR_RATIO = 2.0
"""20 resamples know a standard error to 16 %: four times that, for the worst of many models."""
MEDIAN_STD_ERROR_RATIO = 1.25
RANKED = ("hard", "soft", HEADLINE)
WORSE_BY = 1.25
"""How far the headline's error may exceed the better one of hard and soft before it is said."""
LARGEST_RATING = 100_000


def _folds_tell(
    _context: dg.AssetExecutionContext, tables: Mapping[str, pd.DataFrame], _settings: Any
) -> Mapping[str, Any]:
    return {"n_fitted": int(tables["beta_folds"]["status"].eq("ok").sum())}


beta_folds = step_asset(elo.beta_folds, "2", tells=_folds_tell)


def _ratings_tell(
    context: dg.AssetExecutionContext, tables: Mapping[str, pd.DataFrame], settings: Any
) -> Mapping[str, Any]:
    battles = tables["scored_battles"]
    if waiting := votes_that_wait(battles, coded(battles, settings)):
        names = ", ".join(f"{name!r} {n}" for name, n in waiting.items())
        context.log.info(f"too few votes to count yet, by model: {names}")
    summary = as_table(summarise(as_columns(HeldOutRatings, tables["heldout_ratings"])))
    errors = zip(summary["method"], summary["mae"], strict=True)
    options = {name: getattr(settings, name) for name in elo.heldout_ratings.reads}
    return {
        "summary": dg.MetadataValue.md(summary.round(3).to_markdown(index=False)),
        "votes_that_wait": dg.MetadataValue.json(waiting),
        "rating_settings": dg.MetadataValue.json(options),
        **sources_of(context, *BEFORE_RATINGS),
        **{
            f"mae_{method}": float(mae)
            for method, mae in errors
            if method in RANKED and np.isfinite(mae)
        },
    }


heldout_ratings = step_asset(
    elo.heldout_ratings, versioned("6", JUDGE_METHODS), tells=_ratings_tell
)


@table_check(heldout_ratings, blocking=True)
def every_model_is_placed(
    heldout_ratings: pd.DataFrame, scored_battles: pd.DataFrame
) -> dg.AssetCheckResult:
    """Every model of the scored battles has one rating by each judge method, or a flag."""
    models = pd.concat([scored_battles["model_a"], scored_battles["model_b"]]).unique()
    wanted = pd.MultiIndex.from_product([sorted(models), RANKED], names=["model", "method"])
    judged = heldout_ratings[heldout_ratings["method"].isin(RANKED)]
    placed = judged.set_index(["model", "method"]).groupby(level=[0, 1])
    explained = judged["rating"].notna() | judged["flags"].ne("")
    unexplained = judged.assign(gap=~explained).groupby(["model", "method"])["gap"].any()
    columns = {"n_ratings": placed.size(), "rating": placed["rating"].first()}
    table = pd.DataFrame({**columns, "unexplained": unexplained}, index=wanted).reset_index()
    near = f"a rating lies within {LARGEST_RATING:,} Elo points of zero"
    return evaluate(
        table.fillna({"n_ratings": 0}),
        [
            among("n_ratings", [1], "a model has one rating by each method"),
            among("unexplained", [False], "a rating is a number, or a flag says why there is none"),
            within("rating", -LARGEST_RATING, LARGEST_RATING, note=near),
        ],
        ids=["model", "method"],
        remedy="See `flags` of these models; they may have too few scored battles.",
    )


@table_check(heldout_ratings)
def standard_errors_agree(heldout_ratings: pd.DataFrame) -> dg.AssetCheckResult:
    """Bootstrap and closed form estimate one spread; where they differ, trust neither."""
    judged = heldout_ratings[heldout_ratings["method"].isin(RANKED)]
    resampled = judged[judged["std_error"].notna()]
    ratio = resampled["std_error"] / resampled["std_error_analytic"]
    most, middle = STD_ERROR_RATIO, MEDIAN_STD_ERROR_RATIO
    note = f"the bootstrap's standard error is within a factor of {most:g} of the closed form's"
    limits = [within("ratio", 1 / most, most, note=note)]
    if len(resampled):
        note = f"the median of that factor is within {middle:g}"
        limits.append(median_within("ratio", 1 / middle, middle, note))
    return evaluate(
        resampled.assign(ratio=ratio),
        limits,
        ids=["model", "method"],
        remedy="These models have few or lopsided battles: judge more of them, or raise "
        "n_resamples if it is below 100.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@table_check(heldout_ratings)
def headline_is_near_people(heldout_ratings: pd.DataFrame) -> dg.AssetCheckResult:
    """The headline should be about as near to human ratings as the better of hard and soft."""
    voted = heldout_ratings[heldout_ratings["residual"].notna()]
    error = voted.assign(error=voted["residual"].abs()).groupby("method")["error"].mean()
    error = error.reindex(RANKED)
    told = ", ".join(f"{method} {one:.1f}" for method, one in error.items())
    table = pd.DataFrame({"errors": [f"mean absolute residual of {told}"], **error.to_dict()})
    note = (
        f"the mean absolute residual of the headline is at most {WORSE_BY:g} times that of the "
        "better of hard and soft, in Elo points"
    )
    return evaluate(
        table.assign(most=WORSE_BY * error[["hard", "soft"]].min()),
        [at_least("most", HEADLINE, note)],
        ids=["errors"],
        remedy="Set 'rating.method' of this corpus to the method with the least error in "
        "judge_comparison, before you look at the models that it ranks.",
        severity=dg.AssetCheckSeverity.WARN,
    )


_VERSION = f"5-{zlib.crc32(repr(methods.KINDS).encode()):08x}"  # a new method makes the table due

scoring_methods = step_asset(
    methods.scoring_methods,
    _VERSION,
    needs=[
        "soft_outcomes", "quantitative_outcomes", "verdicts", "choice_verdicts", "score_verdicts",
    ],
    op_tags=AFTER_THE_BOARD,
)  # fmt: skip


@table_check(scoring_methods)
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

"""Slopes and ratings of each model by the fit that held it out; scoring methods side by side."""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import as_columns
from assets.conditions import follows, table_asset, table_check
from assets.partitions import corpus_and_judge
from assets.provenance import BEFORE_RATINGS, sources_of
from assets.settings import rating_of
from judgeline.elo import (
    HEADLINE,
    BetaFolds,
    HeldOutRatings,
    RatingSettings,
    fit_beta_folds,
    rate,
    summarise,
    with_settled_votes,
)
from judgeline.intervals import Leaderboard, calibrate_intervals, rank_models, rate_with_votes
from judgeline.io import as_coded, as_table, questions_of, votes_that_wait, with_waiting_votes
from judgeline.tables.elo import SCORING_METHODS
from judgeline.tables.rules import among, at_least, holds, median_within, within
from resources.config.catalog import Catalog
from resources.config.corpora import RatingOptions
from resources.method_table import (
    KINDS,
    GatheredMethods,
    count_spending,
    gather_methods,
    tabulate_methods,
)
from resources.tables.expectations import evaluate
from resources.tables.store import empty_result, preview

STD_ERROR_RATIO = 2.0
"""20 resamples know a standard error to 16 %: four times that, for the worst of many models."""
MEDIAN_STD_ERROR_RATIO = 1.25
RANKED = ("hard", "soft", HEADLINE)
WORSE_BY = 1.25
"""How far the headline's error may exceed the better one of hard and soft before it is said."""
LARGEST_RATING = 100_000


@table_asset("2", follows)
def beta_folds(
    context: dg.AssetExecutionContext, scored_battles: pd.DataFrame, catalog: Catalog
) -> dg.MaterializeResult[pd.DataFrame]:
    """A held-out model's beta, in logits per rubric point, fitted on human votes without it."""
    rating = rating_of(context, catalog, "hard_outcome")
    folds = as_table(fit_beta_folds(as_coded(scored_battles, rating.hard_outcome)))
    n_fitted = int(folds["status"].eq("ok").sum())
    return dg.MaterializeResult(value=folds, metadata={"n_fitted": n_fitted})


def settings_of(rating: RatingOptions, corpus: str) -> RatingSettings:
    """Return the settings of a corpus's ratings as the core takes them."""
    return RatingSettings(
        l2=rating.l2, n_resamples=rating.n_resamples, seed=rating.seed, stream=(corpus,)
    )


def ranking_options(rating: RatingOptions, method: str = "") -> dict[str, Any]:
    """Return the options that a corpus ranks its models by; its own method unless one is named."""
    names = ("miscoverage", "std_error", "intervals")
    return {"method": method or rating.method, **{name: getattr(rating, name) for name in names}}


def calibrated(
    ratings: HeldOutRatings, rating: RatingOptions, first_day: Mapping[str, float] | None = None
) -> pd.DataFrame:
    """Return the thresholds of all methods by a corpus's settings, one row each."""
    names = ("miscoverage", "n_splits", "seed", "std_error")
    settings = {name: getattr(rating, name) for name in names}
    return as_table(calibrate_intervals(ratings, first_day=first_day, **settings))


def clusters_of(rating: RatingOptions, battles: pd.DataFrame) -> np.ndarray | None:
    """Return the question of each battle, or none where a corpus takes battles as independent."""
    return questions_of(battles) if rating.resample_by == "question" else None


def board_of(
    scored_battles: pd.DataFrame, heldout: HeldOutRatings, rating: RatingOptions, method: str
) -> Leaderboard:
    """Return the board of a method's held-out ratings and of people's votes on the battles."""
    every_vote = as_coded(scored_battles, rating.hard_outcome, every_vote=True)
    together = rate_with_votes(
        every_vote,
        with_settled_votes(every_vote),
        heldout,
        method=method,
        miscoverage=rating.miscoverage,
        seed=rating.seed,
        l2=rating.l2,
        std_error=rating.std_error,
        cluster=clusters_of(rating, scored_battles),
    )
    return rank_models(heldout, together, **ranking_options(rating, method))


@table_asset("5", follows)
def heldout_ratings(
    context: dg.AssetExecutionContext,
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's rating by one method, in Elo points, placed among anchors fitted without it.

    The residual is the judge's rating minus the human one.
    """
    corpus, _ = corpus_and_judge(context)
    rating = rating_of(context, catalog, "hard_outcome", "l2", "n_resamples", "seed", "resample_by")
    battles = as_coded(scored_battles, rating.hard_outcome)
    if waiting := votes_that_wait(scored_battles, battles):
        names = ", ".join(f"{name!r} {n}" for name, n in waiting.items())
        context.log.info(f"too few votes to count yet, by model: {names}")
    folds, cluster = as_columns(BetaFolds, beta_folds), clusters_of(rating, scored_battles)
    ratings = rate(battles, settings_of(rating, corpus), beta_folds=folds, cluster=cluster)
    ratings = with_waiting_votes(ratings, waiting)
    summary = as_table(summarise(ratings))
    errors = zip(summary["method"], summary["mae"], strict=True)
    return dg.MaterializeResult(
        value=as_table(ratings),
        metadata={
            "summary": dg.MetadataValue.md(summary.round(3).to_markdown(index=False)),
            "votes_that_wait": dg.MetadataValue.json(waiting),
            "rating_settings": dg.MetadataValue.json(rating.model_dump(mode="json")),
            **sources_of(context, *BEFORE_RATINGS),
            **{
                f"mae_{method}": float(mae)
                for method, mae in errors
                if method in RANKED and np.isfinite(mae)
            },
        },
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
    table = pd.DataFrame({"comparison": ["mean absolute residual"], **error.to_dict()})
    note = (
        f"the mean absolute residual of the headline is at most {WORSE_BY:g} times that of the "
        "better of hard and soft, in Elo points"
    )
    return evaluate(
        table.assign(most=WORSE_BY * error[["hard", "soft"]].min()),
        [at_least("most", HEADLINE, note)],
        ids=["comparison", *RANKED],
        remedy="Set 'rating.method' of this corpus to the method with the least error in "
        "judge_comparison, before you look at the models that it ranks.",
        severity=dg.AssetCheckSeverity.WARN,
    )


_READ = (
    "hard_outcome", "l2", "n_resamples", "std_error", "seed", "resample_by", "miscoverage",
    "n_splits",
)  # fmt: skip
_NO_VOTES = (
    "nobody voted on a scored battle: methods have no human rating to be held against; "
    "reference_ratings need none"
)


_VERSION = f"4-{zlib.crc32(repr(KINDS).encode()):08x}"  # a new method makes the table due


@table_asset(_VERSION, follows)
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
        return empty_result(SCORING_METHODS, _NO_VOTES)
    gathered = gather_methods(scored_battles, soft_outcomes, quantitative_outcomes)
    ratings = rate_methods(gathered, rating, corpus)
    asked = {"verdicts": verdicts, "choice_verdicts": choice_verdicts}
    spent = count_spending({**asked, "score_verdicts": score_verdicts})
    summary, intervals = as_table(summarise(ratings)), calibrated(ratings, rating)
    table = tabulate_methods(gathered, summary, intervals, spent)
    by_model = as_table(ratings).pivot_table("rating", "model", "method")
    by_model = by_model.reindex(columns=["human", "hard", "soft", *gathered.methods])
    return dg.MaterializeResult(
        value=table,
        metadata={
            "ratings": dg.MetadataValue.md(preview(by_model.reset_index(), len(by_model))),
            "n_battles": len(gathered.battles),
            "n_scored_battles": len(scored_battles),
            "left_out": dg.MetadataValue.json(dict(gathered.notes)),
        },
    )


def rate_methods(gathered: GatheredMethods, rating: RatingOptions, corpus: str) -> HeldOutRatings:
    """Return the ratings of all models by every gathered method."""
    battles = gathered.battles
    n_resamples = rating.n_resamples if rating.std_error == "bootstrap" else 0
    settings = replace(settings_of(rating, corpus), n_resamples=n_resamples, smoothing_levels=())
    coded, cluster = as_coded(battles, rating.hard_outcome), clusters_of(rating, battles)
    return rate(coded, settings, gathered.methods, cluster=cluster)


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

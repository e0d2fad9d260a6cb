"""Conformal intervals and the leaderboard that carries them; with the checks on both."""

from functools import partial

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import as_columns, require_columns
from assets.conditions import (
    follows,
    table_asset,
    table_check,
)
from assets.elo.ratings import board_of, calibrated, clusters_of
from assets.partitions import corpus_and_judge
from assets.provenance import BEFORE_RATINGS, MADE_FROM, sources_of
from assets.reliability.gate import gate_of
from assets.settings import rating_of
from assets.thumbnails import intervals
from judgeline.elo import HeldOutRatings, is_baseline, summarise
from judgeline.intervals import (
    Leaderboard,
    join_newcomers,
    refit_errors,
    variance_by_source,
    withhold,
)
from judgeline.io import RANKS, as_coded, as_table
from judgeline.reliability import failures
from judgeline.report import evidence_lines, in_markdown, with_texts
from judgeline.tables.intervals import MORE_MODELS
from judgeline.tables.rules import among, holds, n_rows
from resources.config.catalog import Catalog
from resources.config.corpora import RatingOptions
from resources.tables.expectations import check_result, evaluate

_REFITS = 20  # of everything; their mean square over models is all that is shown

_SHOWN = ["rank", "model", "rating", "lower", "upper", "evidence", "judge_rating", "flags"]
_READ = (
    "hard_outcome", "l2", "method", "miscoverage", "seed", "std_error", "intervals", "resample_by",
)  # fmt: skip
_MADE_FROM = (*BEFORE_RATINGS, "heldout_ratings", "conformal_calibration", "judge_gate")


@table_asset(
    "4",
    partial(follows, ignored=["battles"]),  # battles without verdicts change no rating
    columns={"battles": ("model_a", "model_b", "timestamp")},
)
def conformal_calibration(
    context: dg.AssetExecutionContext,
    heldout_ratings: pd.DataFrame,
    battles: pd.DataFrame | None,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A method's interval threshold, with coverage and width over splits of the models.

    Widths in Elo points. Models that people rated calibrate it. Coverage over random halves cannot
    fail; coverage over structured splits can.
    """
    rating = rating_of(context, catalog, "method", "miscoverage", "n_splits", "seed", "std_error")
    ratings = as_columns(HeldOutRatings, heldout_ratings)
    table = calibrated(ratings, rating, first_days(battles))
    shown = table[["method", "threshold", "coverage", "median_width", "note"]]
    return dg.MaterializeResult(
        value=table, metadata={"summary": dg.MetadataValue.md(shown.to_markdown(index=False))}
    )


def first_days(battles: pd.DataFrame | None) -> dict[str, float]:
    """Return the day (UTC, since 1970) of each model's first battle with a time."""
    if battles is None:
        return {}
    sides = battles.melt("timestamp", ["model_a", "model_b"], value_name="model")
    first = sides.dropna(subset="timestamp").groupby("model")["timestamp"].min()
    days = (first - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(days=1)
    return {str(model): float(day) for model, day in days.items()}


@table_asset("7", follows)
def leaderboard(
    context: dg.AssetExecutionContext,
    heldout_ratings: pd.DataFrame,
    conformal_calibration: pd.DataFrame,
    judge_gate: pd.DataFrame,
    scored_battles: pd.DataFrame,
    candidate_ratings: pd.DataFrame | None,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's rank, best rating and interval in Elo points, and the evidence behind them.

    Beside them the judge's rating as if nobody had voted on the model, and that by votes alone.
    Its true rank lies between best and worst rank, those of all models at once.
    Candidates stand among the others until they have votes of their own; attack controls do not.
    Of a judge that failed its gate, ratings by votes alone and the reason.
    """
    rating = rating_of(context, catalog, *_READ)
    heldout = as_columns(HeldOutRatings, heldout_ratings)
    board = board_of(scored_battles, heldout, rating, rating.method)
    board = _with_candidates(board, candidate_ratings, rating)
    sources = sources_of(context, *_MADE_FROM)
    settings = {**sources.get("rating_settings", {}), **rating.model_dump(mode="json")}
    origin = {**sources, "rating_settings": settings}
    if reason := failures(gate_of(judge_gate), withholding=True):
        return dg.MaterializeResult(
            value=as_table(withhold(board, reason, miscoverage=rating.miscoverage)),
            metadata={"withheld": reason, MADE_FROM: origin},
        )
    table = as_table(board)
    variance = _variance(scored_battles, heldout, rating)
    shown = with_texts(table[_SHOWN].round(0), in_markdown)
    return dg.MaterializeResult(
        value=table,
        metadata={
            "board": dg.MetadataValue.md(shown.to_markdown(index=False)),
            "plot": intervals(table),
            "evidence": dg.MetadataValue.md(
                "\n\n".join(
                    in_markdown(text)
                    for text, _ in evidence_lines(
                        table, conformal_calibration, as_table(summarise(heldout))
                    )
                )
            ),
            "variance": dg.MetadataValue.md(variance.to_markdown(index=False)),
            "variance_of_intervals": _in_words(variance),
            "n_candidates": int(table["flags"].str.split(";").str[0].eq("candidate").sum()),
            "median_half_width": float(((table["upper"] - table["lower"]) / 2).median()),
            MADE_FROM: origin,
        },
    )


def _variance(
    scored_battles: pd.DataFrame, heldout: HeldOutRatings, rating: RatingOptions
) -> pd.DataFrame:
    """Return the sources of the intervals' width, by resampling questions."""
    refits = refit_errors(
        as_coded(scored_battles, rating.hard_outcome),
        method=rating.method,
        l2=rating.l2,
        n_refits=_REFITS,
        seed=rating.seed,
        cluster=clusters_of(rating, scored_battles),
    )
    shares = variance_by_source(heldout, refits, method=rating.method, std_error=rating.std_error)
    table = as_table(shares)
    return table.assign(elo=table["elo"].round(1), share=table["share"].map("{:.0%}".format))


def _in_words(variance: pd.DataFrame) -> str:
    """Return the shares of the variance as a phrase by source; empty where unknown."""
    known = variance[variance["elo"] > 0]
    rows = zip(known["share"], known["meaning"], known["elo"], strict=True)
    return "; ".join(f"{share} from {meaning} ({elo:g} Elo)" for share, meaning, elo in rows)


def _with_candidates(
    board: Leaderboard, candidate_ratings: pd.DataFrame | None, rating: RatingOptions
) -> Leaderboard:
    """Return the board with the models that were dropped, but no controls, rated by its method."""
    if candidate_ratings is None:
        return board
    stands = candidate_ratings["control"].isna() & candidate_ratings["method"].eq(rating.method)
    if not stands.any():
        return board
    require_columns(Leaderboard, candidate_ratings)
    rows = candidate_ratings[stands].astype(dict.fromkeys(RANKS, "float64"))
    return join_newcomers(board, as_columns(Leaderboard, rows), miscoverage=rating.miscoverage)


@table_check(conformal_calibration)
def thresholds_are_finite(
    context: dg.AssetCheckExecutionContext, conformal_calibration: pd.DataFrame, catalog: Catalog
) -> dg.AssetCheckResult:
    """Too few calibration models give the judge's intervals no ends: votes alone then rank.

    Another method than the one that ranks is not asked if it cannot rate all voted models, since a
    fold has no ruler for it.
    """
    corpus, _ = corpus_and_judge(context)
    method = catalog.corpus(corpus).rating.method
    rated, ranks = conformal_calibration["n_models"], conformal_calibration["method"].eq(method)
    whole = conformal_calibration[ranks | rated.eq(rated.max())]
    return evaluate(
        whole.assign(finite=np.isfinite(whole["threshold"])),
        [
            n_rows(1, "a method is calibrated"),
            holds("finite", None, "the threshold of a method is finite"),
        ],
        ids=["method", "note"],
        remedy=MORE_MODELS,
        severity=dg.AssetCheckSeverity.WARN,
    )


@table_check(conformal_calibration)
def coverage_holds_across_groups(conformal_calibration: pd.DataFrame) -> dg.AssetCheckResult:
    """Intervals calibrated on one kind of models should hold for another kind too.

    Strong models are tried on weak ones and the reverse, few battles on many, newer models on
    older ones, each family on the others. Random halves are alike whatever the judge does: nothing
    rests on them.
    """
    asked = conformal_calibration[~conformal_calibration["method"].map(is_baseline).astype(bool)]
    tried = asked[asked["n_structured"] > 0]
    if tried.empty:
        why = "; ".join(filter(None, asked["note"].unique()))
        text = "Nothing was tested: no group of models could be set apart from the others. " + (
            f"{why or 'too few models with votes calibrate'}."
        )
        return check_result(text, passed=True)
    return evaluate(
        tried,
        [
            among(
                "structured_below",
                [""],
                "no group of models is covered less often than chance allows",
            )
        ],
        ids=["method"],
        remedy="Do not read these intervals as holding for the groups in `structured_below`: the "
        "judge treats them apart. Have people vote on models like those that you want to rate.",
        severity=dg.AssetCheckSeverity.WARN,
    )

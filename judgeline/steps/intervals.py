"""Conformal thresholds, and the leaderboard that carries their intervals."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from judgeline.elo import HeldOutRatings
from judgeline.intervals import (
    BY_JUDGE,
    Leaderboard,
    Prospect,
    VotedModels,
    calibrate_intervals,
    join_newcomers,
    prospect_by_votes,
    rank_models,
    rate_with_votes,
    vote_prospect,
    withhold,
)
from judgeline.io import RANKS, as_table, family_of
from judgeline.reliability import failures
from judgeline.steps.coding import coded, once, ranking_options, units
from judgeline.steps.reliability import gate_of
from judgeline.steps.step import as_columns, require_columns, step
from judgeline.tables.intervals import CONFORMAL_CALIBRATION, LEADERBOARD


@step(
    CONFORMAL_CALIBRATION,
    reads=("method", "miscoverage", "n_splits", "seed", "std_error", "families"),
)
def conformal_calibration(
    heldout_ratings: pd.DataFrame, battles: pd.DataFrame | None, *, settings: Any
) -> pd.DataFrame:
    """A method's interval threshold, with coverage and width over splits of the models.

    Widths in Elo points. Models that people rated calibrate it. Coverage over random halves cannot
    fail; coverage over structured splits can.
    """
    return calibrated(as_columns(HeldOutRatings, heldout_ratings), settings, first_days(battles))


def calibrated(
    ratings: HeldOutRatings, settings: Any, first_day: Mapping[str, float] | None = None
) -> pd.DataFrame:
    """Return the thresholds of all methods, one row each."""
    names = ("miscoverage", "n_splits", "seed", "std_error")
    options = {name: getattr(settings, name) for name in names}
    family = {name: family_of(name, settings.families) for name in set(ratings.model.tolist())}
    return as_table(calibrate_intervals(ratings, first_day=first_day, family=family, **options))


def first_days(battles: pd.DataFrame | None) -> dict[str, float]:
    """Return the day (UTC, since 1970) of each model's first battle with a time."""
    if battles is None:
        return {}
    sides = battles.melt("timestamp", ["model_a", "model_b"], value_name="model")
    first = sides.dropna(subset="timestamp").groupby("model")["timestamp"].min()
    days = (first - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(days=1)
    return {str(model): float(day) for model, day in days.items()}


@step(
    LEADERBOARD,
    reads=(
        "hard_outcome", "l2", "method", "miscoverage", "seed", "std_error", "intervals",
        "resample_by",
    ),
)  # fmt: skip
def leaderboard(
    heldout_ratings: pd.DataFrame,
    judge_gate: pd.DataFrame,
    scored_battles: pd.DataFrame,
    candidate_ratings: pd.DataFrame | None,
    *,
    settings: Any,
) -> pd.DataFrame:
    """A model's rank, best rating and interval in Elo points, and the evidence behind them.

    Beside them the judge's rating as if nobody had voted on the model, and that by votes alone.
    Its true rank lies between best and worst rank, those of all models at once.
    Candidates stand among the others until they have votes of their own; attack controls do not.
    Of a judge that failed its gate, ratings by votes alone and the reason.
    """
    heldout = as_columns(HeldOutRatings, heldout_ratings)
    board = board_of(scored_battles, heldout, settings, settings.method)
    board = _with_candidates(board, candidate_ratings, settings)
    if reason := failures(gate_of(judge_gate), withholding=True):
        board = withhold(board, reason, miscoverage=settings.miscoverage)
    return as_table(board)


def board_of(
    scored_battles: pd.DataFrame, heldout: HeldOutRatings, settings: Any, method: str
) -> Leaderboard:
    """Return the board of a method's held-out ratings and of people's votes on the battles."""
    with once():
        every_vote = coded(scored_battles, settings, every_vote=True)
        settled = coded(scored_battles, settings)
    together = rate_with_votes(
        every_vote,
        settled,
        heldout,
        method=method,
        miscoverage=settings.miscoverage,
        seed=settings.seed,
        l2=settings.l2,
        std_error=settings.std_error,
        cluster=units(scored_battles, settings),
    )
    return rank_models(heldout, together, **ranking_options(settings, method))


def prospect_of(
    scored_battles: pd.DataFrame, heldout_ratings: pd.DataFrame, settings: Any, row: pd.Series
) -> Prospect:
    """Return what further votes do to the interval of the model in a row of the board.

    By judge and votes together where that is bounded and the judge is not withheld, else by votes.
    """
    heldout = as_columns(HeldOutRatings, heldout_ratings)
    with once():
        voted = VotedModels.of(
            coded(scored_battles, settings, every_vote=True),
            coded(scored_battles, settings),
            heldout,
            method=str(row["method"]),
            l2=settings.l2,
            std_error=settings.std_error,
            cluster=units(scored_battles, settings),
        )
    level, is_own = settings.miscoverage, voted.own.model == row["model"]
    if str(row["evidence"]).startswith(BY_JUDGE):
        found = vote_prospect(voted, str(row["model"]), miscoverage=level, seed=settings.seed)
        if found is not None:
            return found
    n_votes = max(int(row["n_votes"]), *voted.n_votes[is_own].tolist(), 0)
    design = float(voted.own.design_effect[is_own].max(initial=1.0))
    return prospect_by_votes(n_votes, float(row["human_std_error"]), design, miscoverage=level)


def by_judge_alone(heldout_ratings: pd.DataFrame, settings: Any, method: str) -> pd.DataFrame:
    """Return the board of one of the judge's methods, as if no vote counted for its own model."""
    heldout = as_columns(HeldOutRatings, heldout_ratings)
    return as_table(rank_models(heldout, **ranking_options(settings, method)))


def _with_candidates(
    board: Leaderboard, candidate_ratings: pd.DataFrame | None, settings: Any
) -> Leaderboard:
    """Return the board with the models that were dropped, but no controls, rated by its method."""
    if candidate_ratings is None:
        return board
    stands = candidate_ratings["control"].isna() & candidate_ratings["method"].eq(settings.method)
    if not stands.any():
        return board
    require_columns(Leaderboard, candidate_ratings)
    rows = candidate_ratings[stands].astype(dict.fromkeys(RANKS, "float64"))
    return join_newcomers(board, as_columns(Leaderboard, rows), miscoverage=settings.miscoverage)

"""Declared tables of intervals: thresholds of the methods, and the boards of ranked models."""

from typing import Any

import numpy as np
import pandas as pd

from judgeline.intervals import BEYOND, BY_JUDGE, WITHHELD, ConformalCalibration, Leaderboard
from judgeline.tables.rules import at_least, holds, known, n_rows, unique, within
from judgeline.tables.schema import Table, stops, table, warns

MORE_MODELS = "Calibrate on more models that people rated, or raise miscoverage."

CONFORMAL_CALIBRATION = Table("conformal_calibration", ConformalCalibration, key=["method"])


def with_judge_columns(board: pd.DataFrame) -> pd.DataFrame:
    """Return a stored board with its ratings by the judge alone.

    Of earlier versions, whose boards have no such columns, every rating is the judge's.
    """
    if "judge_rating" in board:
        return board
    names = ["rating", "lower", "upper", "std_error"]
    known = board.reindex(columns=names).add_prefix("judge_")
    return board.assign(**known, evidence=BY_JUDGE)


def _in_order(board: pd.DataFrame) -> Any:
    ranked = board[board["rank"].notna()].sort_values("rank")
    return ~board.index.isin(ranked.index[ranked["rating"].diff().gt(0)])


def _shown(board: pd.DataFrame) -> pd.DataFrame:
    """Leave out ratings that the judge gate withholds: they promise nothing."""
    return board[~board["flags"].str.startswith(WITHHELD)]


WELL_FOUNDED = holds(
    "well_founded",
    lambda board: board["rating"].notna() & ~board["flags"].str.contains("few-battles|no-spread"),
    "a model has a rating, and battles enough to say how uncertain it is",
)


AMONG_PEOPLE = holds(
    "among_people",
    lambda board: ~board["flags"].str.split(";").map(lambda flags: BEYOND in flags).astype(bool),
    "a model without votes stands among those that people have rated",
)
VOTES_FIRST = (
    "Some 30 votes on such a model close the gap: have people vote on its battles first; "
    "judgeline vote makes the page for them."
)


LEADERBOARD = table(
    "leaderboard",
    Leaderboard,
    ["model"],
    stops(
        "models_are_in_order",
        "One row per model, and a better rank for a higher rating.",
        "See `flags` of these models; remake heldout_ratings and the leaderboard.",
        n_rows(2, "at least two models are ranked"),
        unique("model"),
        within("rank", 1, lambda t: max(len(t), 1), note="rank counts the models from 1"),
        holds("in_order", _in_order, "a higher rating has a better rank"),
        holds(
            "explained",
            lambda board: np.isfinite(board["rating"]) | board["flags"].ne(""),
            "a rating is a finite number, or a flag says why there is none",
        ),
    ),
    warns(
        "ratings_are_well_founded",
        "A model with few battles, or none that count, is known badly or not at all.",
        "Sample and judge more battles of these models against voted ones.",
        WELL_FOUNDED,
        rows=_shown,
        ids=["model", "flags"],
    ),
    stops(
        "intervals_hold_their_rating",
        "Each rating lies inside its own interval, whose ends are known or infinite.",
        "See `flags` of these models and the threshold in conformal_calibration.",
        *known("lower", "upper", note="the {} end is known"),
        at_least("rating", "lower", "the interval begins at or below the rating"),
        at_least("upper", "rating", "the interval ends at or above the rating"),
        at_least("judge_rating", "judge_lower", "the judge's interval begins at or below it"),
        at_least("judge_upper", "judge_rating", "the judge's interval ends at or above it"),
        rows=lambda board: board[board["rating"].notna()],
    ),
    warns(
        "models_stand_among_people",
        "Beyond all that people have rated an interval holds less often than promised.",
        VOTES_FIRST,
        AMONG_PEOPLE,
        rows=_shown,
        ids=["model", "judge_rating"],
    ),
    warns(
        "intervals_are_bounded",
        "An unbounded interval is honest and useless: too few other models calibrate this one.",
        MORE_MODELS,
        holds(
            "bounded",
            lambda board: np.isfinite(board[["lower", "upper"]]).all(axis=1).to_numpy(),
            "the interval of a model is bounded",
        ),
        rows=_shown,
    ),
    remembered=True,
)

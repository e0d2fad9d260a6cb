"""The leaderboard: one rating, interval and tier per model, from leave-one-out ratings."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.conformal import (
    StdErrorKind,
    calibration_residuals,
    chosen_std_error,
    conformal_quantile,
    interval_half_width,
    nonconformity_scores,
)
from judgeline.heldout import HeldOutRatings

Floats = NDArray[np.float64]

WITHHELD = "withheld: "
"""What the flag of a rating begins with that is not shown, because its judge failed the gate."""


class Leaderboard(NamedTuple):
    """One row per model, best rating first; models without a rating come last.

    `rating` is by `method`, `lower` and `upper` bound its conformal interval (Elo points), which
    is the whole line for a model without a standard error. `rank` and `tier` are NaN for a model
    without a rating; `tier` is one more than the number of models whose whole interval lies
    above this one's.
    `human_rating` is NaN without votes. `n_battles` counts judged battles against anchors.
    """

    rank: Floats
    model: NDArray[np.str_]
    method: NDArray[np.str_]
    rating: Floats
    std_error: Floats
    lower: Floats
    upper: Floats
    tier: Floats
    human_rating: Floats
    hard_rating: Floats
    soft_rating: Floats
    beta: Floats
    n_battles: NDArray[np.int64]
    n_votes: NDArray[np.int64]
    flags: NDArray[np.str_]


def rank_models(
    heldout: HeldOutRatings,
    *,
    method: str = "soft",
    miscoverage: float = 0.1,
    std_error: StdErrorKind = "analytic",
) -> Leaderboard:
    """Return the leaderboard of one method with a conformal interval for every model.

    A model without votes gets the threshold of all voted models' residuals. A voted model
    gets the threshold of the *other* voted models' residuals: its own votes do not widen or
    narrow what is promised about it.

    Parameters
    ----------
    heldout : HeldOutRatings
        Leave-one-out ratings of all methods.
    method : str
        The judge method that ranks.
    miscoverage : float
        Tolerated probability that an interval misses, in (0, 1).
    std_error : {"analytic", "bootstrap"}
        Which standard error scales the intervals.

    Returns
    -------
    Leaderboard
        Rows by rating, best first. Intervals are the whole line where too few models
        calibrate. NaN where a model has no rating, and then `flags` says why.

    Raises
    ------
    ValueError
        If the ratings hold no such method, or it is ``human``.
    """
    table = of_method(heldout, method)
    scores = nonconformity_scores(*calibration_residuals(heldout, method, std_error))
    thresholds = _thresholds(np.isfinite(table.residual), scores, miscoverage)
    spread = chosen_std_error(heldout, std_error)[heldout.method == method]
    return in_order(with_intervals(heldout, table, spread, thresholds))


def of_method(heldout: HeldOutRatings, method: str) -> HeldOutRatings:
    """Return the rows of one judge method; ValueError, with the known ones, if there is none."""
    known = dict.fromkeys(heldout.method.tolist())
    if method not in known or method == "human":
        names = ", ".join(name for name in known if name != "human")
        raise ValueError(f"cannot rank by method {method!r}; the ratings hold {names}")
    rows = heldout.method == method
    return HeldOutRatings(*(column[rows] for column in heldout))


def with_intervals(
    heldout: HeldOutRatings, table: HeldOutRatings, spread: Floats, thresholds: Floats
) -> Leaderboard:
    """Return the rows of one method with their intervals, without places.

    Parameters
    ----------
    heldout, table : HeldOutRatings
        Of all methods, and of the one that ranks.
    spread, thresholds : ndarray, shape of the rows of `table`
        Standard errors in Elo points, and thresholds in standard errors.
    """
    half_width = interval_half_width(thresholds, spread)
    lower, upper = table.rating - half_width, table.rating + half_width
    nowhere = np.full(table.model.size, math.nan)
    return Leaderboard(
        nowhere, table.model, table.method, table.rating, spread, lower, upper, nowhere,
        table.human_rating, _ratings_of(heldout, "hard", table.model),
        _ratings_of(heldout, "soft", table.model), _betas(heldout, table.model),
        table.n_battles, table.n_votes, _with_spread_flag(table, spread),
    )  # fmt: skip


def in_order(board: Leaderboard) -> Leaderboard:
    """Return the rows by rating, best first, with rank and tier."""
    rating = board.rating.astype(float)
    order = np.lexsort((board.model.astype(str), -rating))  # NaN sorts last
    places = np.where(np.isfinite(rating[order]), np.arange(1.0, order.size + 1), math.nan)
    tiers = _tiers(board.lower.astype(float), board.upper.astype(float))[order]
    columns = Leaderboard(*(column[order] for column in board))
    return columns._replace(rank=places, tier=tiers)


def withhold(leaderboard: Leaderboard, reason: str) -> Leaderboard:
    """Return a leaderboard without any number that the judge had a say in, and with the reason.

    Parameters
    ----------
    leaderboard : Leaderboard
        Ratings by a judge that failed its gate.
    reason : str
        Why, such as ``kappa 0.05 < 0.20``; it goes before each model's other flags.

    Returns
    -------
    Leaderboard
        Rows by name, since their order would tell the ranks. Human ratings and counts stay.

    Raises
    ------
    ValueError
        If there is no reason, or it holds the semicolon that separates flags.
    """
    if not reason or ";" in reason:
        raise ValueError(f"a reason without semicolons is needed to withhold, got {reason!r}")
    order = np.argsort(leaderboard.model, kind="stable")
    board = Leaderboard._make(column[order] for column in leaderboard)
    nothing = np.full(order.size, math.nan)
    flags = (";".join(filter(None, (WITHHELD + reason, old))) for old in board.flags.tolist())
    return board._replace(
        **dict.fromkeys(OF_THE_JUDGE, nothing), flags=np.array(list(flags), dtype=str)
    )


OF_THE_JUDGE = (
    "rank", "rating", "std_error", "lower", "upper", "tier", "hard_rating", "soft_rating", "beta",
)  # fmt: skip
"""Columns that the judge had a say in."""


def withheld_reason(flags: str) -> str:
    """Return why a model's rating is withheld, from its flags; empty where it is not."""
    first = flags.split(";", 1)[0]
    return first.removeprefix(WITHHELD) if first.startswith(WITHHELD) else ""


def _with_spread_flag(table: HeldOutRatings, spread: Floats) -> NDArray[np.str_]:
    """Add the flag of a rating whose battles do not tell how uncertain it is."""
    lacks = np.isfinite(table.rating) & ~(spread > 0)
    flags = zip(table.flags.tolist(), lacks.tolist(), strict=True)
    return np.array([";".join(filter(None, (old, "no-spread" * new))) for old, new in flags])


def _thresholds(calibrates: NDArray[np.bool_], scores: Floats, miscoverage: float) -> Floats:
    """Return every model's threshold, from the scores of the models other than itself."""
    thresholds = np.full(calibrates.size, conformal_quantile(scores, miscoverage=miscoverage))
    for place, model in enumerate(np.flatnonzero(calibrates)):
        others = np.delete(scores, place)
        thresholds[model] = conformal_quantile(others, miscoverage=miscoverage)
    return thresholds


def _tiers(lower: Floats, upper: Floats) -> Floats:
    """Return one plus the number of models clearly above; NaN for a model without bounds."""
    above = (lower > upper[:, None]).sum(axis=1) + 1.0
    return np.where(np.isnan(upper), math.nan, above)


def _ratings_of(heldout: HeldOutRatings, method: str, models: NDArray[np.str_]) -> Floats:
    return _lookup(heldout.model, heldout.rating, heldout.method == method, models)


def _betas(heldout: HeldOutRatings, models: NDArray[np.str_]) -> Floats:
    return _lookup(heldout.model, heldout.beta, heldout.method == "soft", models)


def _lookup(
    names: NDArray[np.str_], values: Floats, rows: NDArray[np.bool_], models: NDArray[np.str_]
) -> Floats:
    found = dict(zip(names[rows].tolist(), values[rows].tolist(), strict=True))
    return np.array([found.get(model, math.nan) for model in models.tolist()])

"""Split-conformal intervals of ratings: a residual's size is judged against other models'.

Assumption throughout: the models that calibrate an interval and the model it speaks about
are exchangeable - drawn, as it were, from one pool, judged and voted on in the same way.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import betabinom

from judgeline.heldout import HeldOutRatings
from judgeline.streams import keyed_rng

Floats = NDArray[np.float64]
StdErrorKind = Literal["analytic", "bootstrap"]

COVERAGE_TAIL = 0.005
"""Probability beyond either of the limits that `coverage_limits` gives."""


class ConformalCalibration(NamedTuple):
    """One row per method: the threshold that intervals use, and how such thresholds do.

    `threshold` is calibrated on all `n_models` residuals, for models without votes.
    `split_threshold` (median), `coverage` (mean), `median_width` and the ranges are over
    `n_splits` random halves: `n_calibration` models calibrate, `n_test` are covered or not.
    Thresholds are in standard errors, widths in Elo points; infinite where too few models
    calibrate, and then `note` says so.
    """

    method: NDArray[np.str_]
    miscoverage: Floats
    threshold: Floats
    n_models: NDArray[np.int64]
    n_splits: NDArray[np.int64]
    n_calibration: NDArray[np.int64]
    n_test: NDArray[np.int64]
    split_threshold: Floats
    coverage: Floats
    coverage_min: Floats
    coverage_max: Floats
    median_width: Floats
    width_min: Floats
    width_max: Floats
    note: NDArray[np.str_]


def conformal_quantile(nonconformity: ArrayLike, *, miscoverage: float) -> float:
    """Return the threshold that a fresh nonconformity score stays below, at a stated rate.

    If the ``n`` calibration scores and the fresh one are exchangeable, the fresh score
    exceeds the threshold with probability at most `miscoverage`. The threshold is the
    ``ceil((n + 1) (1 - miscoverage))``-th smallest score, never an interpolation.

    Parameters
    ----------
    nonconformity : array_like, shape (n,)
        Calibration scores in one common unit, such as standard errors; larger is stranger.
    miscoverage : float
        Tolerated probability of a miss, in (0, 1); 0.1 asks for 90 % coverage.

    Returns
    -------
    float
        Threshold in the unit of the scores; ``inf`` when ``n < 1 / miscoverage - 1``.

    Raises
    ------
    ValueError
        If the scores are not one-dimensional or hold NaN, or `miscoverage` is not strictly
        between 0 and 1.

    References
    ----------
    J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman (2018), "Distribution-
    Free Predictive Inference for Regression", JASA 113(523), Algorithm 2. arXiv:1604.04173.
    """
    scores = np.asarray(nonconformity, dtype=float)
    if scores.ndim != 1:
        raise ValueError(f"nonconformity must have shape (n,), got {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"nonconformity holds {np.isnan(scores).sum()} NaN in {scores.size}")
    _require_miscoverage(miscoverage)
    n_above = _n_above(scores.size, miscoverage)
    return math.inf if n_above < 0 else float(np.sort(scores)[scores.size - 1 - n_above])


def _require_miscoverage(miscoverage: float) -> None:
    if not 0 < miscoverage < 1:
        raise ValueError(f"miscoverage must lie strictly between 0 and 1, got {miscoverage}")


def _n_above(n_scores: int, miscoverage: float) -> int:
    """Return how many scores lie above the threshold; -1 when there are too few for any.

    Counting from above keeps the rank exact: in floats (99 + 1) * (1 - 0.45) is
    55.00000000000001, and its ceiling one rank too far.
    """
    return math.floor((n_scores + 1) * miscoverage + 1e-9) - 1


def nonconformity_scores(residual: ArrayLike, std_error: ArrayLike) -> Floats:
    """Return absolute residuals in units of their standard errors.

    A model without a standard error (one battle, or battles that all end alike) counts as
    infinitely strange: it can only widen intervals, never narrow them.

    Parameters
    ----------
    residual : array_like, shape (n,)
        Judge rating minus human rating, in Elo points.
    std_error : array_like, shape (n,)
        Standard error of the judge rating, in Elo points.

    Returns
    -------
    ndarray, shape (n,)
        Unitless scores; infinite where there is no positive standard error.

    Raises
    ------
    ValueError
        If a residual is not finite or a standard error is negative or infinite.
    """
    error, spread = np.asarray(residual, dtype=float), np.asarray(std_error, dtype=float)
    wrong = ~np.isfinite(error) | (spread < 0) | np.isinf(spread)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"residual {error[row]:g} with standard error {spread[row]:g} in row {row}: every "
            "calibration model needs a residual, and a standard error that is not negative"
        )
    known = spread > 0
    return np.where(known, np.abs(error) / np.where(known, spread, 1.0), math.inf)


def calibrate_intervals(
    heldout: HeldOutRatings,
    *,
    miscoverage: float = 0.1,
    n_splits: int = 5,
    seed: int = 0,
    std_error: StdErrorKind = "analytic",
) -> ConformalCalibration:
    """Return each judge method's conformal threshold, tried on random splits of the models.

    Parameters
    ----------
    heldout : HeldOutRatings
        Leave-one-out ratings; models with a residual calibrate.
    miscoverage : float
        Tolerated probability of a miss, in (0, 1).
    n_splits : int
        Random halvings of the models on which coverage and width are tried.
    seed : int
        Seed of the halvings; the same for every method, so that methods compare.
    std_error : {"analytic", "bootstrap"}
        Which standard error scales residuals and intervals.

    Returns
    -------
    ConformalCalibration
        One row per method other than ``human``.

    Raises
    ------
    ValueError
        If `miscoverage` or `n_splits` is out of range.
    """
    _require_miscoverage(miscoverage)
    if n_splits < 1:
        raise ValueError(f"n_splits must be at least 1, got {n_splits}")
    methods = [name for name in dict.fromkeys(heldout.method.tolist()) if name != "human"]
    rows = [
        _calibrate(
            name, *calibration_residuals(heldout, name, std_error), miscoverage, n_splits, seed
        )
        for name in methods
    ]
    return ConformalCalibration(*(np.array(column) for column in zip(*rows, strict=True)))


def calibration_residuals(
    heldout: HeldOutRatings, method: str, std_error: StdErrorKind
) -> tuple[Floats, Floats]:
    """Return residuals and standard errors of the models that calibrate a method.

    Parameters
    ----------
    heldout : HeldOutRatings
        Leave-one-out ratings.
    method : str
        One of its methods.
    std_error : {"analytic", "bootstrap"}
        Which standard error to take.

    Returns
    -------
    residual, std_error : ndarray, shape (n,)
        In Elo points, for the models with votes and a rating by the method.

    Raises
    ------
    ValueError
        If `std_error` is neither kind, or bootstrap errors were not computed.
    """
    spread = chosen_std_error(heldout, std_error)
    rows = (heldout.method == method) & np.isfinite(heldout.residual)
    return heldout.residual[rows], spread[rows]


def chosen_std_error(heldout: HeldOutRatings, kind: StdErrorKind) -> Floats:
    """Return the standard errors that scale residuals and intervals, in Elo points.

    Parameters
    ----------
    heldout : HeldOutRatings
        Leave-one-out ratings.
    kind : {"analytic", "bootstrap"}
        The closed form, free of resampling noise, or the bootstrap as published.

    Returns
    -------
    ndarray, shape of the columns
        Standard errors.

    Raises
    ------
    ValueError
        If `kind` is neither, or bootstrap errors were not computed.
    """
    if kind not in ("analytic", "bootstrap"):
        raise ValueError(f"std_error must be 'analytic' or 'bootstrap', got {kind!r}")
    if kind == "bootstrap" and np.isnan(heldout.std_error).all():
        raise ValueError("no bootstrap standard errors: set n_resamples to at least 2")
    return heldout.std_error_analytic if kind == "analytic" else heldout.std_error


def _calibrate(
    method: str,
    residual: Floats,
    spread: Floats,
    miscoverage: float,
    n_splits: int,
    seed: int,
) -> tuple[object, ...]:
    scores = nonconformity_scores(residual, spread)
    n_calibration = scores.size // 2
    rng = keyed_rng(seed, "conformal splits")
    splits = [
        _try_split(scores, spread, rng.permutation(scores.size), n_calibration, miscoverage)
        for _ in range(n_splits)
    ]
    threshold, coverage, width = (np.array(column) for column in zip(*splits, strict=True))
    deployed = conformal_quantile(scores, miscoverage=miscoverage)
    note = "; ".join(
        part
        for part in (_why_infinite(scores.size, n_calibration, miscoverage), _no_spread(scores))
        if part
    )
    counts = (scores.size, n_splits, n_calibration, scores.size - n_calibration)
    return (
        method, miscoverage, deployed, *counts, float(np.median(threshold)),
        coverage.mean(), coverage.min(), coverage.max(),
        float(np.median(width)), width.min(), width.max(), note,
    )  # fmt: skip


def _try_split(
    scores: Floats, spread: Floats, order: NDArray[np.intp], n_calibration: int, miscoverage: float
) -> tuple[float, float, float]:
    """Return threshold, share of test models covered, and their median interval width."""
    threshold = conformal_quantile(scores[order[:n_calibration]], miscoverage=miscoverage)
    test = order[n_calibration:]
    if not test.size:
        return threshold, math.nan, math.nan
    return (
        threshold,
        float((scores[test] <= threshold).mean()),
        float(np.median(interval_half_width(threshold, spread[test])) * 2),
    )


def interval_half_width(threshold: ArrayLike, std_error: ArrayLike) -> Floats:
    """Return how far intervals reach to either side of a rating.

    Parameters
    ----------
    threshold : array_like
        Conformal thresholds, in standard errors.
    std_error : array_like
        Standard errors, in Elo points.

    Returns
    -------
    ndarray
        Their product in Elo points; infinite where there is no positive standard error,
        since nothing is known of such a rating's spread.
    """
    reach, spread = np.broadcast_arrays(np.asarray(threshold, float), np.asarray(std_error, float))
    known = spread > 0
    return np.where(known, reach * np.where(known, spread, 1.0), math.inf)


def coverage_limits(
    n_calibration: ArrayLike, n_test: ArrayLike, *, miscoverage: ArrayLike
) -> tuple[Floats, Floats]:
    """Return between which shares coverage on one split lies by chance.

    If calibration and test models are exchangeable, the number of covered test models is
    beta-binomial. The mean over several splits spreads less: the limits err on the quiet side.

    Parameters
    ----------
    n_calibration, n_test : array_like of int, shape (n,)
        Models on either side of a split; at least one to test.
    miscoverage : array_like, shape (n,)
        Tolerated probability of a miss, in (0, 1).

    Returns
    -------
    lower, upper : ndarray, shape (n,)
        Shares, each exceeded in at most one split of 200; both 1 where too few calibration
        models make every interval infinite.

    References
    ----------
    A. N. Angelopoulos and S. Bates (2021), "A Gentle Introduction to Conformal Prediction and
    Distribution-Free Uncertainty Quantification", arXiv:2107.07511.
    """
    calibration = np.asarray(n_calibration, dtype=float)
    test = np.asarray(n_test, dtype=float)
    n_above = np.floor((calibration + 1) * np.asarray(miscoverage, dtype=float) + 1e-9)
    infinite = n_above < 1
    beyond = np.where(infinite, 1, n_above)
    spread = betabinom(test, np.maximum(calibration + 1 - beyond, 1), beyond)
    lower = np.where(infinite, 1.0, spread.ppf(COVERAGE_TAIL) / test)
    upper = np.where(infinite, 1.0, spread.ppf(1 - COVERAGE_TAIL) / test)
    return lower, upper


def _no_spread(scores: Floats) -> str:
    count = int(np.isinf(scores).sum())
    if not count:
        return ""
    return (
        f"{count} of {scores.size} calibration models have no standard error (one battle, or "
        "battles that all end alike) and count as misses; judge more of their battles"
    )


def _why_infinite(n_models: int, n_calibration: int, miscoverage: float) -> str:
    """Say in words which thresholds are infinite and what would make them finite."""
    needed = math.ceil(1 / miscoverage - 1 - 1e-9)
    short = [
        f"{count} {kind} models"
        for kind, count in (("calibration", n_calibration), ("voted", n_models))
        if _n_above(count, miscoverage) < 0
    ]
    if not short:
        return ""
    where = "the split threshold" if len(short) == 1 else "every threshold"
    return (
        f"{where} is infinite: {1 - miscoverage:.0%} coverage needs at least {needed} models to "
        f"calibrate, there are {' and '.join(short)}; have humans vote on more models or raise "
        "the miscoverage"
    )

"""Stated intervals against later votes: coverage, the zero of the scale."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, alike_floats, require
from judgeline.intervals.conformal import COVERAGE_TAIL, coverage_limits


class RunningCoverage(NamedTuple):
    """One row per promise: how many of the predictions that made it were kept.

    `nominal` is the chance that conformal intervals of `n_calibration` models hold: a little
    above ``1 - miscoverage``, since a rank is a whole number. `lower` and `upper` are the shares
    that chance allows to predictions from pools of their own (binomial), `shared_lower` and
    `shared_upper` to predictions that share one pool (beta-binomial, always wider).
    """

    miscoverage: Floats
    n_predictions: NDArray[np.int64]
    n_covered: NDArray[np.int64]
    coverage: Floats
    nominal: Floats
    lower: Floats
    upper: Floats
    shared_lower: Floats
    shared_upper: Floats


def running_coverage(
    covered: ArrayLike, miscoverage: ArrayLike, *, n_calibration: int
) -> RunningCoverage:
    """Return the coverage of predictions by promised miscoverage, with its limits by chance.

    Assumption: the models predicted are exchangeable with those that calibrated, and each
    counts once. Intervals that are the whole line promise nothing: leave them out.

    Parameters
    ----------
    covered : array_like of bool, shape (n,)
        Whether each prediction's interval held the human rating.
    miscoverage : array_like, shape (n,)
        What each tolerated, in (0, 1).
    n_calibration : int
        Models that calibrated them, at the least.

    Returns
    -------
    RunningCoverage
        Rows by miscoverage. Each limit is passed by chance in at most one count of 200.

    Raises
    ------
    ValueError
        If the lengths differ, a miscoverage is out of range or `n_calibration` is negative.

    References
    ----------
    C. J. Clopper and E. S. Pearson (1934), Biometrika 26(4), for exact binomial tails; V. Vovk
    (2012), "Conditional validity of inductive conformal predictors", arXiv:1209.2673, for
    predictions that share a pool.
    """
    from scipy.stats import binom

    held, promised = alike_floats(covered=covered, miscoverage=miscoverage)
    possible = (promised > 0) & (promised < 1)
    require(possible, "miscoverage", promised, "strictly between 0 and 1")
    require(n_calibration >= 0, "n_calibration", n_calibration, "0 or more")
    levels, of_level = np.unique(promised, return_inverse=True)
    count = np.bincount(of_level, minlength=levels.size)
    kept = np.bincount(of_level, held, levels.size).astype(np.int64)
    # the exact chance that an interval holds, 1 where too few models calibrate it
    nominal = 1 - np.floor((n_calibration + 1) * levels + 1e-9) / (n_calibration + 1)
    lower, upper = (
        binom.ppf(p, count, nominal) / count for p in (COVERAGE_TAIL, 1 - COVERAGE_TAIL)
    )
    shared = coverage_limits(np.full(levels.size, n_calibration), count, miscoverage=levels)
    return RunningCoverage(levels, count, kept, kept / count, nominal, lower, upper, *shared)


def origin_shift(then: ArrayLike, then_as_now: ArrayLike, now: ArrayLike) -> float:
    """Return how far the zero of a model's human rating moved as others got votes.

    A model that is held out is rated relative to the mean of its anchors. Its rating among the
    anchors of `then` is its rating among those of `now` plus this shift: the mean strength of the
    latter less that of the former. With strengths ``s`` of zero mean over n models, one that is
    held out is rated ``s_i - mean_(j != i) s_j = s_i n / (n - 1)``, which is turned round here.
    An anchor that is gone stands where it stood, relative to those that are left. Refits without
    a model move the others a little, which is left out.

    Parameters
    ----------
    then : array_like, shape (A,)
        Human ratings of the anchors then, when the model had no votes; Elo points.
    then_as_now : array_like, shape (A,)
        Those of the same anchors now, NaN for one that is gone.
    now : array_like, shape (B,)
        Human ratings of all anchors now, when the model has votes.

    Returns
    -------
    float
        In Elo points; zero up to rounding where the anchors are the same, NaN where none is left.

    Raises
    ------
    ValueError
        If the first two differ in length, or a rating of `then` or `now` is not finite.
    """
    old, same = alike_floats(then=then, then_as_now=then_as_now)
    new = np.asarray(now, dtype=float)
    for name, ratings in (("then", old), ("now", new)):
        require(np.isfinite(ratings), name, ratings, "a finite human rating; leave the anchor out")
    left = np.isfinite(same)
    if not left.any():
        return float("nan")
    before = old * (old.size - 1) / old.size
    factor = new.size / (new.size + 1)
    moved = (same[left] * factor - before[left]).mean()
    return float(new.mean() * factor - np.where(left, same * factor, before + moved).mean())

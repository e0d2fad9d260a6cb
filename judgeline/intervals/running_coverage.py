"""Do intervals that were stated before the votes hold as often as they promise? A running count."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.intervals.conformal import COVERAGE_TAIL, coverage_limits

Floats = NDArray[np.float64]


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
    """Return how often predictions held, beside what chance allows.

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

    held, promised = np.asarray(covered, dtype=bool), np.asarray(miscoverage, dtype=float)
    if held.shape != promised.shape or held.ndim != 1:
        raise ValueError(f"covered {held.shape} and miscoverage {promised.shape} differ")
    if not ((promised > 0) & (promised < 1)).all():
        wrong = promised[~((promised > 0) & (promised < 1))][0]
        raise ValueError(f"miscoverage must lie strictly between 0 and 1, got {wrong}")
    if n_calibration < 0:
        raise ValueError(f"n_calibration must not be negative, got {n_calibration}")
    levels, of_level = np.unique(promised, return_inverse=True)
    count = np.bincount(of_level, minlength=levels.size)
    kept = np.bincount(of_level, held, levels.size).astype(np.int64)
    nominal = _nominal(n_calibration, levels)
    shared = coverage_limits(np.full(levels.size, n_calibration), count, miscoverage=levels)
    return RunningCoverage(
        levels,
        count,
        kept,
        kept / count,
        nominal,
        binom.ppf(COVERAGE_TAIL, count, nominal) / count,
        binom.ppf(1 - COVERAGE_TAIL, count, nominal) / count,
        *shared,
    )


def _nominal(n_calibration: int, miscoverage: Floats) -> Floats:
    """Return the exact chance that an interval holds, 1 where too few models calibrate it."""
    n_above = np.floor((n_calibration + 1) * miscoverage + 1e-9)
    return np.asarray(1 - n_above / (n_calibration + 1))

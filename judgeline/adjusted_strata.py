"""Corrected win rates of a population in strata: corrected in each, then aggregated.

A judge that favours long answers errs differently on short and on long ones; one correction
for both is biased as soon as their mix differs between calibration and test battles. Corrected
stratum by stratum it need only err alike within each.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.adjusted import interval_centre
from judgeline.judge_counts import JudgeCounts, judge_rates, normal_quantile, smoothed_rates

Floats = NDArray[np.float64]


class StratifiedWinRate(NamedTuple):
    """A win rate over strata, in shares of battles.

    `win_rate`, `lower` and `upper` lie in [0, 1]; `std_error` is theirs. `stratum_win_rate`,
    shape (s,), is each stratum's, not clipped, for it enters the sum as it is; `weight` sums
    to 1.
    """

    win_rate: float
    lower: float
    upper: float
    std_error: float
    stratum_win_rate: Floats
    weight: Floats


def stratified_win_rate(
    counts: JudgeCounts, *, weight: ArrayLike | None = None, miscoverage: float = 0.05
) -> StratifiedWinRate:
    """Return the weighted mean of the strata's corrected win rates, with an interval.

    The centre is the weighted mean of the strata's centres and the variance that of independent
    strata. The weights count as known: the win rate is that of the given mix, and what the
    sampling of the mix itself would add is left out.

    Parameters
    ----------
    counts : JudgeCounts
        Six arrays of shape (s,), one entry per stratum.
    weight : array_like, shape (s,), optional
        Weight of each stratum, from 0, not all 0; scaled to sum to 1. The shares of test
        battles if left out.
    miscoverage : float
        Tolerated share of misses, in (0, 1).

    Returns
    -------
    StratifiedWinRate
        In shares of battles.

    Raises
    ------
    ValueError
        If the counts are not one-dimensional, a weight is negative or NaN, or a stratum
        cannot be corrected, as `adjusted_win_rate`; the message has the stratum's index.

    References
    ----------
    W. G. Cochran (1977), "Sampling Techniques", third edition, chapter 5, for the weighted
    mean; `adjusted_win_rate` for each stratum.
    """
    smoothed = smoothed_rates(counts, miscoverage=miscoverage)
    rates = judge_rates(counts)
    if rates.share.ndim != 1:
        raise ValueError(f"counts of strata must have shape (s,), got {rates.share.shape}")
    share = _weights(rates.n_test if weight is None else weight, rates.share.size)
    centre = float(share @ interval_centre(smoothed, miscoverage=miscoverage))
    std_error = float(np.sqrt(share**2 @ smoothed.std_error**2))
    half_width = normal_quantile(miscoverage) * std_error
    win_rate, lower, upper = np.clip(
        [share @ rates.win_rate, centre - half_width, centre + half_width], 0, 1
    ).tolist()
    return StratifiedWinRate(win_rate, lower, upper, std_error, rates.win_rate, share)


def _weights(weight: ArrayLike, n_strata: int) -> Floats:
    weights = np.asarray(weight, dtype=float)
    if weights.shape != (n_strata,):
        raise ValueError(f"weight must have shape ({n_strata},), got {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise ValueError(f"weights must be finite, from 0 and not all 0, got {weights.tolist()}")
    scaled: Floats = weights / weights.sum()
    return scaled

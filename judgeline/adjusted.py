"""Win rates corrected for what the judge gets wrong, each with an interval.

The assumption: given the human outcome, the judge errs alike in test and calibration battles.
How often the model wins may differ between the two. What belongs here is the binary estimator;
strata, ties, the estimators it is compared with and planning have modules of their own.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.judge_counts import (
    JudgeCounts,
    JudgeRates,
    bernoulli_variance,
    judge_rates,
    normal_quantile,
    smoothed_rates,
)

Floats = NDArray[np.float64]


class AdjustedWinRate(NamedTuple):
    """A corrected win rate with its interval; every field has the shape of the counts.

    `win_rate`, `lower` and `upper` are shares of battles in [0, 1]. `unclipped` is the estimate
    before clipping: outside of [0, 1] the test battles say more, or less, than the judge's
    calibrated errors allow, and an interval of width 0 says so too. `std_error` is a share.
    `naive` is the judge's own win rate on the test battles.
    """

    win_rate: Floats
    lower: Floats
    upper: Floats
    unclipped: Floats
    std_error: Floats
    naive: Floats
    specificity: Floats
    sensitivity: Floats


def adjusted_win_rate(counts: JudgeCounts, *, miscoverage: float = 0.05) -> AdjustedWinRate:
    """Return the win rate that humans would give, from a judge's verdicts and its errors.

    If the judge errs alike in test and calibration battles of the same human outcome, and
    battles are independent, the interval holds the win rate among the test battles' population
    with probability close to ``1 - miscoverage``. Two departures from the printed listing of
    Lee et al., which are misprints there: the half-width divides by the judge's skill outside
    of the root, and the shift is added. The smoothed win rate is not clipped before the
    interval is formed, only the ends are.

    Parameters
    ----------
    counts : JudgeCounts
        Whole numbers or arrays of them; see `judge_counts.count_outcomes`.
    miscoverage : float
        Tolerated share of misses, in (0, 1).

    Returns
    -------
    AdjustedWinRate
        Shares in [0, 1], of the shape of the counts.

    Raises
    ------
    ValueError
        If the counts contradict each other, there is no test battle, a class is absent from
        calibration, or the judge is no better than chance.

    References
    ----------
    W. J. Rogan and B. Gladen (1978), "Estimating Prevalence from the Results of a Screening
    Test", American Journal of Epidemiology 107(1), for the estimate.
    Z. Lang and J. Reiczigel (2014), "Confidence Limits for Prevalence of Disease Adjusted for
    Estimated Sensitivity and Specificity", Preventive Veterinary Medicine 113(1), for the
    interval.
    C. Lee, T. Zeng, J. Jeong, J. Sohn and K. Lee (2025), "How to Correctly Report LLM-as-a-Judge
    Evaluations", arXiv:2511.21140.
    """
    smoothed = smoothed_rates(counts, miscoverage=miscoverage)
    rates = judge_rates(counts)
    centre = interval_centre(smoothed, miscoverage=miscoverage)
    half_width = normal_quantile(miscoverage) * smoothed.std_error
    return AdjustedWinRate(
        np.clip(rates.win_rate, 0, 1),
        np.clip(centre - half_width, 0, 1),
        np.clip(centre + half_width, 0, 1),
        rates.win_rate,
        smoothed.std_error,
        rates.share,
        rates.specificity,
        rates.sensitivity,
    )


def interval_centre(smoothed: JudgeRates, *, miscoverage: float) -> Floats:
    """Return the middle of the interval: the smoothed win rate plus its shift.

    The shift moves the centre towards the class whose calibration is less certain, for the
    variance of the estimate depends on the win rate itself.

    Parameters
    ----------
    smoothed : JudgeRates
        From `smoothed_rates`.
    miscoverage : float
        As there.

    Returns
    -------
    ndarray
        Share of battles, not clipped.
    """
    win_rate = smoothed.win_rate
    of_lost = (1 - win_rate) * bernoulli_variance(smoothed.specificity) / smoothed.n_lost
    of_won = win_rate * bernoulli_variance(smoothed.sensitivity) / smoothed.n_won
    return win_rate + 2 * normal_quantile(miscoverage) ** 2 * (of_won - of_lost)

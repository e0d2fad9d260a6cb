"""Five estimators of one win rate side by side, each with its assumption and standard error.

Some hold when the share of wins differs between calibration and test battles while the judge
errs alike given the human outcome (label shift), some when the judge's verdict means the same
in both though the verdicts' mix differs, some only when both are samples of one population.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.winrate.counts import JudgeCounts, JudgeRates, judge_rates

Floats = NDArray[np.float64]

ESTIMATORS: tuple[str, ...] = (
    "naive",
    "calibration_only",
    "difference",
    "conditional",
    "misclassification_adjusted",
)
"""The order of the rows of `WinRatePeers`.

``naive``: the judge's win rate on test battles, unbiased only for a judge whose two errors
cancel. ``calibration_only``: the humans' on calibration battles; one population.
``difference`` (prediction-powered): naive plus the humans' minus the judge's on calibration
battles; one population. ``conditional``: the share of human wins among battles that the judge
calls won, and lost, weighed by its verdicts on test battles; verdicts mean the same in both.
``misclassification_adjusted``: as `adjusted_mean`; the judge errs alike in both.
"""


class WinRatePeers(NamedTuple):
    """Estimates and standard errors, shares of battles, shape (5, ...): rows as `ESTIMATORS`.

    The difference estimate is not clipped and can leave [0, 1]; the last row is clipped.
    """

    win_rate: Floats
    std_error: Floats


def compare_estimators(counts: JudgeCounts) -> WinRatePeers:
    """Return five estimates of the test battles' win rate.

    Standard errors are plug-in ones, from shares as observed: 0 where nothing was seen to vary,
    which is no evidence of precision with few battles. The first four take calibration battles
    for a random sample; the last is conditional on how many humans called won.

    Parameters
    ----------
    counts : JudgeCounts
        Whole numbers or arrays of them.

    Returns
    -------
    WinRatePeers
        Rows in the order of `ESTIMATORS`, then the shape of the counts.

    Raises
    ------
    ValueError
        As `judge_rates`: in particular if the judge is no better than chance.

    References
    ----------
    A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan and T. Zrnic (2023), "Prediction-
    Powered Inference", Science 382, for the difference estimator.
    A. Tenenbein (1970), "A Double Sampling Scheme for Estimating from Binomial Data with
    Misclassifications", JASA 65(331), for the conditional one.
    C. Lee et al. (2025), arXiv:2511.21140, for their comparison.
    """
    rates = judge_rates(counts)
    rows = [
        (rates.share, np.sqrt(_binomial(rates.share, rates.n_test))),
        _calibration_only(rates),
        _difference(rates),
        _conditional(rates),
        (np.clip(rates.win_rate, 0, 1), rates.std_error),
    ]
    return WinRatePeers(*(np.stack(column) for column in zip(*rows, strict=True)))


def _binomial(share: Floats, n: Floats) -> Floats:
    return share * (1 - share) / n


def _calibration_only(rates: JudgeRates) -> tuple[Floats, Floats]:
    total = rates.n_lost + rates.n_won
    share = rates.n_won / total
    return share, np.sqrt(_binomial(share, total))


def _difference(rates: JudgeRates) -> tuple[Floats, Floats]:
    total = rates.n_lost + rates.n_won
    underrated = (1 - rates.sensitivity) * rates.n_won / total  # human 1, judge 0
    overrated = (1 - rates.specificity) * rates.n_lost / total  # human 0, judge 1
    mean = underrated - overrated
    variance = (underrated + overrated - mean**2) / total
    return rates.share + mean, np.sqrt(_binomial(rates.share, rates.n_test) + variance)


def _conditional(rates: JudgeRates) -> tuple[Floats, Floats]:
    right, wrong = rates.sensitivity * rates.n_won, (1 - rates.specificity) * rates.n_lost
    missed, rejected = (1 - rates.sensitivity) * rates.n_won, rates.specificity * rates.n_lost
    if_won, if_lost = right / (right + wrong), missed / (missed + rejected)
    win_rate = rates.share * if_won + (1 - rates.share) * if_lost
    variance = (
        (if_won - if_lost) ** 2 * _binomial(rates.share, rates.n_test)
        + rates.share**2 * _binomial(if_won, right + wrong)
        + (1 - rates.share) ** 2 * _binomial(if_lost, missed + rejected)
    )
    return win_rate, np.sqrt(variance)

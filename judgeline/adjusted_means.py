"""Corrected mean outcomes: a win rate in which ties count half, whether or not the judge ties.

Battles that people would call a tie cannot be left out where nobody voted, so that an estimate
for battles without ties does not apply to them; and a judge that hardly ever ties cannot tell
them from the others, so that its confusion matrix of three outcomes cannot be inverted. What
its verdicts do tell is its mean outcome. On test battles that is a mixture of its means over
battles that people call won, tied and lost, and gives the win rate once the share of ties is
known. That share is taken from calibration. It enters only as far as the judge's mean over ties
is not midway between its means over wins and losses: midway, no share of ties can be wrong.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.adjusted_shares import OUTCOMES
from judgeline.judge_counts import normal_quantile

Floats = NDArray[np.float64]


class AdjustedMean(NamedTuple):
    """Win rates with ties half, in shares of battles in [0, 1], of the counts' leading shape.

    `win_rate` is the corrected mean outcome, `lower` and `upper` the ends of its interval,
    `std_error` what it is made of, `naive` the judge's own mean outcome on the test battles.
    """

    win_rate: Floats
    lower: Floats
    upper: Floats
    std_error: Floats
    naive: Floats


def adjusted_mean(
    test: ArrayLike, calibration: ArrayLike, *, miscoverage: float = 0.05
) -> AdjustedMean:
    """Return the mean outcome that humans would give, corrected in strata and aggregated.

    Assumes that within a stratum the judge errs alike in test and calibration battles of one
    human outcome, and that humans tie as often in both. Strata weigh by their test battles,
    and the weights count as known. The interval is by the delta method around shares drawn
    towards equality, by one battle for every outcome, and its centre is shifted towards the
    class whose calibration is less certain: without ties both are those of
    `stratified_win_rate`, and so is the estimate.

    Parameters
    ----------
    test : array_like of int, shape (..., s, 3)
        Test battles of s strata by the judge's outcome, in the order of `OUTCOMES`.
    calibration : array_like of int, shape (..., s, 3, 3)
        Calibration battles, one row per judge's outcome, one column per human outcome.
    miscoverage : float
        Tolerated share of misses, in (0, 1).

    Returns
    -------
    AdjustedMean
        Of the leading shape. A stratum without test battles has no weight.

    Raises
    ------
    ValueError
        If shapes differ, a count is no whole number, or `can_be_corrected` is not so everywhere.

    References
    ----------
    W. J. Rogan and B. Gladen (1978), "Estimating Prevalence from the Results of a Screening
    Test", American Journal of Epidemiology 107(1), of which this is the case of three outcomes
    with one share known; B. A. Barron (1977), Biometrics 33(2), for three unknown shares.
    Z. Lang and J. Reiczigel (2014), Preventive Veterinary Medicine 113(1), for the interval.
    """
    quantile = normal_quantile(miscoverage)
    said, known = _checked(test, calibration)
    if not np.all(_with_skill(said, known)):
        raise ValueError(
            "a stratum with test battles has no vote that is won, or none that is lost, or the "
            "judge's mean outcome is no higher where humans say won than where they say lost: no "
            "better than chance, and no correction can be made; label more battles or withhold "
            "this judge"
        )
    n_test = said.sum(axis=-1)
    weight = n_test / n_test.sum(axis=-1, keepdims=True)
    means, smoothed = _means(said, known), _means(said, known, quantile=quantile, extra=1)
    std_error = np.sqrt((weight**2 * smoothed.variance).sum(axis=-1))
    centre = (weight * (smoothed.win_rate + 2 * quantile**2 * smoothed.shift)).sum(axis=-1)
    estimate, lower, upper = (
        np.clip(values, 0, 1)
        for values in (
            (weight * means.win_rate).sum(axis=-1),
            centre - quantile * std_error,
            centre + quantile * std_error,
        )
    )
    return AdjustedMean(estimate, lower, upper, std_error, (weight * means.judged).sum(axis=-1))


def can_be_corrected(test: ArrayLike, calibration: ArrayLike) -> NDArray[np.bool_]:
    """Return where `adjusted_mean` has a value.

    Parameters
    ----------
    test, calibration : array_like of int, shapes (..., s, 3) and (..., s, 3, 3)
        As there.

    Returns
    -------
    ndarray of bool
        Of the leading shape: True where there are test battles, and every stratum that has some
        has votes won and lost, among which the judge's mean outcome differs in the right
        direction, as observed and as smoothed by the interval.

    Raises
    ------
    ValueError
        If shapes differ or a count is no whole number.
    """
    return _with_skill(*_checked(test, calibration))


class _Means(NamedTuple):
    """By stratum: what the counts say, and how surely, in shares of battles."""

    judged: Floats
    skill: Floats
    win_rate: Floats
    variance: Floats
    shift: Floats


def _means(said: Floats, known: Floats, *, quantile: float = 0.0, extra: int = 0) -> _Means:
    """Return the strata's corrected means, each smoothed by wins and losses in equal parts."""
    judged, of_test, n_test = _moments(said, quantile**2 / 2)
    mean, of_class, n_class = _moments(np.swapaxes(known, -1, -2), float(extra))
    won, tied, lost = np.moveaxis(mean, -1, 0)
    skill = won - lost
    apart = np.where(skill > 0, skill, 1.0)  # without skill there is no value, see _with_skill
    share_tied, of_share = _share_tied(known, extra)
    midway = np.where(share_tied > 0, 0.5 - (tied - lost) / apart, 0.0)
    win_rate = (judged - lost) / apart + share_tied * midway
    share = np.stack([win_rate - share_tied / 2, share_tied, 1 - win_rate - share_tied / 2], -1)
    of_class = of_class / n_class
    variance = (of_test / n_test + (share**2 * of_class).sum(axis=-1)) / apart**2
    shift = share[..., 0] * of_class[..., 0] - share[..., 2] * of_class[..., 2]
    return _Means(judged, skill, win_rate, variance + midway**2 * of_share, shift)


def _moments(counts: Floats, extra: float) -> tuple[Floats, Floats, Floats]:
    """Return mean and variance of outcomes counted on the last axis, and how many there are."""
    more = counts + extra * np.array([1.0, 0.0, 1.0])
    n = np.maximum(more.sum(axis=-1), 1.0)  # of none both are 0, and nothing is made of them
    mean = more @ np.array(OUTCOMES) / n
    return mean, more @ np.square(OUTCOMES) / n - mean**2, n


def _share_tied(known: Floats, extra: int) -> tuple[Floats, Floats]:
    """Return the share of ties by stratum and its variance: 0 where no stratum has a tie."""
    by_class = known.sum(axis=-2)
    happens = by_class[..., 1].sum(axis=-1, keepdims=True) > 0
    n = np.maximum(by_class.sum(axis=-1) + len(OUTCOMES) * extra, 1.0)
    share = np.where(happens, (by_class[..., 1] + extra) / n, 0.0)
    return share, share * (1 - share) / n


def _with_skill(said: Floats, known: Floats) -> NDArray[np.bool_]:
    used = said.sum(axis=-1) > 0
    votes = known.sum(axis=-2)
    present = (votes[..., 0] > 0) & (votes[..., 2] > 0)
    skilled = (_means(said, known).skill > 0) & (_means(said, known, extra=1).skill > 0)
    good: NDArray[np.bool_] = used.any(axis=-1) & (~used | (present & skilled)).all(axis=-1)
    return good


def _checked(test: ArrayLike, calibration: ArrayLike) -> tuple[Floats, Floats]:
    said, known = np.asarray(test, dtype=float), np.asarray(calibration, dtype=float)
    if said.ndim < 2 or said.shape[-1] != 3 or known.shape != (*said.shape, 3):
        raise ValueError(
            "test and calibration must have shapes (..., s, 3) and (..., s, 3, 3), got "
            f"{said.shape} and {known.shape}"
        )
    for name, counts in (("test", said), ("calibration", known)):
        wrong = ~(np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts)))
        if wrong.any():
            raise ValueError(f"{name} must hold whole numbers from 0, got {counts[wrong][0]:g}")
    return said, known

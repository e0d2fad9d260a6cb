"""The published correction: win rates by the judge's mean outcome, binary, with ties, in strata.

On test battles the judge's mean outcome is a mixture of its means over battles that humans call
won, tied and lost. The mixture gives the win rate once the share of ties is known, which is
taken from calibration. A judge that never ties can be corrected so; its confusion matrix of
three outcomes cannot be inverted. Without ties the correction is the binary one of Rogan and
Gladen with the interval of Lang and Reiczigel, as Lee et al. use it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.winrate.adjusted_shares import OUTCOMES
from judgeline.winrate.counts import NoWinRateError, normal_quantile

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
    class whose calibration is less certain. Two departures from the printed listing of Lee et
    al., which are misprints there: the half-width divides by the judge's skill outside of the
    root, and the shift is added. Only the ends of the interval are clipped.

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
    NoWinRateError
        ``all-ties``, ``class-absent`` or ``chance``, if a stratum with test battles cannot be
        corrected, as observed or as smoothed by the interval; or if there is no test battle.
    ValueError
        If shapes differ, a count is no whole number or `miscoverage` is out of range.

    References
    ----------
    W. J. Rogan and B. Gladen (1978), "Estimating Prevalence from the Results of a Screening
    Test", American Journal of Epidemiology 107(1), of which this is the case of three outcomes
    with one share known; B. A. Barron (1977), Biometrics 33(2), for three unknown shares.
    Z. Lang and J. Reiczigel (2014), Preventive Veterinary Medicine 113(1), for the interval.
    C. Lee, T. Zeng, J. Jeong, J. Sohn and K. Lee (2025), "How to Correctly Report LLM-as-a-Judge
    Evaluations", arXiv:2511.21140.
    """
    quantile = normal_quantile(miscoverage)
    said, known = _checked(test, calibration)
    _require_correctable(said, known)
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


def _require_correctable(said: Floats, known: Floats) -> None:
    used = said.sum(axis=-1) > 0
    if not used.any(axis=-1).all():
        raise NoWinRateError("all-ties", "there is no test battle (ties left out); judge more")
    won, _, lost = np.moveaxis(known.sum(axis=-2), -1, 0)
    _require(~used | (won + lost > 0), "all-ties", "no vote without a tie; label more battles")
    for name, votes in (("won", won), ("lost", lost)):
        _require(~used | (votes > 0), "class-absent", f"no vote that is {name}; label some there")
    for extra, when in ((0, ""), (1, " after smoothing by one battle an outcome")):
        _require(
            ~used | (_means(said, known, extra=extra).skill > 0),
            "chance",
            "a judge whose mean outcome is no higher where humans say won than where they say "
            f"lost{when}: no better than chance; label more battles or withhold this judge",
        )


def _require(good: NDArray[np.bool_], status: str, found: str) -> None:
    if not good.all():
        stratum = int(np.argwhere(~good)[0, -1])
        raise NoWinRateError(status, f"stratum {stratum} of {good.shape[-1]} has {found}")


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

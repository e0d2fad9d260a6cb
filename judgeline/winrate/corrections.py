"""The published corrections of a judge's win rate, from battles that humans labelled.

They assume label shift: the judge errs alike in test and calibration battles of one human
outcome. `adjusted_mean` corrects the judge's mean outcome, which is a mixture of its means over
battles that humans call won, tied and lost; a judge that never ties can be corrected so.
`adjusted_shares` inverts the judge's confusion matrix of three outcomes.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, require
from judgeline.winrate.outcomes import OUTCOMES, NoWinRateError, normal_quantile

_NAMES = ("win", "tie", "loss")


class AdjustedMean(NamedTuple):
    """Win rates with ties half, in shares of battles in [0, 1], of the counts' leading shape.

    `naive` is the judge's own mean outcome on the test battles. `centre` is the middle of the
    interval before it is clipped, of half-width quantile x `std_error` (`require_possible`).
    """

    win_rate: Floats
    lower: Floats
    upper: Floats
    std_error: Floats
    naive: Floats
    centre: Floats


def require_possible(centre: float, half_width: float) -> None:
    """Raise `NoWinRateError` ``refuted`` if an interval holds no share before it is clipped.

    Such an interval has left [0, 1] altogether: no win rate explains how often the judge calls
    the test battles won, if it errs there as in calibration. This refutes that assumption; where
    it is true, the interval leaves [0, 1] no oftener than it misses. An interval that only
    reaches beyond 0 or 1, as a normal one around a rate near 0 does, holds possible shares and
    refutes nothing.
    """
    lower, upper = centre - half_width, centre + half_width
    if upper < 0 or lower > 1:
        raise NoWinRateError(
            "refuted",
            f"the interval before clipping, {lower:.2f} to {upper:.2f}, holds no share at all: the "
            "judge does not err here as where labels calibrate it",
        )


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
        Test battles of s strata by the judge's outcome, in the order of `OUTCOMES`; a stratum
        without any has no weight.
    calibration : array_like of int, shape (..., s, 3, 3)
        Calibration battles, one row per judge's outcome, one column per human outcome.
    miscoverage : float
        Tolerated share of misses, in (0, 1).

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
    with one share known; Z. Lang and J. Reiczigel (2014), Preventive Veterinary Medicine 113(1),
    for the interval; C. Lee et al. (2025), "How to Correctly Report LLM-as-a-Judge Evaluations",
    arXiv:2511.21140.
    """
    quantile = normal_quantile(miscoverage)
    judged, known = _whole(test, "test"), _whole(calibration, "calibration")
    match = judged.ndim >= 2 and judged.shape[-1] == 3 and known.shape == (*judged.shape, 3)
    shapes = judged.shape, known.shape
    require(match, "the pair of shapes", shapes, "(..., s, 3) for test, (..., s, 3, 3) beside it")
    _require_correctable(judged, known)
    n_test = judged.sum(axis=-1)
    weight = n_test / n_test.sum(axis=-1, keepdims=True)
    means, smoothed = _means(judged, known), _means(judged, known, quantile=quantile, extra=1)
    std_error = np.sqrt((weight**2 * smoothed.variance).sum(axis=-1))
    centre = (weight * (smoothed.win_rate + 2 * quantile**2 * smoothed.shift)).sum(axis=-1)
    ends = (centre - quantile * std_error, centre + quantile * std_error)
    estimate = (weight * means.win_rate).sum(axis=-1)
    naive = (weight * means.judged).sum(axis=-1)
    estimate, lower, upper = (np.clip(values, 0, 1) for values in (estimate, *ends))
    return AdjustedMean(estimate, lower, upper, std_error, naive, centre)


class _Means(NamedTuple):
    """Estimates by stratum and their certainty, in shares of battles."""

    judged: Floats
    skill: Floats
    win_rate: Floats
    variance: Floats
    shift: Floats


def _means(judged: Floats, known: Floats, *, quantile: float = 0.0, extra: int = 0) -> _Means:
    """Return the strata's corrected means, each smoothed by wins and losses in equal parts."""
    test_mean, test_spread, n_test = _moments(judged, quantile**2 / 2)
    class_mean, class_spread, n_class = _moments(np.swapaxes(known, -1, -2), float(extra))
    won, tied, lost = np.moveaxis(class_mean, -1, 0)
    skill = won - lost
    apart = np.where(skill > 0, skill, 1.0)  # no skill is refused before its value is used
    by_class = known.sum(axis=-2)
    has_ties = by_class[..., 1].sum(axis=-1, keepdims=True) > 0  # in any stratum
    n_known = np.maximum(by_class.sum(axis=-1) + len(OUTCOMES) * extra, 1.0)
    share_tied = np.where(has_ties, (by_class[..., 1] + extra) / n_known, 0.0)
    tied_variance = share_tied * (1 - share_tied) / n_known
    midway = np.where(share_tied > 0, 0.5 - (tied - lost) / apart, 0.0)
    win_rate = (test_mean - lost) / apart + share_tied * midway
    share = np.stack([win_rate - share_tied / 2, share_tied, 1 - win_rate - share_tied / 2], -1)
    noise = class_spread / n_class
    variance = (test_spread / n_test + (share**2 * noise).sum(axis=-1)) / apart**2
    shift = share[..., 0] * noise[..., 0] - share[..., 2] * noise[..., 2]
    return _Means(test_mean, skill, win_rate, variance + midway**2 * tied_variance, shift)


def _moments(counts: Floats, extra: float) -> tuple[Floats, Floats, Floats]:
    """Return mean and variance of outcomes counted on the last axis, and how many there are."""
    more = counts + extra * np.array([1.0, 0.0, 1.0])
    n = np.maximum(more.sum(axis=-1), 1.0)  # of none both are 0, and nothing is made of them
    mean = more @ np.array(OUTCOMES) / n
    return mean, more @ np.square(OUTCOMES) / n - mean**2, n


def _require_correctable(judged: Floats, known: Floats) -> None:
    used = judged.sum(axis=-1) > 0
    if not used.any(axis=-1).all():
        raise NoWinRateError("all-ties", "there is no test battle (ties left out); judge more")
    won, _, lost = np.moveaxis(known.sum(axis=-2), -1, 0)
    _require(~used | (won + lost > 0), "all-ties", "no vote without a tie; label more battles")
    for name, votes in (("won", won), ("lost", lost)):
        _require(~used | (votes > 0), "class-absent", f"no vote that is {name}; label some there")
    for extra, when in ((0, ""), (1, " after smoothing by one battle an outcome")):
        _require(
            ~used | (_means(judged, known, extra=extra).skill > 0),
            "chance",
            "a judge whose mean outcome is no higher where humans say won than where they say "
            f"lost{when}: no better than chance; label more battles or withhold this judge",
        )


def _require(good: NDArray[np.bool_], status: str, fault: str) -> None:
    if not good.all():
        stratum = int(np.argwhere(~good)[0, -1])
        raise NoWinRateError(status, f"stratum {stratum} of {good.shape[-1]} has {fault}")


def _whole(values: ArrayLike, name: str) -> Floats:
    counts = np.asarray(values, dtype=float)
    whole = np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts))
    require(whole, name, counts, "whole numbers from 0")
    return counts


class AdjustedShares(NamedTuple):
    """Corrected shares of battles, in the order of `OUTCOMES`, and the win rate they make.

    `shares`, shape (3,), sum to 1 and are not clipped: one below 0 says that the judge's errors,
    as calibrated, cannot explain the test battles. `shares_lower` and `shares_upper` lie in
    [0, 1], as do `win_rate` (wins plus half of the ties), `lower` and `upper`. `std_error` is
    the win rate's. `naive` is the judge's own win rate on the test battles. `centre` is the
    middle of the win rate's interval before it is clipped (`require_possible`).
    """

    win_rate: float
    lower: float
    upper: float
    std_error: float
    naive: float
    shares: Floats
    shares_lower: Floats
    shares_upper: Floats
    centre: float


def adjusted_shares(
    test: ArrayLike, calibration: ArrayLike, *, miscoverage: float = 0.05
) -> AdjustedShares:
    """Return the shares that humans would give, with delta-method intervals.

    The estimates come from the shares as observed. Their intervals are centred on and computed
    from shares drawn towards equality, by one battle in total per column of the confusion matrix
    and by the squared normal quantile in the test battles: without it a class in which the
    judge was never wrong would count as known. This smoothing is our choice; its coverage is
    tested by simulation. With few calibrated ties the judge's matrix is close to singular and
    the intervals, rightly, very wide.

    Parameters
    ----------
    test : array_like of int, shape (3,)
        Test battles by the judge's outcome, in the order of `OUTCOMES`.
    calibration : array_like of int, shape (3, 3)
        Calibration battles, one row per judge's outcome, one column per human outcome.
    miscoverage : float
        Tolerated share of misses of each interval, in (0, 1).

    Raises
    ------
    NoWinRateError
        ``no-ties``, ``all-ties`` or ``class-absent``, if a human outcome is absent from
        calibration; ``chance``, if the judge gives some outcome no more often to battles that
        humans give it to than to others, before or after smoothing.
    ValueError
        If the shapes differ, a count is no whole number or there is no test battle.

    References
    ----------
    B. A. Barron (1977), "The Effects of Misclassification on the Estimation of Relative Risk",
    Biometrics 33(2), for the correction by the matrix; with two outcomes it is Rogan and
    Gladen's (1978).
    """
    quantile = normal_quantile(miscoverage)
    judged, table = _whole(test, "test"), _whole(calibration, "calibration")
    for name, counts, shape in (("test", judged, (3,)), ("calibration", table, (3, 3))):
        require(counts.shape == shape, f"the shape of {name}", counts.shape, str(shape))
    _require_present(judged, table)
    shares = _invert(table / table.sum(axis=0), "") @ (judged / judged.sum())
    contrasts = np.vstack([OUTCOMES, np.eye(3)])
    centre, std_error = _linear_errors(
        judged + quantile**2 / len(OUTCOMES), table + 1 / len(OUTCOMES), contrasts
    )
    lower = np.clip(centre - quantile * std_error, 0, 1)
    upper = np.clip(centre + quantile * std_error, 0, 1)
    win_rate = float(np.clip(shares @ OUTCOMES, 0, 1))
    naive = float(judged @ OUTCOMES / judged.sum())
    ends = (float(lower[0]), float(upper[0]), float(std_error[0]))
    return AdjustedShares(win_rate, *ends, naive, shares, lower[1:], upper[1:], float(centre[0]))


def _linear_errors(test: Floats, table: Floats, contrasts: Floats) -> tuple[Floats, Floats]:
    """Return contrasts of the corrected shares and their standard errors, shape (c,) each."""
    per_class = table.sum(axis=0)
    confusion, judged = table / per_class, test / test.sum()
    inverse = _invert(confusion, " after smoothing by one battle a class")
    shares, gradient = inverse @ judged, contrasts @ inverse
    sampling = (gradient**2 @ judged - (gradient @ judged) ** 2) / test.sum()
    calibration = gradient**2 @ confusion - (gradient @ confusion) ** 2
    return contrasts @ shares, np.sqrt(sampling + calibration @ (shares**2 / per_class))


def _invert(confusion: Floats, when: str) -> Floats:
    """Return the inverse of a confusion matrix, columns summing to 1, of a judge with skill."""
    others = np.where(np.eye(3, dtype=bool), -np.inf, confusion).max(axis=1)
    blind = np.flatnonzero(np.diag(confusion) <= others)
    if blind.size:
        at = int(blind[0])
        raise NoWinRateError(
            "chance",
            f"the judge says {_NAMES[at]} to {confusion[at, at]:.4g} of the battles that humans "
            f"call so and to {others[at]:.4g} of others{when}: no better than chance, and no "
            "correction can be made; label more battles or withhold this judge",
        )
    # It can be inverted: with columns that sum to 1 and each row's largest entry on the diagonal,
    # the determinant of the 2 x 2 matrix of differences to the last column is positive.
    return np.asarray(np.linalg.inv(confusion).astype(np.float64))


def _require_present(test: Floats, table: Floats) -> None:
    require(test.any(), "the number of test battles", 0, "some that the judge alone called")
    votes = table.sum(axis=0)
    if not votes[1]:
        raise NoWinRateError(
            "no-ties", "calibration has no battle that humans call a tie; see the mean-outcome row"
        )
    if not votes[0] and not votes[2]:
        raise NoWinRateError("all-ties", "no vote without a tie; label more battles")
    if not votes.all():
        absent = _NAMES[int(np.flatnonzero(votes == 0)[0])]
        raise NoWinRateError(
            "class-absent", f"calibration has no battle that humans call a {absent}; label some"
        )

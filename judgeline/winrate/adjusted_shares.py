"""Corrected shares of wins, ties and losses, by inverting the judge's confusion matrix.

Of the battles that humans call a tie, a judge calls some won and some lost; what it calls a
tie is a mixture of all three. If it errs alike in test and calibration battles of the same
human outcome, its shares on the test battles are the confusion matrix times the human shares.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.winrate.counts import NoWinRateError, normal_quantile

Floats = NDArray[np.float64]

OUTCOMES: tuple[float, ...] = (1.0, 0.5, 0.0)
"""The order of every axis over outcomes here: win, tie, loss."""


class TernaryCounts(NamedTuple):
    """Battles by what was said of them, in the order of `OUTCOMES`.

    `test`, shape (3,): test battles by the judge's outcome. `calibration`, shape (3, 3): those
    with a human outcome, one row per judge's outcome, one column per human outcome.
    """

    test: ArrayLike
    calibration: ArrayLike


class AdjustedShares(NamedTuple):
    """Corrected shares of battles, in the order of `OUTCOMES`, and the win rate they make.

    `shares`, shape (3,), sum to 1 and are not clipped: one below 0 says that the judge's errors,
    as calibrated, cannot explain the test battles. `shares_lower` and `shares_upper` lie in
    [0, 1], as do `win_rate` (wins plus half of the ties), `lower` and `upper`. `std_error` is
    the win rate's. `naive` is the judge's own win rate on the test battles.
    """

    win_rate: float
    lower: float
    upper: float
    std_error: float
    naive: float
    shares: Floats
    shares_lower: Floats
    shares_upper: Floats


def adjusted_shares(counts: TernaryCounts, *, miscoverage: float = 0.05) -> AdjustedShares:
    """Return the shares that humans would give, with delta-method intervals.

    The estimates come from the shares as observed. Their intervals are centred on and computed
    from shares drawn towards equality, by one battle in total per column of the confusion matrix
    and by the squared normal quantile in the test battles: without it a class in which the
    judge was never wrong would count as known. This smoothing is our choice; its coverage is
    tested by simulation. With few calibrated ties the judge's matrix is close to singular and
    the intervals, rightly, very wide.

    Parameters
    ----------
    counts : TernaryCounts
        Whole numbers.
    miscoverage : float
        Tolerated share of misses of each interval, in (0, 1).

    Returns
    -------
    AdjustedShares
        Shares of battles.

    Raises
    ------
    NoWinRateError
        ``no-ties``, ``all-ties`` or ``class-absent``, if a human outcome is absent from
        calibration; ``chance``, if the judge gives some outcome no more often to battles that
        humans give it to than to others, before or after smoothing.
    ValueError
        If the shapes are not (3,) and (3, 3), a count is no whole number or there is no test
        battle.

    References
    ----------
    B. A. Barron (1977), "The Effects of Misclassification on the Estimation of Relative Risk",
    Biometrics 33(2), for the correction by the matrix; with two outcomes it is Rogan and
    Gladen's (1978).
    """
    quantile = normal_quantile(miscoverage)
    test = _whole(counts.test, (3,), "test")
    table = _whole(counts.calibration, (3, 3), "calibration")
    _require_present(test, table)
    shares = _invert(table / table.sum(axis=0), "") @ (test / test.sum())
    contrasts = np.vstack([OUTCOMES, np.eye(3)])
    centre, std_error = _linear_errors(
        test + quantile**2 / len(OUTCOMES), table + 1 / len(OUTCOMES), contrasts
    )
    lower = np.clip(centre - quantile * std_error, 0, 1)
    upper = np.clip(centre + quantile * std_error, 0, 1)
    win_rate = float(np.clip(shares @ OUTCOMES, 0, 1))
    naive = float(test @ OUTCOMES / test.sum())
    return AdjustedShares(
        win_rate,
        float(lower[0]),
        float(upper[0]),
        float(std_error[0]),
        naive,
        shares,
        lower[1:],
        upper[1:],
    )


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
    inverse: Floats = np.linalg.inv(confusion).astype(np.float64)
    return inverse


_NAMES = ("win", "tie", "loss")


def _whole(values: ArrayLike, shape: tuple[int, ...], name: str) -> Floats:
    counts = np.asarray(values, dtype=float)
    if counts.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {counts.shape}")
    if not (np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts))).all():
        raise ValueError(f"{name} must hold whole numbers from 0, got {counts.tolist()}")
    return counts


def _require_present(test: Floats, table: Floats) -> None:
    if not test.sum():
        raise ValueError("there is no test battle; a share needs battles the judge alone called")
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

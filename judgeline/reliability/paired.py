"""Changes between two judgements of the same battles: estimates, standard errors and tests.

The battles and their votes are the same both times, so that an error of the change is that of
paired differences; the errors of the two estimates, taken apart, would be far too large. Without
a change the two judgements of a battle are exchangeable, and a difference is as likely as its
opposite. All tests here rest on that, and on calls that are independent of each other.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, stdtr

LEAST_BATTLES = 20
"""Battles judged both times, from which on a change is estimated."""

_ROUNDING = 1e-9  # differences this much alike, relative to their size, are equal
_DECIMALS = 9  # of distances, in rubric points

Floats = NDArray[np.float64]


class PairedChange(NamedTuple):
    """A statistic at the baseline and now, and its change.

    `baseline`, `now`, `change` and `std_error`, that of the change, are in the unit of the
    statistic; `z` is the change in standard errors; `p_value` the probability of one at least as
    large without a change. What cannot be had is NaN, and `note` says why.
    """

    baseline: float
    now: float
    change: float
    std_error: float
    z: float
    p_value: float
    n_battles: int
    note: str


def refused(note: str, n_battles: int, baseline: float = math.nan) -> PairedChange:
    """Return a change that cannot be had, with the reason."""
    return PairedChange(baseline, *(math.nan,) * 5, n_battles, note)


def mean_change(before: ArrayLike, after: ArrayLike, *, only_rises: bool = False) -> PairedChange:
    """Return the change of a mean, tested by Student's t on the differences.

    Parameters
    ----------
    before, after : array_like, shape (n,)
        A quantity of each battle at the baseline and now; battles with NaN are left out.
    only_rises : bool
        Whether only a rise counts.

    Returns
    -------
    PairedChange
        In the unit of the quantity. Equal differences have no standard error: where all are
        zero there is no p-value, else it is that of their signs.

    Raises
    ------
    ValueError
        If the lengths differ.

    References
    ----------
    B. Efron (1969), "Student's t-test under symmetry conditions", JASA 64(328): differences
    that are symmetric about zero, however distributed, keep the tails of t from growing.
    """
    first, second = _paired(before, after)
    if first.size < LEAST_BATTLES:
        return too_few(first.size)
    centre, difference = (float(first.mean()), float(second.mean())), second - first
    if np.ptp(difference) <= _ROUNDING * np.abs(difference).max():
        return _alike(*centre, difference, only_rises)
    change = float(difference.mean())
    std_error = float(difference.std(ddof=1)) / math.sqrt(first.size)
    return _tested(*centre, change, std_error, first.size, only_rises)


def share_change(before: ArrayLike, after: ArrayLike) -> PairedChange:
    """Return the change of a share, tested exactly on the battles that changed sides.

    Parameters
    ----------
    before, after : array_like, shape (n,)
        1 for a battle that counts, 0 for one that does not; those with NaN are left out.

    Returns
    -------
    PairedChange
        Shares; `p_value` is McNemar's in its exact form, doubled for both directions.

    Raises
    ------
    ValueError
        If the lengths differ, or a value is none of 1, 0 and NaN.

    References
    ----------
    Q. McNemar (1947), Psychometrika 12(2).
    """
    first, second = _paired(before, after)
    values = np.concatenate([first, second])
    if not np.isin(values, (0, 1)).all():
        odd = float(values[~np.isin(values, (0, 1))][0])
        raise ValueError(f"a share is of battles that count, 1, or do not, 0; got {odd}")
    told = mean_change(first, second)
    if math.isnan(told.z):
        return told
    return told._replace(p_value=_sign_test(second - first, only_rises=False))


def repeat_change(now: ArrayLike, runs: ArrayLike) -> PairedChange:
    """Return how much further the judge is from its earlier runs than those from each other.

    Without a change the runs and now are exchangeable, battle by battle, so that the mean
    distance from now to the runs is expected to be the mean distance between two of them. Only
    a larger one counts. Its differences are skewed to the right, which makes t too small rather
    than too large.

    Parameters
    ----------
    now : array_like, shape (n,)
        Score differences now, in rubric points; battles with NaN anywhere are left out.
    runs : array_like, shape (n, k)
        Those of k runs of the time of the baseline, the baseline's own included.

    Returns
    -------
    PairedChange
        Rubric points between two judgements of one battle: between runs, and to now.

    Raises
    ------
    ValueError
        If there are fewer than two runs, or the numbers of battles differ.
    """
    latest, earlier = np.asarray(now, dtype=float), np.asarray(runs, dtype=float)
    if earlier.ndim != 2 or earlier.shape[1] < 2 or latest.shape != earlier.shape[:1]:
        raise ValueError(
            f"runs must have shape (n, k) with k of 2 or more and n as now has, got "
            f"{earlier.shape} for now {latest.shape}"
        )
    first, second = np.triu_indices(earlier.shape[1], 1)
    between = np.abs(earlier[:, first] - earlier[:, second]).mean(axis=1)
    return mean_change(between, np.abs(latest[:, None] - earlier).mean(axis=1), only_rises=True)


def call_change(
    ab_before: ArrayLike, ba_before: ArrayLike, ab_after: ArrayLike, ba_after: ArrayLike
) -> PairedChange:
    """Return how much further two calls of a battle are apart over time than at one time.

    Each battle was called in both orders, at the baseline and now. Its calls in different orders
    are compared: of one time, and of different times. Without a change, exchanging the battle's
    two calls in one order exchanges the two distances, so that their difference is symmetric
    about zero. It is an energy distance and not negative in expectation, so that only a larger
    one counts. What is the same in all calls, such as a lead of the first position, cancels.

    Parameters
    ----------
    ab_before, ba_before, ab_after, ba_after : array_like, shape (n,)
        Score of A minus B with A, respectively B, shown first, in rubric points; battles with
        NaN anywhere are left out.

    Returns
    -------
    PairedChange
        Rubric points between two calls: of one time as the baseline, of different times as now.

    Raises
    ------
    ValueError
        If the lengths differ.

    References
    ----------
    G. J. Szekely and M. L. Rizzo (2013), "Energy statistics: A class of statistics based on
    distances", Journal of Statistical Planning and Inference 143(8).
    """
    known_in_all(ab_before, ba_before, ab_after, ba_after)
    first, turned, latest, latest_turned = (
        np.asarray(column, dtype=float) for column in (ab_before, ba_before, ab_after, ba_after)
    )
    within = np.abs(first - turned) + np.abs(latest - latest_turned)
    across = np.abs(first - latest_turned) + np.abs(latest - turned)
    sums = np.round([within, across], _DECIMALS) / 2  # sums of the same distances are equal
    return mean_change(*sums, only_rises=True)


def _paired(before: ArrayLike, after: ArrayLike) -> tuple[Floats, Floats]:
    kept = known_in_all(before, after)
    return np.asarray(before, dtype=float)[kept], np.asarray(after, dtype=float)[kept]


def known_in_all(*columns: ArrayLike) -> NDArray[np.bool_]:
    """Return the battles that are finite in every column; the columns must be of one length."""
    arrays = [np.asarray(column, dtype=float) for column in columns]
    if any(array.ndim != 1 or array.shape != arrays[0].shape for array in arrays):
        raise ValueError(f"columns of battles differ: {[array.shape for array in arrays]}")
    kept: NDArray[np.bool_] = np.isfinite(np.stack(arrays)).all(axis=0)
    return kept


def _tested(
    baseline: float, now: float, change: float, std_error: float, n: int, only_rises: bool
) -> PairedChange:
    z = change / std_error
    tail = float(stdtr(n - 1, -z if only_rises else -abs(z)))
    p_value = tail if only_rises else min(1.0, 2 * tail)
    return PairedChange(baseline, now, change, std_error, z, p_value, n, "")


def _alike(baseline: float, now: float, difference: Floats, only_rises: bool) -> PairedChange:
    """Return the change where all differences are equal, so that they have no spread."""
    n = difference.size
    if not difference.any():
        return PairedChange(
            baseline, now, 0.0, 0.0, math.nan, math.nan, n, "nothing differs from the baseline"
        )
    told = "every battle changed by the same: a change without spread has no standard error"
    change, p_value = now - baseline, _sign_test(difference, only_rises)
    return PairedChange(baseline, now, change, 0.0, math.nan, p_value, n, told)


def _sign_test(difference: Floats, only_rises: bool) -> float:
    n_up, n_down = int((difference > 0).sum()), int((difference < 0).sum())
    tail = float(bdtrc((n_up if only_rises else max(n_up, n_down)) - 1, n_up + n_down, 0.5))
    return tail if only_rises else min(1.0, 2 * tail)


def too_few(n_battles: int, what: str = "") -> PairedChange:
    """Return a change that is refused since fewer than `LEAST_BATTLES` can tell of it."""
    return refused(
        f"{n_battles} battles {what}were judged both times; {LEAST_BATTLES} are needed", n_battles
    )

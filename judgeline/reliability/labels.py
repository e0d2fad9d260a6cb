"""A judge held to gold labels: agreement, kappa, correlation of marks, position bias."""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import require


class Interval(NamedTuple):
    """An estimate with its interval; NaN where it is not defined."""

    value: float
    lower: float
    upper: float


NOTHING = Interval(math.nan, math.nan, math.nan)


def share_of(n: int, n_all: int, *, miscoverage: float = 0.1) -> Interval:
    """Return a share with Wilson's interval (1927, JASA 22(158)); NaN of nothing."""
    require(0 < miscoverage < 1, "miscoverage", miscoverage, "strictly between 0 and 1")
    require(0 <= n <= n_all, "n", n, f"from 0 to {n_all}")
    if not n_all:
        return NOTHING
    square = NormalDist().inv_cdf(1 - miscoverage / 2) ** 2
    share, spare = n / n_all, square / n_all
    centre = (share + spare / 2) / (1 + spare)
    reach = math.sqrt(spare * (share * (1 - share) + spare / 4)) / (1 + spare)
    return Interval(share, centre - reach, centre + reach)


def kappa_of_labels(label: ArrayLike, verdict: ArrayLike, *, miscoverage: float = 0.1) -> Interval:
    """Return Cohen's kappa of two raters' classes, with its interval of large samples.

    Parameters
    ----------
    label, verdict : array_like, shape (n,)
        Classes, of any kind that can be compared.
    miscoverage : float
        Share of misses that the interval may have, in (0, 1).

    Returns
    -------
    Interval
        1 is perfect agreement, 0 that of chance; NaN where one class is all that either has.

    References
    ----------
    J. L. Fleiss, J. Cohen and B. S. Everitt (1969), Psychological Bulletin 72(5), equation 13.
    """
    first, second = np.asarray(label), np.asarray(verdict)
    require(first.shape == second.shape and first.size > 0, "n", first.size, "equal, from 1 on")
    names, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    table = np.zeros((names.size, names.size))
    np.add.at(table, (codes[: first.size], codes[first.size :]), 1 / first.size)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    agreed, chance = float(np.trace(table)), float(rows @ columns)
    if chance >= 1:
        return NOTHING
    kappa = (agreed - chance) / (1 - chance)
    both = columns[:, None] + rows[None, :]  # of cell (i, j): share of i as verdict, j as label
    off = float((table * both**2).sum() - (np.diag(table) * np.diag(both) ** 2).sum())
    diagonal = float((np.diag(table) * (1 - np.diag(both) * (1 - kappa)) ** 2).sum())
    variance = diagonal + (1 - kappa) ** 2 * off - (kappa - chance * (1 - kappa)) ** 2
    error = math.sqrt(max(variance, 0) / first.size) / (1 - chance)
    reach = NormalDist().inv_cdf(1 - miscoverage / 2) * error
    return Interval(kappa, max(kappa - reach, -1), min(kappa + reach, 1))


def rank_correlation(label: ArrayLike, verdict: ArrayLike, *, miscoverage: float = 0.1) -> Interval:
    """Return Spearman's correlation of two raters' marks, with its interval.

    Fisher's transformation with the error of D. G. Bonett and T. A. Wright (2000), Psychometrika
    65(1); NaN of fewer than five marks, or where a rater gave one mark alone.
    """
    first, second = (np.asarray(one, dtype=float) for one in (label, verdict))
    if first.size < 5 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return NOTHING
    found = np.corrcoef(_ranks(first), _ranks(second))[0, 1]
    rho = float(np.clip(found, -1 + 1e-12, 1 - 1e-12))
    error = math.sqrt((1 + rho**2 / 2) / (first.size - 3))
    reach = NormalDist().inv_cdf(1 - miscoverage / 2) * error
    ends = (math.tanh(math.atanh(rho) + sign * reach) for sign in (-1, 1))
    return Interval(rho, *ends)


def _ranks(marks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks from 1, equal marks sharing the mean of theirs."""
    _, place, counts = np.unique(marks, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks

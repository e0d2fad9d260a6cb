"""Rank correlations of two columns; scipy.stats has them too and takes half a second to import."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def average_ranks(values: ArrayLike) -> Floats:
    """Return the ranks of values from 1; equal ones share the mean of theirs."""
    _, place, count = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    mean_rank: Floats = np.cumsum(count) - (count - 1) / 2
    return mean_rank[place]


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Return the correlation of the ranks of two columns, neither constant; NaN if one holds NaN.

    References
    ----------
    C. Spearman (1904), "The Proof and Measurement of Association between Two Things", American
    Journal of Psychology 15(1).
    """
    columns = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if np.isnan(columns).any():
        return float("nan")
    ranks = np.column_stack([average_ranks(column) for column in columns])
    return float(np.corrcoef(ranks, rowvar=False)[1, 0])


def kendall(first: ArrayLike, second: ArrayLike) -> float:
    """Return tau-b of two columns, neither constant; NaN if one holds NaN.

    Memory grows with the square of their length: it is for models, not for battles.

    References
    ----------
    M. G. Kendall (1945), "The Treatment of Ties in Ranking Problems", Biometrika 33(3).
    """
    columns = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if np.isnan(columns).any():
        return float("nan")
    order, other = ((c[:, None] > c).astype(np.int8) - (c[:, None] < c) for c in columns)
    agreeing = int(np.sum(order * other, dtype=np.int64)) // 2  # less those that disagree
    untied, other_untied = (int(np.count_nonzero(signs)) // 2 for signs in (order, other))
    return float(np.clip(agreeing / np.sqrt(untied) / np.sqrt(other_untied), -1.0, 1.0))

"""Strata of battles within which a judge's errors are more alike than over all of them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.battles import CodedBattles

N_STRENGTHS = 3
"""Strata by strength: enough to tell clear battles from close ones, each with many votes."""


def length_strata(
    length_a: ArrayLike, length_b: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return 0 or 1 for A's and for B's answer: up to the median answer's length, or beyond.

    Parameters
    ----------
    length_a, length_b : array_like, shape (n,)
        Lengths in characters; NaN where unknown.

    Returns
    -------
    tuple of ndarray, or None
        None if a length is unknown, for then no half is known either.
    """
    lengths = np.asarray([length_a, length_b], dtype=float)
    if not lengths.size or np.isnan(lengths).any():
        return None
    longer = (lengths > np.median(lengths)).astype(np.int64)
    return longer[0], longer[1]


def strength_strata(
    battles: CodedBattles, *, n_strata: int = N_STRENGTHS
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how much stronger than its opponent the judge finds the model, as A and B see it.

    Strength is the judge's win rate over all of a model's battles, and strata are even parts of
    its differences. One battle weighs next to nothing in it, so that strata are all but a fixed
    property of the two models; a vote never enters.

    Parameters
    ----------
    battles : CodedBattles
        The judged battles, n of them.
    n_strata : int
        Strata, from 2.

    Returns
    -------
    tuple of ndarray, shape (n,) each
        From 0, the opponent is far stronger, to `n_strata` - 1.
    """
    judged = battles.judge_outcome / 4
    share = np.bincount(
        np.concatenate([battles.model_a, battles.model_b]),
        weights=np.concatenate([judged, 1 - judged]),
    ) / np.bincount(np.concatenate([battles.model_a, battles.model_b]))
    gap = share[battles.model_a] - share[battles.model_b]
    edges = np.quantile(np.concatenate([gap, -gap]), np.arange(1, n_strata) / n_strata)
    return np.searchsorted(edges, gap), np.searchsorted(edges, -gap)

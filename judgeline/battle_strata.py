"""Strata of battles within which a judge's errors are more alike than over all of them."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.battles import CodedBattles
from judgeline.outcome_tables import LOSS, WIN, Design

N_STRENGTHS = 3
"""Strata by strength: enough to tell clear battles from close ones, each with many votes."""

MIN_STRATUM_VOTES = 10
"""Votes won, and lost, from which a stratum stands alone: the pilot of an allocation."""


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


def merge_sparse_strata(design: Design, *, least: int = MIN_STRATUM_VOTES) -> Design:
    """Return the battles in fewer strata, so that each has votes to calibrate it.

    Parameters
    ----------
    design : Design
        From `design_of`; neighbouring strata are alike.
    least : int
        As of `first_strata`.

    Returns
    -------
    Design
        Of as many strata as can stand alone, at least one.
    """
    starts = first_strata(design, least=least)
    test, labelled = (np.add.reduceat(part, starts, axis=0) for part in design[:2])
    return Design(test, labelled, design.calibration)


def first_strata(design: Design, *, least: float) -> list[int]:
    """Return where the strata begin that remain when sparse ones join a neighbour.

    A stratum that has test battles and fewer than `least` votes won, or lost, joins the
    neighbour with fewer votes, the sparsest first. Counts of votes decide, never how the judge
    fares on them.

    Parameters
    ----------
    design : Design
        From `design_of`; neighbouring strata are alike.
    least : float
        Votes of either kind.

    Returns
    -------
    list of int
        Ascending from 0, for `numpy.add.reduceat`.
    """
    tested = design.test.sum(axis=1).tolist()
    votes = design.labelled.sum(axis=1)
    won, lost, n = (part.tolist() for part in (votes[:, WIN], votes[:, LOSS], votes.sum(axis=1)))
    starts = list(range(len(tested)))
    while len(starts) > 1:
        fewest = [min(w, v) if t else math.inf for w, v, t in zip(won, lost, tested, strict=True)]
        at = fewest.index(min(fewest))
        if fewest[at] >= least:
            break
        beside = [i for i in (at - 1, at + 1) if 0 <= i < len(starts)]
        first = min(at, min(beside, key=lambda i: n[i]))
        del starts[first + 1]
        for counted in (tested, won, lost, n):
            counted[first : first + 2] = [counted[first] + counted[first + 1]]
    return starts

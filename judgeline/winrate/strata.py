"""Strata of win rates: battles alike in length or strength, and sparse strata merged."""

import numpy as np
from numpy.typing import ArrayLike

from judgeline.arrays import Ints
from judgeline.elo.battles import CodedBattles
from judgeline.winrate.outcomes import Design

N_STRENGTHS = 3
"""Strata by strength: enough to tell clear battles from close ones, each with many votes."""

MIN_STRATUM_VOTES = 10
"""Votes from which a stratum stands alone."""


def length_strata(length_a: ArrayLike, length_b: ArrayLike) -> tuple[Ints, Ints] | None:
    """Return 0 or 1 for A's and for B's answer: up to the median answer's length, or beyond.

    Lengths (n,) are in characters; with an unknown one (NaN) no half is known: None.
    """
    lengths = np.asarray([length_a, length_b], dtype=float)
    if not lengths.size or np.isnan(lengths).any():
        return None
    longer = (lengths > np.median(lengths)).astype(np.int64)
    return longer[0], longer[1]


def strength_strata(battles: CodedBattles, *, n_strata: int = N_STRENGTHS) -> tuple[Ints, Ints]:
    """Return how much stronger than its opponent the judge finds the model, as A and B see it.

    Strength is the judge's win rate over all of a model's battles, and strata are even parts of
    its differences. One battle weighs next to nothing in it, so that strata are all but a fixed
    property of the two models; a vote never enters. They run from 0, the opponent is far stronger,
    to `n_strata` - 1, shape (n,) each.
    """
    judged = battles.judge_outcome / 4
    models = np.concatenate([battles.model_a, battles.model_b])
    wins = np.bincount(models, weights=np.concatenate([judged, 1 - judged]))
    share = wins / np.bincount(models)
    gap = share[battles.model_a] - share[battles.model_b]
    edges = np.quantile(np.concatenate([gap, -gap]), np.arange(1, n_strata) / n_strata)
    return np.searchsorted(edges, gap), np.searchsorted(edges, -gap)


def merge_sparse_strata(design: Design, *, least: int = MIN_STRATUM_VOTES) -> Design:
    """Return the battles in fewer strata: the sparsest joins its neighbour with fewer votes.

    Counts of votes decide, never the judge's accuracy.
    """
    tested = design.test.sum(axis=1).tolist()
    votes = design.labelled.sum(axis=(1, 2)).tolist()
    starts = list(range(len(tested)))
    while len(starts) > 1:
        sparse = [at for at in range(len(starts)) if tested[at] and votes[at] < least]
        if not sparse:
            break
        at = min(sparse, key=votes.__getitem__)
        beside = [i for i in (at - 1, at + 1) if 0 <= i < len(starts)]
        first = min(at, min(beside, key=votes.__getitem__))
        del starts[first + 1]
        for counts in (tested, votes):
            counts[first : first + 2] = [counts[first] + counts[first + 1]]
    test, labelled = (np.add.reduceat(part, starts, axis=0) for part in design[:2])
    return design._replace(test=test, labelled=labelled)

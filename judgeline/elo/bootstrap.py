"""Bootstrap standard errors of a rating within the model's own battles, anchors fixed.

All resamples of a model are one matrix of counts and one vectorised Newton iteration.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from judgeline.elo.placement import analytic_std_error, place_models

Floats = NDArray[np.float64]

_DRAWS_PER_CELL = 16  # one binomial draw costs about as much as this many battles drawn
_BLOCK_CELLS = 1 << 22  # resamples times units drawn at a time: 32 MiB


class ResamplingUnits(NamedTuple):
    """What is drawn with replacement: battles, or questions with all their battles.

    `battles` (U, M): how many battles one unit holds against each anchor; `wins` (U, K): the
    model's share of wins in one unit, under each of K kinds of target that are drawn
    together; `copies` (U,): how many identical units there are.
    """

    battles: csr_array
    wins: Floats
    copies: NDArray[np.int64]

    def met(self, counts: Floats) -> Floats:
        """Return battles against each anchor in resamples that hold units so often.

        Parameters
        ----------
        counts : ndarray, shape (B, U)
            How often each unit was drawn.

        Returns
        -------
        ndarray, shape (B, M)
            Number of battles.
        """
        opponent = self.battles.indices
        if self.battles.nnz != len(self.copies) or (np.diff(opponent) < 0).any():
            return np.asarray((self.battles.T @ counts.T).T)
        starts = np.flatnonzero(np.r_[True, np.diff(opponent) != 0])  # single battles, sorted
        met = np.zeros((counts.shape[0], self.battles.shape[1]))
        met[:, opponent[starts]] = np.add.reduceat(counts, starts, axis=1)
        return met


def units_of_battles(
    opponent: NDArray[np.intp], outcome: Floats, copies: NDArray[np.int64], n_models: int
) -> ResamplingUnits:
    """Return units that are single battles, alike ones counted together.

    Parameters
    ----------
    opponent : ndarray of int, shape (U,)
        Code of the anchor met.
    outcome : ndarray, shape (U, K)
        The model's share of the win under each kind of target, in [0, 1].
    copies : ndarray of int, shape (U,)
        Number of such battles, positive.
    n_models : int
        Number of anchors M.

    Returns
    -------
    ResamplingUnits
        One unit per distinct opponent and outcome given.
    """
    indptr = np.arange(opponent.size + 1)
    matrix = csr_array((np.ones(opponent.size), opponent, indptr), shape=(opponent.size, n_models))
    return ResamplingUnits(matrix, outcome, copies)


def units_of_clusters(
    opponent: NDArray[np.intp], outcome: Floats, cluster: NDArray[np.intp], n_models: int
) -> ResamplingUnits:
    """Return units that are clusters of dependent battles, such as all on one question.

    Parameters
    ----------
    opponent : ndarray of int, shape (n,)
        Code of the anchor met in each of the model's battles.
    outcome : ndarray, shape (n, K)
        The model's share of each win under each kind of target, in [0, 1].
    cluster : ndarray of int, shape (n,)
        Cluster of each battle.
    n_models : int
        Number of anchors M.

    Returns
    -------
    ResamplingUnits
        One unit per cluster that occurs.
    """
    _, place = np.unique(cluster, return_inverse=True)
    count = int(place.max()) + 1
    membership = csr_array((np.ones(place.size), (place, np.arange(place.size))))
    matrix = csr_array((np.ones(opponent.size), (place, opponent)), shape=(count, n_models))
    return ResamplingUnits(matrix, np.asarray(membership @ outcome), np.ones(count, dtype=np.int64))


def resample_counts(
    copies: NDArray[np.int64], n_resamples: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return how often each unit is drawn in resamples as large as the sample.

    Parameters
    ----------
    copies : ndarray of int, shape (U,)
        Units of each kind in the sample, n in total.
    n_resamples : int
        Number of resamples B.
    rng : numpy.random.Generator
        The stream to draw from.

    Returns
    -------
    ndarray of int, shape (B, U)
        Multinomial counts; every row sums to n.
    """
    total = int(copies.sum())
    if copies.size < total / _DRAWS_PER_CELL:
        drawn: NDArray[np.int64] = rng.multinomial(total, copies / total, size=n_resamples)
        return drawn
    kind = np.repeat(np.arange(copies.size), copies)
    draw = kind[rng.integers(0, total, size=(n_resamples, total), dtype=np.int32)]
    draw += copies.size * np.arange(n_resamples)[:, None]
    counts = np.bincount(draw.ravel(), minlength=n_resamples * copies.size)
    return counts.reshape(n_resamples, copies.size).astype(np.int64, copy=False)


def bootstrap_strengths(
    units: ResamplingUnits,
    strengths: Floats,
    anchors: Floats,
    *,
    l2: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the strengths of a model refitted on resamples of its own battles.

    All K kinds of target see the same resamples.

    Parameters
    ----------
    units : ResamplingUnits
        What is drawn with replacement.
    strengths : ndarray, shape (K,)
        The model's strengths on all its battles, in logits; a start close to every refit.
    anchors : ndarray, shape (K, M)
        Anchor strengths in logits under each kind of target, held fixed.
    l2 : float
        Penalty per squared logit, as in `place_models`.
    n_resamples : int
        Number of resamples B.
    rng : numpy.random.Generator
        The stream that belongs to this model and method.

    Returns
    -------
    ndarray, shape (B, K)
        Strengths in logits; NaN where a resample has none (no penalty, all won or lost).

    References
    ----------
    Kargi and Salinas (2026), arXiv:2606.13221, Algorithm 1.
    """
    block = max(1, _BLOCK_CELLS // max(int(units.copies.sum()), 1))
    refits = []
    for first in range(0, n_resamples, block):
        counts = resample_counts(units.copies, min(block, n_resamples - first), rng).astype(float)
        met, wins = units.met(counts), counts @ units.wins
        kinds = [
            place_models(wins[:, kind], met, fixed, l2=l2, start=float(strengths[kind]))
            for kind, fixed in enumerate(anchors)
        ]
        refits.append(np.column_stack(kinds))
    return np.concatenate(refits)


def unit_std_error(
    units: ResamplingUnits, strengths: Floats, anchors: Floats, *, l2: float
) -> Floats:
    """Return the closed form of the bootstrap standard error over the given units.

    Parameters
    ----------
    units : ResamplingUnits
        What would be drawn with replacement.
    strengths : ndarray, shape (K,)
        The model's strength under each kind of target, in logits.
    anchors : ndarray, shape (K, M)
        Anchor strengths in logits.
    l2 : float
        Penalty per squared logit.

    Returns
    -------
    ndarray, shape (K,)
        Standard errors in logits; NaN with fewer than two units.
    """
    chance = expit(strengths[:, None] - anchors)
    residual = units.wins - units.battles @ chance.T
    information = (chance * (1 - chance)) @ (units.battles.T @ units.copies) + 2 * l2
    return analytic_std_error(
        units.copies @ residual, units.copies @ residual**2, information, units.copies.sum()
    )

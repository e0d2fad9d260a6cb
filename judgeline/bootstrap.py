"""Bootstrap standard errors of a rating within the model's own battles, anchors fixed.

All resamples of a model are one matrix of counts and one vectorised Newton iteration.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from judgeline.placement import analytic_std_error, place_models

Floats = NDArray[np.float64]

_BLOCK_CELLS = 1 << 22  # resamples times units drawn at a time: 32 MiB


class ResamplingUnits(NamedTuple):
    """What is drawn with replacement: battles, or questions with all their battles.

    `battles` (U, M): how many battles one unit holds against each anchor; `wins` (U,): the
    model's share of wins in one unit; `copies` (U,): how many identical units there are.
    """

    battles: csr_array
    wins: Floats
    copies: NDArray[np.int64]


def units_of_battles(
    opponent: NDArray[np.intp], outcome: Floats, copies: NDArray[np.int64], n_models: int
) -> ResamplingUnits:
    """Return units that are single battles, alike ones counted together.

    Parameters
    ----------
    opponent : ndarray of int, shape (U,)
        Code of the anchor met.
    outcome : ndarray, shape (U,)
        The model's share of the win, in [0, 1].
    copies : ndarray of int, shape (U,)
        Number of such battles, positive.
    n_models : int
        Number of models M.

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
    outcome : ndarray, shape (n,)
        The model's share of each win, in [0, 1].
    cluster : ndarray of int, shape (n,)
        Cluster of each battle.
    n_models : int
        Number of models M.

    Returns
    -------
    ResamplingUnits
        One unit per cluster that occurs.
    """
    _, place = np.unique(cluster, return_inverse=True)
    count = int(place.max()) + 1
    matrix = csr_array((np.ones(opponent.size), (place, opponent)), shape=(count, n_models))
    wins: Floats = np.bincount(place, weights=outcome, minlength=count).astype(float)
    return ResamplingUnits(matrix, wins, np.ones(count, dtype=np.int64))


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
    if copies.size < total / 4:
        drawn: NDArray[np.int64] = rng.multinomial(total, copies / total, size=n_resamples)
        return drawn
    kind = np.repeat(np.arange(copies.size), copies)
    draw = kind[rng.integers(0, total, size=(n_resamples, total), dtype=np.int32)]
    draw += copies.size * np.arange(n_resamples)[:, None]
    counts = np.bincount(draw.ravel(), minlength=n_resamples * copies.size)
    return counts.reshape(n_resamples, copies.size).astype(np.int64, copy=False)


def bootstrap_strengths(
    units: ResamplingUnits,
    anchors: Floats,
    *,
    l2: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the strengths of a model refitted on resamples of its own battles.

    Parameters
    ----------
    units : ResamplingUnits
        What is drawn with replacement.
    anchors : ndarray, shape (M,)
        Anchor strengths in logits, held fixed.
    l2 : float
        Penalty per squared logit, as in `place_models`.
    n_resamples : int
        Number of resamples B.
    rng : numpy.random.Generator
        The stream that belongs to this model and method.

    Returns
    -------
    ndarray, shape (B,)
        Strengths in logits; NaN where a resample has none (no penalty, all won or lost).

    References
    ----------
    D. Kargi and D. Salinas (2026), arXiv:2606.13221, Algorithm 1.
    """
    block = max(1, _BLOCK_CELLS // max(int(units.copies.sum()), 1))
    strengths = []
    for first in range(0, n_resamples, block):
        counts = resample_counts(units.copies, min(block, n_resamples - first), rng)
        met = (units.battles.T @ counts.T.astype(float)).T
        strengths.append(place_models(counts @ units.wins, met, anchors, l2=l2))
    return np.concatenate(strengths)


def unit_std_error(units: ResamplingUnits, strength: float, anchors: Floats, *, l2: float) -> float:
    """Return the closed form of the bootstrap standard error over the given units.

    Parameters
    ----------
    units : ResamplingUnits
        What would be drawn with replacement.
    strength : float
        The model's strength in logits.
    anchors : ndarray, shape (M,)
        Anchor strengths in logits.
    l2 : float
        Penalty per squared logit.

    Returns
    -------
    float
        Standard error in logits; NaN with fewer than two units.
    """
    chance = expit(strength - anchors)
    residual = units.wins - units.battles @ chance
    information = float((units.battles.T @ units.copies) @ (chance * (1 - chance))) + 2 * l2
    return float(
        analytic_std_error(
            units.copies @ residual, units.copies @ residual**2, information, units.copies.sum()
        )
    )

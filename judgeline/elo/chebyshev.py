"""Sums over battles as smooth functions of beta, for score differences without a grid.

A sum of sigmoids ``sigmoid(beta * s)`` is analytic in beta; its values at a few Chebyshev
nodes give it everywhere between them. So one pass per node replaces one pass per fold.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from judgeline.elo.battles import CodedBattles
from judgeline.elo.tally import chunks

_RELATIVE_ERROR = 1e-14
_MOST_NODES = 96

Integrand = Callable[[float, NDArray[np.float64]], NDArray[np.float64]]


def chebyshev_nodes(low: float, high: float, *, reach: float) -> NDArray[np.float64]:
    """Return nodes that resolve ``sigmoid(beta * s)`` for beta between two bounds.

    Parameters
    ----------
    low, high : float
        Interval of beta, in logits per rubric point.
    reach : float
        Largest absolute score difference, in rubric points. The nearest singularity lies
        ``pi / reach`` off the real axis and sets how many nodes are needed.

    Returns
    -------
    ndarray, shape (n_nodes,)
        Chebyshev points of the first kind on the interval.

    Raises
    ------
    ValueError
        If more than 96 nodes would be needed: the interval is too wide for the scores.

    References
    ----------
    L. N. Trefethen (2013), Approximation Theory and Approximation Practice, theorem 8.2.
    """
    half = max((high - low) / 2, 1e-12 * max(abs(low), abs(high), 1e-12))
    distance = math.pi / (max(reach, 1e-300) * half)
    ellipse = distance + math.hypot(1, distance)
    needed = -math.log(_RELATIVE_ERROR) / max(math.log(ellipse), 1e-9)
    count = max(3, math.ceil(needed) + 1)
    if count > _MOST_NODES:
        raise ValueError(f"{count} nodes needed on [{low:g}, {high:g}] for |s| up to {reach:g}")
    angle = (2 * np.arange(count) + 1) * math.pi / (2 * count)
    nodes: NDArray[np.float64] = (low + high) / 2 + half * np.cos(angle)
    return nodes


def interpolation(nodes: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix that takes values at Chebyshev nodes to values elsewhere.

    Parameters
    ----------
    nodes : ndarray, shape (n_nodes,)
        Points from `chebyshev_nodes`.
    at : ndarray, shape (F,)
        Where to evaluate, between the nodes' bounds.

    Returns
    -------
    ndarray, shape (F, n_nodes)
        Barycentric weights; rows sum to one.
    """
    count = nodes.size
    sign = np.where(np.arange(count) % 2, -1.0, 1.0)
    weight = sign * np.sin((2 * np.arange(count) + 1) * math.pi / (2 * count))
    gap = at[:, None] - nodes
    hit = gap == 0
    terms = weight / np.where(hit, 1.0, gap)
    matrix = terms / terms.sum(axis=1, keepdims=True)
    return np.where(hit.any(axis=1, keepdims=True), hit.astype(float), matrix)


def model_sums(
    battles: CodedBattles,
    score: NDArray[np.float64],
    nodes: NDArray[np.float64],
    of_a: Integrand,
    of_b: Integrand,
) -> NDArray[np.float64]:
    """Return per-model sums over battles of a function of beta and score, at nodes of beta.

    Parameters
    ----------
    battles : CodedBattles
        The battles, n of them over M models.
    score : ndarray, shape (n,)
        Score difference or margin of each battle, in rubric points.
    nodes : ndarray, shape (n_nodes,)
        Values of beta, in logits per rubric point.
    of_a, of_b : callable
        ``f(beta, score)``: what a battle adds to its model A and to its model B.

    Returns
    -------
    ndarray, shape (M, n_nodes)
        The sums, in the unit of the functions.
    """
    sums = np.zeros((nodes.size, len(battles.models)))
    for part in chunks(len(battles)):
        codes_a, codes_b, values = battles.model_a[part], battles.model_b[part], score[part]
        for total, beta in zip(sums, nodes, strict=True):
            first = of_a(float(beta), values)
            second = first if of_b is of_a else of_b(float(beta), values)
            total += np.bincount(codes_a, weights=first, minlength=total.size)
            total += np.bincount(codes_b, weights=second, minlength=total.size)
    return sums.T

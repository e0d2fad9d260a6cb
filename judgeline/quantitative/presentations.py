"""Presentations of battles to a quantitative judge: which answer was shown first, and back.

A rationale speaks of the answers as they were shown, so a row's score and outcome favour the
answer shown first; a battle's prediction favours A.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.quantitative.inputs import base_logit_of_scores, require_embeddings, require_rows

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


class Presentations(NamedTuple):
    """r presentations of battles; make them with `presentations` or `two_headed`.

    `embeddings` (r, d); `base` (r,): logit that the answer shown first wins; `battle` (r,):
    its position; `swapped` (r,): whether B was shown first.
    """

    embeddings: Floats
    base: Floats
    battle: Rows
    swapped: NDArray[np.bool_]


def presentations(
    embeddings: ArrayLike, base: ArrayLike, battle: ArrayLike, swapped: ArrayLike
) -> Presentations:
    """Return presentations for BTL, one rationale each, after checking them.

    Parameters
    ----------
    embeddings : array_like, shape (r, d)
        Embedding of the rationale of each presentation.
    base : array_like, shape (r,)
        The base judge's logit that the answer shown first wins.
    battle : array_like of int, shape (r,)
        Position of the battle, 0 or more; a battle may have any number of presentations.
    swapped : array_like of bool, shape (r,)
        Whether B was shown first.

    Returns
    -------
    Presentations
        The same, as arrays.

    Raises
    ------
    ValueError
        On missing embeddings or scores, unequal lengths, or battles below 0.
    """
    features, given = require_rows(embeddings, base)
    place, order = np.asarray(battle), np.asarray(swapped)
    if features.ndim != 2 or place.shape != given.shape or order.shape != given.shape:
        raise ValueError(
            f"embeddings have shape {features.shape}, battle {place.shape}, swapped {order.shape};"
            " expected (r, d), (r,), (r,)"
        )
    if order.dtype != np.bool_:
        raise ValueError(f"swapped holds {order.dtype}; expected booleans: was B shown first")
    if not np.issubdtype(place.dtype, np.integer) or (place < 0).any():
        raise ValueError("battle must hold whole numbers from 0, the positions of the battles")
    return Presentations(features, given, place.astype(np.intp), order)


def two_headed(
    embeddings_a: ArrayLike, embeddings_b: ArrayLike, score_a: ArrayLike, score_b: ArrayLike
) -> Presentations:
    """Return presentations for BTL2: two rationales about single answers, in both orders.

    Features are ``phi(e1) - phi(e2)``, the base is the logit of ``b1 / (b1 + b2)``. Every
    battle stands there both ways round, so that no fit can tell A from B: its population
    bias comes out as 0, and a swap mirrors its prediction.

    Parameters
    ----------
    embeddings_a, embeddings_b : array_like, shape (n, d)
        Embeddings of the rationales about A's and B's answers.
    score_a, score_b : array_like, shape (n,)
        The base judge's absolute scores, in points, above 0.

    Returns
    -------
    Presentations
        2 n rows: battles 0 to n - 1 with A first, then again with B first.

    Raises
    ------
    ValueError
        On missing embeddings, scores that are not positive, or unequal shapes.
    """
    first, second = require_embeddings(embeddings_a), require_embeddings(embeddings_b)
    if first.shape != second.shape or first.ndim != 2:
        raise ValueError(
            f"embeddings have shapes {first.shape} and {second.shape}; expected (n, d) twice"
        )
    difference, base = first - second, base_logit_of_scores(score_a, score_b)
    return presentations(
        np.concatenate([difference, -difference]),
        np.concatenate([base, -base]),
        np.tile(np.arange(base.size), 2),
        np.repeat([False, True], base.size),
    )


def presented_outcomes(outcome: ArrayLike, shown: Presentations) -> Floats:
    """Return each presentation's share of the win of the answer shown first, NaN without vote.

    Parameters
    ----------
    outcome : array_like, shape (n,)
        A's share of the win of each battle, NaN where nobody voted.
    shown : Presentations
        r presentations of the battles.

    Returns
    -------
    ndarray, shape (r,)
        The outcome, mirrored where B was shown first.
    """
    shares = np.asarray(outcome, dtype=float)[shown.battle]
    return np.where(shown.swapped, 1 - shares, shares)


def presentation_weights(shown: Presentations) -> Floats:
    """Return one over the number of presentations of each row's battle, shape (r,)."""
    return np.asarray(1 / np.bincount(shown.battle)[shown.battle])


def battle_outcomes(probability: ArrayLike, shown: Presentations) -> Floats:
    """Return A's probability of winning each battle: the mean of p(AB) and 1 - p(BA).

    Parameters
    ----------
    probability : array_like, shape (r,) or (r, F)
        Probability that the answer shown first wins, in one or several columns.
    shown : Presentations
        r presentations of n battles, at least one of each.

    Returns
    -------
    ndarray, shape (n,) or (n, F)
        Mean within each order, then over the orders that there are. Swapping A and B of a
        battle with both orders gives one minus it.

    Raises
    ------
    ValueError
        If a battle has no presentation.
    """
    chance = np.asarray(probability, dtype=float)
    both = [_mean_by_battle(chance, shown, swapped) for swapped in (False, True)]
    present = [~np.isnan(part) for part in both]
    n_orders = present[0].astype(float) + present[1]
    if not n_orders.all():
        raise ValueError(
            f"battle {int(np.argwhere(n_orders == 0)[0][0])} has no presentation with a rationale; "
            "leave it out, or number the battles that have one"
        )
    first = np.where(present[0], both[0] - 0.5, 0.0)
    second = np.where(present[1], 0.5 - both[1], 0.0)
    return np.asarray(0.5 + (first + second) / n_orders)


def _mean_by_battle(chance: Floats, shown: Presentations, swapped: bool) -> Floats:
    """Return means over one order's presentations of each battle; NaN where there are none."""
    rows = np.flatnonzero(shown.swapped == swapped)
    size = int(shown.battle.max()) + 1
    counts = np.bincount(shown.battle[rows], minlength=size)
    total = np.zeros((size, *chance.shape[1:]))
    np.add.at(total, shown.battle[rows], chance[rows])
    total[counts == 0] = np.nan
    total[counts > 0] = (total[counts > 0].T / counts[counts > 0]).T
    return total

"""Which models a comparison graph ties together; a rating across a gap means nothing."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components as _components

from judgeline.elo.battles import CodedBattles


def connected_components(n_battles: ArrayLike) -> NDArray[np.intp]:
    """Return a component label for each model of an undirected comparison graph.

    Parameters
    ----------
    n_battles : array_like, shape (M, M)
        Battles between pairs of models; two models with any are connected.

    Returns
    -------
    ndarray of int, shape (M,)
        Labels from 0; models with the same label are tied together by battles. The largest
        component has label 0.
    """
    _, labels = _components(csr_array(np.asarray(n_battles) != 0), directed=False)
    order = np.argsort(-np.bincount(labels), kind="stable")
    renamed = np.empty_like(order)
    renamed[order] = np.arange(order.size)
    return np.asarray(renamed[labels], dtype=np.intp)


def cut_models(n_battles: ArrayLike) -> NDArray[np.bool_]:
    """Return which models alone hold the comparison graph together.

    Without such a model its anchors fall into groups with no battle between them, so that
    their ratings have no common scale on which to place it.

    Parameters
    ----------
    n_battles : array_like, shape (M, M)
        Battles between pairs of models.

    Returns
    -------
    ndarray of bool, shape (M,)
        True where leaving the model out leaves more than one component among the others.
    """
    linked = (np.asarray(n_battles) != 0).astype(np.float32)
    size = len(linked)
    if size < 3:
        return np.zeros(size, dtype=bool)
    present = ~np.eye(size, dtype=bool)  # row m: the models that stay when m is left out
    reached = np.zeros((size, size), dtype=bool)
    reached[np.arange(size), (np.arange(size) + 1) % size] = True
    while True:  # all searches at once, one step of every one of them per product
        wider = (reached | (reached.astype(np.float32) @ linked > 0)) & present
        if (wider == reached).all():
            return np.asarray((reached != present).any(axis=1))
        reached = wider


def require_connected(battles: CodedBattles) -> None:
    """Raise unless battles tie all models together.

    Parameters
    ----------
    battles : CodedBattles
        The battles whose models must be comparable.

    Raises
    ------
    ValueError
        If the comparison graph falls apart; names the models outside the largest part.
    """
    size = len(battles.models)
    linked = np.zeros((size, size), dtype=bool)
    linked[battles.model_a, battles.model_b] = True
    labels = connected_components(linked)
    stray = [battles.models[code] for code in np.flatnonzero(labels)]
    if stray:
        raise ValueError(
            f"{len(stray)} of {size} models have no chain of battles to the others: "
            f"{', '.join(stray[:10])}{', ...' if len(stray) > 10 else ''}; "
            "add battles that connect them or leave them out"
        )

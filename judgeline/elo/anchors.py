"""Anchors: the models whose votes count, and the chains of battles that tie them together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Bools, Ints
from judgeline.elo.battle_counts import Sums
from judgeline.elo.battles import CodedBattles

ENOUGH_VOTES = 20
"""Votes from which on a model is an anchor, however many the others have."""
VOTES_WAIT = "votes-wait"
"""Flag of a model whose votes are too few to count yet."""

_LEAST_SHARE = 0.25  # of the votes of a typical model, where those are few


def settled_models(
    model_a: ArrayLike, model_b: ArrayLike, n_models: int, count: ArrayLike | None = None
) -> Bools:
    """Return which models have votes enough to be anchors, (M,), from codes of voted pairs (n,).

    `count` (n,) says how many votes there are in each row, where it is not one. A model counts
    from `ENOUGH_VOTES` votes on, or from a quarter of ``mean over votes of min(votes_a, votes_b)``
    where that is fewer: many models with one vote each hardly lower that mean, and a model that
    everybody meets does not raise it. A rating from one vote lies anywhere, and two such anchors
    among twenty make every interval the whole line. A vote counts where both its models do, so the
    rule is repeated until nothing changes; where it leaves nobody, all models with a vote count.
    """
    first, second = np.asarray(model_a, dtype=np.intp), np.asarray(model_b, dtype=np.intp)
    each = np.ones(first.size, dtype=np.int64) if count is None else np.asarray(count)

    def votes_of(rows: Any) -> Ints:
        """Return how many votes of some rows each model has, (M,)."""
        sides = (np.bincount(side[rows], each[rows], n_models) for side in (first, second))
        return np.asarray(sum(side.astype(np.int64) for side in sides), dtype=np.int64)

    votes = votes_of(slice(None))
    everybody = votes > 0
    if not everybody.any():
        return everybody
    others = np.average(np.minimum(votes[first], votes[second]), weights=each)
    least = min(float(ENOUGH_VOTES), _LEAST_SHARE * float(others))
    settled = everybody
    while True:
        votes = votes_of(settled[first] & settled[second])
        left = settled & (votes > 0) & (votes >= least)
        if (left == settled).all():
            return left if left.any() else everybody
        settled = left


def with_settled_votes(battles: CodedBattles) -> CodedBattles:
    """Return the battles without the votes on models that have too few: see `settled_models`.

    Those models stay, as models without votes.
    """
    voted = battles.human_outcome >= 0
    model_a, model_b, size = battles.model_a, battles.model_b, len(battles.models)
    first, second, each = model_a[voted], model_b[voted], None
    if battles.count is not None:  # by pair: of counted battles there may be millions of rows
        votes = np.triu(Sums.of(battles).human.sum(axis=2))
        first, second = np.nonzero(votes)
        each = votes[first, second]
    settled = settled_models(first, second, size, each)
    if settled[first].all() and settled[second].all():
        return battles
    kept = voted & settled[model_a] & settled[model_b]
    outcome = np.where(kept, battles.human_outcome, np.int8(-1)).astype(np.int8)
    return replace(battles, human_outcome=outcome)


def require_connected(battles: CodedBattles) -> None:
    """Raise ValueError, with the models outside the largest part, unless battles tie them all."""
    size = len(battles.models)
    linked = np.zeros((size, size), dtype=bool)
    linked[battles.model_a, battles.model_b] = True
    require_chains(linked, battles.models, "", "add battles that connect them")


def require_chains(linked: NDArray[Any], models: Sequence[str], kind: str, remedy: str) -> None:
    """Raise ValueError unless chains of a kind of battles lead from each model to every other."""
    stray = [name for name, part in zip(models, connected_components(linked), strict=True) if part]
    if stray:
        raise ValueError(
            f"{len(stray)} of {len(models)} models have no chain of battles {kind}to the others: "
            f"{', '.join(stray[:10])}{', ...' * (len(stray) > 10)}; {remedy}, or rank one "
            "connected set (component=0, --component 0)"
        )


def connected_components(n_battles: ArrayLike) -> NDArray[np.intp]:
    """Return a component label for each model of a comparison graph, from its battles (M, M).

    The largest component has label 0; two models with any battle are connected.
    """
    linked = np.asarray(n_battles) != 0
    linked = linked | linked.T
    labels = np.full(len(linked), -1)
    for first in range(len(linked)):
        reached = (np.arange(len(linked)) == first) & (labels < 0)
        while reached.any():
            labels[reached] = first
            reached = linked[reached].any(axis=0) & (labels < 0)
    order = np.argsort(-np.bincount(labels), kind="stable")
    renamed = np.empty_like(order)
    renamed[order] = np.arange(order.size)
    return np.asarray(renamed[labels], dtype=np.intp)


def cut_models(n_battles: ArrayLike) -> Bools:
    """Return which models alone hold the comparison graph of battles (M, M) together, shape (M,).

    Without such a model its anchors fall into groups with no battle between them, so that their
    ratings have no common scale on which to place it.
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

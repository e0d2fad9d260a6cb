"""Whose votes count yet: a model on which a handful of people voted is not rated by people."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.elo.battles import CodedBattles

ENOUGH_VOTES = 20
"""Votes from which on a model is an anchor, however many the others have."""

VOTES_WAIT = "votes-wait"
"""Flag of a model whose votes are too few to count yet."""

_LEAST_SHARE = 0.25  # of the votes of a typical model, where those are few


def settled_models(model_a: ArrayLike, model_b: ArrayLike, n_models: int) -> NDArray[np.bool_]:
    """Return which models have votes enough to be anchors.

    A human rating from one vote lies anywhere, and makes its model an anchor whose fold can cut
    off others, and whose residual has no end: two such models among twenty make every interval
    the whole line. A model counts from `ENOUGH_VOTES` votes on, or from a quarter of what others
    have where those are fewer. "What others have" is the mean over votes of the votes on the
    less voted of its two models: many models with one vote each hardly bring it down, and one
    that everybody meets does not push it up. A vote counts where both its models do, so that this
    is repeated until nothing changes. Where nobody would be left, all that have a vote count.

    Parameters
    ----------
    model_a, model_b : array_like of int, shape (n,)
        Codes of the two models of each battle with a vote.
    n_models : int
        How many models there are.

    Returns
    -------
    ndarray of bool, shape (n_models,)
        All that have a vote, where votes are spread evenly.
    """
    first, second = np.asarray(model_a, dtype=np.intp), np.asarray(model_b, dtype=np.intp)
    votes = np.bincount(np.concatenate([first, second]), minlength=n_models)
    everybody = votes > 0
    if not everybody.any():
        return everybody
    others = np.minimum(votes[first], votes[second]).mean()
    least = min(float(ENOUGH_VOTES), _LEAST_SHARE * float(others))
    settled = everybody
    while True:
        counts = settled[first] & settled[second]
        votes = np.bincount(np.concatenate([first[counts], second[counts]]), minlength=n_models)
        left = settled & (votes > 0) & (votes >= least)
        if (left == settled).all():
            return left if left.any() else everybody
        settled = left


def with_settled_votes(battles: CodedBattles) -> CodedBattles:
    """Return the same battles without the votes on models that have too few of them.

    Those models stay, as models without votes; see `settled_models`.

    Parameters
    ----------
    battles : CodedBattles
        With votes on some.
    """
    voted = battles.human_outcome >= 0
    model_a, model_b = battles.model_a, battles.model_b
    settled = settled_models(model_a[voted], model_b[voted], len(battles.models))
    if settled[model_a[voted]].all() and settled[model_b[voted]].all():
        return battles
    kept = voted & settled[model_a] & settled[model_b]
    outcome = np.where(kept, battles.human_outcome, np.int8(-1)).astype(np.int8)
    return replace(battles, human_outcome=outcome)

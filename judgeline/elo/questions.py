"""Questions: battles that are drawn together, and how far votes on them go together."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from judgeline.arrays import Bools, Floats, Ints, require
from judgeline.elo.battles import CodedBattles
from judgeline.elo.targets import Placed


def question_codes(cluster: ArrayLike | None, n_battles: int) -> Ints | None:
    """Return the questions of battles as numbers from 0, in the order of their names, (n,).

    None without clusters; ValueError unless there is one for every battle.
    """
    if cluster is None:
        return None
    labels, shape = np.asarray(cluster, dtype=object), (n_battles,)
    require(labels.shape == shape, "the shape of cluster", labels.shape, f"{shape}")
    # NaN alone differs from itself
    given = [label is not None and label == label for label in labels.tolist()]
    require(given, "cluster", labels, "a cluster of every battle, or its id")
    return np.asarray(np.unique(np.asarray(cluster), return_inverse=True)[1], dtype=np.int64)


def squared_sums(model: Ints, question: Ints, residual: Floats, n_models: int) -> Floats:
    """Return each model's ``sum_q (sum_i r_i)^2`` over questions q and their battles i, (M,)."""
    size = int(question.max(initial=0)) + 1
    unit, place = np.unique(model * size + question, return_inverse=True)
    sums = np.bincount(place, residual) ** 2
    return np.asarray(np.bincount(unit // size, sums, n_models), dtype=float)


def design_effects(
    battles: CodedBattles, voted: Bools, human: Placed, question: Ints | None
) -> Floats:
    """Return how many times shared questions multiply the variance of each human rating.

    Votes on battles of one question go together: a question suits a model or it does not. Of a
    voted model k, ``d_k = sum_q (sum_i r_i)^2 / sum_i r_i^2`` over its questions q and votes i,
    where ``r_i = y_i - p_i`` at its human rating. A model's own design effect is the mean of the
    *other* voted models' ``d_k``, since that of one model is known badly, and at least 1. It is 1
    without questions (n,), and where no other model has votes.

    References
    ----------
    L. Kish (1965), Survey Sampling, section 5.4, for the design effect; A. C. Cameron and D. L.
    Miller (2015), Journal of Human Resources 50(2), for sums of residuals by cluster.
    """
    if question is None:
        return np.ones(voted.size)
    has_vote, outcome = battles.human_outcome >= 0, battles.human_outcome / 2
    model = np.concatenate([battles.model_a, battles.model_b]).astype(np.int64)
    opponent = np.concatenate([battles.model_b, battles.model_a])
    share, asked = np.concatenate([outcome, 1 - outcome]), np.tile(question, 2)
    column = np.cumsum(voted) - 1
    own = np.tile(has_vote, 2) & voted[model] & voted[opponent]
    residual = np.full(model.size, np.nan)
    strength = human.strength[model[own]]
    residual[own] = share[own] - expit(strength - human.anchors[model[own], column[opponent[own]]])
    own &= np.isfinite(residual)
    model, residual = model[own], residual[own]
    together = squared_sums(model, asked[own], residual, voted.size)
    alone = np.bincount(model, residual**2, voted.size)
    counted = alone > 0
    effect = np.divide(together, alone, out=np.zeros(voted.size), where=counted)
    others = counted.sum() - counted
    mean = (effect.sum() - effect) / np.maximum(others, 1)
    return np.asarray(np.maximum(np.where(others > 0, mean, 1.0), 1.0))

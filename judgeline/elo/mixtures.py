"""Ratings on the human ruler: what each is made of, and which of them is the headline.

A judge's ruler is often stretched: its ratings are right in order and wrong in spacing. The fold
of a model holds the other models' strengths by the judge and by people, both fitted without it:
the slope between them takes the stretch out, and no vote on the model has a say in it.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from judgeline.elo.targets import Placed, other_anchors

Floats = NDArray[np.float64]
Mixture = Mapping[str, Floats]
"""Coefficient (M,) of each base's strength in a mixture's; they add up."""

_ROUNDING = 1e-9  # a slope that sums of strengths cannot tell from zero

AVERAGE_FROM = 20
"""Other models with votes from which on the headline is ``average``; below, it is ``gap``."""


def ruler_slopes(base: Placed, human: Placed, voted: NDArray[np.bool_]) -> Floats:
    """Return the slope from a base's strengths to human ones in every model's fold, (M,).

    ``sum u t / sum u^2`` over the anchors other than the model, whose strengths ``u`` by the base
    and ``t`` by people were both fitted without it and centred.

    Parameters
    ----------
    base, human : Placed
        Placements among the same anchors.
    voted : ndarray of bool, shape (M,)
        Which models are anchors.

    Returns
    -------
    ndarray, shape (M,)
        Human logits per logit of the base; NaN where fewer than two other models have votes or
        the slope is not positive.
    """
    slopes = np.full(voted.size, np.nan)
    for model, others in enumerate(other_anchors(voted)):
        judged, people = base.anchors[model][others], human.anchors[model][others]
        product, square = float(judged @ people), float(judged @ judged)
        if others.sum() >= 2 and product > _ROUNDING * square > 0:
            slopes[model] = product / square
    return slopes


def mixtures(placed: Mapping[str, Placed], voted: NDArray[np.bool_]) -> dict[str, Mixture]:
    """Return every rating that is made of placements, with its coefficients.

    ``X-rescaled`` is method X on the ruler; ``average`` the mean of hard and soft on theirs;
    ``auto`` the headline: ``average`` for a model beside which `AVERAGE_FROM` others have votes,
    ``gap`` for any other. Neither a model's own votes nor its own rating choose.

    Parameters
    ----------
    placed : mapping of str to Placed
        By method; ``human``, ``hard``, ``soft`` and ``gap`` among them.
    voted : ndarray of bool, shape (M,)
        Which models are anchors.
    """
    ruled = [name for name in placed if name not in ("human", "gap") and "smoothed" not in name]
    slopes = {name: ruler_slopes(placed[name], placed["human"], voted) for name in ruled}
    many = averaged(voted)
    halves = {name: slopes[name] / 2 for name in ("hard", "soft")}
    return {
        **{f"{name}-rescaled": {name: slope} for name, slope in slopes.items()},
        "average": halves,
        "auto": {
            **{name: np.where(many, half, 0.0) for name, half in halves.items()},
            "gap": np.where(many, 0.0, 1.0),
        },
    }


def averaged(voted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for which models ``auto`` stands for ``average``, shape (M,)."""
    many: NDArray[np.bool_] = voted.sum() - voted >= AVERAGE_FROM
    return many


def basis_of(voted: NDArray[np.bool_]) -> NDArray[np.str_]:
    """Return in words what ``auto`` stands for by model, and why, shape (M,)."""
    n_others = (voted.sum() - voted).tolist()
    return np.array(
        [
            f"average: {n} other models have votes"
            if many
            else f"gap: {n} other models have votes, fewer than {AVERAGE_FROM}"
            for n, many in zip(n_others, averaged(voted).tolist(), strict=True)
        ]
    )


def mixed(mixture: Mixture, values: Mapping[str, Floats]) -> Floats:
    """Return the sum of a mixture's parts, (M,); a part without weight need not exist."""
    parts = [np.where(weight == 0, 0.0, weight * values[name]) for name, weight in mixture.items()]
    return np.asarray(sum(parts))

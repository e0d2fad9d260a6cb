"""Missing battles of a judge: their status, a test against chance, and bounds on ratings.

A battle is scored if both orders have a usable answer, or if an average over both was
published. Every other battle is missing, for one stated reason. Nothing is filled in here.

Bounds are over every verdict that the judge could have given: each missing battle is given its
best and its worst outcome for the model that is rated. A model's own battles enter neither the
anchors nor the slope of its fold, and the strength placed among them rises with every outcome:
no completion of the model's battles leaves the bounds. They may be wider than needed where one
order of a battle was read. Missing battles between other models would move the anchors and the
slope: these, and who is an anchor, stay as they are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.arrays import Floats, Ints, alike, model_pairs, require
from judgeline.elo.battles import CodedBattles
from judgeline.elo.beta import BetaFolds
from judgeline.elo.placements import place
from judgeline.elo.strengths import place_models, strength_to_rating

SCORED = "ok"
"""Status of an answer that was read, and of a battle that has a score."""

NOT_JUDGED = "not_judged"
"""Status of a battle that lacks a score, though no answer to it failed: none was ever asked."""

_ORDERS = ("AB", "BA", "mean")
_REACH = 9.0  # rubric points, the largest score difference

MAX_WIDTH = 100.0
"""Elo points that bounds may be apart where no interval says what is wide: odds of 16 to 9."""


def battle_status(
    battle: ArrayLike, order: ArrayLike, replicate: ArrayLike, status: ArrayLike, *, n_battles: int
) -> NDArray[np.str_]:
    """Return one status per battle: ``ok``, the class of its failure, or ``not_judged``.

    An order has failed if none of its replicates was read. A battle without a score takes the
    class of its first failed order, AB before BA, and there of the first replicate: one battle,
    one class, so that classes add up to the battles.

    Columns (n,) are of each answer: its `battle` and `replicate`, from 0; its `order`, which is
    ``AB``, ``BA``, or ``mean`` for a published average over both; its `status`, ``ok`` or the class
    of the failure. `n_battles` counts battles without answers too.
    """
    columns = {"battle": battle, "order": order, "replicate": replicate, "status": status}
    place, shown, repeat, fate = alike(**columns)
    place, repeat, fate = place.astype(np.int64), repeat.astype(np.int64), fate.astype(str)
    require(np.isin(shown, _ORDERS), "order", shown, "AB, BA or mean")
    known = (place >= 0) & (place < n_battles)
    require(known, "battle", place, f"0 to {n_battles - 1}")
    key = place * len(_ORDERS) + np.select([shown == name for name in _ORDERS], range(3))
    read = np.bincount(key[fate == SCORED], minlength=n_battles * len(_ORDERS)) > 0
    failed = np.flatnonzero(~read[key])
    failed = failed[np.lexsort((repeat[failed], key[failed]))]
    battles, first = np.unique(place[failed], return_index=True)
    statuses = np.full(n_battles, NOT_JUDGED, dtype=np.result_type(fate, np.array([NOT_JUDGED])))
    statuses[battles] = fate[failed[first]]
    first_shown, second_shown, published = read.reshape(n_battles, len(_ORDERS)).T
    statuses[(first_shown & second_shown) | published] = SCORED
    return statuses


def length_bins(length: ArrayLike) -> Ints:
    """Return the quarter of each length (n,), shortest first from 0; -1 where it is NaN.

    Equal lengths share a bin, so that bins can be fewer than four, and less even.
    """
    values = np.asarray(length, dtype=float)
    known = np.isfinite(values)
    bins = np.full(values.size, -1, dtype=np.int64)
    if known.any():
        edges = np.quantile(values[known], [0.25, 0.5, 0.75])
        bins[known] = np.unique(np.searchsorted(edges, values[known]), return_inverse=True)[1]
    return bins


def excess_p_values(
    n_missing: ArrayLike, n_battles: ArrayLike, *, all_missing: int, all_battles: int
) -> Floats:
    """Return p-values of each model's number of missing battles, corrected for looking at them all.

    If which battles are missing has nothing to do with who fought them (any `all_missing` of
    the battles are as likely as any other), the number of a model's own among them is
    hypergeometric. The p-value is the chance of that many or more; Holm's correction keeps the
    chance of any false alarm over all models below the level, however the models' counts hang
    together (each battle is in two of them). Battles on one question may well fail together:
    then p-values come out too small.

    Missing battles and all battles are of each model, (m,), and of the corpus.

    References
    ----------
    R. A. Fisher (1935), "The Logic of Inductive Inference", JRSS 98(1). S. Holm (1979), "A
    Simple Sequentially Rejective Multiple Test Procedure", Scand. J. Statist. 6(2).
    """
    from scipy.stats import hypergeom

    missing, battles = np.asarray(n_missing, dtype=np.int64), np.asarray(n_battles, dtype=np.int64)
    wrong = (missing > battles) | (missing > all_missing) | (battles > all_battles) | (missing < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{missing[row]} of {battles[row]} battles missing in row {row}, where "
            f"{all_missing} of {all_battles} are missing in all; a part exceeds its whole"
        )
    chance = np.asarray(hypergeom.sf(missing - 1, all_battles, all_missing, battles))
    order = np.argsort(chance, kind="stable")
    corrected = np.empty(chance.size)
    rising = np.maximum.accumulate(chance[order] * np.arange(chance.size, 0, -1))
    corrected[order] = np.minimum(rising, 1.0)
    return corrected


class MissingBounds(NamedTuple):
    """One row per model and method, ``hard`` and ``soft``.

    `rating` as it stands, `worst_rating` and `best_rating` are in Elo points, NaN where the
    model has no rating to bound. `n_battles` are scored and `n_missing` are not, against
    anchors; `n_missing_other` are missing against other models and could not move the rating.
    """

    model: NDArray[np.str_]
    method: NDArray[np.str_]
    rating: Floats
    worst_rating: Floats
    best_rating: Floats
    n_battles: Ints
    n_missing: Ints
    n_missing_other: Ints


def bound_missing(
    battles: CodedBattles,
    beta_folds: BetaFolds,
    missing_a: ArrayLike,
    missing_b: ArrayLike,
    *,
    l2: float,
) -> MissingBounds:
    """Return each model's rating, and the ratings if its missing battles were all lost or won.

    Hard outcomes of a missing battle range from 0 to 1, soft ones from ``sigmoid(-reach beta)`` to
    ``sigmoid(reach beta)`` at the slope of the model's fold. The bounds hold the hard rating as it
    stands; a soft one can lie outside, where the model's anchors are so far away that no single
    verdict could express it.

    `missing_a` and `missing_b` (k,) name the models of the missing battles, which may have no
    scored battle at all. The reach is the largest score difference of a rubric from 1 to 10, 9;
    ValueError if a scored battle lies beyond. Rows are by name, hard first.

    References
    ----------
    C. F. Manski (1990), "Nonparametric Bounds on Treatment Effects", American Economic Review
    80(2).
    """
    first, second = model_pairs(missing_a=missing_a, missing_b=missing_b)
    points = battles.rubric_points()
    require(np.abs(points) <= _REACH, "score_difference", points, f"at most {_REACH:g} apart")
    names = np.array(sorted({*battles.models, *first.tolist(), *second.tolist()}))
    rated = np.searchsorted(names, np.array(battles.models))
    missing = np.zeros((names.size, names.size), dtype=np.int64)
    np.add.at(missing, (np.searchsorted(names, first), np.searchsorted(names, second)), 1)
    missing += missing.T
    counted = missing[:, rated[battles.voted_models()]]
    found = place(battles, beta_folds, l2=l2)
    most = {"hard": np.ones(rated.size), "soft": expit(_REACH * beta_folds.beta)}
    ratings = np.full((names.size, len(most), 3), np.nan)
    n_battles = np.zeros((names.size, len(most)), dtype=np.int64)
    n_missing, own = counted.sum(axis=1), counted[rated]
    for row, (method, share) in enumerate(most.items()):
        target, fit = found.bases[method].target, found.placed[method]
        wins = np.where(np.isfinite(fit.strength), target.own_wins.sum(axis=1), np.nan)
        strengths = [fit.strength]  # as it stands, at worst, at best
        for end in (1 - share, share):
            won, counts = wins + end * own.sum(axis=1), target.n_battles + own
            moved = place_models(won, counts, fit.anchors, l2=l2)
            strengths.append(np.where(own.any(axis=1), moved, fit.strength))
        ratings[rated, row] = strength_to_rating(strengths).T
        n_battles[rated, row] = target.n_battles.sum(axis=1)
    rating, worst, best = ratings.reshape(-1, 3).T
    return MissingBounds(
        np.repeat(names, len(most)),
        np.tile(list(most), names.size),
        rating,
        worst,
        best,
        n_battles.ravel(),
        np.repeat(n_missing, len(most)),
        np.repeat(missing.sum(axis=1) - n_missing, len(most)),
    )


def width_limit(half_width: ArrayLike) -> Floats:
    """Return an interval's `half_width` (n,), Elo points, or `MAX_WIDTH` where that is not finite.

    Bounds that are further apart outweigh the interval.
    """
    width = np.asarray(half_width, dtype=np.float64)
    return np.where(np.isfinite(width), width, MAX_WIDTH)

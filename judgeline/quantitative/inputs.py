"""Inputs of quantitative judges: base scores, embeddings of rationales, and the order shown.

A value that has no place in a fit - a certainty without a logit, a missing rationale - is
refused here, by row. A rationale speaks of the answers as they were shown, so a presentation's
score and outcome favour the answer shown first; a battle's prediction favours A.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logit

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]


class TooLittleToLearnError(ValueError):
    """Votes or ratings that are in order, but too few or too much alike for a fit.

    A caller with many corpora may report it and go on; any other `ValueError` is a wrong input.
    """


def base_logit(probability: ArrayLike) -> Floats:
    """Return log-odds, in nats, of a base judge's probabilities that the first of two wins.

    A certainty has no logit and is refused: a judge that only says who wins can give -1, 0 or 1.
    """
    values = np.asarray(probability, dtype=float)
    _require(
        (values > 0) & (values < 1),
        values,
        "probability",
        "strictly between 0 and 1; a judge without probabilities can give -1, 0, 1 as its score",
    )
    return np.asarray(logit(values))


def base_logit_of_scores(score_first: ArrayLike, score_second: ArrayLike) -> Floats:
    """Return the logit ``log b1 - log b2`` of absolute scores in points, the base of BTL2."""
    first, second = np.asarray(score_first, dtype=float), np.asarray(score_second, dtype=float)
    if first.shape != second.shape:
        raise ValueError(f"scores have shapes {first.shape} and {second.shape}; expected one shape")
    remedy = "positive and finite; move a scale that holds 0 up by a constant first"
    _require((first > 0) & np.isfinite(first), first, "score_first", remedy)
    _require((second > 0) & np.isfinite(second), second, "score_second", remedy)
    return np.asarray(np.log(first) - np.log(second))


def log_probabilities(probabilities: ArrayLike) -> Floats:
    """Return natural logarithms of category probabilities (n, S), whose rows add up to 1."""
    values = np.asarray(probabilities, dtype=float)
    if values.ndim != 2 or values.shape[1] < 2:
        raise ValueError(f"probabilities must have shape (n, S) with S >= 2, got {values.shape}")
    remedy = "strictly between 0 and 1; add a small mass to every category and normalise"
    _require((values > 0) & (values < 1), values, "probabilities", remedy)
    total = values.sum(axis=1)
    if (np.abs(total - 1) > 1e-4).any():
        row = int(np.argmax(np.abs(total - 1)))
        raise ValueError(f"row {row} of probabilities adds up to {total[row]:.6g}, not 1")
    return np.asarray(log_softmax(np.log(values), axis=1))


def require_embeddings(embeddings: ArrayLike, n_features: int | None = None) -> Floats:
    """Return embeddings as floats of shape (..., d), or raise on a missing rationale."""
    values = np.asarray(embeddings, dtype=float)
    if values.ndim < 2:
        raise ValueError(f"embeddings must have shape (n, d), got {values.shape}")
    if n_features is not None and values.shape[-1] != n_features:
        raise ValueError(
            f"embeddings have {values.shape[-1]} features, the judge has {n_features} weights; "
            "embed the rationales with the model that the judge was fitted with"
        )
    present = np.isfinite(values).all(axis=-1)
    if not present.all():
        raise ValueError(
            f"{int((~present).sum())} of {present.size} embeddings are missing or not finite, "
            f"first in row {_place(present)}; leave out the rows whose verdict has no rationale"
        )
    return values


def require_rows(
    embeddings: ArrayLike, base: ArrayLike, n_features: int | None = None
) -> tuple[Floats, Floats]:
    """Return embeddings (..., d) and base scores (...) as floats that belong together."""
    features, values = require_embeddings(embeddings, n_features), np.asarray(base, dtype=float)
    if values.shape != features.shape[:-1]:
        raise ValueError(
            f"base scores have shape {values.shape}, the embeddings {features.shape[:-1]}"
        )
    _require(np.isfinite(values), values, "base", "finite; leave out rows without a score")
    return features, values


def _place(good: Mask) -> int | tuple[int, ...]:
    place = tuple(int(i) for i in np.argwhere(~good)[0])
    return place[0] if len(place) == 1 else place


def _require(good: Mask, values: Floats, name: str, expected: str) -> None:
    if not good.all():
        where = _place(good)
        raise ValueError(f"{name} is {values[where]:g} in row {where}; expected {expected}")


def require_column(column: ArrayLike, n_rows: int, name: str) -> Floats:
    """Return one finite number per row (n,), or raise naming the first that is none."""
    values = np.asarray(column, dtype=float)
    if values.shape != (n_rows,) or n_rows == 0:
        raise ValueError(f"{name} has shape {values.shape}, the embeddings {n_rows} rows")
    _require(np.isfinite(values), values, name, "finite; leave out rows without one")
    return values


def require_ratings(rating: ArrayLike, n_rows: int) -> Floats:
    """Return human ratings (n,), or raise if one is missing or all are alike."""
    values = require_column(rating, n_rows, "rating")
    if (values == values[0]).all():
        raise TooLittleToLearnError(
            f"all {n_rows} ratings are {values[0]:g}: nothing to learn; use rows that differ"
        )
    return values


def require_shares(outcome: ArrayLike, n_rows: int) -> Floats:
    """Return outcomes (n,) in [0, 1], or raise if one is outside or all are alike."""
    values = require_column(outcome, n_rows, "outcome")
    _require((values >= 0) & (values <= 1), values, "outcome", "a share of the win in [0, 1]")
    if (values == values[0]).all():
        kind = {0.0: "losses", 0.5: "ties", 1.0: "wins"}.get(float(values[0]), "alike")
        raise TooLittleToLearnError(
            f"all {n_rows} outcomes are {kind} ({values[0]:g}): a judge fitted to them says "
            "nothing about the answers; add votes of the other kinds"
        )
    return values


def require_votes(outcome: Floats) -> None:
    """Raise unless outcomes (n,) are shares of a win, or NaN where nobody voted."""
    good = np.isnan(outcome) | ((outcome >= 0) & (outcome <= 1))
    _require(good, outcome, "outcome", "[0, 1] or NaN: correct human_outcome, or empty it")


def require_weights(weight: ArrayLike | None, n_rows: int) -> Floats:
    """Return positive row weights (n,); ones if there are none."""
    if weight is None:
        return np.ones(n_rows)
    values = require_column(weight, n_rows, "weight")
    _require(values > 0, values, "weight", "positive; leave out rows that must not count")
    return values


def require_categories(category: ArrayLike, shape: tuple[int, ...]) -> Rows:
    """Return categories (n,) 0 to S - 1 for probabilities of shape (n, S), each one present."""
    n_rows, n_categories = shape
    values = require_column(category, n_rows, "category")
    if n_categories < 3:
        raise ValueError(f"probabilities have {n_categories} columns; for two, fit method btl")
    expected = f"a column of the probabilities, 0 to {n_categories - 1}"
    _require(np.isin(values, np.arange(n_categories)), values, "category", expected)
    counts = np.bincount(values.astype(np.intp), minlength=n_categories)
    if not counts.all():
        absent = np.flatnonzero(counts == 0).tolist()
        raise TooLittleToLearnError(
            f"categories {absent} are absent from the {n_rows} training rows: their probability "
            "cannot be learned; add ratings of theirs, on several questions, or merge categories"
        )
    return values.astype(np.intp)


def require_rankings(ranking: ArrayLike, shape: tuple[int, ...]) -> Rows:
    """Return rankings (n, T) of sets of shape (n, K), or raise naming the first bad one."""
    order = np.asarray(ranking)
    if len(shape) != 2 or shape[1] < 2 or order.ndim != 2 or order.shape[0] != shape[0]:
        raise ValueError(
            f"ranking has shape {order.shape}, scores {shape}; expected (n, T) and (n, K), K >= 2"
        )
    if not 1 <= order.shape[1] <= shape[1]:
        raise ValueError(f"a ranking of {order.shape[1]} out of {shape[1]} alternatives")
    known = np.isin(order, np.arange(shape[1])).all(axis=1)
    good = known & (np.diff(np.sort(order, axis=1), axis=1) > 0).all(axis=1)
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"ranking is {order[row].tolist()} in row {row}; expected distinct positions 0 to "
            f"{shape[1] - 1}, best first"
        )
    return order.astype(np.intp)


# ------------------------------------------------------------------ presentations


class Presentations(NamedTuple):
    """r presentations of battles; make them with `presentations` or `two_headed`.

    `embeddings` (r, d); `base` (r,): logit that the answer shown first wins; `battle` (r,):
    its position; `swapped` (r,): whether B was shown first.
    """

    embeddings: Floats
    base: Floats
    battle: Rows
    swapped: Mask


def presentations(
    embeddings: ArrayLike, base: ArrayLike, battle: ArrayLike, swapped: ArrayLike
) -> Presentations:
    """Return presentations for BTL, one rationale each; a battle may have any number of them.

    Parameters
    ----------
    embeddings : array_like, shape (r, d)
        Embeddings of the rationales.
    base : array_like, shape (r,)
        Logit, or score, that favours the answer shown first when positive.
    battle : array_like of int, shape (r,)
        Position of the battle, from 0.
    swapped : array_like of bool, shape (r,)
        Whether B was shown first.

    Raises
    ------
    ValueError
        If shapes or types differ from these, or a number is missing.
    """
    features, scores = require_rows(embeddings, base)
    place, order = np.asarray(battle), np.asarray(swapped)
    if features.ndim != 2 or place.shape != scores.shape or order.shape != scores.shape:
        raise ValueError(
            f"embeddings have shape {features.shape}, battle {place.shape}, swapped {order.shape};"
            " expected (r, d), (r,), (r,)"
        )
    if order.dtype != np.bool_:
        raise ValueError(f"swapped holds {order.dtype}; expected booleans: was B shown first")
    if not np.issubdtype(place.dtype, np.integer) or (place < 0).any():
        raise ValueError("battle must hold whole numbers from 0, the positions of the battles")
    return Presentations(features, scores, place.astype(np.intp), order)


def two_headed(
    embeddings_a: ArrayLike, embeddings_b: ArrayLike, score_a: ArrayLike, score_b: ArrayLike
) -> Presentations:
    """Return presentations for BTL2: two rationales about single answers, in both orders.

    Features are ``phi(e1) - phi(e2)``, the base is the logit of ``b1 / (b1 + b2)``. Every
    battle stands there both ways round, battles 0 to n - 1 with A first, then again with B first:
    no fit can tell A from B.

    Parameters
    ----------
    embeddings_a, embeddings_b : array_like, shape (n, d)
        Embeddings of the rationales about either answer.
    score_a, score_b : array_like, shape (n,)
        Scores of either answer, in points above 0.

    Raises
    ------
    ValueError
        If shapes differ, a number is missing or a score is not positive.
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
    """Return the share of the win of the answer shown first (r,), from A's per battle (n,)."""
    shares = np.asarray(outcome, dtype=float)[shown.battle]
    return np.where(shown.swapped, 1 - shares, shares)


def presentation_weights(shown: Presentations) -> Floats:
    """Return one over the number of presentations of each row's battle, shape (r,)."""
    return np.asarray(1 / np.bincount(shown.battle)[shown.battle])


def battle_outcomes(probability: ArrayLike, shown: Presentations) -> Floats:
    """Return A's probability of winning each battle: the mean of p(AB) and 1 - p(BA).

    From the probability (r,) or (r, F) that the answer shown first wins come means within each
    order, then over the orders that there are, (n,) or (n, F).
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

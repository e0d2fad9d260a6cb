"""Inputs of quantitative judges: scores, embeddings, the order shown; scales, folds, penalties.

A value that has no place in a fit - a certainty without a logit, a missing rationale - is
refused here, by row. A rationale speaks of the answers as they were shown, so a presentation's
score and outcome favour the answer shown first; a battle's prediction favours A.
"""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logit

from judgeline.arrays import Floats, alike, alike_floats, require

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
    remedy = "a judge without probabilities can give -1, 0, 1 as its score"
    is_open = (values > 0) & (values < 1)
    require(is_open, "probability", values, f"strictly between 0 and 1; {remedy}")
    return np.asarray(logit(values))


def base_logit_of_scores(score_first: ArrayLike, score_second: ArrayLike) -> Floats:
    """Return the logit ``log b1 - log b2`` of absolute scores in points, the base of BTL2."""
    columns = {"score_first": score_first, "score_second": score_second}
    first, second = values = alike_floats(np.ndim(score_first), **columns)
    for name, scores in zip(columns, values, strict=True):
        remedy = "positive and finite; move a scale that holds 0 up by a constant first"
        require((scores > 0) & np.isfinite(scores), name, scores, remedy)
    return np.asarray(np.log(first) - np.log(second))


def log_probabilities(probabilities: ArrayLike) -> Floats:
    """Return natural logarithms of category probabilities (n, S), whose rows add up to 1."""
    values = np.asarray(probabilities, dtype=float)
    has_rows = values.ndim == 2 and values.shape[1] >= 2
    require(has_rows, "the shape of probabilities", values.shape, "(n, S) with S >= 2")
    remedy = "strictly between 0 and 1; add a small mass to every category and normalise"
    require((values > 0) & (values < 1), "probabilities", values, remedy)
    total = values.sum(axis=1)
    require(np.abs(total - 1) <= 1e-4, "the sum of probabilities", total, "1")
    return np.asarray(log_softmax(np.log(values), axis=1))


def require_rows(
    embeddings: ArrayLike, base: ArrayLike, n_features: int | None = None
) -> tuple[Floats, Floats]:
    """Return embeddings (..., d) and base scores (...) as floats that belong together."""
    features, values = np.asarray(embeddings, dtype=float), np.asarray(base, dtype=float)
    require(features.ndim >= 2, "the shape of embeddings", features.shape, "(n, d)")
    width, shape = features.shape[-1], features.shape[:-1]
    remedy = "embed the rationales with the model that the judge was fitted with"
    known = n_features in (None, width)
    require(known, "the number of features", width, f"the judge's {n_features} weights; {remedy}")
    remedy = "finite; leave out the rows whose verdict has no rationale"
    require(np.isfinite(features), "embeddings", features, remedy)
    require(values.shape == shape, "the shape of base", values.shape, f"{shape}, as embeddings")
    require(np.isfinite(values), "base", values, "finite; leave out rows without a score")
    return features, values


def require_column(column: ArrayLike, n_rows: int, name: str) -> Floats:
    """Return one finite number per row (n,), or raise naming the first that is none."""
    values = np.asarray(column, dtype=float)
    fits = values.shape == (n_rows,) and n_rows > 0
    require(fits, f"the shape of {name}", values.shape, f"the {n_rows} rows of embeddings")
    require(np.isfinite(values), name, values, "finite; leave out rows without one")
    return values


def require_contrast(values: Floats, name: str) -> None:
    """Raise if all ratings or outcomes (n,) are alike."""
    if (values == values[0]).all():
        raise TooLittleToLearnError(
            f"all {values.size} {name}s are {values[0]:g}: nothing to learn; add others"
        )


def require_target(form: str, target: ArrayLike, shape: tuple[int, ...]) -> Any:
    """Return targets of a form for base columns of a shape, or raise if they teach too little."""
    if form == "pl":
        return require_rankings(target, shape[:-1])
    n_rows, n_categories = shape
    name = {"ls": "rating", "btl": "outcome", "mn": "category"}[form]
    values = require_column(target, n_rows, name)
    if form == "btl":
        require((values >= 0) & (values <= 1), name, values, "a share of the win in [0, 1]")
    if form != "mn":
        require_contrast(values, name)
        return values
    remedy = "3 or more; for two, fit method btl"
    require(n_categories >= 3, "the number of categories", n_categories, remedy)
    expected = f"a column of the probabilities, 0 to {n_categories - 1}"
    require(np.isin(values, np.arange(n_categories)), name, values, expected)
    counts = np.bincount(values.astype(np.intp), minlength=n_categories)
    if not counts.all():
        absent = np.flatnonzero(counts == 0).tolist()
        raise TooLittleToLearnError(
            f"categories {absent} are absent from the {n_rows} training rows: their probability "
            "cannot be learned; add ratings of theirs, on several questions, or merge categories"
        )
    return values.astype(np.intp)


def require_votes(outcome: Floats) -> None:
    """Raise unless outcomes (n,) are shares of a win, or NaN where nobody voted."""
    good = np.isnan(outcome) | ((outcome >= 0) & (outcome <= 1))
    require(good, "outcome", outcome, "[0, 1] or NaN: correct human_outcome, or empty it")


def require_rankings(ranking: ArrayLike, shape: tuple[int, ...]) -> Rows:
    """Return rankings (n, T) of sets of shape (n, K), or raise naming the first bad one."""
    order = np.asarray(ranking)
    fits = len(shape) == 2 and shape[1] >= 2 and order.ndim == 2 and len(order) == shape[0]
    fits = fits and 1 <= order.shape[1] <= shape[1]
    expected = f"(n, T) for scores (n, K), here {shape}, with 1 <= T <= K and K >= 2"
    require(fits, "the shape of ranking", order.shape, expected)
    known = np.isin(order, np.arange(shape[1])).all(axis=1)
    good = known & (np.diff(np.sort(order, axis=1), axis=1) > 0).all(axis=1)
    expected = f"distinct positions 0 to {shape[1] - 1}, best first"
    require(good, "ranking", order, expected)
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
    alike(base=scores, battle=place, swapped=order)
    require(order.dtype == np.bool_, "swapped", order.dtype, "booleans: was B shown first")
    require(place.dtype.kind in "iu", "battle", place.dtype, "whole numbers, positions of battles")
    require(place >= 0, "battle", place, "a position from 0")
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
    first, second = alike_floats(2, embeddings_a=embeddings_a, embeddings_b=embeddings_b)
    base = base_logit_of_scores(score_a, score_b)
    difference = require_rows(first, base)[0] - require_rows(second, base)[0]
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
    size = int(shown.battle.max()) + 1
    place = 2 * shown.battle + shown.swapped
    counts = np.bincount(place, minlength=2 * size)
    total = np.zeros((2 * size, *chance.shape[1:]))
    np.add.at(total, place, chance)
    means = (total.T / np.maximum(counts, 1)).T.reshape(size, 2, *chance.shape[1:])
    present = (counts > 0).reshape(size, 2, *[1] * (chance.ndim - 1))
    n_orders = present.sum(axis=1)
    remedy = "1 or 2; leave it out, or number the battles that have a rationale"
    require(n_orders > 0, "the number of presentations of a battle", n_orders, remedy)
    leads = np.where(present, means - 0.5, 0.0)
    return np.asarray(0.5 + (leads[:, 0] - leads[:, 1]) / n_orders)


PENALTIES: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Default grid of gamma; its largest leaves all but the base judge's own score."""

N_FOLDS = 5
"""Default number of folds, as published."""

SIZES: Sequence[int] = (100, 200, 500)
"""Votes in a training set, as published."""

N_SETS = 10
"""Training sets per size, as published."""

BASE_PENALTY = 0.01
"""Penalty on the squared weight of a standardised base score; a certain vote adds up to 1/4."""


def fit_scaling(embeddings: Floats, base: Floats) -> tuple[Floats, Floats]:
    """Return centres and units (d + q,) of embeddings (n, d) and base scores (n, q).

    Embeddings share one unit, the root mean squared distance from their mean, so that one grid of
    penalties serves every embedder; a base score's is its standard deviation, 1 where it never
    varies. Nothing here has seen a human vote.
    """
    centre, base_centre = embeddings.mean(axis=0), base.mean(axis=0)
    unit = float(np.sqrt(((embeddings - centre) ** 2).sum(axis=1).mean()))
    spread = base.std(axis=0)
    flat = spread <= 1e-12 * np.maximum(1.0, np.abs(base_centre))
    units = np.full(centre.size, unit or 1.0), np.where(flat, 1.0, spread)
    return np.concatenate([centre, base_centre]), np.concatenate(units)


def question_codes(question: Any) -> Rows:
    """Return questions (n,) as codes from 0."""
    return np.asarray(np.unique(np.asarray(question), return_inverse=True)[1].reshape(-1))


def question_folds(
    question: ArrayLike | Sequence[Hashable], *, n_folds: int, rng: np.random.Generator
) -> Rows:
    """Return the fold of every row (n,), the same for all rows of a question.

    Shuffled questions are dealt out like cards: their counts differ by one at most.
    """
    names, place = np.unique(np.asarray(question), return_inverse=True)
    require(n_folds >= 2, "n_folds", n_folds, "2 or more")
    if names.size < n_folds:
        raise TooLittleToLearnError(
            f"there are labels on {names.size} question(s), and {n_folds} at least are needed to "
            "learn from and test on: no label on a question may teach what it tests; add labels "
            "on more questions"
        )
    fold = np.empty(names.size, dtype=np.intp)
    fold[rng.permutation(names.size)] = np.arange(names.size) % n_folds
    return np.asarray(fold[place.reshape(-1)])


class PenaltyChoice(NamedTuple):
    """The penalty chosen by cross-validation, with the losses of the grid.

    `penalty`: gamma, the prior precision of a unit of embedding (`fit_scaling`). `penalties` (G,):
    the grid, ascending. `losses` (G,): held-out loss of each, per row. At the last one of the
    grid the embedding is all but unused, at the first one a smaller penalty might do better.
    """

    penalty: float
    penalties: Floats
    losses: Floats


def chosen(grid: Floats, losses: Floats) -> PenaltyChoice:
    """Return the choice that losses (G,) make on an ascending grid (G,): of equals the larger."""
    best = int(np.flatnonzero(losses == losses.min())[-1])
    return PenaltyChoice(float(grid[best]), grid, losses)


def require_grid(penalties: Sequence[float]) -> Floats:
    """Return the grid as floats, or raise unless it is ascending and positive."""
    grid = np.asarray(penalties, dtype=float)
    steps = np.diff(np.atleast_1d(grid), prepend=0.0, append=np.inf)
    ascends = grid.ndim == 1 and grid.size > 0 and bool((steps > 0).all())
    require(ascends, "penalties", list(penalties), "positive, ascending numbers")
    return grid


class Design(NamedTuple):
    """Training sets of `trials`.

    `sizes`: labels in a training set; those that some draw cannot fill are left out. `n_sets`:
    draws. `n_folds`, `penalties`: as in `fit_judge`. `tested` (n,): what every
    set is tested on; without it, a third of the questions of each draw. No set trains on another
    label of a tested question.
    """

    sizes: Sequence[int] = SIZES
    n_sets: int = N_SETS
    n_folds: int = N_FOLDS
    penalties: Sequence[float] = PENALTIES
    tested: NDArray[np.bool_] | None = None


class Fit(NamedTuple):
    """Predictions (n, ...) by a judge of one training set, and by its score alone."""

    choice: PenaltyChoice | None
    ours: Floats
    score_only: Floats

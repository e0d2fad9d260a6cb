"""Cross-fitted outcomes by quantitative judges: none has seen a vote on its own battles.

For a held-out model m and a fold of questions: one fit without any battle of m and without
those questions predicts the fold's battles. Its penalty is chosen on the same votes, by
cross-validation over the other folds, so that choosing it reveals nothing either.
"""

from collections.abc import Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from judgeline.arrays import Floats, alike, require
from judgeline.quantitative.inputs import (
    N_FOLDS,
    PENALTIES,
    Presentations,
    Rows,
    TooLittleToLearnError,
    battle_outcomes,
    presentation_weights,
    presented_outcomes,
    question_folds,
    require_contrast,
    require_grid,
    require_votes,
)
from judgeline.quantitative.newton import Coordinates, coordinates, fit_many

_SELECTION = 1e-3  # logits; differences of penalties matter far above


class CrossFitted(NamedTuple):
    """Predictions of n battles by judges that leave out each of M models in turn.

    `outcome` (M, n): A's probability of winning, in row m by judges that saw no vote on m's
    battles and none on the battle's own question. `penalty` (M, n_folds): gamma of each
    judge. `fold` (n,): which judge of a row predicts the battle.
    """

    outcome: Floats
    penalty: Floats
    fold: Rows


def cross_fitted_outcomes(
    shown: Presentations,
    model_a: ArrayLike,
    model_b: ArrayLike,
    outcome: ArrayLike,
    question: ArrayLike,
    *,
    n_models: int,
    rng: np.random.Generator,
    n_folds: int = N_FOLDS,
    penalties: Sequence[float] = PENALTIES,
) -> CrossFitted:
    """Return every battle's BTL or BTL2 outcome, for each held-out model.

    Assumes that votes on different questions are independent given texts and models. Then
    the outcomes in row m are soft targets that owe nothing to the votes they stand in for.
    Features are scaled over all presentations, voted or not; each vote counts once, however
    often its battle was presented. Models without votes share one set of fits.

    Parameters
    ----------
    shown : Presentations
        Presentations of n battles, at least one of each (`presentations`, `two_headed`).
    model_a, model_b : array_like of int, shape (n,)
        Codes of the models, 0 to ``n_models - 1``.
    outcome : array_like, shape (n,)
        A's share of the human win in [0, 1], NaN where nobody voted.
    question : array_like, shape (n,)
        The question of each battle.
    n_models : int
        M.
    rng : numpy.random.Generator
        Deals questions to folds; nothing else is random.
    n_folds : int
        Folds of questions, 3 or more (2 if there is one penalty only).
    penalties
        As in `fit_judge`.

    Raises
    ------
    TooLittleToLearnError
        If there are fewer questions than folds, or the votes left for some fit are none or all
        alike (the message names model and folds).
    ValueError
        If a battle has no presentation, or a model code or an outcome is out of range.
    RuntimeError
        If a fit does not converge.

    Notes
    -----
    For each model, fits without a pair of folds serve both: each is held out once while the
    penalty of the other is chosen. Every fit starts from zero in coordinates that no vote has
    touched, together with others of the same folds, on rows that no vote has chosen: those that
    must not count weigh 0. Votes that must not count can thus be turned round, or some of them left
    out, without changing a bit of a prediction. Where penalties are compared, fits are in single
    precision.
    """
    grid = require_grid(penalties)
    if grid.size > 1 and n_folds < 3:
        raise ValueError(
            f"n_folds is {n_folds}: choosing among {grid.size} penalties without a battle's own "
            "fold needs 3 folds or more; give one penalty or more folds"
        )
    fold = question_folds(question, n_folds=n_folds, rng=rng)
    codes, shares = np.column_stack((model_a, model_b)), np.asarray(outcome, dtype=float)
    _require_battles(shown, codes, shares, fold, n_models)
    models, fold_of = codes[shown.battle], fold[shown.battle]
    presented = presented_outcomes(shares, shown)
    is_voted = ~np.isnan(presented)
    target = np.where(is_voted, presented, 0.5)  # a number, but rows without a vote weigh 0
    voted = np.unique(models[is_voted]).astype(np.intp)
    # models to leave out, -1 for none; and which of them serves each model
    held_out = [*voted.tolist(), *[-1][: n_models - voted.size]]
    judge_of = np.full(n_models, len(held_out) - 1, dtype=np.intp)
    judge_of[voted] = np.arange(voted.size)
    counted = np.column_stack([is_voted & (models != one).all(axis=1) for one in held_out])
    pairs = list(combinations(range(n_folds), 2)) if grid.size > 1 else []
    for (place, model), left_out in product(
        enumerate(held_out), [*combinations(range(n_folds), 1), *pairs]
    ):
        _require_contrast(target[counted[:, place] & ~np.isin(fold_of, left_out)], model, left_out)
    weights = presentation_weights(shown)
    where = coordinates(shown.embeddings, shown.base, weights)
    weights = weights[:, None] * counted
    chosen = _chosen_penalties(where.single(), weights, target, fold_of, pairs, grid)
    logits = np.zeros(counted.shape)
    for k in range(n_folds):
        own = fold_of == k
        logits[own] = fit_many(where, weights, target, chosen[:, k], rows=~own)[own]
    outcomes = battle_outcomes(expit(logits), shown).T
    return CrossFitted(outcomes[judge_of], chosen[judge_of], fold)


def _require_battles(
    shown: Presentations, codes: Rows, shares: Floats, fold: Rows, n_models: int
) -> None:
    """Raise unless models have codes, votes are shares, and each battle has a presentation."""
    alike(model_a=codes[:, 0], outcome=shares, question=fold)
    known = np.isin(codes, np.arange(n_models)).all(axis=1)
    require(known, "the pair of models", codes, "codes 0 to M - 1")
    require_votes(shares)
    absent = np.flatnonzero(np.bincount(shown.battle, minlength=fold.size) == 0)
    if absent.size or int(shown.battle.max()) >= fold.size:
        raise ValueError(
            f"{absent.size} of {fold.size} battles have no presentation with a rationale, first "
            f"{absent[:1].tolist()}, and presentations name battles up to {shown.battle.max()}; "
            "leave out battles without a rationale and number the rest from 0"
        )


def _require_contrast(votes: Floats, model: int, folds: tuple[int, ...]) -> None:
    """Raise if the votes of a fit are none or all alike; the message names the part left out."""
    name = f"model {model}" if model >= 0 else "leaving out a model"
    name += f", fold{'s' * (len(folds) > 1)} {' and '.join(map(str, folds))}"
    if not votes.size:
        raise TooLittleToLearnError(
            f"no votes are left without {name}; add votes on more questions"
        )
    try:
        require_contrast(votes, "outcome")
    except TooLittleToLearnError as error:
        raise TooLittleToLearnError(f"without {name}: {error}") from error


def _chosen_penalties(
    where: Coordinates,
    weights: Floats,
    target: Floats,
    fold_of: Rows,
    pairs: Sequence[tuple[int, int]],
    grid: Floats,
) -> Floats:
    """Return the penalty of each judge (F, n_folds), chosen without its fold and its model."""
    n_fits = weights.shape[1]
    losses = np.zeros((grid.size, n_fits, int(fold_of.max()) + 1))
    for (j, k), (place, gamma) in product(pairs, enumerate(grid)):
        rows, gammas = (fold_of != j) & (fold_of != k), np.full(n_fits, gamma)
        scores = fit_many(where, weights, target, gammas, rows=rows, tolerance=_SELECTION)
        for fold, other in ((j, k), (k, j)):
            own = fold_of == fold
            loss = np.logaddexp(0, scores[own]) - target[own, None] * scores[own]
            losses[place, :, other] += (weights[own] * loss).sum(axis=0)
    best = grid.size - 1 - losses[::-1].argmin(axis=0)  # of equal losses the larger penalty
    return np.asarray(grid[best])

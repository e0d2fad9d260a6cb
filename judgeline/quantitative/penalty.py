"""The penalty of a quantitative judge: what gamma multiplies, and how it is chosen.

Chosen by cross-validation over whole questions, so that rationales of one question never
stand on both sides.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.quantitative.inputs import TooLittleToLearnError
from judgeline.quantitative.judges import LinearJudge, MultinomialJudge, PenaltyChoice

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Judge = TypeVar("Judge", bound=LinearJudge | MultinomialJudge)

PENALTIES: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Default grid of gamma; its largest leaves all but the base judge's own score."""

N_FOLDS = 5
"""Default number of folds, as published."""


class Scaling(NamedTuple):
    """Common scale of features, so that one grid of penalties serves every embedder.

    `centre` (d,) and `unit`: mean embedding and root mean squared distance from it.
    `base_centre` (q,), `base_unit` (q,): means and standard deviations of the base scores
    (1 where they never vary). Nothing here has seen a human vote.
    """

    centre: Floats
    unit: float
    base_centre: Floats
    base_unit: Floats

    def design(self, embeddings: Floats, base: Floats, penalty: float, base_penalty: float) -> Any:
        """Return columns (n, d + q) on which one penalty is two.

        A common penalty gamma on all weights is `penalty` on the embedding's and
        `base_penalty` on the base scores', whose columns are longer by the root of the ratio.
        """
        stretch = np.sqrt(penalty / base_penalty)
        features = (embeddings - self.centre) / self.unit
        scores = (base - self.base_centre) / self.base_unit * stretch
        return np.hstack([features, scores])

    def unscaled(
        self, coefficients: Floats, intercept: Any, penalty: float, base_penalty: float
    ) -> tuple[Floats, Floats, Any]:
        """Return weights (..., d), base weights (..., q) and bias for the columns as given."""
        stretch = np.sqrt(penalty / base_penalty)
        n_features = self.centre.size
        weights = coefficients[..., :n_features] / self.unit
        base_weights = coefficients[..., n_features:] * stretch / self.base_unit
        bias = intercept - weights @ self.centre - base_weights @ self.base_centre
        return weights, base_weights, bias


def fit_scaling(embeddings: Floats, base: Floats) -> Scaling:
    """Return the scaling of embeddings (n, d) and base scores (n, q) by their own spread."""
    centre, base_centre = embeddings.mean(axis=0), base.mean(axis=0)
    unit = float(np.sqrt(((embeddings - centre) ** 2).sum(axis=1).mean()))
    spread = base.std(axis=0)
    flat = spread <= 1e-12 * np.maximum(1.0, np.abs(base_centre))
    return Scaling(centre, unit or 1.0, base_centre, np.where(flat, 1.0, spread))


def question_folds(
    question: ArrayLike | Sequence[Hashable], *, n_folds: int, rng: np.random.Generator
) -> Rows:
    """Return the fold of every row, the same for all rows of a question.

    Parameters
    ----------
    question : array_like, shape (n,)
        The question of each row; anything that numpy can sort.
    n_folds : int
        Number of folds, 2 or more.
    rng : numpy.random.Generator
        Shuffles the questions, which are then dealt out like cards.

    Returns
    -------
    ndarray of int, shape (n,)
        Folds 0 to ``n_folds - 1``; their question counts differ by one at most.

    Raises
    ------
    TooLittleToLearnError
        If there are fewer questions than folds.
    ValueError
        If there are fewer than two folds.
    """
    names, place = np.unique(np.asarray(question), return_inverse=True)
    if n_folds < 2:
        raise ValueError(f"n_folds must be 2 or more, got {n_folds}")
    if names.size < n_folds:
        raise TooLittleToLearnError(
            f"{names.size} question(s) for {n_folds} folds: rationales of one question must not "
            "stand on both sides; use fewer folds or votes on more questions"
        )
    fold = np.empty(names.size, dtype=np.intp)
    fold[rng.permutation(names.size)] = np.arange(names.size) % n_folds
    return np.asarray(fold[place.reshape(-1)])


def fit_with_chosen_penalty(
    fit: Callable[[Rows, float], Judge],
    loss: Callable[[Judge, Rows], float],
    question: ArrayLike,
    *,
    penalties: Sequence[float] = PENALTIES,
    n_folds: int = N_FOLDS,
    rng: np.random.Generator,
) -> Judge:
    """Return the fit on all rows with the penalty of the smallest held-out loss.

    Parameters
    ----------
    fit : callable of (training rows, penalty) to a judge
        Any of the judges.
    loss : callable of (judge, held-out rows) to float
        Summed loss on the rows.
    question : array_like, shape (n,)
        The question of each row.
    penalties : sequence of float
        Grid of positive penalties, ascending; a single one is taken without comparison.
    n_folds : int
        Number of folds.
    rng : numpy.random.Generator
        Deals questions to folds.

    Returns
    -------
    judge
        With its `PenaltyChoice`; of equal losses the larger penalty.

    Raises
    ------
    TooLittleToLearnError
        If there are fewer questions than folds, or a fold's rest is too little to fit (the
        message names the fold).
    ValueError
        If the grid is empty, not ascending or not positive.
    """
    grid = require_grid(penalties)
    rows = np.arange(np.asarray(question).size)
    if grid.size == 1:
        choice = PenaltyChoice(float(grid[0]), grid, np.full(1, np.nan), False)
        return replace(fit(rows, choice.penalty), choice=choice)
    fold = question_folds(question, n_folds=n_folds, rng=rng)
    total = np.zeros(grid.size)
    for k in range(n_folds):
        train, test = rows[fold != k], rows[fold == k]
        try:
            total += [loss(fit(train, float(gamma)), test) for gamma in grid]
        except TooLittleToLearnError as error:
            raise TooLittleToLearnError(f"without fold {k} of {n_folds}: {error}") from error
    choice = chosen(grid, total / rows.size)
    return replace(fit(rows, choice.penalty), choice=choice)


def chosen(grid: Floats, losses: Floats) -> PenaltyChoice:
    """Return the choice that losses (G,) make on an ascending grid (G,)."""
    best = int(np.flatnonzero(losses == losses.min())[-1])
    on_edge = grid.size > 1 and best in (0, grid.size - 1)
    return PenaltyChoice(float(grid[best]), grid, losses, on_edge)


def require_grid(penalties: Sequence[float]) -> Floats:
    """Return the grid as floats, or raise unless it is ascending and positive."""
    grid = np.asarray(penalties, dtype=float)
    ascending = grid.ndim == 1 and grid.size > 0 and bool((np.diff(grid) > 0).all())
    if not ascending or not (np.isfinite(grid) & (grid > 0)).all():
        raise ValueError(f"penalties must be positive and ascending, got {list(penalties)}")
    return grid

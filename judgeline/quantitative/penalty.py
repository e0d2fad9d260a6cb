"""Scales of the columns, folds of questions, and the penalty that cross-validation chooses."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, require
from judgeline.quantitative.inputs import TooLittleToLearnError

Rows = NDArray[np.intp]

PENALTIES: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Default grid of gamma; its largest leaves all but the base judge's own score."""

N_FOLDS = 5
"""Default number of folds, as published."""

BASE_PENALTY = 0.01
"""Penalty on the squared weight of a standardised base score; a certain vote adds up to 1/4."""


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

    def design(self, embeddings: Floats, base: Floats) -> Floats:
        """Return scaled columns (n, d + q)."""
        features = (embeddings - self.centre) / self.unit
        return np.hstack([features, (base - self.base_centre) / self.base_unit])


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
    """Return the fold of every row (n,), the same for all rows of a question.

    Shuffled questions are dealt out like cards: their counts differ by one at most.
    """
    names, place = np.unique(np.asarray(question), return_inverse=True)
    require(n_folds >= 2, "n_folds", n_folds, "2 or more")
    if names.size < n_folds:
        raise TooLittleToLearnError(
            f"{names.size} question(s) for {n_folds} folds: rationales of one question must not "
            "stand on both sides; use fewer folds or votes on more questions"
        )
    fold = np.empty(names.size, dtype=np.intp)
    fold[rng.permutation(names.size)] = np.arange(names.size) % n_folds
    return np.asarray(fold[place.reshape(-1)])


class PenaltyChoice(NamedTuple):
    """The penalty chosen by cross-validation, with the losses of the grid.

    `penalty`: gamma, the prior precision of a unit of embedding (`Scaling`). `penalties` (G,):
    the grid, ascending. `losses` (G,): held-out loss of each, per row. `on_edge`: whether the
    choice is the first or last of several; at the last one the embedding is all but unused, at
    the first one a smaller penalty might do better.
    """

    penalty: float
    penalties: Floats
    losses: Floats
    on_edge: bool


def chosen(grid: Floats, losses: Floats) -> PenaltyChoice:
    """Return the choice that losses (G,) make on an ascending grid (G,): of equals the larger."""
    best = int(np.flatnonzero(losses == losses.min())[-1])
    on_edge = grid.size > 1 and best in (0, grid.size - 1)
    return PenaltyChoice(float(grid[best]), grid, losses, on_edge)


def require_grid(penalties: Sequence[float]) -> Floats:
    """Return the grid as floats, or raise unless it is ascending and positive."""
    grid = np.asarray(penalties, dtype=float)
    steps = np.diff(np.atleast_1d(grid), prepend=0.0, append=np.inf)
    ascends = grid.ndim == 1 and grid.size > 0 and bool((steps > 0).all())
    require(ascends, "penalties", list(penalties), "positive, ascending numbers")
    return grid

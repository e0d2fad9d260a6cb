"""Many penalised logistic regressions of the same rows at once, each on rows of its own.

Leave-out fits share features, so one matrix product serves them all. A column is frozen once it
has converged and none ever leaves the batch: no fit changes another, not even in its last bit.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, svd
from scipy.special import expit

from judgeline.arrays import Floats
from judgeline.quantitative.inputs import BASE_PENALTY, fit_scaling

_MAX_STEPS = 60
_MAX_INNER = 60
_INNER = 0.1  # share of the gradient that a Newton step may leave over
_HALVINGS = 12
_ALL = slice(None)
_TOGETHER = 160  # fits whose scores are in memory together


class Coordinates(NamedTuple):
    """Rows in coordinates in which fits are quick; made by `coordinates`, without any vote.

    `columns` (r, p): one that is zero in every row; principal components of the scaled embedding,
    what the score and a constant explain taken out; the standardised score; ones. Directions in
    which no row differs, of which hashed words have many, are one direction: that which trades the
    score's own weight for the embedding's. All fits are exactly the same in it.
    `squares` (p,): weighted sum of squares of each column. `mixing` (p,): the standardised
    score's own weight as a combination of the p coefficients.
    """

    columns: Floats
    squares: Floats
    mixing: Floats

    def single(self) -> "Coordinates":
        """Return the coordinates in single precision, which is enough to compare penalties."""
        return Coordinates(*(part.astype(np.float32) for part in self))  # type: ignore[arg-type]


def coordinates(embeddings: Floats, base: Floats, weights: Floats) -> Coordinates:
    """Return the coordinates of embeddings (r, d) and scores (r,) with row weights (r,)."""
    centre, unit = fit_scaling(embeddings, base[:, None])
    scaled = (np.column_stack([embeddings, base]) - centre) / unit
    features, rest = scaled[:, :-1], np.column_stack([scaled[:, -1], np.ones(base.size)])
    root = np.sqrt(weights)[:, None]
    explained = np.linalg.lstsq(root * rest, root * features, rcond=None)[0]
    residual = features - rest @ explained
    spread = root * residual
    wide = spread.shape[1] > len(spread)
    axes = svd(spread, full_matrices=False)[2] if wide else eigh(spread.T @ spread)[1].T
    squares = weights @ (residual @ axes.T) ** 2
    axes = axes[squares > 1e-12 * weights.sum()]
    traded = -axes @ explained[0]
    left = np.linalg.norm(explained[0] + traded @ axes)
    columns = np.hstack([np.zeros((base.size, 1)), residual @ axes.T, rest])
    mixing = np.concatenate([[left], traded, [1.0, 0.0]])
    return Coordinates(columns, weights @ columns**2, mixing)


class _Objective(NamedTuple):
    """Objective of F fits: columns (r, p), weights (r, F), outcomes (r, 1), penalties (p, F).

    `mixing` (p, 1) gives the score's own weight, which `BASE_PENALTY` is for. It is computed in the
    precision of the columns.
    """

    columns: Floats
    weights: Floats
    outcome: Floats
    penalties: Floats
    mixing: Floats

    def penalised(self, coefficients: Floats) -> Floats:
        """Return the slopes of the penalties."""
        score_weight = (self.mixing * coefficients).sum(axis=0)
        return np.asarray(self.penalties * coefficients + BASE_PENALTY * self.mixing * score_weight)

    def value(self, coefficients: Floats, scores: Floats) -> Floats:
        """Return the objective (F,)."""
        loss = np.logaddexp(0, scores) - self.outcome * scores
        penalty = (coefficients * self.penalised(coefficients)).sum(axis=0) / 2
        return np.asarray((self.weights * loss).sum(axis=0) + penalty)

    def bent(self, information: Floats, direction: Floats) -> Floats:
        """Return the curvature along some directions, at an information (r, F)."""
        slope = self.columns.T @ (information * (self.columns @ direction))
        return np.asarray(slope + self.penalised(direction))


def conjugate_gradients(
    bent: Callable[[Floats], Floats], right: Floats, rough: Floats, *, left: float, most: int
) -> Floats:
    """Return x (p, F) of ``bent(x) = right`` up to a share left, preconditioned by `rough`."""
    solution, residual = np.zeros_like(right), right
    scaled = residual / rough
    direction, product = scaled, (residual * scaled).sum(axis=0)
    goal = left**2 * product
    for _ in range(most):
        active = product > goal
        if not active.any():
            break
        along = bent(direction)
        stiffness = (direction * along).sum(axis=0)
        active &= stiffness > 0
        if not active.any():
            break
        length = np.divide(product, stiffness, out=np.zeros_like(product), where=active)
        solution, residual = solution + length * direction, residual - length * along
        scaled = residual / rough
        before, product = product, np.where(active, (residual * scaled).sum(axis=0), product)
        ratio = np.divide(product, before, out=np.zeros_like(product), where=active)
        direction = np.where(active, scaled + ratio * direction, direction)
    return solution


def fit_many(
    where: Coordinates,
    weights: Floats,
    outcome: Floats,
    penalties: Floats,
    *,
    tolerance: float = 1e-9,
    rows: NDArray[Any] | slice = _ALL,
) -> Floats:
    """Return the logits (r, F) of all rows under each fit, of rows that it leaves out too.

    Fit f minimises ``-sum_i weights[i, f] [y_i log p_i + (1 - y_i) log(1 - p_i)] +
    penalties[f] |u|^2 / 2 + base_penalty v^2 / 2``, as `fit_judge` does for ``btl``. A row of
    weight 0 needs any finite outcome. `tolerance` is the largest gradient over curvature of a
    finished fit, in logits. All that have weight are among some `rows`, which saves time.
    """
    if penalties.size > _TOGETHER:
        parts = (slice(_TOGETHER), slice(_TOGETHER, None))
        shares = ((weights[:, own], outcome, penalties[own]) for own in parts)
        return np.hstack(
            [fit_many(where, *share, tolerance=tolerance, rows=rows) for share in shares]
        )
    columns, kind = where.columns[rows], where.columns.dtype
    weights, target = weights[rows].astype(kind), outcome[rows, None].astype(kind)
    own = np.zeros((where.squares.size, penalties.size), dtype=kind)
    own[:-2] = penalties
    fits = _Objective(columns, weights, target, own, where.mixing[:, None])
    share = weights.sum(axis=0) / where.squares[-1]
    curvature = where.squares[:, None] * share / 4 + own + BASE_PENALTY * fits.mixing**2
    # rounding in a sum of losses must not stop a step that is all but the last
    slack = 1e-12 if kind == np.float64 else 1e-5
    at = np.zeros_like(own), np.zeros_like(weights)  # coefficients and scores
    value = fits.value(*at)
    for _ in range(_MAX_STEPS):
        chance = expit(at[1])
        gradient = columns.T @ (weights * (chance - target)) + fits.penalised(at[0])
        pending = np.abs(gradient / curvature).max(axis=0) > tolerance
        if not pending.any():
            return np.asarray(where.columns @ at[0])
        bent = partial(fits.bent, weights * chance * (1 - chance))
        step = conjugate_gradients(bent, -gradient, curvature, left=_INNER, most=_MAX_INNER)
        along, slope = columns @ step, (gradient * step).sum(axis=0)
        length = pending * 1.0  # fits that are finished stay where they are
        for _ in range(_HALVINGS):
            moved = at[0] + length * step, at[1] + length * along
            reached = fits.value(*moved)
            too_far = reached > value + 1e-4 * length * slope + slack * np.abs(value)
            if not too_far.any():
                break
            length = np.where(too_far, length / 2, length)
        at, value = moved, reached
    raise RuntimeError(
        f"{int(pending.sum())} of {pending.size} logistic regressions did not converge in "
        f"{_MAX_STEPS} Newton steps (smallest penalty {penalties[pending].min():g}); raise the "
        "smallest penalty of the grid"
    )

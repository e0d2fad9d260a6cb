"""Gap outcomes: the probability of a vote, given a judge's score and its view of the two models.

A judge's score difference on one battle is noisy; its hard outcomes over all battles say how far
apart it sees the two models. Both together predict votes without over-compressing the ruler.
Several judges of the same battles are one judge here: their scores and views are averaged.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.elo.battles import CodedBattles, OwnBattles
from judgeline.elo.strengths import fit_strengths
from judgeline.elo.sums import OutcomeTally, chunks

Floats = NDArray[np.float64]
Sides = tuple[NDArray[np.integer], NDArray[np.integer]]

QUARTERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
FEW = 200_000
"""Votes times models up to which each fold is fitted by itself."""

PENALTY = 1.0
"""On half the squared weights, which are in logits per standard deviation."""

_GRID = 2.0**-30  # logits; the last bits of a fold's weights depend on where Newton began
_MAX_ITERATIONS = 60
_TOLERANCE = 1e-10
_ORDERS = 10  # of the power series: what is left out is lost on the grid
_REACH = 0.5  # logits of any vote that the series holds for; it ends at pi
_DEFAULT_L2 = 0.01  # of the judge's own strengths, where ratings have no penalty


class GapFeatures(NamedTuple):
    """Score difference and strength gap of A against B in every battle, (n, 2), standardised.

    `own_error` (M,): standard error of each model's strength by the judge's hard outcomes, and
    `per_logit` the gap that a logit of it makes, both in standard deviations of the gap.
    """

    values: Floats
    own_error: Floats
    per_logit: float


class GapFit(NamedTuple):
    """Weights of every fold, and the features that they are the weights of.

    `weights` (M, 2): logits per standard deviation of each feature, fitted to votes without model
    m; NaN where both are zero.
    """

    weights: Floats
    features: GapFeatures

    @property
    def own_error(self) -> Floats:
        """Return the error that a model's own strength by the judge adds to its rating, (M,).

        In logits: each of its battles is predicted with that strength, so that all move together.
        """
        error: Floats = self.weights[:, 1] * self.features.own_error
        return error

    @property
    def per_hard_logit(self) -> Floats:
        """Return how far a rating moves with the model's strength by hard outcomes, (M,)."""
        slope: Floats = self.weights[:, 1] * self.features.per_logit
        return slope

    def of_own(self, model: int, own: OwnBattles) -> Floats:
        """Return a model's share of the win in each of its own battles, shape (n,)."""
        ahead = self.features.values[own.rows] @ self.weights[model]
        share: Floats = expit(np.where(own.as_b, -ahead, ahead))
        return share


def gap_features(battles: CodedBattles, tally: OutcomeTally, *, l2: float = 0.01) -> GapFeatures:
    """Return a judge's score difference and strength gap in every battle.

    Each in standard deviations over all judged battles; strengths are from the judge's hard
    outcomes on all of them, and no vote enters.
    """
    counts, penalty = tally.judge, l2 or _DEFAULT_L2
    wins = (counts @ QUARTERS).sum(axis=1)
    strength = fit_strengths(counts.sum(axis=2), wins, l2=penalty)
    gap = strength[battles.model_a] - strength[battles.model_b]
    values, spread = standardised(np.column_stack([battles.rubric_points(), gap]))
    error = _strength_errors(counts, strength, penalty) / spread[1]
    return GapFeatures(values, error, 1 / spread[1])


def _strength_errors(counts: NDArray[np.int64], strength: Floats, l2: float) -> Floats:
    """Return the closed-form standard error of each strength, the others held, in logits (M,)."""
    chance = expit(strength[:, None] - strength)
    information = (counts.sum(axis=2) * chance * (1 - chance)).sum(axis=1) + 2 * l2
    squares = (counts * (QUARTERS - chance[:, :, None]) ** 2).sum(axis=(1, 2))
    return np.asarray(np.sqrt(squares) / information)


def standardised(features: Floats) -> tuple[Floats, Floats]:
    """Return columns in standard deviations, and these, (K,); a constant column as it is."""
    spread = features.std(axis=0)
    constant = spread <= 1e-9 * np.abs(features).max(axis=0, initial=0.0)
    spread = np.where(constant, 1.0, spread)
    return np.asarray(features / spread), spread


def mean_features(judges: Sequence[GapFeatures]) -> GapFeatures:
    """Return the mean of several judges' features, standardised again.

    Errors of the judges' strengths are taken to go together, which is the worst case.
    """
    values, spread = standardised(np.mean([judge.values for judge in judges], axis=0))
    error = np.mean([judge.own_error for judge in judges], axis=0) / spread[1]
    slope = float(np.mean([judge.per_logit for judge in judges])) / float(spread[1])
    return GapFeatures(values, error, slope)


def fit_gap(battles: CodedBattles, features: GapFeatures) -> GapFit:
    """Return the weights of score difference and strength gap of every fold.

    Fold m maximises ``sum [y log p + (1 - y) log(1 - p)] - |weights|^2 / 2`` over the votes
    without model m, a tie being one half, with ``p = sigmoid(features . weights)``. A negative
    weight is set to zero and the other one fitted alone.
    """
    has_vote = battles.human_outcome >= 0
    weights = _fold_weights(battles.take(has_vote), features.values[has_vote])
    weights[~weights.any(axis=1)] = np.nan
    return GapFit(weights, features)


def _fold_weights(voted: CodedBattles, features: Floats) -> Floats:
    """Return the weights of every fold, (M, 2), none of them negative."""
    weights = _fold_maxima(voted, features)
    negative = (weights < 0).any(axis=1)
    for kept in np.unique(weights[negative].argmax(axis=1)).tolist():
        rows = negative & (weights.argmax(axis=1) == kept)
        alone = _fold_maxima(voted, features * (np.arange(2) == kept))
        weights[rows] = np.maximum(alone, 0.0)[rows]
    return np.asarray(np.rint(weights / _GRID) * _GRID)


def _fold_maxima(voted: CodedBattles, features: Floats) -> Floats:
    """Return where the likelihood of the votes without each model is highest, (M, 2)."""
    outcome, size = voted.human_outcome / 2, len(voted.models)
    everybody = fit_weights(features, outcome)
    sides = voted.model_a, voted.model_b
    weights, near = np.tile(everybody, (size, 1)), np.zeros(size, dtype=bool)
    if len(voted) * size > FEW:
        weights, near = _by_expansion(features, outcome, sides, everybody, size)
    for model in np.setdiff1d(np.concatenate(sides), np.flatnonzero(near)).tolist():
        kept = (sides[0] != model) & (sides[1] != model)
        weights[model] = fit_weights(features[kept], outcome[kept], start=everybody)
    return weights


def fit_weights(
    features: Floats, outcome: Floats, *, start: Floats | None = None, penalty: float = PENALTY
) -> Floats:
    """Return the weights that maximise the penalised likelihood, by Newton."""
    weights = np.zeros(features.shape[1]) if start is None else start
    for _ in range(_MAX_ITERATIONS):
        gradient, hessian = _derivatives(features, outcome, weights, penalty)
        step = np.linalg.solve(hessian, gradient)
        weights = weights + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() <= _TOLERANCE:
            return weights
    raise RuntimeError(
        f"the weights of score and strength gap did not converge after {_MAX_ITERATIONS} "
        f"iterations (last step {np.abs(step).max():.1e} logits)"
    )


def _derivatives(
    features: Floats, outcome: Floats, weights: Floats, penalty: float
) -> tuple[Floats, Floats]:
    chance = expit(features @ weights)
    gradient = features.T @ (outcome - chance) - penalty * weights
    bent = features * (chance * (1 - chance))[:, None]
    return gradient, bent.T @ features + penalty * np.eye(weights.size)


def _by_expansion(
    features: Floats, outcome: Floats, sides: Sides, centre: Floats, size: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return folds' weights from few passes: the slope of all votes less that of the model's own.

    With many votes a fold's weights lie close to those of all votes, around which the slope of
    all votes is a short power series. The few own votes of a model are counted as they are.
    The second value says which folds lie close; the others have no weights from here.
    """
    moments, reach = _moments(features, outcome, centre), np.abs(features).max(axis=0)
    step, near = np.zeros((2, size)), np.ones(size, dtype=bool)
    for _ in range(_MAX_ITERATIONS):
        slope, bend = _own_derivatives(features, outcome, sides, centre[:, None] + step)
        for p in (0, 1):
            slope[p] -= _taylor(moments, step, p) + PENALTY * (centre[p] + step[p])
            for q in (0, 1):
                bend[p, q] = _taylor(moments[1:], step, p + q) + PENALTY * (p == q) - bend[p, q]
        change = np.linalg.solve(bend.transpose(2, 0, 1), slope.T[..., None])[..., 0].T
        near &= reach @ np.abs(step + change) < _REACH
        step = np.where(near, step + change, 0.0)
        if np.abs(change).max(where=near, initial=0.0) <= _TOLERANCE:
            return (centre[:, None] + step).T, near
    raise RuntimeError("the weights of score and strength gap of a fold did not converge")


def _moments(features: Floats, outcome: Floats, centre: Floats) -> list[Floats]:
    """Return the derivatives of all votes' slope by weights: ``sum f^(k)(z . w) z1^(k+1-i) z2^i``.

    Entry k has its k + 2 values by i, from ``f = p - y`` on.
    """
    moments = [np.zeros(order + 1) for order in range(1, _ORDERS + 1)]
    for part in chunks(len(outcome)):
        chance = expit(features[part] @ centre)
        powers = [np.vander(column, _ORDERS + 1, increasing=True) for column in features[part].T]
        slope, curve = chance - outcome[part], Polynomial([0.0, 1.0])
        for order, moment in enumerate(moments, start=1):
            first, second = (power[:, : order + 1] for power in powers)
            moment += (first.T @ (slope[:, None] * second))[::-1].diagonal()
            curve = curve.deriv() * Polynomial([0.0, 1.0, -1.0])  # of p, whose slope is p - p^2
            slope = np.asarray(curve(chance), dtype=float)
    return moments


def _own_derivatives(
    features: Floats, outcome: Floats, sides: Sides, weights: Floats
) -> tuple[Floats, Floats]:
    """Return slope (2, M) and curvature (2, 2, M) of each model's own votes at its weights."""
    size = weights.shape[1]
    slope, bend = np.zeros((2, size)), np.zeros((2, 2, size))
    for side in sides:
        chance = expit((features * weights.T[side]).sum(axis=1))
        spread = chance * (1 - chance)
        for p in (0, 1):
            slope[p] += np.bincount(side, features[:, p] * (chance - outcome), size)
            for q in (0, 1):
                bend[p, q] += np.bincount(side, features[:, p] * features[:, q] * spread, size)
    return slope, bend


def _taylor(moments: list[Floats], step: Floats, power: int) -> Floats:
    """Return ``sum_k (step . z)^k / k!`` times moments whose second feature has a power more."""
    return np.asarray(
        sum(
            math.comb(k, i) / math.factorial(k) * step[0] ** (k - i) * step[1] ** i
            * moment[power + i]
            for k, moment in enumerate(moments)
            for i in range(k + 1)
        )
    )  # fmt: skip

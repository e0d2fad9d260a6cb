"""Gap outcomes: the probability of a vote, given a judge's score and its view of the two models.

A judge's score difference on one battle is noisy; its hard outcomes over all battles say how far
apart it sees the two models. Both together predict votes without over-compressing the ruler.
Several judges of the same battles are one judge here: their scores and views are averaged.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.arrays import Floats
from judgeline.elo.battles import CodedBattles, OwnBattles, chunks
from judgeline.elo.questions import question_codes, squared_sums
from judgeline.elo.strengths import fit_strengths
from judgeline.elo.sums import OutcomeTally
from judgeline.elo.targets import OwnOutcomes
from judgeline.verdict.outcomes import exact_share

QUARTERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
FEW = 200_000
"""Votes times models up to which each fold is fitted by itself."""

PENALTY = 1.0
"""On half the squared weights, which are in logits per standard deviation."""

_GRID = 2.0**-30  # logits; the last bits of a fold's weights depend on where Newton began
_MAX_ITERATIONS = 60
_TOLERANCE = 1e-10
_MOST_ORDERS = 10  # of the power series, where a fold lies as far away as `_REACH`
_REACH = 0.5  # logits of any vote that the series holds for; it ends at pi
_LEFT_OUT = 1e-12  # what later orders may add to the likeliest vote's slope: lost on the grid
_START = 50_000  # votes among which the search for the weights of all votes begins
_DEFAULT_L2 = 0.01  # of the judge's own strengths, where ratings have no penalty


class GapFeatures(NamedTuple):
    """Score difference and strength gap of A against B in every battle, (n, 2), standardised.

    `strength` (M,): each model's strength by the judge's hard outcomes, `own_error` (M,) its
    standard error and `per_logit` what a logit of it is, in standard deviations of the gap.
    """

    values: Floats
    strength: Floats
    own_error: Floats
    per_logit: float


class GapFit(NamedTuple):
    """Weights of every fold, and the features that they are the weights of.

    `weights` (M, 2): logits per standard deviation of each feature, fitted to votes without model
    m; NaN where both are zero.
    """

    weights: Floats
    features: GapFeatures

    def of_own(self, model: int, own: OwnBattles) -> Floats:
        """Return a model's share of the win in each of its own battles, shape (n,)."""
        ahead = self.features.values[own.rows] @ self.weights[model]
        return np.asarray(expit(np.where(own.as_b, -ahead, ahead)))

    def of_both(self, battles: CodedBattles) -> OwnOutcomes:
        """Return the share of the win of both models of a battle, each at its own weights."""

        def own(part: slice) -> tuple[Floats, Floats]:
            score, gap = self.features.values[part].T
            of_a, of_b = (self.weights[side[part]].T for side in (battles.model_a, battles.model_b))
            ahead = score * of_a[0] + gap * of_a[1], -(score * of_b[0] + gap * of_b[1])
            return exact_share(expit(ahead[0])), exact_share(expit(ahead[1]))

        return own


def gap_features(
    battles: CodedBattles,
    tally: OutcomeTally,
    *,
    l2: float = 0.01,
    cluster: ArrayLike | None = None,
) -> GapFeatures:
    """Return a judge's score difference and strength gap in every battle.

    Each in standard deviations over all judged battles; strengths are from the judge's hard
    outcomes on all of them, and no vote enters. `cluster` (n,) is the question of each battle, all
    of whose outcomes go together in the errors of strengths.
    """
    counts, penalty = tally.judge, l2 or _DEFAULT_L2
    wins = (counts @ QUARTERS).sum(axis=1)
    strength = fit_strengths(counts.sum(axis=2), wins, l2=penalty)
    raw = np.empty((2, len(battles)))
    for part in chunks(len(battles)):
        raw[0, part] = battles.rubric_points(part)
        raw[1, part] = strength[battles.model_a[part]] - strength[battles.model_b[part]]
    values, spread = standardised(raw.T, battles.count)
    chance = expit(strength[:, None] - strength)
    information = (counts.sum(axis=2) * chance * (1 - chance)).sum(axis=1) + 2 * penalty
    if cluster is None:
        squares = (counts * (QUARTERS - chance[:, :, None]) ** 2).sum(axis=(1, 2))
    else:
        model = np.concatenate([battles.model_a, battles.model_b]).astype(np.int64)
        residual = battles.judge_outcome / 4 - chance[battles.model_a, battles.model_b]
        signed, asked = np.concatenate([residual, -residual]), np.tile(question_codes(cluster), 2)
        squares = squared_sums(model, asked, signed, strength.size)
    error = np.sqrt(squares) / information / spread[1]  # closed form, the others held
    return GapFeatures(values, strength / spread[1], error, 1 / spread[1])


def standardised(features: Floats, count: NDArray[Any] | None = None) -> tuple[Floats, Floats]:
    """Turn columns into standard deviations, and return these too, (K,); constant ones stay."""
    if count is None:
        spread = features.std(axis=0)
    else:
        total, parts = float(count.sum()), [*chunks(count.size)]
        mean = np.sum([features[part].T @ count[part] for part in parts], axis=0) / total
        squares = [(features[part].T - mean[:, None]) ** 2 @ count[part] for part in parts]
        spread = np.sqrt(np.sum(squares, axis=0) / total)
    constant = spread <= 1e-9 * _extent(features)
    spread = np.where(constant, 1.0, spread)
    features /= spread
    return features, spread


def _extent(features: Floats) -> Floats:
    highest, lowest = features.max(axis=0, initial=0.0), features.min(axis=0, initial=0.0)
    return np.asarray(np.maximum(highest, -lowest))


def mean_features(judges: Sequence[GapFeatures]) -> GapFeatures:
    """Return several judges' mean features; errors of their strengths go together, at worst."""
    values, spread = standardised(np.mean([judge.values.T for judge in judges], axis=0).T)
    strength = np.mean([judge.strength for judge in judges], axis=0) / spread[1]
    error = np.mean([judge.own_error for judge in judges], axis=0) / spread[1]
    slope = float(np.mean([judge.per_logit for judge in judges])) / float(spread[1])
    return GapFeatures(values, strength, error, slope)


def fit_gap(battles: CodedBattles, features: GapFeatures) -> GapFit:
    """Return the weights of score difference and strength gap of every fold.

    Fold m maximises ``sum [y log p + (1 - y) log(1 - p)] - |weights|^2 / 2`` over the votes
    without model m, a tie being one half, with ``p = sigmoid(features . weights)``. A negative
    weight is set to zero and the other one fitted alone.
    """
    has_vote = battles.human_outcome >= 0
    votes = battles if has_vote.all() else battles.take(has_vote)
    values = features.values if has_vote.all() else features.values.T[:, has_vote].T
    weights = _fold_maxima(votes, values, features.strength)
    negative = (weights < 0).any(axis=1)
    for kept in np.unique(weights[negative].argmax(axis=1)).tolist():
        rows, only = negative & (weights.argmax(axis=1) == kept), np.arange(2) == kept
        alone = _fold_maxima(votes, values * only, features.strength * only[1])
        weights[rows] = np.maximum(alone, 0.0)[rows]
    weights = np.rint(weights / _GRID) * _GRID
    weights[~weights.any(axis=1)] = np.nan
    return GapFit(weights, features)


def _fold_maxima(votes: CodedBattles, features: Floats, strength: Floats) -> Floats:
    """Return where the likelihood of the votes without each model is highest, (M, 2)."""
    outcome, size = votes.human_outcome / np.float32(2), strength.size
    thinned = slice(None, None, max(1, len(votes) // _START))
    start = fit_weights(features[thinned], outcome[thinned], count=votes.weights(thinned))
    everybody = fit_weights(features, outcome, start=start, count=votes.count)
    weights, near = np.tile(everybody, (size, 1)), np.zeros(size, dtype=bool)
    if len(votes) * size > FEW:
        weights, near = _by_expansion(votes, features, strength, everybody)
    for model in np.flatnonzero(votes.voted_models() & ~near).tolist():
        kept = (votes.model_a != model) & (votes.model_b != model)
        weights[model] = fit_weights(
            features[kept], outcome[kept], start=everybody, count=votes.weights(kept)
        )
    return weights


def fit_weights(
    features: Floats,
    outcome: NDArray[Any],
    *,
    start: Floats | None = None,
    penalty: float = PENALTY,
    count: NDArray[Any] | None = None,
) -> Floats:
    """Return the weights that maximise the penalised likelihood, by Newton."""
    weights = np.zeros(features.shape[1]) if start is None else start
    for _ in range(_MAX_ITERATIONS):
        slope, bend = -penalty * weights, penalty * np.eye(weights.size)
        for part in [slice(None)] if count is None else chunks(outcome.size):
            chance, times = expit(features[part] @ weights), 1 if count is None else count[part]
            bent = features[part] * (times * (chance * (1 - chance)))[:, None]
            slope = slope + features[part].T @ (times * (outcome[part] - chance))
            bend = bend + bent.T @ features[part]
        step = np.linalg.solve(bend, slope)
        weights = weights + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() <= _TOLERANCE:
            return weights
    raise RuntimeError(
        f"the weights of score and strength gap did not converge after {_MAX_ITERATIONS} "
        f"iterations (last step {np.abs(step).max():.1e} logits)"
    )


def _by_expansion(
    votes: CodedBattles, features: Floats, strength: Floats, centre: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return folds' weights by a power series around those of all votes, and which are close."""
    reach = _extent(features)

    def newton(orders: list[Floats], step: Floats) -> Floats:
        # each fold's weights, less those of all votes, after one more step, (2, M)
        slope, bend = np.empty_like(step), np.empty((2, *step.shape))
        for p in (0, 1):
            slope[p] = -_taylor(orders, step, p) - PENALTY * (centre[p] + step[p])
            for q in (0, 1):
                bend[p, q] = _taylor(orders[1:], step, p + q) + PENALTY * (p == q)
        change = np.linalg.solve(bend.transpose(2, 0, 1), slope.T[..., None])[..., 0]
        return np.asarray(step + change.T)

    step = np.zeros((2, strength.size))
    first = reach @ np.abs(newton(_fold_moments(votes, features, strength, centre, 2), step))
    distance = first.max(where=first < _REACH, initial=1e-9)
    n_orders = math.ceil(math.log(_LEFT_OUT) / math.log(distance / math.pi))
    orders = _fold_moments(votes, features, strength, centre, max(2, min(n_orders, _MOST_ORDERS)))
    near = first < _REACH
    for _ in range(_MAX_ITERATIONS):
        moved = newton(orders, step)
        near &= reach @ np.abs(moved) < _REACH
        moved[:, ~near] = 0.0
        if np.abs(moved - step).max(initial=0.0) <= _TOLERANCE:
            return (centre[:, None] + moved).T, near
        step = moved
    raise RuntimeError("the weights of score and strength gap of a fold did not converge")


def _fold_moments(
    votes: CodedBattles, features: Floats, strength: Floats, centre: Floats, n_orders: int
) -> list[Floats]:
    """Return the derivatives of every fold's slope: ``sum f^(k)(z . w) z1^(k+1-i) z2^i``.

    Entry k has its values by i and fold, (k + 2, M), from ``f = p - y`` on. Battles of a pair
    share the strength gap z2, so that battles are only summed by pair and power of the score z1.
    """
    size = strength.size
    has_score, has_gap = bool(features[:, 0].any()), bool(strength.any())
    gaps = [np.ones((size, size))]
    for _ in range(n_orders):
        gaps.append(gaps[-1] * (strength[:, None] - strength))
    own = [np.zeros((order + 2, size)) for order in range(n_orders)]
    for part in chunks(len(votes), size * size):
        pair = votes.model_a[part].astype(np.int64) * size + votes.model_b[part]
        score, chance = features[part, 0], expit(features[part] @ centre)
        slope = votes.weighted(chance - votes.human_outcome[part] / 2, part)
        curve = Polynomial([0.0, 1.0])
        for moment in own:
            term = slope
            for power in range(len(moment) - 1, -1, -1):
                if (has_gap or power == 0) and (has_score or power == len(moment) - 1):
                    table = np.bincount(pair, term, size * size).reshape(size, size) * gaps[power]
                    moment[power] += table.sum(axis=0) + table.sum(axis=1)
                term = term * score
            curve = curve.deriv() * Polynomial([0.0, 1.0, -1.0])  # of p, whose slope is p - p^2
            slope = votes.weighted(np.asarray(curve(chance), dtype=float), part)
    return [moment.sum(axis=1, keepdims=True) / 2 - moment for moment in own]


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

"""Gap outcomes: the probability of a vote, given a judge's score and its view of the two models.

A judge's score difference on one battle is noisy; its hard outcomes over all battles say how far
apart it sees the two models. Both together predict votes without over-compressing the ruler.
Several judges of the same battles are one judge here: their scores and views are averaged.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.arrays import Floats, Ints
from judgeline.elo.approximation import FEW_VOTES, weights_near
from judgeline.elo.battle_counts import Sums
from judgeline.elo.battles import CodedBattles, OwnBattles, chunks
from judgeline.elo.questions import squared_sums
from judgeline.elo.strengths import fit_strengths
from judgeline.elo.targets import OwnOutcomes

QUARTERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
PENALTY = 1.0
"""On half the squared weights, which are in logits per standard deviation."""

_GRID = 2.0**-30  # logits; the last bits of a fold's weights depend on where Newton began
_MAX_ITERATIONS = 60
_TOLERANCE = 1e-10
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
            """Return the shares of A and of B in some battles, at the weights without each."""
            score, gap = self.features.values[part].T
            of_a, of_b = (self.weights[side[part]].T for side in (battles.model_a, battles.model_b))
            ahead = score * of_a[0] + gap * of_a[1], -(score * of_b[0] + gap * of_b[1])
            return expit(ahead[0]), expit(ahead[1])

        return own


def gap_features(
    battles: CodedBattles, *, l2: float = 0.01, question: Ints | None = None
) -> GapFeatures:
    """Return a judge's score difference and strength gap in every battle.

    Each in standard deviations over all judged battles; strengths are from the judge's hard
    outcomes on all of them, and no vote enters. `question` (n,) numbers the question of each
    battle, all of whose outcomes go together in the errors of strengths.
    """
    strength, error = _by_judge(battles, l2 or _DEFAULT_L2, question)
    raw = np.empty((2, len(battles)))
    for part in chunks(len(battles)):
        raw[0, part] = battles.rubric_points(part)
        raw[1, part] = strength[battles.model_a[part]] - strength[battles.model_b[part]]
    values, spread = standardised(raw.T, battles.count)
    return GapFeatures(values, strength / spread[1], error / spread[1], 1 / spread[1])


def _by_judge(battles: CodedBattles, l2: float, question: Ints | None) -> tuple[Floats, Floats]:
    """Return strengths by hard outcomes and their errors, in closed form, the others held (M,)."""
    counts = Sums.of(battles).judge
    met, wins = counts.sum(axis=2), (counts @ QUARTERS).sum(axis=1)
    strength = fit_strengths(met, wins, l2=l2)
    chance = expit(strength[:, None] - strength)
    information = (met * chance * (1 - chance)).sum(axis=1) + 2 * l2
    if question is None:
        squares = (counts * (QUARTERS - chance[:, :, None]) ** 2).sum(axis=(1, 2))
    else:
        model = np.concatenate([battles.model_a, battles.model_b]).astype(np.int64)
        residual = battles.judge_outcome / 4 - chance[battles.model_a, battles.model_b]
        signed, asked = np.concatenate([residual, -residual]), np.tile(question, 2)
        squares = squared_sums(model, asked, signed, strength.size)
    return strength, np.sqrt(squares) / information


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
    if len(votes) * size > FEW_VOTES:
        around = votes, features, strength, everybody
        weights, near = weights_near(*around, reach=_extent(features), penalty=PENALTY)
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

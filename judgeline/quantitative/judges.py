"""Quantitative judges: four losses of one penalised linear fit, and their predictions.

The embedding's weights are penalised by gamma, chosen by cross-validation over questions; the base
score's by a small fixed amount, which keeps them finite when the score alone separates the votes;
the bias not at all. As gamma grows a fit becomes its recalibrated base judge, not a constant. The
paper shrinks all weights alike.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.special import expit, logsumexp, softmax

from judgeline.arrays import Floats, require
from judgeline.quantitative.inputs import (
    BASE_PENALTY,
    N_FOLDS,
    PENALTIES,
    PenaltyChoice,
    Rows,
    TooLittleToLearnError,
    chosen,
    fit_scaling,
    log_probabilities,
    question_folds,
    require_column,
    require_grid,
    require_rankings,
    require_rows,
    require_target,
)
from judgeline.quantitative.newton import conjugate_gradients

_TOLERANCE = 1e-9  # largest gradient, in rows per unit of weight
_MAX_STEPS = 100
_HALVINGS = 40
_INNER = 0.01  # share of the gradient that a Newton step may leave over


class Curve(NamedTuple):
    """A loss at some scores: its sum, its slopes, and its curvature along a change of scores."""

    value: float
    slope: Floats
    bend: Callable[[Floats], Floats]


def _squares(scores: Floats, rating: Floats, weight: Floats) -> Curve:
    error = scores - rating
    return Curve(float(weight @ error**2) / 2, weight * error, lambda along: weight * along)


def _binomial(scores: Floats, outcome: Floats, weight: Floats) -> Curve:
    chance = expit(scores)
    value = float(weight @ (np.logaddexp(0, scores) - outcome * scores))
    information = weight * chance * (1 - chance)
    return Curve(value, weight * (chance - outcome), lambda along: information * along)


def _plackett_luce(scores: Floats, ranking: Rows, weight: Floats) -> Curve:
    """Return the loss of rankings (n, T), or categories (n,), each against those not yet placed."""
    stages, ranking = [], ranking.reshape(len(scores), -1)
    value, slope = -float(weight @ log_chance(scores, ranking)), np.zeros_like(scores)
    remaining, rows = scores.copy(), np.arange(len(ranking))
    for place in ranking.T:
        chance = softmax(remaining, axis=1)
        slope += weight[:, None] * chance
        slope[rows, place] -= weight
        stages.append(chance)
        remaining[rows, place] = -np.inf

    def bend(along: Floats) -> Floats:
        """Return the curvature along a change of scores, summed over the places."""
        parts = [p * (along - (p * along).sum(axis=1, keepdims=True)) for p in stages]
        return np.asarray(weight[:, None] * sum(parts))

    return Curve(value, slope, bend)


def log_chance(scores: ArrayLike, ranking: ArrayLike) -> Floats:
    """Return the Plackett-Luce log-probability (n,) of rankings (n, T) under scores (n, K)."""
    remaining = np.array(scores, dtype=float)
    order = require_rankings(ranking, remaining.shape)
    total, rows = np.zeros(len(order)), np.arange(len(order))
    for place in order.T:
        total += remaining[rows, place] - logsumexp(remaining, axis=1)
        remaining[rows, place] = -np.inf
    return total


class _Form(NamedTuple):
    """A judge's loss, its link from scores to predictions, and its penalty on base weights."""

    loss: Callable[[Floats, Any, Floats], Curve]
    link: Callable[[Floats], Floats]
    base_penalty: float


_softmax = partial(softmax, axis=-1)
FORMS = {
    "ls": _Form(_squares, np.asarray, BASE_PENALTY),
    "btl": _Form(_binomial, expit, BASE_PENALTY),
    "mn": _Form(_plackett_luce, _softmax, 1.0),  # S x S weights are too many to go free
    "pl": _Form(_plackett_luce, _softmax, BASE_PENALTY),
}
"""Least squares of a rating; Bradley-Terry-Luce of a win (BTL and BTL2); multinomial of a category;
Plackett-Luce of a choice or a ranking."""


@dataclass(frozen=True)
class QuantitativeJudge:
    """Weights of a judge, in the units of the columns as given.

    `form` is one of `FORMS`; `weights` (d,), for ``mn`` (d, S), are the embedding's; `base_weights`
    (1,), for ``mn`` (S, S), those of the base judge's score or log-probabilities; `bias` (), for
    ``mn`` (S,), is the population's and 0 for ``pl``, where it would cancel.
    """

    form: str
    weights: Floats
    base_weights: Floats
    bias: Floats
    choice: PenaltyChoice | None = None

    @property
    def n_parameters(self) -> int:
        """Number of fitted parameters."""
        n_bias = 0 if self.form == "pl" else self.bias.size
        return self.weights.size + self.base_weights.size + n_bias

    def score(self, embeddings: ArrayLike, base: ArrayLike) -> Floats:
        """Return linear scores from embeddings (n, d) and the base of the fitted judge."""
        features, columns = _columns(self.form, embeddings, base, len(self.weights))
        return np.asarray(features @ self.weights + columns @ self.base_weights + self.bias)

    def predict(self, embeddings: ArrayLike, base: ArrayLike) -> Floats:
        """Return ratings (n,), chances of a win (n,), of S categories or of K alternatives."""
        return FORMS[self.form].link(self.score(embeddings, base))


def base_judge(form: str, n_features: int, n_categories: int | None = None) -> QuantitativeJudge:
    """Return the base judge as a quantitative one: its own score, no embedding."""
    last = () if n_categories is None else (n_categories,)
    identity = np.ones(1) if n_categories is None else np.eye(n_categories)
    return QuantitativeJudge(form, np.zeros((n_features, *last)), identity, np.zeros(last))


def fit_judge(
    form: str,
    embeddings: ArrayLike,
    base: ArrayLike,
    target: ArrayLike,
    question: ArrayLike,
    *,
    rng: np.random.Generator,
    weight: ArrayLike | None = None,
    penalties: Sequence[float] = PENALTIES,
    n_folds: int = N_FOLDS,
) -> QuantitativeJudge:
    """Return the judge that minimises a penalised loss, its penalty chosen by cross-validation.

    ``loss + gamma |u|^2 / 2 + c |v|^2 / 2``, with u the weights of scaled features (`fit_scaling`)
    and v those of standardised base scores; c is 0.01, for ``mn`` 1. The loss is half the squared
    error (``ls``) or the negative log-likelihood in nats.

    Parameters
    ----------
    form : str
        ``ls``, ``btl``, ``mn`` or ``pl``; BTL2 is ``btl`` on the differences of `two_headed`.
    embeddings : array_like, shape (n, d), for ``pl`` (n, K, d)
        Embeddings of the rationales; d may be 0.
    base : array_like, shape (n,), for ``mn`` (n, S), for ``pl`` (n, K)
        The base judge's rating; the logit that the answer shown first wins (`base_logit`) or any
        score that favours it when positive; probabilities of S >= 3 categories; utilities.
    target : array_like, shape (n,), for ``pl`` (n, T)
        Human rating in points; share of the win in [0, 1]; category 0 to S - 1; positions 0 to
        K - 1 of the T best alternatives, best first.
    question : array_like, shape (n,)
        The question of each row: the unit of cross-validation.
    rng : numpy.random.Generator
        Deals questions to folds.
    weight : array_like, shape (n,), optional
        Weight of each row, positive; one over the presentations of its battle counts every vote
        once.
    penalties : sequence of float
        Grid of gamma, ascending; a single one is taken as given. Of equal losses the larger.
    n_folds : int
        Folds of the cross-validation.

    Raises
    ------
    TooLittleToLearnError
        If targets are all alike or a category is absent (of a fold's rest too; the message names
        the fold), or there are fewer questions than folds.
    ValueError
        On missing embeddings, scores or targets, or values out of range.
    RuntimeError
        If a fit does not converge.

    References
    ----------
    A. Sahoo et al. (2025), "Quantitative LLM Judges", arXiv:2506.02945; R. L. Plackett (1975),
    Applied Statistics 24.
    """
    features, columns = _columns(form, embeddings, base)
    ones = np.ones(len(features))
    weights = require_column(ones if weight is None else weight, len(features), "weight")
    require(weights > 0, "weight", weights, "positive; leave out rows that must not count")
    targets = require_target(form, target, columns.shape)

    axes = _axes(features)  # the loss of a fit is the same in them, and its columns are fewer
    turned = features @ axes

    def path(rows: Rows, grid: Floats) -> list[QuantitativeJudge]:
        """Return the judges of some rows and each penalty."""
        require_target(form, targets[rows], columns[rows].shape)
        data = (turned[rows], columns[rows], targets[rows], weights[rows])
        return _fitted(form, *data, grid)

    def loss(judge: QuantitativeJudge, rows: Rows) -> float:
        """Return the summed loss of a judge on some rows; squared errors whole, not half."""
        scores = turned[rows] @ judge.weights + columns[rows] @ judge.base_weights + judge.bias
        value = FORMS[form].loss(scores, targets[rows], weights[rows]).value
        return 2 * value if form == "ls" else value

    grid, rows = require_grid(penalties), np.arange(len(features))
    choice = PenaltyChoice(float(grid[0]), grid, np.full(1, np.nan))
    if grid.size > 1:
        fold = question_folds(question, n_folds=n_folds, rng=rng)
        total = np.zeros(grid.size)
        for k in range(n_folds):
            try:
                total += [loss(judge, rows[fold == k]) for judge in path(rows[fold != k], grid)]
            except TooLittleToLearnError as error:
                raise TooLittleToLearnError(
                    f"without 1 in {n_folds} of the questions, which it is tested on: {error}"
                ) from error
        choice = chosen(grid, total / rows.size)
    (judge,) = path(rows, np.array([choice.penalty]))
    return replace(judge, weights=axes @ judge.weights, choice=choice)


def _axes(features: Floats) -> Floats:
    """Return directions (d, p) in which embeddings (..., d) differ, orthogonal and principal."""
    rows = features.reshape(math.prod(features.shape[:-1]), features.shape[-1])
    centred = rows - rows.mean(axis=0)
    wide = centred.shape[1] > len(centred)
    values, vectors = eigh(centred @ centred.T if wide else centred.T @ centred)
    known = values > 1e-13 * values.max(initial=0)
    if wide:
        return np.asarray(centred.T @ (vectors[:, known] / np.sqrt(values[known])))
    return np.asarray(vectors[:, known])


def _columns(
    form: str, embeddings: ArrayLike, base: ArrayLike, n_features: int | None = None
) -> tuple[Floats, Floats]:
    """Return embeddings (..., d) and base columns (..., q): q is S for ``mn``, else 1."""
    columns = log_probabilities(base) if form == "mn" else np.asarray(base, dtype=float)[..., None]
    features, _ = require_rows(embeddings, columns[..., 0], n_features)
    return features, columns


def _fitted(
    form: str,
    features: Floats,
    base: Floats,
    target: Any,
    weight: Floats,
    grid: Floats,
) -> list[QuantitativeJudge]:
    """Return the judge of each penalty; every fit starts from that of the next larger one."""
    if form == "pl":  # what all alternatives of a set have in common changes no prediction
        features = features - features.mean(axis=1, keepdims=True)
        base = base - base.mean(axis=1, keepdims=True)
    d, q = features.shape[-1], base.shape[-1]
    n_rows = base.size // q
    rows, scores = features.reshape(n_rows, d), base.reshape(n_rows, q)
    centre, unit = fit_scaling(rows, scores)
    scaled = (np.column_stack([rows, scores]) - centre) / unit
    design = np.column_stack([scaled, np.ones(len(rows))])
    outputs = (q,) if form == "mn" else ()
    loss = FORMS[form].loss
    shape = base.shape[:-1] + outputs

    def curve(coefficients: Floats) -> Curve:
        """Return the loss at some coefficients."""
        return loss((design @ coefficients).reshape(shape), target, weight)

    found, judges = np.zeros((d + q + 1, *outputs)), []
    for gamma in grid[::-1]:
        penalty = np.concatenate([np.full(d, gamma), np.full(q, FORMS[form].base_penalty), [0.0]])
        found = _minimum(curve, design, penalty.reshape(-1, *[1] * len(outputs)), found)
        weights = (found[:-1].T / unit).T
        bias = np.asarray(0.0 if form == "pl" else found[-1] - centre @ weights)
        judges.append(QuantitativeJudge(form, weights[:d], weights[d:], bias))
    return judges[::-1]


def _minimum(
    curve: Callable[[Floats], Curve], design: Floats, penalty: Floats, at: Floats
) -> Floats:
    """Return coefficients (p, ...) of the least ``curve + penalty |c|^2 / 2``, by Newton's method.

    Steps come from conjugate gradients, so that no matrix of second derivatives is ever made.
    """
    squares, outputs = (design**2).sum(axis=0).reshape(penalty.shape), at.shape[1:]
    now = curve(at)
    signs = np.resize([1.0, -1.0], now.slope.shape)
    for _ in range(_MAX_STEPS):
        gradient = design.T @ now.slope.reshape(len(design), *outputs) + penalty * at
        if np.abs(gradient).max() <= _TOLERANCE * len(design):
            return at

        def bent(along: Floats, now: Curve = now, at: Floats = at) -> Floats:
            """Return the curvature of loss and penalty along a step, all outputs in one column."""
            change = along.reshape(at.shape)
            bend = now.bend((design @ change).reshape(now.slope.shape))
            slope = design.T @ bend.reshape(len(design), *outputs) + penalty * change
            return np.asarray(slope.reshape(-1, 1))

        typical = float((signs * now.bend(signs)).mean())  # curvature of a score
        rough = typical * squares + penalty  # 0 of a bias where no score bends
        rough = np.where(rough > 0, rough, 1.0) * np.ones(at.shape)
        right, most = -gradient.reshape(-1, 1), 10 * at.size
        step = conjugate_gradients(bent, right, rough.reshape(-1, 1), left=_INNER, most=most)
        step = step.reshape(at.shape)
        before = now.value + float((penalty * at**2).sum()) / 2
        for halving in range(_HALVINGS):
            there = at + step / 2**halving
            now = curve(there)
            # rounding in a sum of losses must not stop a step that is all but the last
            if now.value + float((penalty * there**2).sum()) / 2 <= before + 1e-12 * abs(before):
                break
        at = there
    raise RuntimeError(
        f"the fit did not converge in {_MAX_STEPS} Newton steps (smallest penalty "
        f"{penalty[penalty > 0].min():g}); raise the smallest penalty of the grid"
    )

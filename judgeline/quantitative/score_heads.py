"""Fits of quantitative judges with scikit-learn: LS, MN, BTL and BTL2.

The one module of the core that needs scikit-learn; nothing else imports it. What is
penalised, for all of them: the embedding's weights by gamma, chosen by cross-validation; the
base score's own weight by a small fixed amount, which keeps it finite when the score alone
separates the votes and is otherwise far below the noise; the bias not at all. As gamma grows
a fit thus becomes its recalibrated base judge, not a constant. The paper shrinks all weights
alike.

References
----------
A. Sahoo et al. (2025), "Quantitative LLM Judges", arXiv:2506.02945.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression, Ridge  # type: ignore[import-untyped]

from judgeline.quantitative.inputs import (
    log_probabilities,
    require_categories,
    require_embeddings,
    require_ratings,
    require_rows,
    require_shares,
    require_weights,
)
from judgeline.quantitative.judges import LeastSquaresJudge, MultinomialJudge, PreferenceJudge
from judgeline.quantitative.penalty import (
    N_FOLDS,
    PENALTIES,
    Rows,
    fit_scaling,
    fit_with_chosen_penalty,
)

Floats = NDArray[np.float64]

BASE_PENALTY = 0.01
"""Penalty on the squared weight of a standardised base score; a certain vote adds up to 1/4."""

LOG_PROBABILITY_PENALTY = 1.0
"""The same for the S x S weights of log-probabilities in MN, too many to go free."""

_TOLERANCE = 1e-9  # largest gradient per row
_MAX_ITERATIONS = 5000


def fit_ratings(
    embeddings: ArrayLike,
    base: ArrayLike,
    rating: ArrayLike,
    question: ArrayLike,
    *,
    rng: np.random.Generator,
    penalties: Sequence[float] = PENALTIES,
    n_folds: int = N_FOLDS,
    base_penalty: float = BASE_PENALTY,
) -> LeastSquaresJudge:
    """Return LS: the ridge regression of a human rating on embedding and base score.

    Minimises ``sum (f - rating)^2 + gamma |u|^2 + base_penalty v^2``, with u the weights of
    scaled features (`quantitative_penalty.Scaling`) and v that of the standardised score.

    Parameters
    ----------
    embeddings : array_like, shape (n, d)
        Embeddings of the rationales; d may be 0.
    base : array_like, shape (n,)
        The base judge's ratings, in any unit; a constant one has weight 0.
    rating : array_like, shape (n,)
        Human ratings, in points.
    question : array_like, shape (n,)
        The question of each row: the unit of cross-validation.
    rng : numpy.random.Generator
        Deals questions to folds.
    penalties : sequence of float
        Grid of gamma; a single one is taken as given.
    n_folds : int
        Folds of the cross-validation.
    base_penalty : float
        Penalty on the base score's standardised weight.

    Returns
    -------
    LeastSquaresJudge
        With the choice of the penalty and its held-out mean squared errors.

    Raises
    ------
    ValueError
        On missing embeddings, scores or ratings, unequal lengths, ratings that are all alike,
        or fewer questions than folds.
    """
    features, given = require_rows(embeddings, base)
    target = require_ratings(rating, given.size)
    column = given[:, None]

    def fit(train: Rows, gamma: float) -> LeastSquaresJudge:
        scaling = fit_scaling(features[train], column[train])
        design = scaling.design(features[train], column[train], gamma, base_penalty)
        model = Ridge(alpha=gamma, solver="svd").fit(design, target[train])
        parts = scaling.unscaled(model.coef_, model.intercept_, gamma, base_penalty)
        return LeastSquaresJudge(parts[0], float(parts[1][0]), float(parts[2]))

    def loss(judge: LeastSquaresJudge, test: Rows) -> float:
        return float(((judge.predict(features[test], given[test]) - target[test]) ** 2).sum())

    return fit_with_chosen_penalty(
        fit, loss, question, penalties=penalties, n_folds=n_folds, rng=rng
    )


def fit_preferences(
    embeddings: ArrayLike,
    base: ArrayLike,
    outcome: ArrayLike,
    question: ArrayLike,
    *,
    rng: np.random.Generator,
    weight: ArrayLike | None = None,
    penalties: Sequence[float] = PENALTIES,
    n_folds: int = N_FOLDS,
    base_penalty: float = BASE_PENALTY,
) -> PreferenceJudge:
    """Return BTL or BTL2: the logistic regression of a win on embedding and base logit.

    Minimises ``-sum weight [y log p + (1 - y) log(1 - p)] + gamma |u|^2 / 2 + base_penalty
    v^2 / 2``, with u and v as in `fit_ratings`. A tie (y = 1/2) is half a win and half a
    loss, any other y in [0, 1] likewise. BTL embeds one rationale about both answers; BTL2 is
    the same fit on the difference of two (`quantitative_presentations.two_headed`).

    Parameters
    ----------
    embeddings : array_like, shape (n, d)
        Embeddings, or differences of embeddings, one row per presentation; d may be 0.
    base : array_like, shape (n,)
        The base judge's logit that the answer shown first wins (`base_logit`), or any other
        score that favours it when positive.
    outcome : array_like, shape (n,)
        Share of the win of the answer shown first, in [0, 1].
    question : array_like, shape (n,)
        The question of each row: the unit of cross-validation.
    rng : numpy.random.Generator
        Deals questions to folds.
    weight : array_like, shape (n,), optional
        Weight of each row, positive; 1 by default. One over the presentations of its battle
        counts every vote once.
    penalties, n_folds, base_penalty
        As in `fit_ratings`.

    Returns
    -------
    PreferenceJudge
        With the choice of the penalty and its held-out log-losses, in nats.

    Raises
    ------
    ValueError
        On missing embeddings, scores or outcomes, outcomes outside [0, 1] or all alike (all
        won, all ties), weights that are not positive, or fewer questions than folds.
    RuntimeError
        If the fit does not converge.
    """
    features, given = require_rows(embeddings, base)
    target = require_shares(outcome, given.size)
    weights = require_weights(weight, given.size)
    column = given[:, None]

    def fit(train: Rows, gamma: float) -> PreferenceJudge:
        require_shares(target[train], train.size)
        scaling = fit_scaling(features[train], column[train])
        design = scaling.design(features[train], column[train], gamma, base_penalty)
        model = _logistic(design, target[train], weights[train], gamma)
        parts = scaling.unscaled(model.coef_[0], model.intercept_[0], gamma, base_penalty)
        return PreferenceJudge(parts[0], float(parts[1][0]), float(parts[2]))

    def loss(judge: PreferenceJudge, test: Rows) -> float:
        score = judge.score(features[test], given[test])
        return float(weights[test] @ (np.logaddexp(0, score) - target[test] * score))

    return fit_with_chosen_penalty(
        fit, loss, question, penalties=penalties, n_folds=n_folds, rng=rng
    )


def _logistic(design: Floats, outcome: Floats, weights: Floats, gamma: float) -> Any:
    """Fit wins and losses as rows of their own, each with its share of the row's weight."""
    won, lost = np.flatnonzero(outcome > 0), np.flatnonzero(outcome < 1)
    rows = np.concatenate([won, lost])
    label = np.repeat([1, 0], [won.size, lost.size])
    share = np.concatenate([(weights * outcome)[won], (weights * (1 - outcome))[lost]])
    model = LogisticRegression(
        C=1 / gamma, solver="newton-cholesky", tol=_TOLERANCE, max_iter=_MAX_ITERATIONS
    )
    return _converged(model.fit(design[rows], label, sample_weight=share), gamma)


def _converged(model: Any, gamma: float) -> Any:
    if int(np.max(model.n_iter_)) >= _MAX_ITERATIONS:
        raise RuntimeError(
            f"logistic regression did not converge in {_MAX_ITERATIONS} iterations at penalty "
            f"{gamma:g}; raise the smallest penalty of the grid"
        )
    return model


def fit_categories(
    embeddings: ArrayLike,
    probabilities: ArrayLike,
    category: ArrayLike,
    question: ArrayLike,
    *,
    rng: np.random.Generator,
    penalties: Sequence[float] = PENALTIES,
    n_folds: int = N_FOLDS,
    base_penalty: float = LOG_PROBABILITY_PENALTY,
) -> MultinomialJudge:
    """Return MN: multinomial logistic regression of a category on embedding and log p.

    Parameters
    ----------
    embeddings : array_like, shape (n, d)
        Embeddings of the rationales; d may be 0.
    probabilities : array_like, shape (n, S)
        The base judge's probability of each of S >= 3 categories, in (0, 1); rows sum to 1.
    category : array_like of int, shape (n,)
        The human's category, 0 to S - 1: its column in `probabilities`.
    question : array_like, shape (n,)
        The question of each row: the unit of cross-validation.
    rng, penalties, n_folds, base_penalty
        As in `fit_ratings`; the last for each of the S x S weights of standardised
        log-probabilities.

    Returns
    -------
    MultinomialJudge
        With the choice of the penalty and its held-out log-losses, in nats.

    Raises
    ------
    ValueError
        On missing embeddings, probabilities outside (0, 1), a category that is no column, or
        one that is absent from the training rows (those of a fold too; the message says so).
    RuntimeError
        If the fit does not converge.
    """
    features, log_p = require_embeddings(embeddings), log_probabilities(probabilities)
    target = require_categories(category, features.shape[0], log_p.shape)

    def fit(train: Rows, gamma: float) -> MultinomialJudge:
        require_categories(target[train], train.size, (train.size, log_p.shape[1]))
        scaling = fit_scaling(features[train], log_p[train])
        design = scaling.design(features[train], log_p[train], gamma, base_penalty)
        model = LogisticRegression(C=1 / gamma, tol=_TOLERANCE, max_iter=_MAX_ITERATIONS)
        _converged(model.fit(design, target[train]), gamma)
        parts = scaling.unscaled(model.coef_, model.intercept_, gamma, base_penalty)
        return MultinomialJudge(*parts)

    def loss(judge: MultinomialJudge, test: Rows) -> float:
        chances = judge.predict(features[test], np.exp(log_p[test]))
        return float(-np.log(chances[np.arange(test.size), target[test]]).sum())

    return fit_with_chosen_penalty(
        fit, loss, question, penalties=penalties, n_folds=n_folds, rng=rng
    )

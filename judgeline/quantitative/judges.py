"""Quantitative judges: linear models on a rationale's embedding and the judge's own score.

Their parameters and predictions, and what both are made of. Fitting is elsewhere:
`quantitative` (through scikit-learn), `quantitative_choices` and `quantitative_folds`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

from judgeline.quantitative.inputs import log_probabilities, require_embeddings, require_rows

Floats = NDArray[np.float64]


class PenaltyChoice(NamedTuple):
    """The penalty that cross-validation chose, and what it chose from.

    `penalty`: gamma, the prior precision of a unit of embedding (`quantitative_penalty.Scaling`).
    `penalties` (G,): the grid, ascending. `losses` (G,): held-out loss of each, per row.
    `on_edge`: whether the choice is the first or last of several; at the last one the embedding
    is all but unused, at the first one a smaller penalty might do better.
    """

    penalty: float
    penalties: Floats
    losses: Floats
    on_edge: bool


@dataclass(frozen=True)
class LinearJudge:
    """``embedding @ weights + base_weight * base + bias``, in the unit of the base score.

    Attributes
    ----------
    weights : ndarray, shape (d,)
        One per embedding feature.
    base_weight : float
        Weight of the base judge's score, unitless.
    bias : float
        Population bias, in the unit of the base score.
    choice : PenaltyChoice, optional
        How the penalty was chosen; none for a base judge.
    """

    weights: Floats
    base_weight: float
    bias: float
    choice: PenaltyChoice | None = None

    @property
    def n_parameters(self) -> int:
        """Number of fitted parameters: d + 2."""
        return self.weights.size + 2

    def score(self, embeddings: ArrayLike, base: ArrayLike) -> Floats:
        """Return the linear score of each row.

        Parameters
        ----------
        embeddings : array_like, shape (..., d)
            Embeddings of the rationales.
        base : array_like, shape (...)
            The base judge's scores, in the unit that the judge was fitted with.

        Returns
        -------
        ndarray, shape (...)
            Scores in the unit of `base`.
        """
        features, given = require_rows(embeddings, base, self.weights.size)
        return np.asarray(features @ self.weights + self.base_weight * given + self.bias)


@dataclass(frozen=True)
class LeastSquaresJudge(LinearJudge):
    """LS: a human rating by ridge regression; the base is the judge's own rating."""

    def predict(self, embeddings: ArrayLike, base: ArrayLike) -> Floats:
        """Return predicted ratings, shape (n,), in the unit of the human ratings."""
        return self.score(embeddings, base)


@dataclass(frozen=True)
class PreferenceJudge(LinearJudge):
    """BTL and BTL2: a probability of winning by logistic regression; the base is a logit."""

    def predict(self, embeddings: ArrayLike, base: ArrayLike) -> Floats:
        """Return the probability, shape (n,), that the first of the two wins."""
        return np.asarray(expit(self.score(embeddings, base)))


@dataclass(frozen=True)
class ChoiceJudge(LinearJudge):
    """Plackett-Luce: one of K alternatives; the base is a utility in logits, the bias 0."""

    @property
    def n_parameters(self) -> int:
        """Number of fitted parameters: d + 1, since a bias common to all cancels."""
        return self.weights.size + 1

    def predict(self, embeddings: ArrayLike, base: ArrayLike) -> Floats:
        """Return the probability (n, K) of each alternative to be chosen from the K.

        `embeddings` has shape (n, K, d), `base` (n, K).
        """
        return np.asarray(softmax(self.score(embeddings, base), axis=-1))


@dataclass(frozen=True)
class MultinomialJudge:
    """MN: a rating category by multinomial logistic regression on ``[phi, log p_1..log p_S]``.

    Attributes
    ----------
    weights : ndarray, shape (S, d)
        Row s: weights of the embedding for category s.
    base_weights : ndarray, shape (S, S)
        Row s: weights of the judge's log-probabilities for category s; the identity is the
        base judge.
    bias : ndarray, shape (S,)
        Population bias of each category, in logits.
    choice : PenaltyChoice, optional
        How the penalty was chosen; none for a base judge.
    """

    weights: Floats
    base_weights: Floats
    bias: Floats
    choice: PenaltyChoice | None = None

    @property
    def n_parameters(self) -> int:
        """Number of fitted parameters: S (d + S + 1)."""
        return self.weights.size + self.base_weights.size + self.bias.size

    def predict(self, embeddings: ArrayLike, probabilities: ArrayLike) -> Floats:
        """Return the probability (n, S) of each category.

        `embeddings` has shape (n, d), `probabilities` (n, S): the base judge's, in (0, 1).
        """
        log_p = log_probabilities(probabilities)
        features = require_embeddings(embeddings, self.weights.shape[1])
        scores = features @ self.weights.T + log_p @ self.base_weights.T + self.bias
        return np.asarray(softmax(scores, axis=1))


def base_multinomial(n_features: int, n_categories: int) -> MultinomialJudge:
    """Return the base judge as a multinomial one: its own probabilities, no embedding."""
    return MultinomialJudge(
        np.zeros((n_categories, n_features)), np.eye(n_categories), np.zeros(n_categories)
    )

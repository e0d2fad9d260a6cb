"""Plackett-Luce quantitative judges: one of K alternatives, or a ranking of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from judgeline.quantitative.inputs import require_rows
from judgeline.quantitative.judges import ChoiceJudge
from judgeline.quantitative.penalty import N_FOLDS, PENALTIES, Rows, fit_with_chosen_penalty

Floats = NDArray[np.float64]

BASE_PENALTY = 0.01
"""Penalty on the squared weight of a base score of unit spread, as in `quantitative`."""

_TOLERANCE = 1e-7  # largest gradient, in choices per unit weight
_MAX_ITERATIONS = 5000


def fit_choices(
    embeddings: ArrayLike,
    base: ArrayLike,
    ranking: ArrayLike,
    question: ArrayLike,
    *,
    rng: np.random.Generator,
    penalties: Sequence[float] = PENALTIES,
    n_folds: int = N_FOLDS,
    base_penalty: float = BASE_PENALTY,
) -> ChoiceJudge:
    """Return the Plackett-Luce judge that maximises the penalised likelihood of rankings.

    The chance of an alternative to be next is its exp(score) over the sum of those not yet
    placed; the score is ``embedding @ weights + base_weight * base``, without a bias, which
    would cancel. Embeddings count from the mean of their set and in units of their spread,
    which changes no prediction.

    Parameters
    ----------
    embeddings : array_like, shape (n, K, d)
        Embeddings of the rationales of K >= 2 alternatives; d may be 0.
    base : array_like, shape (n, K)
        The base judge's utilities, in logits up to a factor that is fitted.
    ranking : array_like of int, shape (n, T)
        Positions 0 to K - 1 of the T <= K best alternatives, best first: T = 1 is the top
        choice alone, T = K - 1 or K a full ranking.
    question : array_like, shape (n,)
        The question of each set: the unit of cross-validation.
    rng, penalties, n_folds, base_penalty
        As in `quantitative.fit_ratings`.

    Returns
    -------
    ChoiceJudge
        With the choice of the penalty and its held-out negative log-likelihoods, in nats.

    Raises
    ------
    ValueError
        On missing embeddings or scores, a ranking that names a position twice or one that
        does not exist, or fewer questions than folds.
    RuntimeError
        If the optimiser does not converge.

    References
    ----------
    R. L. Plackett (1975), Applied Statistics 24; A. Sahoo et al. (2025), "Quantitative LLM
    Judges", arXiv:2506.02945.
    """
    features, given = require_rows(embeddings, base)
    order = require_rankings(ranking, given.shape)
    columns = np.concatenate([features, given[..., None]], axis=2)

    def fit(train: Rows, gamma: float) -> ChoiceJudge:
        within = columns[train] - columns[train].mean(axis=1, keepdims=True)
        units = _units(within)
        precision = np.append(np.full(features.shape[2], gamma), base_penalty)
        weights = _maximise(within / units, order[train], precision) / units
        return ChoiceJudge(weights[:-1], float(weights[-1]), 0.0)

    def loss(judge: ChoiceJudge, test: Rows) -> float:
        return -float(log_chance(judge.score(features[test], given[test]), order[test]).sum())

    return fit_with_chosen_penalty(
        fit, loss, question, penalties=penalties, n_folds=n_folds, rng=rng
    )


def log_chance(scores: ArrayLike, ranking: ArrayLike) -> Floats:
    """Return the Plackett-Luce log-probability of each ranking.

    Parameters
    ----------
    scores : array_like, shape (n, K)
        Scores of the alternatives, in logits.
    ranking : array_like of int, shape (n, T)
        Positions of the T best, best first.

    Returns
    -------
    ndarray, shape (n,)
        Natural logarithms.
    """
    values = np.asarray(scores, dtype=float)
    order = require_rankings(ranking, values.shape)
    total = np.zeros(values.shape[0])
    remaining = values.copy()
    for place in order.T:
        rows = np.arange(place.size)
        total += values[rows, place] - logsumexp(remaining, axis=1)
        remaining[rows, place] = -np.inf
    return total


def require_rankings(ranking: ArrayLike, shape: tuple[int, ...]) -> Rows:
    """Return rankings (n, T) of sets of shape (n, K), or raise naming the first bad one."""
    order = np.asarray(ranking)
    if len(shape) != 2 or shape[1] < 2 or order.ndim != 2 or order.shape[0] != shape[0]:
        raise ValueError(
            f"ranking has shape {order.shape}, scores {shape}; expected (n, T) and (n, K), K >= 2"
        )
    if not 1 <= order.shape[1] <= shape[1]:
        raise ValueError(f"a ranking of {order.shape[1]} out of {shape[1]} alternatives")
    ordered = np.sort(order, axis=1)
    known = np.isin(order, np.arange(shape[1])).all(axis=1)
    good = known & (np.diff(ordered, axis=1) > 0).all(axis=1)
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"ranking is {order[row].tolist()} in row {row}; expected distinct positions 0 to "
            f"{shape[1] - 1}, best first"
        )
    return order.astype(np.intp)


def _units(within: Floats) -> Floats:
    """Return one unit for all features, their root mean squared distance, and the score's."""
    squares = (within**2).mean(axis=(0, 1))
    feature = np.sqrt(squares[:-1].sum()) or 1.0
    return np.append(np.full(squares.size - 1, feature), np.sqrt(squares[-1]) or 1.0)


def _maximise(columns: Floats, order: Rows, precision: Floats) -> Floats:
    def objective(weights: Floats) -> tuple[float, Floats]:
        value, gradient = _negative_likelihood(columns, order, weights)
        value += float(precision @ weights**2) / 2
        return value, np.asarray(gradient + precision * weights)

    options: Any = {"maxiter": _MAX_ITERATIONS, "maxfun": 10 * _MAX_ITERATIONS}
    options |= {"ftol": 0.0, "gtol": _TOLERANCE, "maxcor": 30}
    start = np.zeros(precision.size)
    result: Any = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    largest = float(np.abs(result.jac).max())
    if largest > 1e3 * _TOLERANCE:  # rounding of the objective may end the search just before
        raise RuntimeError(
            f"Plackett-Luce fit did not converge: largest gradient {largest:.1e}, tolerance "
            f"{_TOLERANCE:.0e} ({result.message}); raise the smallest penalty of the grid"
        )
    return np.asarray(result.x)


def _negative_likelihood(columns: Floats, order: Rows, weights: Floats) -> tuple[float, Floats]:
    scores = columns @ weights
    rows = np.arange(order.shape[0])
    remaining, slope, value = scores.copy(), np.zeros_like(scores), 0.0
    for place in order.T:
        value += float((logsumexp(remaining, axis=1) - scores[rows, place]).sum())
        slope += softmax(remaining, axis=1)
        slope[rows, place] -= 1
        remaining[rows, place] = -np.inf
    return value, np.asarray(np.einsum("nk,nkd->d", slope, columns))

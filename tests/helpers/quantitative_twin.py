"""Slow, obvious twins of the quantitative judges: objectives as written, in the units given."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression, Ridge


def spreads(embeddings: np.ndarray, base: np.ndarray) -> tuple[float, np.ndarray]:
    """Root mean squared distance from the mean embedding; standard deviations of the scores."""
    distance = np.linalg.norm(embeddings - embeddings.mean(axis=0), axis=1)
    return float(np.sqrt(np.mean(distance**2))), np.atleast_1d(base.std(axis=0))


def logistic_weights(
    embeddings: np.ndarray,
    base: np.ndarray,
    outcome: np.ndarray,
    weights: np.ndarray,
    *,
    penalty: float,
    base_penalty: float,
    scales: tuple[float, np.ndarray],
) -> np.ndarray:
    """Weights (d), base weight and bias by Newton's method."""
    design = np.column_stack([embeddings, base, np.ones(base.size)])
    unit, (spread,) = scales
    precision = np.array([penalty * unit**2] * embeddings.shape[1] + [base_penalty * spread**2, 0])
    found = np.zeros(design.shape[1])
    for _ in range(100):
        chance = 1 / (1 + np.exp(-design @ found))
        gradient = design.T @ (weights * (chance - outcome)) + precision * found
        bend = (design.T * (weights * chance * (1 - chance))) @ design + np.diag(precision)
        step = np.linalg.solve(bend, gradient)
        found = found - step * min(1, 2 / np.abs(design @ step).max())
    assert np.abs(gradient).max() < 1e-9
    return found


def ridge_weights(
    embeddings: np.ndarray,
    base: np.ndarray,
    rating: np.ndarray,
    *,
    penalty: float,
    base_penalty: float,
) -> np.ndarray:
    """The same of ridge regression: the normal equations."""
    design = np.column_stack([embeddings, base, np.ones(base.size)])
    unit, (spread,) = spreads(embeddings, base)
    precision = [penalty * unit**2] * embeddings.shape[1] + [base_penalty * spread**2, 0]
    return np.linalg.solve(design.T @ design + np.diag(precision), design.T @ rating)


def ranking_chance(scores: np.ndarray, ranking: tuple[int, ...]) -> float:
    """Plackett-Luce: one by one, each against those not yet placed."""
    worth, chance = np.exp(scores), 1.0
    left = set(range(scores.size))
    for item in ranking:
        chance *= worth[item] / sum(worth[j] for j in left)
        left.remove(item)
    return float(chance)


def ranking_weights(
    embeddings: np.ndarray,
    base: np.ndarray,
    ranking: np.ndarray,
    *,
    penalty: float,
    base_penalty: float,
) -> np.ndarray:
    """Weights (d) and base weight of Plackett-Luce by a general minimiser without slopes."""
    features = embeddings - embeddings.mean(axis=1, keepdims=True)
    scores = base - base.mean(axis=1, keepdims=True)
    d = features.shape[-1]
    unit, (spread,) = spreads(features.reshape(-1, d), scores.ravel())

    def objective(found: np.ndarray) -> float:
        """Penalised negative log-likelihood, one ranking at a time."""
        worth = features @ found[:d] + scores * found[d]
        chances = [ranking_chance(one, tuple(row)) for one, row in zip(worth, ranking, strict=True)]
        squares = (
            penalty * unit**2 * found[:d] @ found[:d] + base_penalty * (spread * found[d]) ** 2
        )
        return float(squares / 2 - np.log(chances).sum())

    found = minimize(objective, np.zeros(d + 1), options={"gtol": 1e-6})
    assert np.abs(found.jac).max() < 1e-3
    return found.x


def sklearn_predictions(
    form: str, embeddings: np.ndarray, base: np.ndarray, target: np.ndarray, *, penalty: float
) -> np.ndarray:
    """Predictions of scikit-learn's regressions; columns are scaled so that one penalty is two."""
    columns = log_softmax(np.log(base), axis=1) if form == "mn" else base[:, None]
    stretch = np.sqrt(penalty / (1.0 if form == "mn" else 0.01))
    unit, spread = spreads(embeddings, columns)
    centred = columns - columns.mean(axis=0)
    design = np.hstack([(embeddings - embeddings.mean(axis=0)) / unit, centred / spread * stretch])
    if form == "ls":
        return Ridge(alpha=penalty, solver="svd").fit(design, target).predict(design)
    solver = {"solver": "newton-cholesky"} if form == "btl" else {}
    model = LogisticRegression(C=1 / penalty, tol=1e-9, max_iter=5000, **solver)
    if form == "mn":
        return model.fit(design, target).predict_proba(design)
    won, lost = np.flatnonzero(target > 0), np.flatnonzero(target < 1)
    label, share = np.repeat([1, 0], [won.size, lost.size]), np.r_[target[won], 1 - target[lost]]
    model.fit(design[np.r_[won, lost]], label, sample_weight=share)
    return model.predict_proba(design)[:, 1]

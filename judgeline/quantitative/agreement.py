"""Agreement of predictions with people: errors, classes, correlations, orders."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, alike_floats, require
from judgeline.quantitative.inputs import require_rankings
from judgeline.quantitative.judges import log_chance


def rating_agreement(
    prediction: ArrayLike, human: ArrayLike, *, categories: ArrayLike | None = None
) -> dict[str, float]:
    """Return errors, accuracy and correlations (Kendall's is tau-b) of predicted ratings, by name.

    "mse" is in the squared unit of the human values, "mae" in theirs. A prediction is right if the
    nearest of the `categories` (S,) is the human's (of two equally near, the lower). Without them
    accuracy is NaN; of values that are all alike, correlations are.
    """
    predicted, truth = _columns(prediction, human)
    values = _errors_and_correlations(predicted, truth)
    if categories is None:
        return values | {"accuracy": np.nan}
    counts = confusion_matrix(predicted, truth, categories=categories)
    return values | {"accuracy": float(counts.trace() / counts.sum())}


def confusion_matrix(
    prediction: ArrayLike, human: ArrayLike, *, categories: ArrayLike
) -> NDArray[np.int64]:
    """Return counts (S, S) of rows by the human's category, then by the predicted one.

    A prediction (n,) counts as the nearest of the categories (S,), of two equally near as the
    lower; `human` (n,) is one of them.
    """
    predicted, truth = _columns(prediction, human)
    known = np.unique(np.asarray(categories, dtype=float))
    require(np.isin(truth, known), "human", truth, f"one of {known.tolist()}")
    nearest = np.abs(predicted[:, None] - known).argmin(axis=1)
    counts = np.zeros((known.size, known.size), dtype=np.int64)
    np.add.at(counts, (np.searchsorted(known, truth), nearest), 1)
    return counts


def preference_agreement(prediction: ArrayLike, human: ArrayLike) -> dict[str, float]:
    """Return errors, classification measures and correlations of predicted preferences, by name.

    Classes are who wins: more than one half. Battles that the human tied count in errors and
    correlations only. A prediction of exactly one half is half a win and half a loss, in
    every measure; so swapping the answers of all battles leaves accuracy alone. Precision, recall
    and f1 are of wins of the first answer, Kendall's measure is tau-b. A share of nothing is NaN,
    and so is a correlation of values that are all alike.
    """
    predicted, truth = _columns(prediction, human)
    for name, column in (("prediction", predicted), ("human", truth)):
        require((column >= 0) & (column <= 1), name, column, "a share in [0, 1]")
    decisive = truth != 0.5
    win, won = (1 + np.sign(predicted[decisive] - 0.5)) / 2, truth[decisive] > 0.5
    hits, claimed, actual = float(win[won].sum()), float(win.sum()), float(won.sum())
    parts = {
        "accuracy": (hits + float((1 - win)[~won].sum()), won.size),
        "precision": (hits, claimed),
        "recall": (hits, actual),
        "f1": (2 * hits, claimed + actual),
    }
    shares = {name: part / whole if whole else np.nan for name, (part, whole) in parts.items()}
    return _errors_and_correlations(predicted, truth) | shares


def ranking_agreement(scores: ArrayLike, ranking: ArrayLike) -> dict[str, float]:
    """Return how well scores (n, K) of alternatives order them as human rankings (n, T) do.

    "accuracy": share of sets whose best-scored alternative is the human's best, of several best
    ones a part. "kendall": mean tau over sets, of the pairs that the ranking orders; equal scores
    count as neither right nor wrong. "log_loss": nats per set if the scores are Plackett-Luce's.
    """
    values = np.asarray(scores, dtype=float)
    order = require_rankings(ranking, values.shape)
    best = values == values.max(axis=1, keepdims=True)
    right = best[np.arange(len(order)), order[:, 0]] / best.sum(axis=1)
    place = np.full(values.shape, order.shape[1])  # all that are not placed share the last one
    np.put_along_axis(place, order, np.arange(order.shape[1])[None], axis=1)
    human = np.sign(place[:, None] - place[:, :, None])
    machine = np.sign(values[:, :, None] - values[:, None])
    tau = (human * machine).sum(axis=(1, 2)) / np.abs(human).sum(axis=(1, 2))
    log_loss = -float(log_chance(values, order).mean())
    return {"accuracy": float(right.mean()), "kendall": float(tau.mean()), "log_loss": log_loss}


def _errors_and_correlations(predicted: Floats, truth: Floats) -> dict[str, float]:
    from scipy.stats import kendalltau, pearsonr, spearmanr

    error = predicted - truth
    values = {"mse": float((error**2).mean()), "mae": float(np.abs(error).mean())}
    measures: dict[str, Any] = {"pearson": pearsonr, "spearman": spearmanr, "kendall": kendalltau}
    if not (np.ptp(predicted) and np.ptp(truth)):
        return values | dict.fromkeys(measures, np.nan)
    return values | {n: float(one(predicted, truth).statistic) for n, one in measures.items()}


def _columns(prediction: ArrayLike, human: ArrayLike) -> tuple[Floats, Floats]:
    predicted, truth = alike_floats(prediction=prediction, human=human)
    require(predicted.size, "the number of predictions", predicted.size, "at least one")
    for name, column in (("prediction", predicted), ("human", truth)):
        require(np.isfinite(column), name, column, "a number; leave out rows without one")
    return predicted, truth

"""Agreement of predictions with people: errors, classes, correlations, orders."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, alike_floats, require
from judgeline.quantitative.inputs import require_rankings
from judgeline.quantitative.judges import log_chance


class Agreement(NamedTuple):
    """Measures by name, and why those that are NaN cannot be had.

    `measures`: "mse" and "mae" in the (squared) unit of the human values, the rest unitless.
    `reasons`: one sentence for every NaN. `n`: rows compared; `n_classified`: rows with a class.
    """

    measures: dict[str, float]
    reasons: dict[str, str]
    n: int
    n_classified: int


def rating_agreement(
    prediction: ArrayLike, human: ArrayLike, *, categories: ArrayLike | None = None
) -> Agreement:
    """Return errors, accuracy and correlations (Kendall's is tau-b) of predicted ratings.

    A prediction is right if the nearest of the `categories` (S,) is the human's (of two equally
    near, the lower). Without them accuracy is NaN.
    """
    predicted, truth = _columns(prediction, human)
    values, reasons = _errors_and_correlations(predicted, truth)
    if categories is None:
        values["accuracy"], reasons["accuracy"] = np.nan, "no categories were given"
        return Agreement(values, reasons, predicted.size, 0)
    counts = confusion_matrix(predicted, truth, categories=categories)
    values["accuracy"] = float(counts.trace() / counts.sum())
    return Agreement(values, reasons, predicted.size, predicted.size)


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


def preference_agreement(prediction: ArrayLike, human: ArrayLike) -> Agreement:
    """Return errors, classification measures and correlations of predicted preferences.

    Classes are who wins: more than one half. Battles that the human tied count in errors and
    correlations only. A prediction of exactly one half is half a win and half a loss, in
    every measure; so swapping the answers of all battles leaves accuracy alone. Precision, recall
    and f1 are of wins of the first answer, Kendall's measure is tau-b.
    """
    predicted, truth = _columns(prediction, human)
    for name, column in (("prediction", predicted), ("human", truth)):
        require((column >= 0) & (column <= 1), name, column, "a share in [0, 1]")
    values, reasons = _errors_and_correlations(predicted, truth)
    decisive = truth != 0.5
    win = (1 + np.sign(predicted[decisive] - 0.5)) / 2
    scores, why = _classification(win, truth[decisive] > 0.5)
    return Agreement(values | scores, reasons | why, predicted.size, int(decisive.sum()))


def ranking_agreement(scores: ArrayLike, ranking: ArrayLike) -> Agreement:
    """Return how well scores (n, K) of alternatives order them as human rankings (n, T) do.

    "accuracy": share of sets whose best-scored alternative is the human's best, of several best
    ones a part. "kendall": mean tau over sets, of the pairs that the ranking orders; equal scores
    count as neither right nor wrong. "log_loss": nats per set if the scores are Plackett-Luce's.
    """
    values = np.asarray(scores, dtype=float)
    order = require_rankings(ranking, values.shape)
    rows = np.arange(len(order))
    best = values == values.max(axis=1, keepdims=True)
    place = np.full(values.shape, order.shape[1])  # all that are not placed share the last one
    np.put_along_axis(place, order, np.arange(order.shape[1])[None], axis=1)
    human = np.sign(place[:, None] - place[:, :, None])
    machine = np.sign(values[:, :, None] - values[:, None])
    tau = (human * machine).sum(axis=(1, 2)) / np.abs(human).sum(axis=(1, 2))
    measures = {
        "accuracy": float((best[rows, order[:, 0]] / best.sum(axis=1)).mean()),
        "kendall": float(tau.mean()),
        "log_loss": -float(log_chance(values, order).mean()),
    }
    return Agreement(measures, {}, len(order), len(order))


def _classification(
    win: Floats, truth: NDArray[np.bool_]
) -> tuple[dict[str, float], dict[str, str]]:
    hits, claimed, actual = float(win[truth].sum()), float(win.sum()), float(truth.sum())
    right = hits + float((1 - win)[~truth].sum())
    parts = {
        "accuracy": (right, float(truth.size), "every human outcome is a tie"),
        "precision": (hits, claimed, "no win was predicted"),
        "recall": (hits, actual, "the human saw no win of the first answer"),
        "f1": (2 * hits, claimed + actual, "no win was predicted and there was none"),
    }
    values = {name: over / under if under else np.nan for name, (over, under, _) in parts.items()}
    return values, {name: why for name, (_, under, why) in parts.items() if not under}


def _errors_and_correlations(
    predicted: Floats, truth: Floats
) -> tuple[dict[str, float], dict[str, str]]:
    from scipy.stats import kendalltau, pearsonr, spearmanr

    error = predicted - truth
    values = {"mse": float((error**2).mean()), "mae": float(np.abs(error).mean())}
    names = ("pearson", "spearman", "kendall")
    for name, column in (("predictions", predicted), ("human values", truth)):
        if np.ptp(column) == 0:
            why = f"all {column.size} {name} are {column[0]:g}"
            return values | dict.fromkeys(names, np.nan), dict.fromkeys(names, why)
    measures = (pearsonr, spearmanr, kendalltau)
    statistics = [float(measure(predicted, truth).statistic) for measure in measures]
    return values | dict(zip(names, statistics, strict=True)), {}


def _columns(prediction: ArrayLike, human: ArrayLike) -> tuple[Floats, Floats]:
    predicted, truth = alike_floats(prediction=prediction, human=human)
    require(predicted.size, "the number of predictions", predicted.size, "at least one")
    for name, column in (("prediction", predicted), ("human", truth)):
        require(np.isfinite(column), name, column, "a number; leave out rows without one")
    return predicted, truth

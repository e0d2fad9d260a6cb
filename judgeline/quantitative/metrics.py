"""How well predictions of a judge agree with humans: ratings and preferences."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


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
    """Return errors, accuracy and correlations of predicted ratings.

    Parameters
    ----------
    prediction, human : array_like, shape (n,)
        Ratings in the same unit.
    categories : array_like, shape (S,), optional
        The ratings that can be given. A prediction is right if the nearest of them is the
        human's (of two equally near, the lower). Without them accuracy is NaN.

    Returns
    -------
    Agreement
        "mse", "mae", "accuracy", "pearson", "spearman", "kendall" (tau-b).

    Raises
    ------
    ValueError
        If a value is missing, lengths differ, or a human rating is no category.
    """
    said, truth = _columns(prediction, human)
    values, reasons = _errors_and_correlations(said, truth)
    if categories is None:
        values["accuracy"], reasons["accuracy"] = np.nan, "no categories were given"
        return Agreement(values, reasons, said.size, 0)
    known = np.unique(np.asarray(categories, dtype=float))
    if not np.isin(truth, known).all():
        bad = int(np.argmin(np.isin(truth, known)))
        raise ValueError(f"human is {truth[bad]:g} in row {bad}; expected one of {known.tolist()}")
    nearest = known[np.abs(said[:, None] - known).argmin(axis=1)]
    values["accuracy"] = float((nearest == truth).mean())
    return Agreement(values, reasons, said.size, said.size)


def preference_agreement(prediction: ArrayLike, human: ArrayLike) -> Agreement:
    """Return errors, classification measures and correlations of predicted preferences.

    Classes are who wins: more than one half. Battles that the human tied count in errors and
    correlations only. A prediction of exactly one half is half a win and half a loss, in
    every measure; so swapping the answers of all battles leaves accuracy alone.

    Parameters
    ----------
    prediction, human : array_like, shape (n,)
        Probability, or share, of the win of the first answer, in [0, 1].

    Returns
    -------
    Agreement
        "mse", "mae", "accuracy", "precision", "recall", "f1" (of wins of the first answer),
        "pearson", "spearman", "kendall" (tau-b).

    Raises
    ------
    ValueError
        If a value is missing or outside [0, 1], or lengths differ.
    """
    said, truth = _columns(prediction, human)
    for name, column in (("prediction", said), ("human", truth)):
        outside = (column < 0) | (column > 1)
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(f"{name} is {column[row]:g} in row {row}; expected a share in [0, 1]")
    values, reasons = _errors_and_correlations(said, truth)
    decisive = truth != 0.5
    win = (1 + np.sign(said[decisive] - 0.5)) / 2
    scores, why = _classification(win, truth[decisive] > 0.5)
    return Agreement(values | scores, reasons | why, said.size, int(decisive.sum()))


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
    said: Floats, truth: Floats
) -> tuple[dict[str, float], dict[str, str]]:
    from scipy.stats import kendalltau, pearsonr, spearmanr

    error = said - truth
    values = {"mse": float((error**2).mean()), "mae": float(np.abs(error).mean())}
    names = ("pearson", "spearman", "kendall")
    for name, column in (("predictions", said), ("human values", truth)):
        if np.ptp(column) == 0:
            why = f"all {column.size} {name} are {column[0]:g}"
            return values | dict.fromkeys(names, np.nan), dict.fromkeys(names, why)
    measures = (pearsonr, spearmanr, kendalltau)
    found = [float(measure(said, truth).statistic) for measure in measures]
    return values | dict(zip(names, found, strict=True)), {}


def _columns(prediction: ArrayLike, human: ArrayLike) -> tuple[Floats, Floats]:
    said, truth = np.asarray(prediction, dtype=float), np.asarray(human, dtype=float)
    if said.ndim != 1 or said.shape != truth.shape or not said.size:
        raise ValueError(f"prediction has shape {said.shape}, human {truth.shape}; expected (n,)")
    for name, column in (("prediction", said), ("human", truth)):
        if not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column)))
            raise ValueError(f"{name} is {column[row]} in row {row}; leave out rows without one")
    return said, truth

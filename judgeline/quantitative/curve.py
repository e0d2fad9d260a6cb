"""Learning curves: the error of a quantitative judge by its number of votes, on one corpus.

Every training set is drawn from questions that are not tested on. Beside the judge stand the
same fit without the embedding, which says what calibration alone gives, and the base judge as
it is.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.quantitative.inputs import (
    Presentations,
    TooLittleToLearnError,
    battle_outcomes,
    presentation_weights,
    presented_outcomes,
    require_shares,
    require_votes,
)
from judgeline.quantitative.newton import Coordinates, coordinates, fit_many
from judgeline.quantitative.penalty import (
    BASE_PENALTY,
    N_FOLDS,
    PENALTIES,
    Rows,
    chosen,
    question_folds,
    require_grid,
)

Floats = NDArray[np.float64]

SIZES: Sequence[int] = (100, 200, 500)
"""Votes in a training set, as published."""

N_SETS = 10
"""Training sets per size, as published."""

TESTED = 1 / 3
"""Share of the questions with votes that a set keeps for testing."""

METRICS = ("accuracy", "mse", "mae", "pearson", "spearman", "kendall")
_SELECTION = 1e-3  # logits; differences of penalties matter far above
_SCORE_ONLY = 1e9  # a penalty that leaves nothing of the embedding


class LearningCurve(NamedTuple):
    """One row per size and metric, each field an array of one length.

    `value`, `score_only` and `base`: mean over the sets of the metric on test battles, of the
    judge, of the same fit without the embedding, and of the base judge; `std_dev` of the
    first over the sets. `n_test`: mean number of test battles. Errors are in shares of a win
    (mse: squared), the rest is unitless.
    """

    n_train: Rows
    metric: NDArray[np.str_]
    value: Floats
    std_dev: Floats
    score_only: Floats
    base: Floats
    n_sets: Rows
    n_test: Floats


class _Votes(NamedTuple):
    """The n battles that have a vote, and their r presentations.

    `shown`; `weights` and `target` (r,); `outcome`, `base_outcome` and `question` (n,), the
    last as codes.
    """

    shown: Presentations
    weights: Floats
    target: Floats
    outcome: Floats
    base_outcome: Floats
    question: Rows

    @classmethod
    def of(
        cls, shown: Presentations, base_outcome: ArrayLike, outcome: ArrayLike, question: ArrayLike
    ) -> "_Votes":
        """Return the battles with votes, numbered anew."""
        shares, names = np.asarray(outcome, dtype=float), np.asarray(question)
        base = np.asarray(base_outcome, dtype=float)
        if not shares.shape == names.shape == base.shape:
            raise ValueError(
                f"outcome has shape {shares.shape}, question {names.shape}, base_outcome "
                f"{base.shape}; expected one row per battle"
            )
        has_vote = ~np.isnan(shares)
        if not has_vote.any():
            raise TooLittleToLearnError("no battle has a vote to learn from; add votes")
        require_votes(shares)
        part = Presentations(*(column[has_vote[shown.battle]] for column in shown))
        part = part._replace(battle=(np.cumsum(has_vote) - 1)[part.battle])
        _, codes = np.unique(names[has_vote], return_inverse=True)
        return cls(
            part,
            presentation_weights(part),
            presented_outcomes(shares[has_vote], part),
            shares[has_vote],
            base[has_vote],
            codes.reshape(-1),
        )


def learning_curve(
    shown: Presentations,
    base_outcome: ArrayLike,
    outcome: ArrayLike,
    question: ArrayLike,
    *,
    rng: np.random.Generator,
    sizes: Sequence[int] = SIZES,
    n_sets: int = N_SETS,
    n_folds: int = N_FOLDS,
    penalties: Sequence[float] = PENALTIES,
    base_penalty: float = BASE_PENALTY,
) -> LearningCurve:
    """Return how well judges trained on few votes agree with people on other questions.

    Assumes that votes on different questions are independent. The penalty of each judge is
    chosen by cross-validation over the questions of its own training set; a larger set of one
    draw holds the smaller ones. Features are scaled over all battles with a vote.

    Parameters
    ----------
    shown : Presentations
        Presentations of n battles, at least one of each (`presentations`, `two_headed`).
    base_outcome : array_like, shape (n,)
        The base judge's own share of the win for A, in [0, 1].
    outcome : array_like, shape (n,)
        A's share of the human win in [0, 1], NaN where nobody voted.
    question : array_like, shape (n,)
        The question of each battle.
    rng : numpy.random.Generator
        Draws the sets and deals questions to folds.
    sizes : sequence of int
        Votes in a training set; those that some draw cannot fill are left out.
    n_sets : int
        Draws.
    n_folds, penalties, base_penalty
        As in `fit_judge`.

    Raises
    ------
    TooLittleToLearnError
        If no size can be filled, a training set spans fewer questions than folds, or its votes
        are all alike.
    """
    grid = require_grid(penalties)
    voted = _Votes.of(shown, base_outcome, outcome, question)
    splits = [_split(voted.question, draw) for draw in rng.spawn(n_sets)]
    most = min(train.size for train, _ in splits)
    filled = [size for size in sorted(sizes) if size <= most]
    if not filled:
        raise TooLittleToLearnError(
            f"{most} votes on questions that are not tested on cannot fill a training set of "
            f"{min(sizes)}; add votes"
        )
    runs = [train[:size] for size in filled for train, _ in splits]
    where = coordinates(voted.shown.embeddings, voted.shown.base, voted.weights)
    rough = where.single()
    chosen_ones = [
        _chosen_penalty(rough, voted, train, (grid, n_folds, base_penalty), deal)
        for train, deal in zip(runs, rng.spawn(len(runs)), strict=True)
    ]
    counted = np.column_stack([np.isin(voted.shown.battle, train) for train in runs])
    fits = partial(
        fit_many,
        where,
        voted.weights[:, None] * counted,
        voted.target,
        base_penalty=base_penalty,
        rows=np.asarray(counted.any(axis=1)),
    )
    ours, score_only = (
        battle_outcomes(expit(fits(gammas)), voted.shown)
        for gammas in (np.array(chosen_ones), np.full(len(runs), _SCORE_ONLY))
    )
    return _tabulated(voted, splits, runs, ours, score_only)


def _split(question: NDArray[np.intp], rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return battles to train on, in random order, and those on other questions, to test."""
    n_questions = int(question.max()) + 1
    order = rng.permutation(n_questions)
    is_tested = np.isin(question, order[: max(1, round(TESTED * n_questions))])
    return rng.permutation(np.flatnonzero(~is_tested)), np.flatnonzero(is_tested)


def _chosen_penalty(
    where: Coordinates,
    voted: _Votes,
    train: Rows,
    settings: tuple[Floats, int, float],
    rng: np.random.Generator,
) -> float:
    """Return the penalty with the least cross-validated loss in one training set."""
    grid, n_folds, base_penalty = settings
    fold_of = np.full(voted.question.size, -1)
    fold_of[train] = question_folds(voted.question[train], n_folds=n_folds, rng=rng)
    rows = np.flatnonzero(fold_of[voted.shown.battle] >= 0)
    fold, target, weights = (
        fold_of[voted.shown.battle[rows]],
        voted.target[rows],
        voted.weights[rows],
    )
    for k in range(n_folds):
        require_shares(target[fold != k], int((fold != k).sum()))
    left_out = np.repeat(np.arange(n_folds), grid.size)
    scores = fit_many(
        where._replace(columns=where.columns[rows]),
        weights[:, None] * (fold[:, None] != left_out),
        target,
        np.tile(grid, n_folds),
        base_penalty=base_penalty,
        tolerance=_SELECTION,
    )
    loss = np.logaddexp(0, scores) - target[:, None] * scores
    held_out = (weights[:, None] * loss * (fold[:, None] == left_out)).sum(axis=0)
    return chosen(grid, held_out.reshape(n_folds, grid.size).sum(axis=0)).penalty


def _tabulated(
    voted: _Votes,
    splits: Sequence[tuple[Rows, Rows]],
    runs: Sequence[Rows],
    ours: Floats,
    score_only: Floats,
) -> LearningCurve:
    rows = []
    for number in range(len(runs)):
        test = splits[number % len(splits)][1]
        for share in (ours[:, number], score_only[:, number], voted.base_outcome):
            measures = preference_agreement(share[test], voted.outcome[test]).measures
            rows.append([measures[metric] for metric in METRICS])
    n_sizes = len(runs) // len(splits)
    measured = np.array(rows).reshape(n_sizes, len(splits), 3, len(METRICS))
    mean, std_dev = measured.mean(axis=1), measured[:, :, 0].std(axis=1, ddof=len(splits) > 1)
    sizes = np.array([train.size for train in runs[:: len(splits)]])
    n_test = float(np.mean([test.size for _, test in splits]))
    return LearningCurve(
        np.repeat(sizes, len(METRICS)),
        np.tile(np.array(METRICS), n_sizes),
        mean[:, 0].ravel(),
        std_dev.ravel() if len(splits) > 1 else np.full(std_dev.size, np.nan),
        mean[:, 1].ravel(),
        mean[:, 2].ravel(),
        np.full(n_sizes * len(METRICS), len(splits)),
        np.full(n_sizes * len(METRICS), n_test),
    )


# ------------------------------------------------------------------ measures of agreement


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
    known = np.unique(np.asarray(categories, dtype=float))
    if not np.isin(truth, known).all():
        bad = int(np.argmin(np.isin(truth, known)))
        raise ValueError(f"human is {truth[bad]:g} in row {bad}; expected one of {known.tolist()}")
    nearest = known[np.abs(predicted[:, None] - known).argmin(axis=1)]
    values["accuracy"] = float((nearest == truth).mean())
    return Agreement(values, reasons, predicted.size, predicted.size)


def preference_agreement(prediction: ArrayLike, human: ArrayLike) -> Agreement:
    """Return errors, classification measures and correlations of predicted preferences.

    Classes are who wins: more than one half. Battles that the human tied count in errors and
    correlations only. A prediction of exactly one half is half a win and half a loss, in
    every measure; so swapping the answers of all battles leaves accuracy alone. Precision, recall
    and f1 are of wins of the first answer, Kendall's measure is tau-b.
    """
    predicted, truth = _columns(prediction, human)
    for name, column in (("prediction", predicted), ("human", truth)):
        outside = (column < 0) | (column > 1)
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(f"{name} is {column[row]:g} in row {row}; expected a share in [0, 1]")
    values, reasons = _errors_and_correlations(predicted, truth)
    decisive = truth != 0.5
    win = (1 + np.sign(predicted[decisive] - 0.5)) / 2
    scores, why = _classification(win, truth[decisive] > 0.5)
    return Agreement(values | scores, reasons | why, predicted.size, int(decisive.sum()))


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
    predicted, truth = np.asarray(prediction, dtype=float), np.asarray(human, dtype=float)
    if predicted.ndim != 1 or predicted.shape != truth.shape or not predicted.size:
        raise ValueError(
            f"prediction has shape {predicted.shape}, human {truth.shape}; expected (n,)"
        )
    for name, column in (("prediction", predicted), ("human", truth)):
        if not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column)))
            raise ValueError(f"{name} is {column[row]} in row {row}; leave out rows without one")
    return predicted, truth

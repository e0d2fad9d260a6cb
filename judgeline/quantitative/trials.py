"""Trials: judges trained on few labels, tested on other questions, beside their base judge.

Every training set is drawn from questions that are not tested on. Beside the judge stand the
same fit without the embedding, which says what calibration alone gives, and the base judge as
it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, require
from judgeline.quantitative.agreement import ranking_agreement, rating_agreement
from judgeline.quantitative.battles import Battles
from judgeline.quantitative.inputs import (
    Design,
    Fit,
    Rows,
    TooLittleToLearnError,
    question_codes,
    question_folds,
    require_grid,
)
from judgeline.quantitative.judges import QuantitativeJudge, fit_judge

TESTED = 1 / 3
"""Share of the questions with votes that a set keeps for testing."""


class LearningCurve(NamedTuple):
    """One row per size and metric, each field an array of one length.

    `value`, `score_only` and `base`: mean over the sets of the metric on test labels, of the
    judge, of the same fit without the embedding, and of the base judge; `std_dev` of the
    first over the sets. `n_test`: mean number of test labels. Errors are in shares of a win or
    points of a rating (mse: squared), log_loss in nats, the rest is unitless.
    """

    n_train: Rows
    metric: NDArray[np.str_]
    value: Floats
    std_dev: Floats
    score_only: Floats
    base: Floats
    n_sets: Rows
    n_test: Floats


class Trials(NamedTuple):
    """Fits of R training sets: sizes (R,), tested rows and predictions of each."""

    task: "Battles | Labels"
    n_train: Rows
    tested: list[Rows]
    fits: list[Fit]

    def curve(self, metrics: Sequence[str] | None = None) -> LearningCurve:
        """Return means over the sets of each size; of all metrics if none are named."""
        names = list(metrics or self.task.measures(self.task.base, self.tested[0]))
        own = [
            [self.task.measures(share, test) for share in (fit.ours, fit.score_only)]
            for fit, test in zip(self.fits, self.tested, strict=True)
        ]
        sets = {id(test): test for test in self.tested}  # of one draw, whatever the size
        of_base = {key: self.task.measures(self.task.base, test) for key, test in sets.items()}
        every = [[*of, of_base[id(test)]] for of, test in zip(own, self.tested, strict=True)]
        measured = np.array([[[of[name] for name in names] for of in three] for three in every])
        sizes, n_sets = np.unique(self.n_train, return_counts=True)
        parts = [np.flatnonzero(self.n_train == size) for size in sizes]
        ours, score_only, base = np.hstack([measured[part].mean(axis=0) for part in parts])
        spread = [
            measured[part, 0].std(axis=0, ddof=1) if part.size > 1 else np.full(len(names), np.nan)
            for part in parts
        ]
        n_test = [np.mean([self.tested[i].size for i in part]) for part in parts]
        return LearningCurve(
            np.repeat(sizes, len(names)),
            np.tile(np.array(names), len(parts)),
            ours,
            np.concatenate(spread),
            score_only,
            base,
            np.repeat(n_sets, len(names)),
            np.repeat(n_test, len(names)),
        )


def trials(task: "Battles | Labels", design: Design, *, rng: np.random.Generator) -> Trials:
    """Return judges trained on few labels, with their predictions.

    Assumes that labels on different questions are independent. The penalty of each judge is
    chosen by cross-validation over the questions of its own training set; a larger set of one
    draw holds the smaller ones. Sets of `Labels` that teach too little are left out.

    Parameters
    ----------
    task : Battles or Labels
        Labels, rationales and the base judge's scores.
    design : Design
        Sizes, number of sets, penalties and what is tested.
    rng : numpy.random.Generator
        Draws the sets and deals questions to folds.

    Raises
    ------
    TooLittleToLearnError
        If no size can be filled, or no training set teaches enough.
    ValueError
        If nothing is tested.
    """
    require_grid(design.penalties)
    splits = [_split(task.question, draw, design.tested) for draw in rng.spawn(design.n_sets)]
    if not all(test.size for _, test in splits):
        raise ValueError("no row is tested; name some in `tested`, or leave it out to test a third")
    most = min(train.size for train, _ in splits)
    filled = [size for size in sorted(design.sizes) if size <= most]
    if not filled:
        raise TooLittleToLearnError(
            f"{most} votes on questions that are not tested on cannot fill a training set of "
            f"{min(design.sizes)}; add votes"
        )
    runs = [(train[:size], test) for size in filled for train, test in splits]
    fits = task.fits([train for train, _ in runs], rng.spawn(len(runs)), design)
    usable = [place for place, fit in enumerate(fits) if fit]
    n_train = np.array([runs[place][0].size for place in usable])
    return Trials(task, n_train, [runs[place][1] for place in usable], [fit for fit in fits if fit])


def _split(
    question: Rows, rng: np.random.Generator, tested: NDArray[np.bool_] | None
) -> tuple[Rows, Rows]:
    """Return rows to train on, in random order, and those to test, of other questions."""
    if tested is None:
        n_questions = int(question.max()) + 1
        order = rng.permutation(n_questions)
        tested = np.isin(question, order[: max(1, round(TESTED * n_questions))])
    free = ~np.isin(question, question[tested])
    return rng.permutation(np.flatnonzero(free)), np.flatnonzero(tested)


@dataclass(frozen=True)
class Labels:
    """Labels of one form, a row each; made by `of`.

    Predictions are ratings (n,), of MN the most probable one, or scores of K alternatives (n, K).
    """

    form: str
    embeddings: Floats
    scores: Floats
    target: NDArray[Any]
    question: Rows
    scale: Floats

    @classmethod
    def of(
        cls,
        form: str,
        embeddings: ArrayLike,
        scores: ArrayLike,
        label: ArrayLike,
        question: ArrayLike,
        *,
        scale: ArrayLike = (),
    ) -> "Labels":
        """Return labels with rationales (n, d) or (n, K, d) and the base judge's scores.

        Parameters
        ----------
        form : str
            ``ls``, ``mn`` or ``pl``.
        embeddings, scores, question
            As in `fit_judge`.
        label : array_like, shape (n,), for ``pl`` (n, T)
            Human rating, one of the scale; positions of the T best alternatives, best first.
        scale : array_like, shape (S,)
            All ratings that people can give, ascending, for ``mn`` one per probability; without
            them LS has no accuracy.

        Raises
        ------
        ValueError
            If a label is none of the scale; shapes and numbers are refused by `fit_judge`.
        """
        target, known = np.asarray(label), np.asarray(scale, dtype=float)
        if form != "pl" and known.size:
            require(np.isin(target, known), "label", target, f"one of {known.tolist()}")
        if form == "mn":
            target = np.searchsorted(known, target)
        features, base = np.asarray(embeddings, dtype=float), np.asarray(scores, dtype=float)
        return cls(form, features, base, target, question_codes(question), known)

    @property
    def base(self) -> Floats:
        """Return the base judge's own predictions."""
        return self._shown(self.scores)

    def _shown(self, scores: Floats) -> Floats:
        return self.scale[scores.argmax(axis=1)] if self.form == "mn" else scores

    def having(self, features: Any = slice(None), *, score: bool = True) -> "Labels":
        """Return the labels with some features, and with or without the score."""
        scores = self.scores if score else np.full_like(self.scores, 1 / self.scores.shape[-1])
        return replace(self, embeddings=self.embeddings[..., features], scores=scores)

    def measures(self, prediction: Floats, rows: Rows) -> dict[str, float]:
        """Return the agreement of predictions with some rows' labels."""
        if self.form == "pl":
            return ranking_agreement(prediction[rows], self.target[rows])
        scale = self.scale if self.scale.size else None
        return rating_agreement(prediction[rows], self.human[rows], categories=scale)

    @property
    def n_features(self) -> int:
        """Return the number of features of the embedding."""
        return int(self.embeddings.shape[-1])

    @property
    def human(self) -> NDArray[Any]:
        """Return people's ratings (n,) or rankings (n, T)."""
        return self.scale[self.target] if self.form == "mn" else self.target

    def fits(
        self, runs: Sequence[Rows], rngs: Sequence[np.random.Generator], design: Design
    ) -> list[Fit | None]:
        """Return a fit of each training set; None of one that teaches too little."""
        fits: list[Fit | None] = []
        for train, rng in zip(runs, rngs, strict=True):
            try:
                judge = self.judge(train, design, rng=rng)
                bare = self.having(slice(0))
                alone = bare.judge(train, design._replace(penalties=(1.0,)), rng=rng)
            except TooLittleToLearnError as error:
                fits.append(None)
                reason = error
                continue
            fits.append(Fit(judge.choice, self.predictions(judge), bare.predictions(alone)))
        if not any(fits):
            raise reason
        return fits

    def predictions(self, judge: QuantitativeJudge) -> Floats:
        """Return a judge's predictions."""
        return self._shown(judge.score(self.embeddings, self.scores))

    def judge(self, rows: Rows, design: Design, *, rng: np.random.Generator) -> QuantitativeJudge:
        """Return the judge that some rows teach (`fit_judge`)."""
        return fit_judge(
            self.form,
            self.embeddings[rows],
            self.scores[rows],
            self.target[rows],
            self.question[rows],
            rng=rng,
            penalties=design.penalties,
            n_folds=design.n_folds,
        )


def cross_fitted(labels: Labels, *, rng: np.random.Generator) -> Floats:
    """Return predictions (n,) or (n, K) of labels, each by a judge that saw no label of its fold.

    A fold has whole questions, so that no label on the question of a row shapes its prediction.
    TooLittleToLearnError if some fold's rest teaches too little.
    """
    design = Design()
    fold = question_folds(labels.question, n_folds=design.n_folds, rng=rng)
    shown = np.empty(labels.base.shape)
    for k in range(design.n_folds):
        judge = labels.judge(np.flatnonzero(fold != k), design, rng=rng)
        shown[fold == k] = labels.predictions(judge)[fold == k]
    return shown

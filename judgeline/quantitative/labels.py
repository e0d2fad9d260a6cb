"""Ratings and rankings to learn from: what LS, MN and Plackett-Luce judges predict of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, require
from judgeline.quantitative.agreement import ranking_agreement, rating_agreement
from judgeline.quantitative.inputs import TooLittleToLearnError
from judgeline.quantitative.judges import QuantitativeJudge, fit_judge
from judgeline.quantitative.penalty import Rows
from judgeline.quantitative.trials import Design, Fit, question_codes


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
            return ranking_agreement(prediction[rows], self.target[rows]).measures
        scale = self.scale if self.scale.size else None
        return rating_agreement(prediction[rows], self.human[rows], categories=scale).measures

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
            base_penalty=design.base_penalty,
        )

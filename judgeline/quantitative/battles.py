"""Battles with votes: what BTL and BTL2 judges learn from."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from judgeline.arrays import Floats, alike, alike_floats
from judgeline.quantitative.agreement import preference_agreement
from judgeline.quantitative.inputs import (
    Design,
    Fit,
    PenaltyChoice,
    Presentations,
    Rows,
    TooLittleToLearnError,
    battle_outcomes,
    chosen,
    presentation_weights,
    presented_outcomes,
    question_codes,
    question_folds,
    require_contrast,
    require_grid,
    require_votes,
)
from judgeline.quantitative.newton import Coordinates, coordinates, fit_many

METRICS = ("accuracy", "mse", "mae", "pearson", "spearman", "kendall")
_SELECTION = 1e-3  # logits; differences of penalties matter far above
_SCORE_ONLY = 1e9  # a penalty that leaves nothing of the embedding


class Battles(NamedTuple):
    """The n battles that have a vote, and their r presentations; made by `of`.

    `shown`; `weights` and `target` (r,); `human`, `base` and `question` (n,), the last as codes.
    """

    shown: Presentations
    weights: Floats
    target: Floats
    human: Floats
    base: Floats
    question: Rows

    @classmethod
    def of(
        cls, shown: Presentations, base_outcome: ArrayLike, outcome: ArrayLike, question: ArrayLike
    ) -> "Battles":
        """Return the battles with votes, numbered anew.

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

        Raises
        ------
        TooLittleToLearnError
            If no battle has a vote.
        """
        base, shares = alike_floats(base_outcome=base_outcome, outcome=outcome)
        _, names = alike(outcome=shares, question=question)
        has_vote = ~np.isnan(shares)
        if not has_vote.any():
            raise TooLittleToLearnError("no battle has a vote to learn from; add votes")
        require_votes(shares)
        part = Presentations(*(column[has_vote[shown.battle]] for column in shown))
        part = part._replace(battle=(np.cumsum(has_vote) - 1)[part.battle])
        return cls(
            part,
            presentation_weights(part),
            presented_outcomes(shares[has_vote], part),
            shares[has_vote],
            base[has_vote],
            question_codes(names[has_vote]),
        )

    @property
    def n_features(self) -> int:
        """Return the number of features of the embedding."""
        return int(self.shown.embeddings.shape[-1])

    def having(self, features: Any = slice(None), *, score: bool = True) -> "Battles":
        """Return the battles with some features, and with or without the score."""
        embeddings, base = self.shown.embeddings[:, features], self.shown.base * score
        return self._replace(shown=self.shown._replace(embeddings=embeddings, base=base))

    def measures(self, prediction: Floats, rows: Rows) -> dict[str, float]:
        """Return the agreement of shares (n,) with votes."""
        return preference_agreement(prediction[rows], self.human[rows])

    def fits(
        self, runs: Sequence[Rows], rngs: Sequence[np.random.Generator], design: Design
    ) -> list[Fit | None]:
        """Return the fits of all training sets, made together."""
        where = coordinates(self.shown.embeddings, self.shown.base, self.weights)
        rough = where.single()
        choices = [
            _chosen_penalty(rough, self, train, design, deal)
            for train, deal in zip(runs, rngs, strict=True)
        ]
        counted = np.column_stack([np.isin(self.shown.battle, train) for train in runs])
        fits = partial(
            fit_many,
            where,
            self.weights[:, None] * counted,
            self.target,
            rows=np.asarray(counted.any(axis=1)),
        )
        ours, score_only = (
            battle_outcomes(expit(fits(gammas)), self.shown).T
            for gammas in (
                np.array([choice.penalty for choice in choices]),
                np.full(len(runs), _SCORE_ONLY),
            )
        )
        return [Fit(*parts) for parts in zip(choices, ours, score_only, strict=True)]


def _chosen_penalty(
    where: Coordinates,
    voted: Battles,
    train: Rows,
    design: Design,
    rng: np.random.Generator,
) -> PenaltyChoice:
    """Return the penalty with the least cross-validated loss in one training set."""
    grid, n_folds = require_grid(design.penalties), design.n_folds
    fold_of = np.full(voted.question.size, -1)
    fold_of[train] = question_folds(voted.question[train], n_folds=n_folds, rng=rng)
    rows = np.flatnonzero(fold_of[voted.shown.battle] >= 0)
    fold, target = fold_of[voted.shown.battle[rows]], voted.target[rows]
    weights = voted.weights[rows]
    for k in range(n_folds):
        require_contrast(target[fold != k], "outcome")
    left_out = np.repeat(np.arange(n_folds), grid.size)
    scores = fit_many(
        where._replace(columns=where.columns[rows]),
        weights[:, None] * (fold[:, None] != left_out),
        target,
        np.tile(grid, n_folds),
        tolerance=_SELECTION,
    )
    loss = np.logaddexp(0, scores) - target[:, None] * scores
    held_out = (weights[:, None] * loss * (fold[:, None] == left_out)).sum(axis=0)
    return chosen(grid, held_out.reshape(n_folds, grid.size).sum(axis=0) / train.size)

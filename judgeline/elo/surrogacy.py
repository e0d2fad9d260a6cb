"""Surrogacy: whether the score difference carries all that votes know about two models.

Soft targets are unbiased only if, given the score difference, the vote no longer depends on
which models met. The test adds the gap between the models' human strengths to the fit.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from judgeline.arrays import Bools, Floats
from judgeline.elo.battle_counts import Sums
from judgeline.elo.battles import CodedBattles
from judgeline.elo.leave_one_out import centred, expected_wins
from judgeline.elo.strengths import curvature, fit_strengths, solver

_PARTS = 5
_LEAST_VOTES = 10
_MOST_VOTES = 100_000  # drawn at random: more would cost time and tell nothing new
_MOST_DELETIONS = 60
_MAX_ITERATIONS = 60
_SINGULAR = 1e12
_FINISHED = 1e-11  # logits


class Surrogacy(NamedTuple):
    """Fit of decisive votes on ``beta * s + gamma * (strength_a - strength_b)``.

    `beta` is in logits per rubric point. `gamma` is a share: near 0 the judge's score carries
    the model gap, near 1 it adds nothing to it. `gamma_std_error` is the jackknife's over models
    and holds the error of the strengths too.
    """

    beta: float
    gamma: float
    gamma_std_error: float
    n_battles: int


class _TrainingSet(NamedTuple):
    """Votes (M, M) and wins (M, M) against each model on all fifths but one, and strengths."""

    counts: Floats
    wins: Floats
    strength: Floats

    @classmethod
    def of(cls, battles: CodedBattles, l2: float) -> "_TrainingSet":
        """Count the votes on battles and fit the strengths; NaN for a model without."""
        votes = Sums.of(battles).human
        counts, wins = votes.sum(axis=2).astype(float), votes @ np.array([0.0, 0.5, 1.0])
        strength = fit_strengths(counts, wins.sum(axis=1), l2=l2)
        return cls(counts, wins, np.where(battles.voted_models(), strength, np.nan))

    def strengths_without(self, deleted: Bools, l2: float) -> Floats:
        """Return the strengths (G, M) without the votes on each group; NaN where steps stall."""
        if not l2:  # whether there is a maximum has to be checked
            return np.full(deleted.shape, np.nan)
        left: Floats = np.where(deleted, 0.0, 1.0)
        start = np.nan_to_num(self.strength)
        chance = expit(start[:, None] - start)
        solve = solver(curvature(self.counts * chance * (1 - chance), l2))
        targets, lost = (left @ self.wins.T) * left, deleted @ self.counts
        strengths, last = centred(left * start, left), np.full(len(left), np.inf)
        for _ in range(_MAX_ITERATIONS):  # steps shrink by a group's share in the information
            expected = expected_wins(self.counts, np.exp(strengths), lost)
            gradient = centred(targets - expected - 2 * l2 * strengths, left)
            step = centred(solve(gradient.T).T, left)
            strengths, size = strengths + step, np.abs(step).max(axis=1)
            strengths[~(size <= np.maximum(last / 2, _FINISHED))] = np.nan
            if np.nanmax(size, initial=0.0) <= _FINISHED:
                break
            last = size
        return strengths

    def strength_without(self, deleted: Bools, l2: float) -> Floats:
        """Return the strengths (M,) without the votes on some models, from a fit of their own."""
        left = ~(deleted[:, None] | deleted)
        wins = (self.wins * left).sum(axis=1)
        start = np.where(deleted, 0.0, np.nan_to_num(self.strength))
        return fit_strengths(self.counts * left, wins, l2=l2, start=start)


def fit_surrogacy(
    battles: CodedBattles, rng: np.random.Generator, *, l2: float = 0.01
) -> Surrogacy:
    """Return how much the models' human strengths add to the judge's score difference.

    Strengths come from votes on the other four fifths of the battles, so that no vote helps
    to predict itself; battles with a model that these do not hold are left out. The standard
    error deletes one model at a time with all its votes (beyond 60 models, groups of them). A
    vote belongs to two models, so that such deletions count its noise twice; the factor
    ``(M - 2) / (2 M)`` allows for it. It is at least the error with the strengths taken as known.
    Of more than 100,000 votes so many are drawn.

    ValueError if fewer than ten votes are decisive, all in all or without one of the models, or
    battles are counted. RuntimeError if votes are separable by score and strengths, or scores and
    strengths cannot be told apart, with all models or without one.

    References
    ----------
    T. A. B. Snijders and S. P. Borgatti (1999), "Non-Parametric Standard Errors and Tests for
    Network Statistics", Connections 22(2), on the jackknife over the ends of pairs.
    """
    battles.require_single("fifths of battles")
    rows = np.flatnonzero(battles.human_outcome >= 0)
    if rows.size > _MOST_VOTES:
        rows = rng.choice(rows, _MOST_VOTES, replace=False)
    voted, part = battles.take(rows), rng.permutation(rows.size) % _PARTS
    parts = [_TrainingSet.of(voted.take(part != held_out), l2) for held_out in range(_PARTS)]
    score, outcome = voted.rubric_points(), voted.human_outcome / 2

    def gaps(strength: Floats) -> Floats:
        """Return the strength of A less that of B in each battle, from the fold without it."""
        return np.asarray(strength[part, voted.model_a] - strength[part, voted.model_b])

    def fitted(votes: Bools, strength: Floats, start: Floats) -> tuple[Floats, Floats]:
        """Return slopes and information of some votes, from strengths by fifth and model."""
        if votes.sum() < _LEAST_VOTES:
            raise ValueError(f"{votes.sum()} decisive votes: at least {_LEAST_VOTES} are needed")
        design = np.stack([score[votes], gaps(strength)[votes]]).T
        return _logistic(design, outcome[votes], start)

    strength = np.array([fit.strength for fit in parts])
    known = np.isfinite(gaps(strength)) & (outcome != 0.5)  # no gap to an unseen model
    slopes, information = fitted(known, strength, np.zeros(2))
    models = rng.permutation(np.flatnonzero(voted.voted_models()))
    groups = np.array_split(models, min(models.size, _MOST_DELETIONS))
    deletions = np.array([np.isin(np.arange(len(voted.models)), group) for group in groups])
    strengths = [fit.strengths_without(deletions, l2) for fit in parts]
    gammas = []
    for deleted, near in zip(deletions, zip(*strengths, strict=True), strict=True):
        try:
            left = [
                one if np.isfinite(one).all() else fit.strength_without(deleted, l2)
                for fit, one in zip(parts, near, strict=True)
            ]
            rest = known & ~(deleted[voted.model_a] | deleted[voted.model_b])
            gammas.append(fitted(rest, np.array(left), slopes)[0][1])
        except (ValueError, RuntimeError) as reason:
            names = ", ".join(np.array(voted.models)[deleted].tolist())
            raise type(reason)(f"without the votes on {names}: {reason}") from reason
    spread = float(np.sqrt((len(gammas) - 2) / 2 * np.var(gammas)))
    beta, gamma = slopes.tolist()
    alone = float(np.sqrt(np.linalg.inv(information)[1, 1]))  # with the strengths as known
    return Surrogacy(beta, gamma, max(spread, alone), int(known.sum()))


def surrogacy_finding(gamma: float, std_error: float) -> str:
    """Return in one sentence whether votes depend on the models beyond the scores.

    It is a finding where `gamma` of `Surrogacy` is more than two standard errors from 0.
    """
    numbers = f"(gamma {gamma:.2f}, SE {std_error:.2f})"
    if abs(gamma) <= 2 * std_error:
        return f"no sign that votes depend on the models beyond the scores {numbers}"
    found, how = "votes depend on the models beyond the scores", "close together"
    if gamma < 0:
        found, how = "votes differ less between the models than the scores do", "far apart"
    return f"{found} {numbers}: raw soft ratings may lie too {how}"


def _logistic(design: Floats, outcome: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Return slopes and information of a logistic regression without intercept, by Newton."""
    slopes = start
    for _ in range(_MAX_ITERATIONS):
        chance = expit(design @ slopes)
        gradient = design.T @ (outcome - chance)
        information = design.T @ (design * (chance * (1 - chance))[:, None])
        if np.linalg.cond(information) > _SINGULAR:
            raise RuntimeError(
                "score differences and strengths cannot be told apart: they are proportional, or "
                "one of them does not vary"
            )
        step = np.linalg.solve(information, gradient)
        slopes = slopes + step
        if np.abs(step).max() <= 1e-10 * max(1.0, np.abs(slopes).max()):
            return slopes, information
        if np.abs(slopes).max() > 1e6:
            break
    raise RuntimeError(
        f"votes on scores and strengths did not converge (slopes {slopes.round(2).tolist()}); "
        "they may be separable"
    )

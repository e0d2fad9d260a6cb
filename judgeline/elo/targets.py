"""Targets: battles and wins, overall and per held-out model, to which ratings are fitted."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from judgeline.arrays import Bools, Floats, Ints, require
from judgeline.elo.anchors import require_chains
from judgeline.elo.approximation import sums_at
from judgeline.elo.battle_counts import Sums
from judgeline.elo.battles import CodedBattles, OwnBattles, chunks
from judgeline.elo.beta import fit_beta_folds

SMOOTHING_LEVELS: tuple[float, ...] = (0.55, 0.65, 0.75, 0.85, 0.95)
"""Label-smoothing baselines of the paper: what a decisive judge outcome counts as."""

_HALVES = np.array([0.0, 0.5, 1.0])

FoldOutcomes = Callable[[int], Floats]
"""Gives A's share of the win in every battle, shape (n,), while model number m is held out."""

OwnShares = Callable[[int, OwnBattles], Floats]
"""Gives model number m's share of the win in each of its n own battles, (n,); NaN where a battle
does not count."""

OwnOutcomes = Callable[[slice], tuple[Floats, Floats]]
"""Gives A's share of the win with A held out, and B's with B held out, in a part of the battles."""


@dataclass(frozen=True)
class ScoringMethod:
    """A scoring method of battles, by outcomes or by score differences.

    Attributes
    ----------
    outcome : ndarray or None
        A's share of the win in [0, 1]: shape (n,), or (M, n) if it was learnt from votes, where
        row m saw none of model m's. Models without votes share one row's values.
    score_difference : ndarray or None
        Score of A minus B, shape (n,), on any scale; its slope is fitted in every fold to the
        votes on battles without the model held out, and the outcome is ``sigmoid(beta_m * s)``.
    """

    outcome: Floats | None = None
    score_difference: Floats | None = None

    def __post_init__(self) -> None:
        """Refuse both ways at once, and neither."""
        if (self.outcome is None) == (self.score_difference is None):
            raise ValueError("a scoring method has either outcomes or score differences")


class Target(NamedTuple):
    """Everything about one kind of outcome that placing needs; anchors are the A voted models.

    `n_battles` and `own_wins` (M, A): battles and wins of every model against each anchor;
    `own_squares` (M,): sum of squared outcomes; `fold_wins` (M, A): row m, the anchors' wins in
    battles among anchors without m, at m's own outcomes. A target without `fold_wins` places
    models among the anchors of people's votes.
    """

    n_battles: Floats
    own_wins: Floats
    own_squares: Floats
    fold_wins: Floats | None


class Base(NamedTuple):
    """A base method: its target, shares of the win in own battles, and any slopes (M,)."""

    target: Target
    shares: OwnShares
    beta: Floats | None = None


class Placed(NamedTuple):
    """Strengths (M,) in logits, their closed-form errors (M,), and each one's anchors (M, A).

    An anchor's own place among its anchors holds no strength, but zero.
    """

    strength: Floats
    std_error: Floats
    anchors: Floats


def baseline(level: float) -> str:
    """Return the name of the method that smooths hard outcomes to a level."""
    return f"smoothed-{level!r}"


def levels_in(methods: Collection[str]) -> tuple[float, ...]:
    """Return the smoothing levels that methods name: each is a fit of its own."""
    return tuple(level for level in SMOOTHING_LEVELS if baseline(level) in methods)


def is_baseline(method: str) -> bool:
    """Return whether a method smooths hard outcomes; it uses the random stream of ``hard``."""
    return method.startswith("smoothed-")


def exact_share(share: ArrayLike) -> Floats:
    """Round shares of a win to multiples of ``2**-30``, so that sums of up to 2**23 are exact.

    Then neither the order of battles, nor whether a model's battles are left out or subtracted,
    changes a bit.
    """
    return np.asarray(np.rint(np.asarray(share, dtype=float) * 2.0**30) / 2.0**30)


def by_people(sums: Sums) -> Base:
    """Return the votes as a base method; ValueError unless they connect the voted models."""
    if not sums.voted.any():
        raise ValueError("nobody voted on any battle: there is no human scale to calibrate to")
    target = linear_target(sums.human, _HALVES, sums.voted)
    remedy = "have people vote on battles that connect them"
    names = sums.names[sums.voted].tolist()
    require_chains(target.n_battles[sums.voted], names, "with a vote ", remedy)
    return Base(target, lambda _, own: np.where(own.human >= 0, own.human / 2, np.nan))


def by_outcome(sums: Sums, share: Floats) -> Base:
    """Return the method that counts the judge's 0 to 4 quarters of the win as `share` (5,)."""
    return Base(linear_target(sums.judge, share, sums.voted), lambda _, own: share[own.judge])


def linear_target(counts: Ints, share: Floats, voted: Bools) -> Target:
    """Return the target under which each outcome counts as a fixed share of the win."""
    counts = counts[:, voted]
    own_wins = counts @ exact_share(share)
    among = own_wins[voted]
    fold_wins = np.tile(among.sum(axis=1), (voted.size, 1))
    fold_wins[voted] -= among.T
    squares = (counts @ exact_share(share**2)).sum(axis=1)
    return Target(counts.sum(axis=2).astype(float), own_wins, squares, fold_wins)


def by_slope(battles: CodedBattles, sums: Sums, beta: Floats) -> Base:
    """Return the method of ``sigmoid(beta_m * s)``, at the slope of each fold."""

    def both(part: slice) -> tuple[Floats, Floats]:
        """Return the shares of A and of B in some battles, each at the slope without the model."""
        score = battles.rubric_points(part)
        slope_a, slope_b = beta[battles.model_a[part]], beta[battles.model_b[part]]
        return expit(slope_a * score), expit(-slope_b * score)

    totals = _soft_totals(battles, sums, beta)
    target = _with_folds(own_target(battles, sums, both), totals, sums.voted)
    return Base(target, lambda model, own: expit(beta[model] * own.score), beta)


def _soft_totals(battles: CodedBattles, sums: Sums, beta: Floats) -> Floats:
    """Return the soft wins of every model over its battles with anchors, at each fold's slope.

    Row m (M, M) is at the slope of model m, NaN where it has none.
    """
    if battles.denominator:
        chance = exact_share(expit(beta[:, None] * sums.differences))
        return np.asarray(chance @ sums.scores.sum(axis=2).T)
    score, known = battles.rubric_points(), np.isfinite(beta)
    inner = sums.voted[battles.model_a] & sums.voted[battles.model_b]
    totals = np.full((beta.size, beta.size), np.nan)
    if known.any():
        kept, reach = battles.take(inner), float(np.abs(score).max())
        totals[known] = sums_at(kept, score[inner], beta[known], _exact_chances, reach=reach)
    return totals


def _exact_chances(slope: float, score: Floats) -> tuple[Floats, Floats]:
    return exact_share(expit(slope * score)), exact_share(expit(-slope * score))


def by_method(name: str, method: ScoringMethod, battles: CodedBattles, sums: Sums) -> Base:
    """Return a further scoring of the battles as a base method."""
    outcomes, beta = _outcomes(name, method, battles)
    target = _outcome_target(battles, sums, outcomes)
    return Base(target, lambda model, own: own.turned(outcomes(model)), beta)


def _outcomes(
    name: str, method: ScoringMethod, battles: CodedBattles
) -> tuple[FoldOutcomes, Floats | None]:
    """Return a method's outcomes by fold, and the slopes (M,) behind them if there are any."""
    shapes = (len(battles),), (len(battles.models), len(battles))
    if method.score_difference is not None:
        score = np.asarray(method.score_difference, dtype=float)
        require(score.shape == shapes[0], f"the shape of {name!r}", score.shape, f"{shapes[0]}")
        remedy = "a finite score; leave out battles that a method did not score"
        require(np.isfinite(score), f"score_difference of {name!r}", score, remedy)
        beta = fit_beta_folds(replace(battles, score_difference=score, denominator=0)).beta
        return lambda model: expit(beta[model] * score), beta
    outcome = np.asarray(method.outcome, dtype=float)
    expected = f"{shapes[0]} or {shapes[1]}"
    require(outcome.shape in shapes, f"the shape of {name!r}", outcome.shape, expected)
    return (lambda _: outcome) if outcome.ndim == 1 else (lambda model: outcome[model]), None


def _outcome_target(battles: CodedBattles, sums: Sums, outcomes: FoldOutcomes) -> Target:
    """Return the target of any outcomes, which may differ from fold to fold."""
    voted, size = sums.voted, sums.voted.size
    own_wins, totals, own_squares = *np.zeros((2, size, size)), np.zeros(size)
    among = voted[battles.model_a] & voted[battles.model_b]
    for model in range(size):
        name = f"outcome with {battles.models[model]!r} held out"
        share = np.asarray(outcomes(model), dtype=float)
        require(~((share < 0) | (share > 1)), name, share, "A's share of the win, in [0, 1]")
        share = exact_share(share)
        totals[model] = np.bincount(battles.model_a[among], share[among], size)
        totals[model] += np.bincount(battles.model_b[among], 1 - share[among], size)
        first, second = battles.model_a == model, battles.model_b == model
        own = np.concatenate([share[first], 1 - share[second]])
        opponent = np.concatenate([battles.model_b[first], battles.model_a[second]])
        own_wins[model] = np.bincount(opponent, own, size)
        own_squares[model] = exact_share(own**2)[voted[opponent]].sum()
    n_battles = sums.judge[:, voted].sum(axis=2).astype(float)
    return _with_folds(Target(n_battles, own_wins[:, voted], own_squares, None), totals, voted)


def own_target(battles: CodedBattles, sums: Sums, own: OwnOutcomes) -> Target:
    """Return the target of outcomes that place a model among the anchors of people's votes."""
    voted, size = sums.voted, sums.voted.size
    wins, squares = np.zeros((2, size * size))
    for part in chunks(len(battles), size * size):
        row, column = (side[part].astype(np.int64) for side in (battles.model_a, battles.model_b))
        pairs = row * size + column, column * size + row
        for pair, share in zip(pairs, own(part), strict=True):
            share = exact_share(share)
            squared = exact_share(share**2)
            wins += np.bincount(pair, battles.weighted(share, part), wins.size)
            squares += np.bincount(pair, battles.weighted(squared, part), wins.size)
    own_wins, own_squares = (of.reshape(size, size)[:, voted] for of in (wins, squares))
    n_battles = sums.judge[:, voted].sum(axis=2).astype(float)
    return Target(n_battles, own_wins, own_squares.sum(axis=1), None)


def _with_folds(target: Target, totals: Floats, voted: Bools) -> Target:
    """Return a target with wins by fold, from all models' wins (M, M) at each fold's outcomes."""
    fold_wins = totals[:, voted]
    # in fold m the anchor i loses what it won against m at the outcomes of m: n_im - own_wins_mi
    fold_wins[voted] -= target.n_battles[voted] - target.own_wins[voted]
    return target._replace(fold_wins=fold_wins)

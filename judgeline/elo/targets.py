"""Targets: battles and wins, overall and per held-out model, to which ratings are fitted."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.arrays import Bools, Floats, Ints, require
from judgeline.elo.anchors import cut_models, other_anchors
from judgeline.elo.battles import CodedBattles, chunks
from judgeline.elo.leave_one_out import fit_anchors, fit_leave_one_out
from judgeline.elo.strengths import analytic_std_error, place_models
from judgeline.elo.sums import soft_totals
from judgeline.verdict.outcomes import exact_share

FoldOutcomes = Callable[[int], Floats]
"""Gives A's share of the win in every battle, shape (n,), while model number m is held out."""

OwnOutcomes = Callable[[slice], tuple[Floats, Floats]]
"""Gives A's share of the win with A held out, and B's with B held out, in a part of the battles."""


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


class Placed(NamedTuple):
    """Strengths (M,) in logits, their closed-form errors (M,), and each one's anchors (M, A).

    An anchor's own place among its anchors holds no strength, but zero.
    """

    strength: Floats
    std_error: Floats
    anchors: Floats


def linear_target(counts: Ints, share: Floats, voted: Bools) -> Target:
    """Return the target under which each outcome counts as a fixed share of the win."""
    own_wins = counts @ exact_share(share)
    among = own_wins[voted]
    fold_wins = np.tile(among.sum(axis=1), (voted.size, 1))
    fold_wins[voted] -= among.T
    squares = (counts @ exact_share(share**2)).sum(axis=1)
    return Target(counts.sum(axis=2).astype(float), own_wins, squares, fold_wins)


def soft_target(battles: CodedBattles, counts: Ints, beta: Floats, voted: Bools) -> Target:
    """Return the target of ``sigmoid(beta_m * s)``, at the slope of each fold."""

    def own(part: slice) -> tuple[Floats, Floats]:
        """Return the shares of A and of B in some battles, each at the slope without the model."""
        score = battles.rubric_points(part)
        slope_a, slope_b = beta[battles.model_a[part]], beta[battles.model_b[part]]
        return exact_share(expit(slope_a * score)), exact_share(expit(-slope_b * score))

    target = own_target(battles, counts, own, voted)
    return _with_folds(target, soft_totals(battles, beta, voted), voted)


def outcome_target(
    battles: CodedBattles, counts: Ints, outcomes: FoldOutcomes, voted: Bools
) -> Target:
    """Return the target of any outcomes, which may differ from fold to fold."""
    size = voted.size
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
    n_battles = counts.sum(axis=2).astype(float)
    return _with_folds(Target(n_battles, own_wins[:, voted], own_squares, None), totals, voted)


def own_target(battles: CodedBattles, counts: Ints, own: OwnOutcomes, voted: Bools) -> Target:
    """Return the target of outcomes that place a model among the anchors of people's votes."""
    size = voted.size
    wins, squares = np.zeros((2, size * size))
    for part in chunks(len(battles), size * size):
        row, column = (side[part].astype(np.int64) for side in (battles.model_a, battles.model_b))
        pairs = row * size + column, column * size + row
        for pair, share in zip(pairs, own(part), strict=True):
            squared = exact_share(share**2)
            wins += np.bincount(pair, battles.weighted(share, part), wins.size)
            squares += np.bincount(pair, battles.weighted(squared, part), wins.size)
    own_wins, own_squares = (sums.reshape(size, size)[:, voted] for sums in (wins, squares))
    n_battles = counts.sum(axis=2).astype(float)
    return Target(n_battles, own_wins, own_squares.sum(axis=1), None)


def _with_folds(target: Target, totals: Floats, voted: Bools) -> Target:
    """Return a target with wins by fold, from all models' wins (M, M) at each fold's outcomes."""
    fold_wins = totals[:, voted]
    # in fold m the anchor i loses what it won against m at the outcomes of m: n_im - own_wins_mi
    fold_wins[voted] -= target.n_battles[voted] - target.own_wins[voted]
    return target._replace(fold_wins=fold_wins)


def place_targets(
    targets: Mapping[str, Target],
    voted: Bools,
    l2: float,
    names: NDArray[np.str_],
    human: Floats,
) -> dict[str, Placed]:
    """Fit every fold's anchors by a judge, then place models, by people among those of `human`.

    By a judge no vote on a model changes a bit of its place.
    """
    fitted = {"human": human} | {
        name: fold_anchors(target, voted, l2, names)
        for name, target in targets.items()
        if target.fold_wins is not None and name != "human"
    }
    anchors = np.array([fitted.get(name, human) for name in targets])
    counts, wins = (np.array([target[field] for target in targets.values()]) for field in (0, 1))
    squares = np.array([target.own_squares for target in targets.values()])
    strength = np.full(squares.shape, np.nan)
    error = strength.copy()
    for model, others in enumerate(other_anchors(voted)):
        met = others & (counts[:, model] > 0).any(axis=0)  # no vote is on a battle without verdict
        n, won, fixed = (part[:, model][:, met] for part in (counts, wins, anchors))
        is_placed = np.isfinite(squares[:, model]) & np.isfinite(fixed).all(axis=1)
        total = np.where(is_placed, won.sum(axis=1), np.nan)
        strength[:, model] = place_models(total, n, fixed, l2=l2)
        chance = expit(strength[:, model, None] - fixed)
        expected = n * chance
        error[:, model] = analytic_std_error(
            (won - expected).sum(axis=1),
            squares[:, model] - ((2 * won - expected) * chance).sum(axis=1),
            (expected * (1 - chance)).sum(axis=1) + 2 * l2,
            n.sum(axis=1),
        )
    rows = zip(targets, strength, error, anchors, strict=True)
    return {name: Placed(*columns) for name, *columns in rows}


def fold_anchors(target: Target, voted: Bools, l2: float, names: NDArray[np.str_]) -> Floats:
    """Return anchors' strengths by fold, (M, A) logits, a model's own 0; NaN without a fold."""
    fold_wins = np.asarray(target.fold_wins)
    among, anchors = target.n_battles[voted], np.full(fold_wins.shape, np.nan)
    whole = fold_wins[voted] + among - target.own_wins[voted]
    whole = whole[np.isfinite(whole).all(axis=1)]
    start = whole.mean(axis=0) if len(whole) else np.full(len(among), np.nan)
    start += (among.sum() / 2 - start.sum()) / start.size
    anchors[voted] = fit_leave_one_out(among, fold_wins[voted], start, l2=l2, names=names)
    unvoted = np.flatnonzero(~voted & np.isfinite(fold_wins).all(axis=1))
    if unvoted.size:
        anchors[unvoted] = fit_anchors(among, fold_wins[unvoted[0]], l2=l2)
    anchors[np.flatnonzero(voted)[cut_models(among)]] = np.nan  # others fall apart without them
    return anchors

"""Targets: battles and wins, overall and per held-out model, to which ratings are fitted."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.arrays import Floats, require
from judgeline.elo.anchors import cut_models, other_anchors
from judgeline.elo.battles import CodedBattles
from judgeline.elo.leave_one_out import fit_anchors, fit_leave_one_out
from judgeline.elo.strengths import analytic_std_error, place_models
from judgeline.elo.sums import OwnOutcomes, own_sums
from judgeline.verdict.outcomes import exact_share

FoldOutcomes = Callable[[int], Floats]
"""Gives A's share of the win in every battle, shape (n,), while model number m is held out."""


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


def linear_target(counts: NDArray[np.int64], share: Floats, voted: NDArray[np.bool_]) -> Target:
    """Return the target under which each outcome counts as a fixed share of the win."""
    own_wins = counts @ exact_share(share)
    among = own_wins[voted]
    fold_wins = np.tile(among.sum(axis=1), (voted.size, 1))
    fold_wins[voted] -= among.T
    squares = (counts @ exact_share(share**2)).sum(axis=1)
    return Target(counts.sum(axis=2).astype(float), own_wins, squares, fold_wins)


def fold_target(
    counts: NDArray[np.int64],
    own_wins: Floats,
    own_squares: Floats,
    totals: Floats,
    voted: NDArray[np.bool_],
) -> Target:
    """Return the target of outcomes at each fold's own slope, from sums by model (M, M)."""
    n_battles = counts.sum(axis=2).astype(float)
    own_wins, fold_wins = own_wins[:, voted], totals[:, voted]
    # in fold m the anchor i loses what it won against m at the slope of m: n_im - own_wins_mi
    fold_wins[voted] -= n_battles[voted] - own_wins[voted]
    return Target(n_battles, own_wins, own_squares, fold_wins)


def outcome_target(
    battles: CodedBattles,
    counts: NDArray[np.int64],
    outcomes: FoldOutcomes,
    voted: NDArray[np.bool_],
) -> Target:
    """Return the target of any outcomes, which may differ from fold to fold."""
    size = voted.size
    own_wins, own_squares = np.zeros((size, size)), np.zeros(size)
    totals = np.zeros((size, size))
    among = voted[battles.model_a] & voted[battles.model_b]
    for model in range(size):
        share = require_shares(outcomes(model), len(battles), battles.models[model])
        totals[model] = np.bincount(battles.model_a[among], share[among], size)
        totals[model] += np.bincount(battles.model_b[among], 1 - share[among], size)
        first, second = battles.model_a == model, battles.model_b == model
        own = np.concatenate([share[first], 1 - share[second]])
        opponent = np.concatenate([battles.model_b[first], battles.model_a[second]])
        own_wins[model] = np.bincount(opponent, own, size)
        own_squares[model] = exact_share(own**2)[voted[opponent]].sum()
    return fold_target(counts, own_wins, own_squares, totals, voted)


def own_target(
    battles: CodedBattles,
    counts: NDArray[np.int64],
    own: OwnOutcomes,
    voted: NDArray[np.bool_],
) -> Target:
    """Return the target of outcomes that place a model among the anchors of people's votes."""
    wins, squares = own_sums(battles, own)
    n_battles = counts.sum(axis=2).astype(float)
    return Target(n_battles, wins[:, voted], squares[:, voted].sum(axis=1), None)


def require_shares(outcome: Floats, n_battles: int, model: str) -> Floats:
    """Return a fold's outcomes if there is one per battle, each in [0, 1] or NaN."""
    share, name = np.asarray(outcome, dtype=float), f"outcome with {model!r} held out"
    require(share.shape == (n_battles,), f"the shape of {name}", share.shape, f"({n_battles},)")
    require(~((share < 0) | (share > 1)), name, share, "A's share of the win, in [0, 1]")
    return exact_share(share)


def place_targets(
    targets: Mapping[str, Target], voted: NDArray[np.bool_], l2: float, names: NDArray[np.str_]
) -> dict[str, Placed]:
    """Fit every fold's anchors, then place models; by a judge no vote on one changes a bit."""
    fitted = {
        name: fold_anchors(target, voted, l2, names)
        for name, target in targets.items()
        if target.fold_wins is not None
    }
    anchors = np.array([fitted.get(name, fitted["human"]) for name in targets])
    counts, wins = (np.array([target[field] for target in targets.values()]) for field in (0, 1))
    squares = np.array([target.own_squares for target in targets.values()])
    strength = np.full(squares.shape, np.nan)
    error = strength.copy()
    for model, others in enumerate(other_anchors(voted)):
        met = others & (counts[:, model] > 0).any(axis=0)  # no vote is on a battle without verdict
        cells = [part[:, model][:, met] for part in (counts, wins, anchors)]
        strength[:, model], error[:, model] = _place(
            cells[0], cells[1], cells[2], squares[:, model], l2
        )
    rows = zip(targets, strength, error, anchors, strict=True)
    return {name: Placed(*columns) for name, *columns in rows}


def fold_anchors(
    target: Target, voted: NDArray[np.bool_], l2: float, names: NDArray[np.str_]
) -> Floats:
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


def _place(
    counts: Floats,
    wins: Floats,
    anchors: Floats,
    squares: Floats,
    l2: float,
) -> tuple[Floats, Floats]:
    """Return one model's strengths and closed-form errors by K methods, from cells (K, A)."""
    placed = np.isfinite(squares) & np.isfinite(anchors).all(axis=1)
    won = np.where(placed, wins.sum(axis=1), np.nan)
    strength = place_models(won, counts, anchors, l2=l2)
    chance = expit(strength[:, None] - anchors)
    expected = counts * chance
    error = analytic_std_error(
        (wins - expected).sum(axis=1),
        squares - ((2 * wins - expected) * chance).sum(axis=1),
        (expected * (1 - chance)).sum(axis=1) + 2 * l2,
        counts.sum(axis=1),
    )
    return strength, error

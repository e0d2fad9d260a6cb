"""What placing a model needs of a kind of outcome: battles and wins, whole and by fold.

Votes, a judge's hard outcomes and any probability of a win come down to the same totals, so
that one leave-one-out fit and one placement serve them all.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.battles import CodedBattles
from judgeline.bradley_terry import fit_strengths
from judgeline.connectivity import connected_components, cut_models
from judgeline.leave_one_out import fit_leave_one_out
from judgeline.placement import analytic_std_error, place_models
from judgeline.soft import SoftTotals

Floats = NDArray[np.float64]

FoldOutcomes = Callable[[int], Floats]
"""Gives A's share of the win in every battle, shape (n,), while model number m is held out."""


class Target(NamedTuple):
    """Everything about one kind of outcome that placing needs; anchors are the A voted models.

    `n_battles` and `own_wins` (M, A): battles and wins of every model against each anchor;
    `own_squares` (M,): sum of squared outcomes; `fold_wins` (A, A): row m, the anchors' wins
    in battles without m; `full_wins` (A,): the anchors' wins in all of them.
    """

    n_battles: Floats
    own_wins: Floats
    own_squares: Floats
    fold_wins: Floats
    full_wins: Floats


class Placed(NamedTuple):
    """Strengths (M,) in logits, their closed-form errors (M,), and each one's anchors (M, A)."""

    strength: Floats
    std_error: Floats
    anchors: Floats


def require_votes(battles: CodedBattles) -> NDArray[np.bool_]:
    """Return which models have votes, (M,); ValueError if none has."""
    voted = battles.voted_models()
    if not voted.any():
        raise ValueError("nobody voted on any battle: there is no human scale to calibrate to")
    return voted


def linear_target(counts: NDArray[np.int64], share: Floats, voted: NDArray[np.bool_]) -> Target:
    """Return the target under which each outcome counts as a fixed share of the win.

    Parameters
    ----------
    counts : ndarray of int, shape (M, A, K)
        Battles of every model against each anchor, by outcome.
    share : ndarray, shape (K,)
        What each outcome counts as.
    voted : ndarray of bool, shape (M,)
        Which models are the A anchors.
    """
    own_wins = counts @ share
    full_wins = own_wins[voted].sum(axis=1)
    return Target(
        counts.sum(axis=2).astype(float),
        own_wins,
        (counts @ share**2).sum(axis=1),
        full_wins - own_wins[voted].T,
        full_wins,
    )


def soft_target(counts: NDArray[np.int64], soft: SoftTotals, voted: NDArray[np.bool_]) -> Target:
    """Return the target of soft outcomes, each fold at its own slope, from their totals.

    Parameters
    ----------
    counts, voted
        As of `linear_target`.
    soft : SoftTotals
        Of the same battles.
    """
    n_battles = counts.sum(axis=2).astype(float)
    own_wins = soft.own_wins[:, voted]
    totals = soft.totals[np.ix_(voted, voted)]
    # in fold m the anchor i loses what it won against m at the slope of m: n_im - own_wins_mi
    fold_wins = totals - (n_battles[voted] - own_wins[voted])
    unvoted = soft.totals[~voted][:, voted]
    candidates = unvoted[:1] if np.isfinite(unvoted).all() and unvoted.size else totals
    known = candidates[np.isfinite(candidates).all(axis=1)]
    start = known.mean(axis=0) if known.size else np.full(totals.shape[1], np.nan)
    full_wins = start + (n_battles[voted].sum() / 2 - start.sum()) / start.size
    return Target(n_battles, own_wins, soft.own_squares, fold_wins, full_wins)


def outcome_target(
    battles: CodedBattles,
    counts: NDArray[np.int64],
    outcomes: FoldOutcomes,
    voted: NDArray[np.bool_],
) -> Target:
    """Return the target of any outcomes, which may differ from fold to fold.

    Parameters
    ----------
    battles : CodedBattles
        The judged battles, n of them over M models.
    counts, voted
        As of `linear_target`.
    outcomes : FoldOutcomes
        A's share of the win in every battle, by held-out model; a fold with a NaN in it has no
        target. Models without votes share their outcomes: those of the first of them are taken
        for the anchors that place them all.

    Raises
    ------
    ValueError
        If a fold has not one outcome per battle, or one outside [0, 1].
    """
    size = voted.size
    own_wins, own_squares = np.zeros((size, size)), np.zeros(size)
    totals = np.zeros((size, size))
    among = voted[battles.model_a] & voted[battles.model_b]
    for model in range(size):
        share = require_shares(outcomes(model), len(battles), battles.models[model])
        totals[model] = _wins(battles, share, size, among)
        own, opponent = _own_shares(battles, share, model)
        own_wins[model] = np.bincount(opponent, own, size)
        own_squares[model] = (own**2)[voted[opponent]].sum()
    n_battles = counts.sum(axis=2).astype(float)
    own_wins = own_wins[:, voted]
    among_anchors = totals[:, voted]
    fold_wins = among_anchors[voted] - (n_battles[voted] - own_wins[voted])
    shared = among_anchors[~voted][:1]
    candidates = shared if shared.size and np.isfinite(shared).all() else among_anchors
    known = candidates[np.isfinite(candidates).all(axis=1)]
    full_wins = known.mean(axis=0) if known.size else np.full(int(voted.sum()), np.nan)
    return Target(n_battles, own_wins, own_squares, fold_wins, full_wins)


def require_shares(outcome: Floats, n_battles: int, model: str) -> Floats:
    """Return a fold's outcomes if there is one per battle, each in [0, 1] or NaN.

    Raises
    ------
    ValueError
        Otherwise, with the value, the row and the model held out.
    """
    share = np.asarray(outcome, dtype=float)
    if share.shape != (n_battles,):
        raise ValueError(
            f"outcomes with {model!r} held out have shape {share.shape}; expected ({n_battles},)"
        )
    wrong = (share < 0) | (share > 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"the outcome of battle {row} with {model!r} held out is {share[row]}; expected A's "
            "share of the win, in [0, 1]"
        )
    return share


def _wins(battles: CodedBattles, share: Floats, size: int, kept: NDArray[np.bool_]) -> Floats:
    of_a = np.bincount(battles.model_a[kept], share[kept], size).astype(float)
    of_b = np.bincount(battles.model_b[kept], 1 - share[kept], size).astype(float)
    wins: Floats = of_a + of_b
    return wins


def _own_shares(
    battles: CodedBattles, share: Floats, model: int
) -> tuple[Floats, NDArray[np.int64]]:
    """Return a model's share of the win in each of its battles, and whom it met."""
    first, second = battles.model_a == model, battles.model_b == model
    own = np.concatenate([share[first], 1 - share[second]])
    opponent = np.concatenate([battles.model_b[first], battles.model_a[second]])
    return own, opponent.astype(np.int64)


def require_anchors_connected(
    target: Target, voted: NDArray[np.bool_], models: tuple[str, ...]
) -> None:
    """Raise ValueError unless a chain of battles leads from each anchor to every other."""
    labels = connected_components(target.n_battles[voted])
    stray = [models[code] for code in np.flatnonzero(voted)[labels > 0]]
    if stray:
        raise ValueError(
            f"{len(stray)} of {labels.size} voted models have no chain of battles with a vote to "
            f"the others: {', '.join(stray[:10])}; have people vote on battles that connect them, "
            "or remove their votes and let the judge place them"
        )


def place_target(
    target: Target, voted: NDArray[np.bool_], l2: float, names: NDArray[np.str_]
) -> Placed:
    """Fit every fold's anchors, then place the held-out models and those without votes.

    Parameters
    ----------
    target : Target
        Of one kind of outcome.
    voted : ndarray of bool, shape (M,)
        Which models are anchors.
    l2 : float
        Penalty on squared strengths, per squared logit.
    names : ndarray of str, shape (A,)
        The anchors, for messages.

    Raises
    ------
    RuntimeError
        If an iteration does not converge.
    """
    among = target.n_battles[voted]
    anchors = np.full(target.n_battles.shape, np.nan)
    anchors[voted] = fit_leave_one_out(
        among, target.fold_wins, target.full_wins, l2=l2, names=names
    )
    unvoted = ~voted & np.isfinite(target.own_squares) & (target.n_battles.sum(axis=1) > 0)
    if unvoted.any():
        anchors[unvoted] = fit_strengths(among, target.full_wins, l2=l2)
    split = np.zeros(voted.size, dtype=bool)
    split[voted] = cut_models(among)
    wins = np.where(split, np.nan, target.own_wins.sum(axis=1))
    strength = place_models(wins, target.n_battles, anchors, l2=l2)
    return Placed(strength, _closed_form(target, strength, anchors, l2), anchors)


def _closed_form(target: Target, strength: Floats, anchors: Floats, l2: float) -> Floats:
    chance = expit(strength[:, None] - anchors)
    expected = target.n_battles * chance
    residual_sum = (target.own_wins - expected).sum(axis=1)
    squares = target.own_squares - ((2 * target.own_wins - expected) * chance).sum(axis=1)
    information = (expected * (1 - chance)).sum(axis=1) + 2 * l2
    return analytic_std_error(residual_sum, squares, information, target.n_battles.sum(axis=1))

"""Many slopes and folds at once, by interpolation and power series; callers state one of each."""

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import expit

from judgeline.arrays import Bools, Floats
from judgeline.elo.battles import CodedBattles, chunks

FEW = 4_000_000  # battles times models up to which a pass over battles for each fold is quick
FEW_VOTES = 200_000  # votes times models up to which gap weights are fitted to each fold by itself
_RELATIVE_ERROR = 1e-14
_MOST_NODES = 96
_MAX_ITERATIONS = 60
_TOLERANCE = 1e-10  # logits, of the last step of the series
_REACH = 0.5  # logits of any vote that the series holds for; it ends at pi
_LEFT_OUT = 1e-12  # what later orders may add to the likeliest vote's slope: lost on the grid

Integrand: TypeAlias = Callable[[float, Floats], tuple[Floats, Floats]]
"""Values of model A and of model B in each battle, from a slope and the battles' scores."""

Derivatives: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""Slope and information of every fold's log-likelihood at its beta."""


def model_sums(battles: CodedBattles, score: Floats, slopes: Floats, values: Integrand) -> Floats:
    """Return per-model sums (M, K) over battles of a function of slope and score, at K slopes."""
    sums = np.zeros((slopes.size, len(battles.models)))
    for part in chunks(len(battles)):
        for total, slope in zip(sums, slopes.tolist(), strict=True):
            for side, share in zip(
                (battles.model_a, battles.model_b), values(slope, score[part]), strict=True
            ):
                total += np.bincount(side[part], battles.weighted(share, part), total.size)
    return sums.T


def sums_at(
    battles: CodedBattles, score: Floats, slopes: Floats, values: Integrand, *, reach: float
) -> Floats:
    """Return the sums (K, M) of `model_sums` for scores up to `reach`; of many by interpolation."""
    nodes, place = np.unique(slopes, return_inverse=True)
    weights = np.eye(nodes.size)[place]
    if len(battles) * nodes.size > FEW:
        with suppress(ValueError):  # slopes may lie too far apart to interpolate between
            nodes = chebyshev_nodes(nodes[0], nodes[-1], reach=reach)
            weights = interpolation(nodes, slopes)
    return np.asarray(weights @ model_sums(battles, score, nodes, values).T)


def sums_without(
    battles: CodedBattles, values: Floats, of: Callable[[float, Floats], Floats], slopes: Floats
) -> Floats:
    """Return sums of a function of slope and values over the battles without each model, (M, K)."""
    own = model_sums(battles, values, slopes, lambda slope, part: (of(slope, part),) * 2)
    return np.asarray(own.sum(axis=0) / 2 - own)


def derivatives_near(
    decided: CodedBattles, margin: Floats, slope: float
) -> tuple[Derivatives, float, float] | None:
    """Return the derivatives of all folds between two slopes that hold theirs.

    `slope` is that of all votes; None where a fold's lies too far from it.
    """

    def sums(slopes: Floats) -> tuple[Floats, Floats]:
        """Return slope and information of every fold's log-likelihood, each (M, K)."""
        of = partial(sums_without, decided, margin)
        return of(lambda at, part: part * expit(-at * part), slopes), of(_information_term, slopes)

    # one Newton step of each fold, and a margin
    first, information = (part[:, 0] for part in sums(np.array([slope])))
    estimates = slope + first / information
    spread = max(float(np.ptp(estimates)), 1e-3 * slope)
    low, high = max(float(estimates.min()) - spread, slope / 100), float(estimates.max()) + spread
    try:
        nodes = chebyshev_nodes(low, high, reach=float(np.abs(margin).max()))
    except ValueError:
        return None
    at_nodes = sums(nodes)

    def derivatives(beta: Floats) -> tuple[Floats, Floats]:
        """Return slope and information of each fold's log-likelihood at its beta, (M,)."""
        weights = interpolation(nodes, beta)
        slopes, informations = at_nodes
        return (weights * slopes).sum(axis=1), (weights * informations).sum(axis=1)

    ends = [derivatives(np.full(first.size, end))[0] for end in (low, high)]
    if (ends[0] <= 0).any() or (ends[1] >= 0).any():
        return None
    return derivatives, low, high


def _information_term(slope: float, margin: Floats) -> Floats:
    hit = expit(slope * margin)
    return np.asarray(margin**2 * hit * (1 - hit))


def chebyshev_nodes(low: float, high: float, *, reach: float) -> Floats:
    """Return nodes that resolve ``sigmoid(beta * s)`` for beta between two bounds.

    Source: L. N. Trefethen (2013), Approximation Theory and Approximation Practice, theorem 8.2.
    """
    half = max((high - low) / 2, 1e-12 * max(abs(low), abs(high), 1e-12))
    distance = math.pi / (max(reach, 1e-300) * half)
    ellipse = distance + math.hypot(1, distance)
    needed = -math.log(_RELATIVE_ERROR) / max(math.log(ellipse), 1e-9)
    count = max(3, math.ceil(needed) + 1)
    if count > _MOST_NODES:
        raise ValueError(f"{count} nodes needed on [{low:g}, {high:g}] for |s| up to {reach:g}")
    angle = (2 * np.arange(count) + 1) * math.pi / (2 * count)
    return np.asarray((low + high) / 2 + half * np.cos(angle))


def interpolation(nodes: Floats, at: Floats) -> Floats:
    """Return the matrix that takes values at Chebyshev nodes to values elsewhere."""
    count = nodes.size
    sign = np.where(np.arange(count) % 2, -1.0, 1.0)
    weight = sign * np.sin((2 * np.arange(count) + 1) * math.pi / (2 * count))
    gap = at[:, None] - nodes
    hit = gap == 0
    terms = weight / np.where(hit, 1.0, gap)
    matrix = terms / terms.sum(axis=1, keepdims=True)
    return np.where(hit.any(axis=1, keepdims=True), hit.astype(float), matrix)


def weights_near(
    votes: CodedBattles,
    features: Floats,
    strength: Floats,
    centre: Floats,
    *,
    reach: Floats,
    penalty: float,
) -> tuple[Floats, Bools]:
    """Return folds' gap weights (M, 2) by a power series around those of all, and which are close.

    `reach` (2,) is the largest size of each feature; the others are of `judgeline.elo.gap`.
    """

    def newton(orders: list[Floats], step: Floats) -> Floats:
        """Return each fold's weights, less those of all votes, after one more step, (2, M)."""
        slope, bend = np.empty_like(step), np.empty((2, *step.shape))
        for p in (0, 1):
            slope[p] = -_taylor(orders, step, p) - penalty * (centre[p] + step[p])
            for q in (0, 1):
                bend[p, q] = _taylor(orders[1:], step, p + q) + penalty * (p == q)
        change = np.linalg.solve(bend.transpose(2, 0, 1), slope.T[..., None])[..., 0]
        return np.asarray(step + change.T)

    step = np.zeros((2, strength.size))
    first = reach @ np.abs(newton(_fold_moments(votes, features, strength, centre, 2), step))
    distance = first.max(where=first < _REACH, initial=1e-9)
    n_orders = math.ceil(math.log(_LEFT_OUT) / math.log(distance / math.pi))
    orders = _fold_moments(votes, features, strength, centre, max(2, n_orders))
    near = first < _REACH
    for _ in range(_MAX_ITERATIONS):
        moved = newton(orders, step)
        near &= reach @ np.abs(moved) < _REACH
        moved[:, ~near] = 0.0
        if np.abs(moved - step).max(initial=0.0) <= _TOLERANCE:
            return (centre[:, None] + moved).T, near
        step = moved
    raise RuntimeError("the weights of score and strength gap of a fold did not converge")


def _fold_moments(
    votes: CodedBattles, features: Floats, strength: Floats, centre: Floats, n_orders: int
) -> list[Floats]:
    """Return the derivatives of every fold's slope: ``sum f^(k)(z . w) z1^(k+1-i) z2^i``.

    Entry k has its values by i and fold, (k + 2, M), from ``f = p - y`` on. Battles of a pair
    share the strength gap z2, so that battles are only summed by pair and power of the score z1.
    """
    size = strength.size
    has_score, has_gap = bool(features[:, 0].any()), bool(strength.any())
    gaps = [np.ones((size, size))]
    for _ in range(n_orders):
        gaps.append(gaps[-1] * (strength[:, None] - strength))
    own = [np.zeros((order + 2, size)) for order in range(n_orders)]
    for part in chunks(len(votes), size * size):
        pair = votes.model_a[part].astype(np.int64) * size + votes.model_b[part]
        score, chance = features[part, 0], expit(features[part] @ centre)
        slope = votes.weighted(chance - votes.human_outcome[part] / 2, part)
        curve = Polynomial([0.0, 1.0])
        for moment in own:
            term = slope
            for power in range(len(moment) - 1, -1, -1):
                if (has_gap or power == 0) and (has_score or power == len(moment) - 1):
                    table = np.bincount(pair, term, size * size).reshape(size, size) * gaps[power]
                    moment[power] += table.sum(axis=0) + table.sum(axis=1)
                term = term * score
            curve = curve.deriv() * Polynomial([0.0, 1.0, -1.0])  # of p, whose slope is p - p^2
            slope = votes.weighted(np.asarray(curve(chance), dtype=float), part)
    return [moment.sum(axis=1, keepdims=True) / 2 - moment for moment in own]


def _taylor(moments: list[Floats], step: Floats, power: int) -> Floats:
    """Return ``sum_k (step . z)^k / k!`` times moments whose second feature has a power more."""
    return np.asarray(
        sum(
            math.comb(k, i) / math.factorial(k) * step[0] ** (k - i) * step[1] ** i
            * moment[power + i]
            for k, moment in enumerate(moments)
            for i in range(k + 1)
        )
    )  # fmt: skip

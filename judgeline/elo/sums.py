"""Sums over battles: counts by outcome and by score, and sums at many slopes at once."""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.arrays import Bools, Floats, Ints
from judgeline.elo.battles import CodedBattles, chunks
from judgeline.verdict.outcomes import exact_share

FEW = 4_000_000
"""Battles times models up to which a pass over the battles for each fold is quick enough."""

_HUMAN_CODES = 4  # halves 0, 1, 2 and 3 = nobody voted
_JUDGE_CODES = 5  # quarters 0 to 4
_RELATIVE_ERROR = 1e-14
_MOST_NODES = 96

Integrand = Callable[[float, Floats], tuple[Floats, Floats]]
"""Values of model A and of model B in each battle, from a slope and the battles' scores."""


def add_counts(total: Ints, key: NDArray[Any], weight: NDArray[Any] | None) -> None:
    """Add to each cell of a table the rows that have its key, or the battles in them."""
    counted = np.bincount(key, weight, total.size)
    total += counted if weight is None else counted.astype(np.int64)


class OutcomeTally(NamedTuple):
    """Battles of row models against column models by outcome, row model first.

    `human` (M, M, 3) counts votes by the row model's halves of the win, `judge` (M, M, 5)
    counts all judged battles by its quarters. Both count every battle twice, once each way.
    """

    human: Ints
    judge: Ints


def tally_outcomes(battles: CodedBattles) -> OutcomeTally:
    """Return the battles of each pair by human outcome and by judge outcome."""
    size = len(battles.models)
    cells = size * size * _HUMAN_CODES * _JUDGE_CODES
    total = np.zeros(cells, dtype=np.int64)
    for part in chunks(len(battles), cells):
        key: NDArray[np.integer] = battles.model_a[part].astype(
            np.int32 if cells < 2**31 else np.int64
        )
        key *= size
        key += battles.model_b[part]
        key *= _HUMAN_CODES
        key += battles.human_outcome[part] & 3  # -1, nobody voted, becomes 3
        key *= _JUDGE_CODES
        key += battles.judge_outcome[part]
        add_counts(total, key, battles.weights(part))
    joint = total.reshape(size, size, _HUMAN_CODES, _JUDGE_CODES)
    human, judge = joint[:, :, :3].sum(axis=3), joint.sum(axis=2)
    return OutcomeTally(*(view + view[:, :, ::-1].transpose(1, 0, 2) for view in (human, judge)))


def tally_scores(battles: CodedBattles, *, opponents: Bools | None = None) -> tuple[Ints, Floats]:
    """Return battles per model, score difference and human outcome, and the score differences.

    Counts (M, 2 K + 1, 4) and differences (2 K + 1,), in rubric points, are from the model's side.
    """
    if not battles.denominator:
        raise ValueError("score differences are continuous: there is no grid to count them on")
    size = len(battles.models)
    reach = int(np.abs(battles.score_difference).max(initial=0))
    shape = (size, 2 * reach + 1, _HUMAN_CODES)
    cells = math.prod(shape)
    as_a, as_b = np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64)
    sides = (battles.model_a, battles.model_b, as_a), (battles.model_b, battles.model_a, as_b)
    for part in chunks(len(battles), cells):
        detail = battles.score_difference[part].astype(np.int32)
        detail += reach
        detail *= _HUMAN_CODES
        detail += battles.human_outcome[part] & 3
        weight = battles.weights(part)
        for codes, others, total in sides:
            key = codes[part].astype(np.int32)
            key *= cells // size
            key += detail
            if opponents is None:
                add_counts(total, key, weight)
                continue
            met = opponents[others[part]]
            add_counts(total, key[met], None if weight is None else weight[met])
    mirrored = as_b.reshape(shape)[:, ::-1][:, :, [2, 1, 0, 3]]  # B's view: signs and wins turn
    differences = np.asarray(np.arange(-reach, reach + 1) / battles.denominator)
    return as_a.reshape(shape) + mirrored, differences


def soft_totals(battles: CodedBattles, beta: Floats, anchors: Bools) -> Floats:
    """Return the soft wins of every model over its battles with anchors, at each fold's slope.

    Row m (M, M) is at the slope of model m, NaN where it has none. Continuous scores of many
    battles are summed at Chebyshev nodes.
    """
    if battles.denominator:
        counts, differences = tally_scores(battles, opponents=None if anchors.all() else anchors)
        chance = exact_share(expit(beta[:, None] * differences))
        return np.asarray(chance @ counts.sum(axis=2).T)
    score = battles.rubric_points()
    inner = anchors[battles.model_a] & anchors[battles.model_b]
    kept, known = battles.take(inner), np.isfinite(beta)
    totals = np.full((beta.size, beta.size), np.nan)
    if not known.any():
        return totals
    nodes, place = np.unique(beta[known], return_inverse=True)
    weights = np.eye(nodes.size)[place]
    if len(kept) * nodes.size > FEW:
        with suppress(ValueError):  # slopes may lie too far apart to interpolate between
            nodes = chebyshev_nodes(nodes[0], nodes[-1], reach=float(np.abs(score).max()))
            weights = interpolation(nodes, beta[known])

    def shares(slope: float, scores: Floats) -> tuple[Floats, Floats]:
        return exact_share(expit(slope * scores)), exact_share(expit(-slope * scores))

    totals[known] = weights @ model_sums(kept, score[inner], nodes, shares).T
    return totals


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


def model_sums(battles: CodedBattles, score: Floats, nodes: Floats, values: Integrand) -> Floats:
    """Return per-model sums (M, K) over battles of a function of slope and score, at K slopes."""
    sums = np.zeros((nodes.size, len(battles.models)))
    for part in chunks(len(battles)):
        for total, slope in zip(sums, nodes.tolist(), strict=True):
            for side, share in zip(
                (battles.model_a, battles.model_b), values(slope, score[part]), strict=True
            ):
                total += np.bincount(side[part], battles.weighted(share, part), total.size)
    return sums.T

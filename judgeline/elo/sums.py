"""Sums over battles: counts by outcome and by score, and soft outcomes at every fold's slope."""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.arrays import Floats
from judgeline.elo.battles import CodedBattles, chunks
from judgeline.verdict.outcomes import exact_share

FEW = 4_000_000
"""Battles times models up to which a pass over the battles for each fold is quick enough."""

HUMAN_CODES = 4  # halves 0, 1, 2 and 3 = nobody voted

JUDGE_CODES = 5  # quarters 0 to 4


OwnOutcomes = Callable[[slice], tuple[NDArray[np.float64], NDArray[np.float64]]]

_RELATIVE_ERROR = 1e-14

_MOST_NODES = 96

Integrand = Callable[[float, NDArray[np.float64]], NDArray[np.float64]]


def add_counts(total: NDArray[np.int64], key: NDArray[Any], weight: NDArray[Any] | None) -> None:
    """Add to each cell of a table the rows that have its key, or the battles in them."""
    counted = np.bincount(key, weight, total.size)
    total += counted if weight is None else counted.astype(np.int64)


class OutcomeTally(NamedTuple):
    """Battles of row models against column models by outcome, row model first.

    `human` (M, M, 3) counts votes by the row model's halves of the win, `judge` (M, M, 5)
    counts all judged battles by its quarters. Both count every battle twice, once each way.
    """

    human: NDArray[np.int64]
    judge: NDArray[np.int64]


class ScoreTally(NamedTuple):
    """Battles per model, score difference oriented to it, and human outcome oriented to it.

    `counts` has shape (M, 2 K + 1, 4); column ``k`` stands for a difference of
    ``(k - K) / denominator`` rubric points.
    """

    counts: NDArray[np.int64]
    denominator: int

    @property
    def differences(self) -> NDArray[np.float64]:
        """Score differences of the columns, in rubric points, shape (2 K + 1,)."""
        reach = self.counts.shape[1] // 2
        return np.asarray(np.arange(-reach, reach + 1) / self.denominator)


def tally_outcomes(battles: CodedBattles) -> OutcomeTally:
    """Return the battles of each pair by human outcome and by judge outcome."""
    size = len(battles.models)
    cells = size * size * HUMAN_CODES * JUDGE_CODES
    total = np.zeros(cells, dtype=np.int64)
    for part in chunks(len(battles), cells):
        key: NDArray[np.integer] = battles.model_a[part].astype(
            np.int32 if cells < 2**31 else np.int64
        )
        key *= size
        key += battles.model_b[part]
        key *= HUMAN_CODES
        key += battles.human_outcome[part] & 3  # -1, nobody voted, becomes 3
        key *= JUDGE_CODES
        key += battles.judge_outcome[part]
        add_counts(total, key, battles.weights(part))
    joint = total.reshape(size, size, HUMAN_CODES, JUDGE_CODES)
    human, judge = joint[:, :, :3].sum(axis=3), joint.sum(axis=2)
    return OutcomeTally(*(view + view[:, :, ::-1].transpose(1, 0, 2) for view in (human, judge)))


def tally_scores(
    battles: CodedBattles, *, opponents: NDArray[np.bool_] | None = None
) -> ScoreTally:
    """Return the battles of each model by score difference and human outcome, model first."""
    if not battles.denominator:
        raise ValueError("score differences are continuous: there is no grid to count them on")
    size = len(battles.models)
    reach = int(np.abs(battles.score_difference).max(initial=0))
    width = 2 * reach + 1
    cells = size * width * HUMAN_CODES
    as_a, as_b = np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64)
    sides = (battles.model_a, battles.model_b, as_a), (battles.model_b, battles.model_a, as_b)
    for part in chunks(len(battles), cells):
        detail = battles.score_difference[part].astype(np.int32)
        detail += reach
        detail *= HUMAN_CODES
        detail += battles.human_outcome[part] & 3
        weight = battles.weights(part)
        for codes, others, total in sides:
            key = codes[part].astype(np.int32)
            key *= width * HUMAN_CODES
            key += detail
            if opponents is None:
                add_counts(total, key, weight)
                continue
            met = opponents[others[part]]
            add_counts(total, key[met], None if weight is None else weight[met])
    shape = (size, width, HUMAN_CODES)
    mirrored = as_b.reshape(shape)[:, ::-1][:, :, [2, 1, 0, 3]]  # B's view: signs and wins turn
    return ScoreTally(as_a.reshape(shape) + mirrored, battles.denominator)


class SoftTotals(NamedTuple):
    """Sums of soft outcomes, all at the slope of the held-out model ``m`` of row ``m``.

    `totals` (M, M): row m, column i: soft wins of model i over its battles with anchors.
    `own_wins` (M, M): row m, column j: soft wins of model m against model j.
    `own_squares` (M,): sum of squared soft outcomes of model m against anchors.
    Rows are NaN where the slope is.
    """

    totals: Floats
    own_wins: Floats
    own_squares: Floats


def soft_totals(battles: CodedBattles, beta: Floats, anchors: NDArray[np.bool_]) -> SoftTotals:
    """Return the soft totals of every fold."""

    def own(part: slice) -> tuple[Floats, Floats]:
        """Return the shares of A at A's slope and of B at B's, of one part of the battles."""
        score = battles.rubric_points(part)
        slope_a, slope_b = beta[battles.model_a[part]], beta[battles.model_b[part]]
        return exact_share(expit(slope_a * score)), exact_share(expit(-slope_b * score))

    wins, squares = own_sums(battles, own)
    totals = (_totals_on_grid if battles.denominator else _totals_at)(battles, beta, anchors)
    return SoftTotals(totals, wins, squares[:, anchors].sum(axis=1))


def _totals_on_grid(battles: CodedBattles, beta: Floats, anchors: NDArray[np.bool_]) -> Floats:
    tally = tally_scores(battles, opponents=None if anchors.all() else anchors)
    chance = exact_share(expit(beta[:, None] * tally.differences))
    return np.asarray(chance @ tally.counts.sum(axis=2).T)


def own_sums(battles: CodedBattles, own: OwnOutcomes) -> tuple[Floats, Floats]:
    """Return sums of outcomes and of their squares, (M, M): row model's against column model."""
    size = len(battles.models)
    wins, squares = np.zeros((2, size * size))
    for part in chunks(len(battles), size * size):
        row, column = (side[part].astype(np.int64) for side in (battles.model_a, battles.model_b))
        pairs = row * size + column, column * size + row
        for pair, share in zip(pairs, own(part), strict=True):
            squared = exact_share(share**2)
            wins += np.bincount(pair, battles.weighted(share, part), wins.size)
            squares += np.bincount(pair, battles.weighted(squared, part), wins.size)
    return wins.reshape(size, size), squares.reshape(size, size)


def _totals_at(battles: CodedBattles, beta: Floats, anchors: NDArray[np.bool_]) -> Floats:
    """Sum soft outcomes per model at every fold's slope; of many, through Chebyshev nodes."""
    score = battles.rubric_points()
    inner = anchors[battles.model_a] & anchors[battles.model_b]
    kept, kept_score = battles.take(inner), score[inner]
    known = np.isfinite(beta)
    totals = np.full((beta.size, beta.size), np.nan)
    if not known.any():
        return totals
    nodes, place = np.unique(beta[known], return_inverse=True)
    weights = np.eye(nodes.size)[place]
    if len(kept) * nodes.size > FEW:
        with suppress(ValueError):  # slopes may lie too far apart to interpolate between
            reach = float(np.abs(score).max())
            nodes = chebyshev_nodes(nodes[0], nodes[-1], reach=reach)
            weights = interpolation(nodes, beta[known])
    of_a, of_b = (
        lambda beta, s, sign=sign: exact_share(expit(sign * beta * s)) for sign in (1, -1)
    )
    totals[known] = weights @ model_sums(kept, kept_score, nodes, of_a, of_b).T
    return totals


def chebyshev_nodes(low: float, high: float, *, reach: float) -> NDArray[np.float64]:
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


def interpolation(nodes: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix that takes values at Chebyshev nodes to values elsewhere."""
    count = nodes.size
    sign = np.where(np.arange(count) % 2, -1.0, 1.0)
    weight = sign * np.sin((2 * np.arange(count) + 1) * math.pi / (2 * count))
    gap = at[:, None] - nodes
    hit = gap == 0
    terms = weight / np.where(hit, 1.0, gap)
    matrix = terms / terms.sum(axis=1, keepdims=True)
    return np.where(hit.any(axis=1, keepdims=True), hit.astype(float), matrix)


def model_sums(
    battles: CodedBattles,
    score: NDArray[np.float64],
    nodes: NDArray[np.float64],
    of_a: Integrand,
    of_b: Integrand,
) -> NDArray[np.float64]:
    """Return per-model sums over battles of a function of beta and score, at nodes of beta."""
    sums = np.zeros((nodes.size, len(battles.models)))
    for part in chunks(len(battles)):
        codes_a, codes_b, values = battles.model_a[part], battles.model_b[part], score[part]
        for total, beta in zip(sums, nodes, strict=True):
            first = of_a(float(beta), values)
            second = first if of_b is of_a else of_b(float(beta), values)
            first, second = battles.weighted(first, part), battles.weighted(second, part)
            total += np.bincount(codes_a, weights=first, minlength=total.size)
            total += np.bincount(codes_b, weights=second, minlength=total.size)
    return sums.T

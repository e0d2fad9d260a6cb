"""Totals of soft outcomes ``sigmoid(beta * score difference)`` at every fold's own beta.

Each held-out model has its own slope, hence its own soft targets on all battles. Strengths
need totals only: of each model over all its battles (from counts per score, no pass), less
what it won against the model left out (one pass for all folds, since a battle belongs to
only two of them).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.elo.battles import CodedBattles
from judgeline.elo.beta import FEW
from judgeline.elo.chebyshev import chebyshev_nodes, interpolation, model_sums
from judgeline.elo.tally import chunks, tally_scores
from judgeline.verdict.outcomes import exact_share

Floats = NDArray[np.float64]
OwnOutcomes = Callable[[slice], tuple[NDArray[np.float64], NDArray[np.float64]]]


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
    """Return the soft totals of every fold.

    Parameters
    ----------
    battles : CodedBattles
        The judged battles, n of them over M models.
    beta : ndarray, shape (M,)
        Slope of each held-out model's fold, in logits per rubric point; NaN for none.
    anchors : ndarray of bool, shape (M,)
        Models that may be anchors; battles against others do not count.

    Returns
    -------
    SoftTotals
        Sums in wins, rows by held-out model.
    """
    if battles.denominator:
        return _on_grid(battles, beta, anchors)
    return _continuous(battles, beta, anchors)


def _on_grid(battles: CodedBattles, beta: Floats, anchors: NDArray[np.bool_]) -> SoftTotals:
    tally = tally_scores(battles, opponents=None if anchors.all() else anchors)
    counts = tally.counts.sum(axis=2)
    chance = exact_share(expit(beta[:, None] * tally.differences))
    reach = counts.shape[1] // 2
    width = counts.shape[1]
    flat = chance.ravel()

    def own(part: slice) -> tuple[Floats, Floats]:
        place = battles.score_difference[part].astype(np.int32) + reach
        of_a = flat[battles.model_a[part].astype(np.int32) * width + place]
        mirrored = width - 1 - place
        of_b = flat[battles.model_b[part].astype(np.int32) * width + mirrored]
        return of_a, of_b

    own_wins = _own_wins(battles, own)
    return SoftTotals(chance @ counts.T, own_wins, (counts * exact_share(chance**2)).sum(axis=1))


def _own_wins(battles: CodedBattles, own: OwnOutcomes) -> Floats:
    """Sum each battle's soft outcome for either model at that model's slope, by pair."""
    size = len(battles.models)
    sums = np.zeros(size * size)
    for part in chunks(len(battles), size * size):
        of_a, of_b = own(part)
        row = battles.model_a[part].astype(np.int32)
        column = battles.model_b[part].astype(np.int32)
        sums += np.bincount(row * size + column, weights=of_a, minlength=sums.size)
        sums += np.bincount(column * size + row, weights=of_b, minlength=sums.size)
    return sums.reshape(size, size)


def _continuous(battles: CodedBattles, beta: Floats, anchors: NDArray[np.bool_]) -> SoftTotals:
    score = battles.rubric_points()

    def own(part: slice) -> tuple[Floats, Floats]:
        slope_a, slope_b = beta[battles.model_a[part]], beta[battles.model_b[part]]
        return exact_share(expit(slope_a * score[part])), exact_share(expit(-slope_b * score[part]))

    squares = np.zeros(beta.size)
    for part in chunks(len(battles)):
        of_a, of_b = own(part)
        for codes, others, share in (
            (battles.model_a[part], battles.model_b[part], of_a),
            (battles.model_b[part], battles.model_a[part], of_b),
        ):
            kept = np.where(anchors[others], exact_share(share**2), 0.0)
            squares += np.bincount(codes, weights=kept, minlength=squares.size)
    return SoftTotals(_totals_at(battles, score, beta, anchors), _own_wins(battles, own), squares)


def _totals_at(
    battles: CodedBattles, score: Floats, beta: Floats, anchors: NDArray[np.bool_]
) -> Floats:
    """Sum soft outcomes per model at every fold's slope; of many, through Chebyshev nodes."""
    inner = anchors[battles.model_a] & anchors[battles.model_b]
    kept, kept_score = battles.take(inner), score[inner]
    known = np.isfinite(beta)
    totals = np.full((beta.size, beta.size), np.nan)
    if not known.any():
        return totals
    nodes, weights = _nodes(beta[known], score, len(kept))
    totals[known] = weights @ model_sums(kept, kept_score, nodes, _share_of_a, _share_of_b).T
    return totals


def _nodes(beta: Floats, score: Floats, n_battles: int) -> tuple[Floats, Floats]:
    """Return slopes to sum at, (K,), and the weights that take those sums to each fold, (F, K)."""
    distinct, place = np.unique(beta, return_inverse=True)
    each = distinct, np.eye(distinct.size)[place]
    if n_battles * distinct.size <= FEW:
        return each
    try:
        nodes = chebyshev_nodes(beta.min(), beta.max(), reach=float(np.abs(score).max()))
    except ValueError:  # slopes too far apart to interpolate between
        return each
    return nodes, interpolation(nodes, beta)


def _share_of_a(beta: float, score: Floats) -> Floats:
    return exact_share(expit(beta * score))


def _share_of_b(beta: float, score: Floats) -> Floats:
    return exact_share(expit(-beta * score))

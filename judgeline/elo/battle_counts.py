"""Counts of battles by pair and outcome, and by model and score, which all fits read."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.arrays import Bools, Floats, Ints
from judgeline.elo.battles import CodedBattles, chunks

_HUMAN_CODES = 4  # halves 0, 1, 2 and 3 = nobody voted
_JUDGE_CODES = 5  # quarters 0 to 4


class Sums(NamedTuple):
    """Battles counted once for all fits: by pair and outcome, and by model and score.

    `names` (M,) are the models; `voted` (M,) marks the A models with votes, the anchors.
    ``human[i, j, h]`` counts the votes on i and j in which i won h halves, and ``judge[i, j, q]``
    all judged battles in which i won q quarters; each battle stands in [i, j] and in [j, i].
    ``scores[i, k, h]`` counts battles of i with anchors in which its score is ``differences[k]``
    rubric points higher; h = 3 means no vote. K is 0 where scores are on no grid.
    """

    names: NDArray[np.str_]
    voted: Bools
    human: Ints
    judge: Ints
    scores: Ints
    differences: Floats

    @classmethod
    def of(cls, battles: CodedBattles) -> "Sums":
        """Return the sums of battles, made when they are first needed."""
        if "sums" not in battles.made:
            human, judge = _tally_outcomes(battles)
            voted = np.asarray(human.any(axis=(1, 2)))
            scores = _tally_scores(battles, voted)
            battles.made["sums"] = cls(np.array(battles.models), voted, human, judge, *scores)
        found: Sums = battles.made["sums"]
        return found

    @property
    def others(self) -> Bools:
        """Entry [m, a] is false only where anchor a is model m itself, shape (M, A)."""
        return np.asarray(np.flatnonzero(self.voted) != np.arange(self.voted.size)[:, None])


def add_counts(total: Ints, key: NDArray[Any], weight: NDArray[Any] | None) -> None:
    """Add to each cell of a table the rows that have its key, or the battles in them."""
    counted = np.bincount(key, weight, total.size)
    total += counted if weight is None else counted.astype(np.int64)


def _tally_outcomes(battles: CodedBattles) -> tuple[Ints, Ints]:
    """Count the battles of each pair by human outcome, and by judge outcome."""
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
    both = (view + view[:, :, ::-1].transpose(1, 0, 2) for view in (human, judge))
    return next(both), next(both)


def _tally_scores(battles: CodedBattles, anchors: Bools) -> tuple[Ints, Floats]:
    """Count each model's battles with anchors by score difference and human outcome."""
    size = len(battles.models)
    if not battles.denominator:
        return np.zeros((size, 0, _HUMAN_CODES), dtype=np.int64), np.zeros(0)
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
            if anchors.all():
                add_counts(total, key, weight)
                continue
            met = anchors[others[part]]
            add_counts(total, key[met], None if weight is None else weight[met])
    mirrored = as_b.reshape(shape)[:, ::-1][:, :, [2, 1, 0, 3]]  # B's view: signs and wins turn
    differences = np.asarray(np.arange(-reach, reach + 1) / battles.denominator)
    return as_a.reshape(shape) + mirrored, differences

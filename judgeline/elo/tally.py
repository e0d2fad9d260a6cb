"""Sufficient statistics of battles: counts that add up over shards, streams and languages.

Two integer tables hold all that the estimators read of judged battles on a score grid: how
often each ordered pair had which two outcomes, and how often each model had which score
difference with which human outcome. Building them is one pass; fitting never sees a battle.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.elo.battles import CodedBattles

HUMAN_CODES = 4  # halves 0, 1, 2 and 3 = nobody voted
JUDGE_CODES = 5  # quarters 0 to 4

_CHUNK = 1 << 16  # battles per pass: index arrays stay in the cache


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
        grid: NDArray[np.float64] = np.arange(-reach, reach + 1) / self.denominator
        return grid


def chunks(size: int, table_cells: int = 0) -> Iterator[slice]:
    """Yield slices of battles small enough for the cache, yet worth a pass over the table.

    Parameters
    ----------
    size : int
        Number of battles.
    table_cells : int
        Cells of the table that every chunk is added to.

    Returns
    -------
    iterator of slice
        Consecutive slices that cover ``range(size)``.
    """
    step = max(_CHUNK, min(2 * table_cells, 1 << 21))
    return (slice(first, min(first + step, size)) for first in range(0, size, step))


def tally_outcomes(battles: CodedBattles) -> OutcomeTally:
    """Return the battles of each pair by human outcome and by judge outcome.

    Parameters
    ----------
    battles : CodedBattles
        The battles, n of them over M models.

    Returns
    -------
    OutcomeTally
        Counts of shapes (M, M, 3) and (M, M, 5), oriented to the row model.
    """
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
        total += np.bincount(key, minlength=cells)
    joint = total.reshape(size, size, HUMAN_CODES, JUDGE_CODES)
    human, judge = joint[:, :, :3].sum(axis=3), joint.sum(axis=2)
    return OutcomeTally(*(view + view[:, :, ::-1].transpose(1, 0, 2) for view in (human, judge)))


def tally_scores(
    battles: CodedBattles, *, opponents: NDArray[np.bool_] | None = None
) -> ScoreTally:
    """Return the battles of each model by score difference and human outcome, model first.

    Parameters
    ----------
    battles : CodedBattles
        Battles whose score differences lie on a grid (``denominator > 0``).
    opponents : ndarray of bool, shape (M,), optional
        Count a model's battles against these opponents only; against all by default.

    Returns
    -------
    ScoreTally
        Counts of shape (M, 2 K + 1, 4); they sum to twice the number of battles.

    Raises
    ------
    ValueError
        If the score differences are continuous.
    """
    if not battles.denominator:
        raise ValueError("score differences are continuous: there is no grid to count them on")
    size = len(battles.models)
    reach = int(np.abs(battles.score_difference).max(initial=0))
    width = 2 * reach + 1
    cells = size * width * HUMAN_CODES
    as_a, as_b = np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64)
    sides = (battles.model_a, battles.model_b, as_a), (battles.model_b, battles.model_a, as_b)
    for part in chunks(len(battles), cells):
        detail = _score_codes(battles, part, reach)
        for codes, others, total in sides:
            key = codes[part].astype(np.int32)
            key *= width * HUMAN_CODES
            key += detail
            if opponents is not None:
                key = key[opponents[others[part]]]
            total += np.bincount(key, minlength=cells)
    shape = (size, width, HUMAN_CODES)
    mirrored = as_b.reshape(shape)[:, ::-1][:, :, [2, 1, 0, 3]]  # B's view: signs and wins turn
    return ScoreTally(as_a.reshape(shape) + mirrored, battles.denominator)


def _score_codes(battles: CodedBattles, part: slice, reach: int) -> NDArray[np.int32]:
    detail = battles.score_difference[part].astype(np.int32)
    detail += reach
    detail *= HUMAN_CODES
    detail += battles.human_outcome[part] & 3
    return detail

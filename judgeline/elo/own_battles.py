"""Each model's own battles against anchors, turned so that the model comes first.

What a bootstrap of one model draws from: anchors stay where the fold put them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.elo.battles import CodedBattles
from judgeline.elo.bootstrap import ResamplingUnits, units_of_battles, units_of_clusters

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OwnBattles:
    """One model's battles against anchors, turned so that the model comes first.

    `rows`: where each stands among all battles; `as_b`: whether the model is B there; the rest,
    per battle: opponent's code, score difference in rubric points, judge's outcome in quarters,
    human outcome in halves (-1 where nobody voted), cluster.
    """

    rows: NDArray[np.intp]
    as_b: NDArray[np.bool_]
    opponent: NDArray[np.intp]
    score: Floats
    judge: NDArray[np.int64]
    human: NDArray[np.int64]  # -1 where nobody voted
    cluster: NDArray[np.intp] | None

    @classmethod
    def of_all(
        cls, battles: CodedBattles, voted: NDArray[np.bool_], cluster: ArrayLike | None
    ) -> Iterator["OwnBattles"]:
        """Yield every model's own battles, in the order of ``battles.models``."""
        codes = None if cluster is None else np.unique(np.asarray(cluster), return_inverse=True)[1]
        side = np.concatenate([battles.model_a, battles.model_b])
        order = np.argsort(side, kind="stable")
        ends = np.cumsum(np.bincount(side, minlength=len(battles.models)))
        for first, last in zip(np.r_[0, ends[:-1]], ends, strict=True):
            yield cls._of_one(battles, voted, codes, order[first:last])

    @classmethod
    def _of_one(
        cls,
        battles: CodedBattles,
        voted: NDArray[np.bool_],
        codes: NDArray[np.intp] | None,
        sides: NDArray[np.intp],
    ) -> "OwnBattles":
        rows, as_b = sides % len(battles), sides >= len(battles)
        opponent = np.where(as_b, battles.model_a[rows], battles.model_b[rows])
        kept = voted[opponent]
        rows, as_b, opponent = rows[kept], as_b[kept], opponent[kept]
        points = battles.score_difference[rows].astype(float) / (battles.denominator or 1)
        judge, human = (
            battles.judge_outcome[rows].astype(int),
            battles.human_outcome[rows].astype(int),
        )
        return cls(
            rows,
            as_b,
            opponent.astype(np.intp),
            np.where(as_b, -points, points),
            np.where(as_b, 4 - judge, judge),
            np.where(as_b & (human >= 0), 2 - human, human),
            None if codes is None else codes[rows],
        )

    def everything(self) -> NDArray[np.bool_]:
        """Return a mask that keeps every battle."""
        return np.ones(self.opponent.size, dtype=bool)

    def turned(self, share_of_a: Floats) -> Floats:
        """Return the model's share of the win in each, from A's share in all n battles."""
        share = share_of_a[self.rows]
        return np.where(self.as_b, 1 - share, share)

    def units(
        self, kept: NDArray[np.bool_], outcome: Floats, place: NDArray[np.intp], n_anchors: int
    ) -> ResamplingUnits:
        """Return resampling units in an order that does not depend on the battles' order."""
        opponent, share = place[self.opponent[kept]], outcome[kept]
        if self.cluster is not None:
            return units_of_clusters(opponent, share, self.cluster[kept], n_anchors)
        order = np.lexsort((share[:, 0], opponent))  # the first kind determines the others
        opponent, share = opponent[order], share[order]
        fresh = np.r_[True, (np.diff(opponent) != 0) | (np.diff(share[:, 0]) != 0)]
        copies = np.diff(np.r_[np.flatnonzero(fresh), opponent.size])
        return units_of_battles(opponent[fresh], share[fresh], copies, n_anchors)

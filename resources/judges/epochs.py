"""Asks a judge about the same battles again and again, as epochs that no other table asks.

An epoch is a run with a number of its own. Its answers lie in the verdict store under that
number, so that what a run bought before it was killed is found by the next one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pandas as pd

from judgeline.io import SCORE_COLUMNS
from resources.judges.annotation import annotate
from resources.judges.buying import Buyer, Progress
from resources.judges.calls import call_identity, judge_key, present
from resources.judges.judge import Judge
from resources.tables.reliability import DRIFT_ANSWERS

FIRST_REPLICATE = 1_000_000
"""Epoch e is the run of this number plus e; verdicts and panels count their runs from 0."""

MOST_LOST = 0.1
"""Share of an epoch's calls that may fail on their way to the judge."""

JUST_NOW = timedelta(days=1)
"""A whole epoch in the store that no table has is the purchase of a run that was stopped, if its
last answer is younger than this; an older one is of a table that was lost."""


@dataclass(frozen=True)
class EpochAsker:
    """Asks for one more epoch of answers; called as `annotate` is.

    Epoch 0 is the first run of the `verdicts`. None of the rows of the epochs `before` changes. One
    run with all its retries (`run_id`) asks for one epoch. The clock's time is in UTC.
    """

    verdicts: pd.DataFrame
    before: pd.DataFrame
    run_id: str
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __call__(
        self,
        judge: Judge,
        battles: pd.DataFrame,
        *,
        slug: str,
        n_replicates: int = 1,
        on_progress: Progress | None = None,
        buyer: Buyer | None = None,
    ) -> pd.DataFrame:
        """Return the rows that `before` lacks: of the baseline, and of the epoch asked for now.

        A battle counts if the verdicts hold both of its first answers by this very judge, of
        this model, prompt and decoding: without them there is nothing to compare with.
        """
        if buyer is None or n_replicates != 1:
            raise ValueError("an epoch is asked once, and through a store")
        baseline = self._baseline(judge, battles)
        battles = battles[battles["battle_id"].isin(baseline["battle_id"])]
        known = self.before[self.before["judge_version"].eq(judge_key(judge))]
        fresh = baseline[~baseline["identity"].isin(known["identity"])]
        fresh = _as_first_said(
            fresh, buyer.store.first_statuses(judge_key(judge), fresh["identity"])
        )
        pieces = [self._as_epoch(fresh, 0, judge, battles, buyer)]
        if not battles.empty:
            pieces += self._epochs(judge, battles, slug, on_progress, buyer)
        return pd.concat(pieces, ignore_index=True)

    def _baseline(self, judge: Judge, battles: pd.DataFrame) -> pd.DataFrame:
        """Return the verdicts of the first run on battles whose both calls are this judge's."""
        calls = {call_identity(judge, shown) for shown in present(battles, 1)}
        first = self.verdicts[
            self.verdicts["replicate"].eq(0) & self.verdicts["battle_id"].isin(battles["battle_id"])
        ]
        own = first[first["identity"].isin(calls)]
        return own[own.groupby("battle_id")["order"].transform("nunique").eq(2)]

    def _epochs(
        self,
        judge: Judge,
        battles: pd.DataFrame,
        slug: str,
        on_progress: Progress | None,
        buyer: Buyer,
    ) -> Iterator[pd.DataFrame]:
        """Yield epochs that lie whole in the store, and the next one, asked for now."""
        if len(self.before) and self.before["run_id"].iloc[-1] == self.run_id:
            return  # a retry of a run whose table was written
        epoch, is_new = int(self.before["epoch"].max()) if len(self.before) else 0, False
        while not is_new:
            epoch += 1
            answers = annotate(
                judge,
                battles,
                slug=slug,
                first_replicate=FIRST_REPLICATE + epoch,
                on_progress=on_progress,
                buyer=buyer,
            )
            _require_most(answers, slug)
            rows = self._as_epoch(answers, epoch, judge, battles, buyer)
            is_new = buyer.account.n_asked > 0 or self._is_fresh(rows)
            yield rows

    def _is_fresh(self, rows: pd.DataFrame) -> bool:
        return datetime.fromisoformat(rows["asked_at"].max()) > self.clock() - JUST_NOW

    def _as_epoch(
        self, answers: pd.DataFrame, epoch: int, judge: Judge, battles: pd.DataFrame, buyer: Buyer
    ) -> pd.DataFrame:
        """Return answers as rows of an epoch, with the time of each."""
        key = judge_key(judge)
        found = buyer.store.find(key, answers["identity"])[0].set_index("identity")["answered_at"]
        when = found.dt.strftime("%Y-%m-%dT%H:%M:%S+00:00")
        place = battles.set_index("battle_id")["selection_order"]
        table = answers.assign(
            epoch=epoch,
            asked_at=answers["identity"].map(when),
            judge_version=key,
            selection_order=answers["battle_id"].map(place),
            run_id=self.run_id,
        )
        return DRIFT_ANSWERS.filled(table)


def _as_first_said(verdicts: pd.DataFrame, first: dict[str, str]) -> pd.DataFrame:
    """Return verdicts as they were before a second attempt at an unreadable answer.

    An epoch asks once. Held against answers of two attempts it would seem to fail more often.
    """
    status = verdicts["identity"].map(first).fillna(verdicts["status"])
    mended = verdicts["status"].eq("ok") & status.ne("ok")
    nothing = verdicts[list(SCORE_COLUMNS)].mask(mended)
    return verdicts.assign(**nothing, status=verdicts["status"].mask(mended, status))


def _require_most(answers: pd.DataFrame, slug: str) -> None:
    lost = int(answers["status"].eq("transport").sum())
    if lost > MOST_LOST * len(answers):
        raise RuntimeError(
            f"{lost} of {len(answers)} calls to judge {slug!r} failed on their way, too many to "
            "compare with; materialise drift_answers again when it can be reached: only these "
            "are asked again, as the same epoch"
        )

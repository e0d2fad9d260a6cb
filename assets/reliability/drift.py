"""The drift watch: a frozen panel of battles, judged again epoch after epoch; with its check."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import follows, table_asset, table_check
from assets.corpus.assets import choose
from assets.judging.asking import ask_judge, releasing
from assets.partitions import corpus_and_judge
from assets.thumbnails import drift_over_epochs
from judgeline.io import as_table, score_battles
from judgeline.judges.annotation import annotate
from judgeline.judges.budget import Budget, JointBudget
from judgeline.judges.buying import Buyer
from judgeline.judges.judge import Calls, Judge, judge_key
from judgeline.judges.presentation import present
from judgeline.reliability import FALSE_ALARM, Judgement, detect_drift
from judgeline.steps.reliability import by_run
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.tables.reliability import DRIFT_ANSWERS, JUDGE_DRIFT
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.stores import StoredVerdicts
from resources.tables.expectations import check_result
from resources.tables.store import ParquetStore

REMEDY = (
    "If the provider changed the model under its name, pin a dated model or revision. If the "
    "change is to stay, enter it as a judge of its own in judges.yaml and backfill that "
    "one; ratings by answers from before and after are not of one judge."
)

_NOT_CONFIGURED = "no drift watch: add 'drift: {battles: 100}' to the corpus"
_RECORDED = "the verdicts came with the corpus: their judge cannot be asked again"
_NOT_ASKED = "the judge has no verdicts by the rubric, so there is nothing to compare with"
_OF_ANOTHER = (
    "the verdicts are not of the judge as it is configured now, so there is nothing to compare "
    "with; materialise verdicts first"
)


# No automation condition: it asks the judge afresh, every time. Its schedule does so by name.
@table_asset("1")
@releasing
def drift_answers(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    recorded_verdicts: pd.DataFrame,
    verdicts: pd.DataFrame,
    reliability_panel: pd.DataFrame | None,
    catalog: Catalog,
    verdict_store: StoredVerdicts,
    budget: dg.ResourceParam[Budget],
    io_manager: dg.ResourceParam[ParquetStore],
) -> dg.MaterializeResult[pd.DataFrame]:
    """One answer of a judge to one presentation of a battle of its panel, in one epoch.

    Epoch 0 is the verdicts, at no cost; every later one was asked afresh. Rows are only added,
    and battles chosen before stay chosen.
    """
    slug, judge = corpus_and_judge(context)
    corpus, definition = catalog.corpus(slug), catalog.judge(judge)
    stored = io_manager.stored("drift_answers", slug, judge)
    before = DRIFT_ANSWERS.filled(pd.DataFrame() if stored is None else stored)
    if definition.kind == "recorded" or recorded_verdicts["judge"].eq(judge).any():
        return _unasked(before, _RECORDED)
    if corpus.drift is None:
        return _unasked(before, _NOT_CONFIGURED)
    if verdicts.empty or "rubric" not in definition.asks:
        return _unasked(before, _NOT_ASKED)
    battles = choose_watched(sampled_battles, verdicts, corpus, before, reliability_panel)
    answers = ask_judge(
        context,
        battles,
        annotate=EpochAsker(verdicts, before, context.run.root_run_id or context.run.run_id),
        catalog=catalog,
        verdict_store=verdict_store,
        budget=JointBudget([budget, Budget.parse(corpus.drift.budget)]),
        n_replicates=1,
        first_replicate=FIRST_REPLICATE + 1 + (int(before["epoch"].max()) if len(before) else 0),
        n_covered=1,  # unreadable answers are part of how a judge judges: nothing mends them
    )
    table = pd.concat([before, answers.value], ignore_index=True)
    if table.empty:
        return _unasked(before, _OF_ANOTHER)
    return dg.MaterializeResult(
        value=table, metadata={**(answers.metadata or {}), "epoch": int(table["epoch"].max())}
    )


def choose_watched(
    battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    corpus: CorpusDefinition,
    before: pd.DataFrame,
    panel: pd.DataFrame | None,
) -> pd.DataFrame:
    """Return the battles of the watch: those chosen before and still there, then further ones."""
    judged = battles[battles["battle_id"].isin(verdicts["battle_id"])]
    voted = judged[judged["human_outcome"].notna()]
    possible = (judged if voted.empty else voted).reset_index(drop=True)
    size = corpus.drift.battles if corpus.drift else 0
    chosen = before if len(before) or panel is None else panel
    kept = chosen.drop_duplicates("battle_id").nsmallest(size, "selection_order")
    return choose(possible, corpus.model_copy(update={"sample_size": size}), kept).head(size)


def _unasked(before: pd.DataFrame, note: str) -> dg.MaterializeResult[pd.DataFrame]:
    return dg.MaterializeResult(value=before, metadata={"n_asked": 0, "note": note})


@table_asset("2", follows)
def judge_drift(
    drift_answers: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    reliability_panel: pd.DataFrame | None,
) -> dg.MaterializeResult[pd.DataFrame]:
    """One statistic of a judge in one epoch, held against the baseline on the same battles.

    The change is in the statistic's unit and in standard errors of the paired difference.
    """
    table = drift_table(drift_answers, sampled_battles, reliability_panel)
    latest = table[table["epoch"].eq(table["epoch"].max())]
    numbers = latest[latest["z"].notna()]
    plot = {"epochs": drift_over_epochs(table)} if len(numbers) else {}
    return dg.MaterializeResult(
        value=table,
        metadata={
            "n_epochs": int(table["epoch"].nunique()),
            "n_moved": int(latest["moved"].sum()),
            "false_alarm": FALSE_ALARM,
            **{f"z {row.statistic}": float(row.z) for row in numbers.itertuples()},
            **plot,
        },
    )


def drift_table(
    answers: pd.DataFrame, battles: pd.DataFrame, panel: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the change of each statistic in each epoch since the baseline.

    Only answers by the version of the judge that answered last, on sampled `battles`, count; the
    `panel` says how far repeats of one day differ.
    """
    own = answers[answers["judge_version"].eq(answers["judge_version"].iloc[-1:].max())]
    baseline = own[own["epoch"].eq(0)]
    battles = battles[battles["battle_id"].isin(baseline["battle_id"])]
    pieces = [JUDGE_DRIFT.empty()]
    for epoch, asked in own[own["epoch"].gt(0)].groupby("epoch"):
        before, now, votes, runs = _compared(baseline, asked, battles, panel)
        table = as_table(detect_drift(before, now, votes, runs=runs))
        table = table.assign(epoch=epoch, asked_at=asked["asked_at"].max())
        pieces.append(JUDGE_DRIFT.typed(table))
    return pd.concat(pieces[1:] or pieces, ignore_index=True)


def moved_since(drift: pd.DataFrame) -> dict[str, tuple[int, str]]:
    """Return first epoch and time of the unbroken series in which a statistic has moved."""
    series = {}
    for name, rows in drift.groupby("statistic", sort=False):
        still = rows["moved"].iloc[::-1].cumprod().astype(bool).iloc[::-1]
        if still.iloc[-1]:
            first = rows[still].iloc[0]
            series[str(name)] = int(first["epoch"]), str(first["asked_at"])
    return series


def _compared(
    baseline: pd.DataFrame, asked: pd.DataFrame, battles: pd.DataFrame, panel: pd.DataFrame | None
) -> tuple[Judgement, Judgement, np.ndarray, np.ndarray | None]:
    """Return both judgements, votes and runs of the battles whose calls all reached the judge."""
    lost = pd.concat([baseline, asked]).query("status == 'transport'")["battle_id"]
    both = battles["battle_id"].isin(asked["battle_id"]) & ~battles["battle_id"].isin(lost)
    battles = battles[both].reset_index(drop=True)
    before, now = (_judgement(battles, answers) for answers in (baseline, asked))
    votes = battles["human_outcome"].to_numpy(dtype=float, na_value=math.nan)
    return before, now, votes, _panel_runs(battles, before, panel)


def _judgement(battles: pd.DataFrame, answers: pd.DataFrame) -> Judgement:
    answers = answers[answers["battle_id"].isin(battles["battle_id"])]
    scored = score_battles(battles, answers).set_index("battle_id")
    level = answers[list(SCORE_COLUMNS)].mean(axis=1).groupby(answers["battle_id"]).mean()
    scored = scored.assign(level=level).reindex(battles["battle_id"])
    return Judgement(*(scored[name].to_numpy(dtype=float) for name in Judgement._fields))


def _panel_runs(
    battles: pd.DataFrame, baseline: Judgement, panel: pd.DataFrame | None
) -> np.ndarray | None:
    """Return score differences by run of the panel, NaN where its first is not the baseline."""
    if panel is None or panel["replicate"].nunique() < 2:
        return None
    runs = by_run(panel, "score_difference").reindex(battles["battle_id"]).to_numpy(dtype=float)
    own = np.isclose(runs[:, 0], (baseline.difference_ab + baseline.difference_ba) / 2)
    return np.where(own[:, None], runs, math.nan)


@table_check(judge_drift)
def judge_has_not_drifted(judge_drift: pd.DataFrame) -> dg.AssetCheckResult:
    """A judge that changed under its name rates new models by another ruler than the old ones."""
    latest = judge_drift[judge_drift["epoch"].eq(judge_drift["epoch"].max())]
    moved, since = latest[latest["moved"]], moved_since(judge_drift)
    compared = latest[latest["now"].notna() | latest["p_value"].notna()]
    passed, warns, remedy = moved.empty, False, REMEDY
    if latest.empty:
        observed = "No epoch has been asked since the baseline."
    elif len(moved):
        changes = "; ".join(_change_text(row, *since[row.statistic]) for row in moved.itertuples())
        observed = f"The judge has moved: {changes}."
    elif set(compared["statistic"]) <= {"scored_share"}:
        reasons = "; ".join(dict.fromkeys(latest["note"]))
        observed = f"Nothing could be compared: {reasons}."
        passed, warns, remedy = False, True, "Raise drift.battles, or look at `status`."
    else:
        observed = f"None of {len(compared)} statistics moved beyond chance."
    epoch = (
        {
            "epoch": int(latest["epoch"].iloc[0]),
            "asked_at": str(latest["asked_at"].iloc[0]),
            "moved": ", ".join(moved["statistic"]),
        }
        if len(latest)
        else {}
    )
    return check_result(observed, remedy, passed=passed, warns=warns, **epoch)


def _change_text(row: Any, epoch: int, when: str) -> str:
    is_share = row.unit == "share"
    before, now = (
        "no finite value" if math.isnan(value) else f"{value:.1%}" if is_share else f"{value:.3g}"
        for value in (row.baseline, row.now)
    )
    unit = "" if is_share or math.isnan(row.now) else f" {row.unit}"
    size = "" if math.isnan(row.z) else f"{row.z:+.1f} standard errors, "
    note = f", {row.note}" if math.isnan(row.change) else ""
    return (
        f"{row.statistic} from {before} to {now}{unit} "
        f"({size}{row.n_battles} battles, since epoch {epoch} of {when[:10]}{note})"
    )


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

    Epoch 0 is the first run of the `verdicts`; no row of `before` changes. One run with all its
    retries (`run_id`) asks for one epoch, whose answers lie in the verdict store by its number.
    """

    verdicts: pd.DataFrame
    before: pd.DataFrame
    run_id: str

    def __call__(
        self, judge: Judge, battles: pd.DataFrame, *, buyer: Buyer, **asked: Any
    ) -> pd.DataFrame:
        """Return the rows that `before` lacks: of the baseline, and of the epoch asked for now."""
        baseline = self._baseline(judge, battles)
        battles = battles[battles["battle_id"].isin(baseline["battle_id"])]
        known = self.before[self.before["judge_version"].eq(judge_key(judge))]
        fresh = baseline[~baseline["identity"].isin(known["identity"])]
        fresh = _as_first_said(
            fresh, buyer.store.first_statuses(judge_key(judge), fresh["identity"])
        )
        pieces = [self._as_epoch(fresh, 0, judge, battles, buyer)]
        if not battles.empty:
            pieces += self._epochs(judge, battles, buyer, **asked)
        return pd.concat(pieces, ignore_index=True)

    def _baseline(self, judge: Judge, battles: pd.DataFrame) -> pd.DataFrame:
        """Return the verdicts of the first run, on battles with both calls by this judge."""
        calls = set(map(Calls(judge).identity, present(battles, 1)))
        first = self.verdicts[
            self.verdicts["replicate"].eq(0) & self.verdicts["battle_id"].isin(battles["battle_id"])
        ]
        own = first[first["identity"].isin(calls)]
        return own[own.groupby("battle_id")["order"].transform("nunique").eq(2)]

    def _epochs(
        self, judge: Judge, battles: pd.DataFrame, buyer: Buyer, **asked: Any
    ) -> Iterator[pd.DataFrame]:
        """Yield epochs that lie whole in the store, and the next one, asked for now."""
        if len(self.before) and self.before["run_id"].iloc[-1] == self.run_id:
            return  # a retry of a run whose table was written
        epoch, is_new = int(self.before["epoch"].max()) if len(self.before) else 0, False
        while not is_new:
            epoch += 1
            first = FIRST_REPLICATE + epoch
            answers = annotate(judge, battles, first_replicate=first, buyer=buyer, **asked)
            _require_most(answers, asked["slug"])
            rows = self._as_epoch(answers, epoch, judge, battles, buyer)
            last = datetime.fromisoformat(rows["asked_at"].max())
            is_new = buyer.account.n_asked > 0 or last > datetime.now(UTC) - JUST_NOW
            yield rows

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
    """Return verdicts as they were before a second attempt, since an epoch asks once."""
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

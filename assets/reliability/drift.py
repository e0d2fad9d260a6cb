"""The drift watch: a frozen panel of battles, judged again epoch after epoch; with its check."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.checks import table_check
from assets.conditions import ASKS, follows, table_asset
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
from judgeline.reliability import FALSE_ALARM, Fresh, Judgement, detect_drift
from judgeline.reliability.evidence import GUARD
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


WEEKLY = dg.FreshnessPolicy.time_window(
    warn_window=timedelta(days=8), fail_window=timedelta(days=15)
)
"""Of a table that a schedule asks for each week: one that was missed warns, a second fails."""


# No automation condition: it asks the judge afresh, every time. Its schedule does so by name.
@table_asset("1", freshness_policy=WEEKLY, **ASKS)
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


@table_asset("5", follows)
def judge_drift(
    drift_answers: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    verdict_store: StoredVerdicts,
) -> dg.MaterializeResult[pd.DataFrame]:
    """One statistic of a judge in one epoch, held against the baseline on the same battles.

    The change is in the statistic's unit and in standard errors of the paired difference; the
    evidence, of this panel and of fresh battles, is that of all epochs so far.
    """
    key = version_of(drift_answers)
    times = verdict_store.open().find(key, verdicts["identity"])[0] if key else pd.DataFrame()
    table = drift_table(drift_answers, sampled_battles, verdicts, times)
    latest = table[table["epoch"].eq(table["epoch"].max())]
    numbers = latest[latest["z"].notna()]
    plot = {"epochs": drift_over_epochs(table)} if len(numbers) else {}
    return dg.MaterializeResult(
        value=table,
        metadata={
            "n_epochs": int(table["epoch"].nunique()),
            "n_moved": int(latest["moved"].sum()),
            "verdict": str(latest["verdict"].iloc[0]) if len(latest) else "none",
            "false_alarm": FALSE_ALARM,
            **{f"z {row.statistic}": float(row.z) for row in numbers.itertuples()},
            **plot,
        },
    )


def version_of(answers: pd.DataFrame) -> str:
    """Return the version of the judge that answered last; empty without any answer."""
    return "" if answers.empty else str(answers["judge_version"].iloc[-1])


def drift_table(
    answers: pd.DataFrame,
    battles: pd.DataFrame,
    verdicts: pd.DataFrame | None = None,
    times: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the change of each statistic in each epoch since the baseline, and the evidence.

    Only answers by the version of the judge that answered last count; fresh battles are those of
    `verdicts` outside the panel, at the `times` of the verdict store.
    """
    own = answers[answers["judge_version"].eq(version_of(answers))]
    epochs = sorted(own["epoch"].unique())
    if len(epochs) < 2 or epochs[0] != 0:
        return JUDGE_DRIFT.empty()
    asked = own.groupby("epoch")["asked_at"]
    panel = _watched(battles, own.loc[own["epoch"].eq(0), "battle_id"])
    judged = [_judgement(panel, own[own["epoch"].eq(epoch)]) for epoch in epochs]
    fresh = None
    if verdicts is not None and times is not None and not times.empty:
        others = battles[~battles["battle_id"].isin(own["battle_id"])]
        fresh = _fresh(others, verdicts, times, asked.min().loc[epochs[1:]])
    watched = Judgement(*map(np.array, zip(*judged, strict=True)))
    drift = detect_drift(watched, _votes(panel), fresh, battle_id=_ids(panel))
    table = as_table(drift)
    table["epoch"] = np.array(epochs)[table["epoch"]]
    return JUDGE_DRIFT.typed(table.assign(asked_at=table["epoch"].map(asked.max())))


def _watched(battles: pd.DataFrame, answered: pd.Series) -> pd.DataFrame:
    """Return the battles of the panel; of one that has left the sample its id alone.

    Its past answers still count, except in `margin` and `agreement`, which need its vote.
    """
    there = battles[battles["battle_id"].isin(answered)].set_index("battle_id")
    gone = pd.Index(answered.drop_duplicates()).difference(there.index, sort=False)
    return there.reindex(there.index.append(gone).rename("battle_id")).reset_index()


def moved_since(drift: pd.DataFrame) -> dict[str, tuple[int, str]]:
    """Return epoch and time at which each statistic of the panel was first known to have moved."""
    first = drift[drift["moved"]].drop_duplicates("statistic")
    return {str(r.statistic): (int(r.epoch), str(r.asked_at)) for r in first.itertuples()}


def _judgement(battles: pd.DataFrame, answers: pd.DataFrame) -> Judgement:
    """Return the judgements of answers, in the order of battles; none of a call that was lost."""
    lost = answers.loc[answers["status"].eq("transport"), "battle_id"]
    answers = answers[answers["battle_id"].isin(battles["battle_id"])]
    answers = answers[~answers["battle_id"].isin(lost)]
    there = battles[battles["battle_id"].isin(answers["battle_id"])]
    scored = score_battles(there, answers).set_index("battle_id")
    level = answers[list(SCORE_COLUMNS)].mean(axis=1).groupby(answers["battle_id"]).mean()
    scored = scored.assign(level=level).reindex(battles["battle_id"])
    columns = [scored[name].to_numpy(dtype=float) for name in Judgement._fields[:-1]]
    reached = battles["battle_id"].isin(answers["battle_id"]).to_numpy()
    return Judgement._make([*columns, reached])


def _fresh(
    battles: pd.DataFrame, verdicts: pd.DataFrame, times: pd.DataFrame, starts: pd.Series
) -> Fresh | None:
    """Return first verdicts as a stream; one that came after an epoch began counts in the next.

    Of battles with the same prompt the first counts: further ones are no new evidence. Within an
    epoch they stand by identity, an order that knows nothing of texts.
    """
    when = times.set_index("identity")["answered_at"].dt.strftime("%Y-%m-%dT%H:%M:%S+00:00")
    first = verdicts[verdicts["replicate"].eq(0) & verdicts["identity"].isin(when.index)]
    came = first["identity"].map(when).to_numpy(str)
    first = first.assign(epoch=np.searchsorted(starts.to_numpy(str), came))
    order = first.groupby("battle_id").agg(epoch=("epoch", "max"), identity=("identity", "min"))
    stream = battles.merge(order.query("epoch < @n", local_dict={"n": len(starts)}), on="battle_id")
    stream["epoch"] += stream["epoch"].gt(0)
    stream = stream.sort_values(["epoch", "identity"]).drop_duplicates("cluster_id")
    judged = _judgement(stream, first)
    return Fresh(judged, _votes(stream), stream["epoch"].to_numpy(dtype=int), _ids(stream))


def _ids(battles: pd.DataFrame) -> np.ndarray:
    ids: np.ndarray = battles["battle_id"].to_numpy(dtype=str)
    return ids


def _votes(battles: pd.DataFrame) -> np.ndarray:
    votes: np.ndarray = battles["human_outcome"].to_numpy(dtype=float, na_value=math.nan)
    return votes


_MEANINGS = {
    "none": "Nothing moved beyond chance in {n} statistics of the panel, nor in fresh battles.",
    "judge": "The judge has moved: {changes}.",
    "system": "The judge says the same of its panel; what it is shown has changed (models, "
    "questions or voters), by {fresh} of fresh battles.",
    "cannot tell": "What is said of fresh battles has moved ({fresh}); whether judge or system "
    "did is known {guard} epochs later.",
}
_SYSTEM_REMEDY = (
    "Ratings by this judge are by one ruler. See which models, questions or voters are new in the "
    "corpus; ratings of old and new battles together describe neither."
)
_WAIT = "Let the watch go on; raise drift.battles to know sooner."


@table_check(judge_drift)
def judge_has_not_drifted(judge_drift: pd.DataFrame) -> dg.AssetCheckResult:
    """A judge that changed under its name rates new models by another ruler than the old ones."""
    latest = judge_drift[judge_drift["epoch"].eq(judge_drift["epoch"].max())]
    if latest.empty:
        return check_result("No epoch has been asked since the baseline.", passed=True)
    verdict, since = str(latest["verdict"].iloc[0]), moved_since(judge_drift)
    moved = latest[latest["moved"]]
    compared = latest[latest["now"].notna()]
    observed = _MEANINGS[verdict].format(
        n=len(compared),
        changes="; ".join(_change_text(row, *since[row.statistic]) for row in moved.itertuples()),
        fresh=", ".join(latest.loc[latest["fresh_moved"], "statistic"]),
        guard=GUARD,
    )
    remedy = {"judge": REMEDY, "system": _SYSTEM_REMEDY}.get(verdict, _WAIT)
    if verdict == "none" and set(compared["statistic"]) <= {"scored_share"}:
        verdict = "cannot tell"
        observed = f"Nothing could be compared: {'; '.join(dict.fromkeys(latest['note']))}."
        remedy = "Raise drift.battles, or look at `status`."
    epoch = {
        "epoch": int(latest["epoch"].iloc[0]),
        "asked_at": str(latest["asked_at"].iloc[0]),
        "verdict": verdict,
        "moved": ", ".join(moved["statistic"]),
    }
    is_good = verdict == "none"
    return check_result(observed, remedy, passed=is_good, warns=verdict != "judge", **epoch)


def _change_text(row: Any, epoch: int, when: str) -> str:
    is_share = row.unit == "share"
    before, now = (
        "no value" if math.isnan(value) else f"{value:.1%}" if is_share else f"{value:.3g}"
        for value in (row.baseline, row.now)
    )
    unit = "" if is_share or math.isnan(row.now) else f" {row.unit}"
    size = "" if math.isnan(row.z) else f"{row.z:+.1f} standard errors, "
    return (
        f"{row.statistic} from {before} to {now}{unit} ({size}{row.n_battles} battles, since epoch "
        f"{epoch} of {when[:10]})"
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
    """Purchase of one more epoch of answers; called as `annotate` is.

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

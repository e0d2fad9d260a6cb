"""The drift watch: a frozen panel of battles, judged again epoch after epoch; with its check."""

import math
from functools import partial
from typing import Any

import dagster as dg
import pandas as pd

from assets.conditions import FOLLOWS_WHAT_THERE_IS, OF_CORPUS_AND_JUDGE, judge_check
from assets.corpus.assets import choose
from assets.figures import drift_over_epochs
from assets.judging.asking import ask_judge
from assets.partitions import corpus_and_judge, if_there, of_corpus
from assets.reliability.tables import drift_table, moved_since
from judgeline.reliability import FALSE_ALARM
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.judges.budget import Budget, JointBudget
from resources.judges.epochs import FIRST_REPLICATE, EpochAsker, empty_epochs
from resources.store.resource import StoredVerdicts
from resources.tables.store import ParquetStore

REMEDY = (
    "If the provider changed the model under its name, pin a dated model or revision. If the "
    "change is to stay, enter it as a judge of its own in config/judges.yaml and backfill that "
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
@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="drift",
    code_version="1",
    ins={
        "sampled_battles": of_corpus(),
        "recorded_verdicts": of_corpus(),
        "reliability_panel": if_there(),
    },
)
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
    before = empty_epochs() if stored is None else stored
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
        EpochAsker(verdicts, before, context.run.root_run_id or context.run.run_id),
        form="rubric",
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
    able = (judged if voted.empty else voted).reset_index(drop=True)
    size = corpus.drift.battles if corpus.drift else 0
    chosen = before if len(before) or panel is None else panel
    kept = chosen.drop_duplicates("battle_id").nsmallest(size, "selection_order")
    return choose(able, corpus.model_copy(update={"sample_size": size}), kept).head(size)


def _unasked(before: pd.DataFrame, note: str) -> dg.MaterializeResult[pd.DataFrame]:
    return dg.MaterializeResult(value=before, metadata={"n_asked": 0, "note": note})


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="drift",
    code_version="2",
    automation_condition=FOLLOWS_WHAT_THERE_IS,
    ins={"sampled_battles": of_corpus(), "reliability_panel": if_there()},
)
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


@judge_check(judge_drift)
def judge_has_not_drifted(judge_drift: pd.DataFrame) -> dg.AssetCheckResult:
    """A judge that changed under its name rates new models by another ruler than the old ones."""
    latest = judge_drift[judge_drift["epoch"].eq(judge_drift["epoch"].max())]
    if latest.empty:
        return _told(True, "No epoch has been asked since the baseline.", latest)
    since = moved_since(judge_drift)
    moved = latest[latest["moved"]]
    if len(moved):
        told = "; ".join(_sentence(row, *since[row.statistic]) for row in moved.itertuples())
        return _told(False, f"The judge has moved: {told}. {REMEDY}", latest)
    compared = latest[latest["now"].notna() | latest["p_value"].notna()]
    if set(compared["statistic"]) <= {"scored_share"}:
        reasons = "; ".join(dict.fromkeys(latest["note"]))
        said = f"Nothing could be compared: {reasons}. Raise drift.battles, or look at `status`."
        return _told(False, said, latest, dg.AssetCheckSeverity.WARN)
    return _told(True, f"None of {len(compared)} statistics moved beyond chance.", latest)


def _sentence(row: Any, epoch: int, when: str) -> str:
    share = row.unit == "share"
    shown = partial(_number, share)
    note = f", {row.note}" if math.isnan(row.change) else ""
    size = "" if math.isnan(row.z) else f"{row.z:+.1f} standard errors, "
    unit = "" if share or math.isnan(row.now) else f" {row.unit}"
    return (
        f"{row.statistic} from {shown(row.baseline)} to {shown(row.now)}{unit} "
        f"({size}{row.n_battles} battles, since epoch {epoch} of {when[:10]}{note})"
    )


def _number(share: bool, value: float) -> str:
    if math.isnan(value):
        return "no finite value"
    return f"{value:.1%}" if share else f"{value:.3g}"


def _told(
    passed: bool,
    said: str,
    latest: pd.DataFrame,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
) -> dg.AssetCheckResult:
    metadata: dict[str, Any] = {"observed": said, "remedy": REMEDY}
    if len(latest):
        metadata |= {
            "epoch": int(latest["epoch"].iloc[0]),
            "asked_at": str(latest["asked_at"].iloc[0]),
            "moved": ", ".join(latest.loc[latest["moved"], "statistic"]),
        }
    return dg.AssetCheckResult(
        passed=passed, severity=severity, description=said, metadata=metadata
    )

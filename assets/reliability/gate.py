"""A panel that a judge judges several times, and the gate: whether its ratings are shown."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import pandas as pd

from assets.checks import table_check
from assets.conditions import ASKS, table_asset
from assets.corpus.assets import choose
from assets.engine import step_asset
from assets.judging.asking import ask_judge, releasing
from assets.partitions import corpus_and_judge
from assets.settings import JUDGE, corpus_of
from judgeline.io import score_battles
from judgeline.judges.budget import Budget
from judgeline.reliability import failures
from judgeline.steps import reliability
from judgeline.steps.reliability import by_run, gate_of
from judgeline.tables.reliability import RELIABILITY_PANEL
from judgeline.tables.rules import among
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.stores import StoredVerdicts
from resources.tables.expectations import check_result, evaluate
from resources.tables.store import ParquetStore, empty_result

LEAST_COMPLETE = 0.9
"""Share of a panel's battles that every run should have scored."""

_NOT_CONFIGURED = "no panel: add 'panel: {battles: 50, runs: 3}' to the corpus"
_NOT_REPEATED = "the verdicts came with the corpus, once per battle: they have no second run"
_NOT_ASKED = "the judge has no verdicts by the rubric, so there is none to repeat"
_SCORES = ("score_difference", "judge_outcome", "difference_ab", "difference_ba")


# No automation condition: judging costs money, so somebody has to ask for it by name.
@table_asset("1", **ASKS)
@releasing
def reliability_panel(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    recorded_verdicts: pd.DataFrame,
    verdicts: pd.DataFrame,
    catalog: Catalog,
    verdict_store: StoredVerdicts,
    budget: dg.ResourceParam[Budget],
    io_manager: dg.ResourceParam[ParquetStore],
) -> dg.MaterializeResult[pd.DataFrame]:
    """One run of a judge on one battle of its panel, by the rubric: score difference and outcome.

    The first run is that of the verdicts, at no cost. Battles chosen before stay chosen.
    """
    slug, judge = corpus_and_judge(context)
    corpus, definition = corpus_of(context, catalog, JUDGE, "panel", "seed"), catalog.judge(judge)
    before = io_manager.stored("reliability_panel", slug, judge)
    if definition.kind == "recorded" or recorded_verdicts["judge"].eq(judge).any():
        return _recorded(sampled_battles, verdicts, corpus, before)
    battles = choose_panel(sampled_battles, corpus, before)
    if corpus.panel is None or battles.empty:
        return _empty(_NOT_CONFIGURED)
    if verdicts.empty or "rubric" not in definition.asks:
        return _empty(_NOT_ASKED)
    answers = ask_judge(
        context,
        battles,
        catalog=catalog,
        verdict_store=verdict_store,
        budget=budget,
        n_replicates=corpus.panel.runs,
        n_covered=definition.replicates,  # what the verdicts paid for is not paid for again here
    )
    return _result(panel_table(battles, answers.value), answers.metadata or {})


def choose_panel(
    battles: pd.DataFrame, corpus: CorpusDefinition, before: pd.DataFrame | None
) -> pd.DataFrame:
    """Return the battles of a panel: those chosen before and still there, then further ones."""
    size = corpus.panel.battles if corpus.panel else 0
    if not size:
        return battles.head(0)
    kept = None if before is None else before.drop_duplicates("battle_id")
    chosen = choose(battles, corpus.model_copy(update={"sample_size": size}), kept)
    return chosen.head(size)


def _recorded(
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    corpus: CorpusDefinition,
    before: pd.DataFrame | None,
) -> dg.MaterializeResult[pd.DataFrame]:
    again = sampled_battles[sampled_battles["battle_id"].isin(repeated(verdicts))]
    if again.empty:
        return _empty(_NOT_REPEATED)
    battles = choose_panel(again.reset_index(drop=True), corpus, before)
    if corpus.panel is None or battles.empty:
        return _empty(_NOT_CONFIGURED)
    runs = verdicts[verdicts["replicate"].lt(corpus.panel.runs)]
    return _result(panel_table(battles, runs), {})


def _empty(note: str) -> dg.MaterializeResult[pd.DataFrame]:
    result = empty_result(RELIABILITY_PANEL, note)
    return result._replace(metadata={**(result.metadata or {}), "n_battles": 0})


def _result(panel: pd.DataFrame, ledger: Mapping[str, Any]) -> dg.MaterializeResult[pd.DataFrame]:
    return dg.MaterializeResult(
        value=panel,
        metadata={
            **ledger,
            "n_battles": int(panel["battle_id"].nunique()),
            "n_runs": int(panel["replicate"].nunique()),
            "n_not_scored": int(panel["status"].ne("ok").sum()),
        },
    )


def panel_table(battles: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return a judge's judgements of a panel's battles, by battle in the order of choice and run.

    ``status`` is ok, or the failure of the first order that failed, or ``missing``.
    """
    own = verdicts[verdicts["battle_id"].isin(battles["battle_id"])]
    if battles.empty or own.empty:
        return RELIABILITY_PANEL.empty()
    runs = sorted(own["replicate"].unique().tolist())
    parts = [_run(battles, run, own[own["replicate"].eq(run)]) for run in runs]
    table = pd.concat(parts, ignore_index=True).assign(judge=own["judge"].iloc[0])
    table = table.sort_values(["selection_order", "replicate"], ignore_index=True)
    return RELIABILITY_PANEL.typed(table)


def repeated(verdicts: pd.DataFrame) -> pd.Series:
    """Return the ids of battles of which there are verdicts of two runs or more."""
    n_runs = verdicts.groupby("battle_id", sort=False)["replicate"].nunique()
    return n_runs.index[n_runs > 1].to_series()


def _run(battles: pd.DataFrame, run: int, verdicts: pd.DataFrame) -> pd.DataFrame:
    scored = score_battles(battles, verdicts).set_index("battle_id")
    failed = verdicts[verdicts["status"].ne("ok")].groupby("battle_id")["status"].first()
    ids = battles["battle_id"]
    why = failed.reindex(ids).fillna("missing").to_numpy()
    return pd.DataFrame(
        {
            "battle_id": ids.to_numpy(),
            "replicate": run,
            "selection_order": battles["selection_order"].to_numpy(),
            "status": pd.Series(why).mask(ids.isin(scored.index).to_numpy(), "ok"),
            **{name: scored[name].reindex(ids).to_numpy() for name in _SCORES},
        }
    )


@table_check(reliability_panel)
def every_run_scored_the_panel(reliability_panel: pd.DataFrame) -> dg.AssetCheckResult:
    """A reliability speaks of the battles that every run scored, and of no others."""
    scores = by_run(reliability_panel, "score_difference")
    complete = scores.notna().all(axis=1)
    return evaluate(
        complete.rename("complete").reset_index(),
        [
            among(
                "complete",
                [True],
                f"every run scored at least {LEAST_COMPLETE:.0%} of the panel's battles",
                mostly=LEAST_COMPLETE,
            )
        ],
        ids=["battle_id"],
        remedy="Look at `status` of these rows in reliability_panel; a longer output limit or a "
        "simpler prompt often helps.",
        severity=dg.AssetCheckSeverity.WARN,
    )


def _gate_tells(
    _context: dg.AssetExecutionContext, tables: Mapping[str, pd.DataFrame], _settings: Any
) -> Mapping[str, Any]:
    table = tables["judge_gate"]
    return {
        "withheld": failures(gate_of(table), withholding=True) or "no",
        "n_not_measured": int(table["value"].isna().sum()),
        "criteria": dg.MetadataValue.md(table.drop(columns="withholds").to_markdown(index=False)),
    }


judge_gate = step_asset(reliability.judge_gate, "2", needs=["verdicts"], tells=_gate_tells)


@table_check(judge_gate)
def judge_passed_the_gate(judge_gate: pd.DataFrame) -> dg.AssetCheckResult:
    """A judge that fails a criterion that withholds has its ratings withheld, visibly."""
    return _gate_result(
        judge_gate,
        "Ratings by this judge are withheld",
        "Choose a better judge or prompt, or see the note of the criterion in judge_gate; the "
        "limits are under 'gate' of the corpus in corpora.yaml. Then run again.",
        withholding=True,
    )


@table_check(judge_gate)
def judge_meets_the_other_criteria(judge_gate: pd.DataFrame) -> dg.AssetCheckResult:
    """A criterion that only informs hides no ratings, and is a reason to read them with care."""
    return _gate_result(
        judge_gate,
        "Short of criteria that only inform",
        "Read the ratings with care, or list the criterion under 'gate.withhold' of the corpus.",
        withholding=False,
    )


def _gate_result(
    gate: pd.DataFrame, meaning: str, remedy: str, *, withholding: bool
) -> dg.AssetCheckResult:
    failed = failures(gate_of(gate), withholding=withholding)
    observed = f"{meaning}: {failed}." if failed else "No measured criterion failed."
    if unknown := ", ".join(gate.loc[gate["value"].isna(), "criterion"]):
        observed += f" Not measured: {unknown}."
    return check_result(observed, remedy, passed=not failed, warns=not withholding)

"""The judge gate: whether a judge is good enough for ratings by it to be shown."""

import math
from collections.abc import Mapping

import dagster as dg
import pandas as pd

from assets.columns import as_columns
from assets.conditions import follows, table_asset, table_check
from assets.reliability.panel import by_run
from assets.settings import corpus_of
from assets.trust.assets import ALL, CONFLICT, OVERALL, VIOLATION
from judgeline.intervals import withheld_reason
from judgeline.io import as_table
from judgeline.reliability import Gate, Measurement, failures, hold_to, panel_measurements
from resources.config.catalog import Catalog
from resources.tables.expectations import check_result
from resources.tables.reliability import JUDGE_GATE

_DIAGNOSED = {
    "kappa": "kappa_both_ways",
    "position_flip_rate": "position_flip_rate",
    "position_effect": "position_first_score",
}
_TRIPLES = 3


@table_asset("1", follows)
def judge_gate(
    context: dg.AssetExecutionContext,
    verdicts: pd.DataFrame,
    judge_diagnostics: pd.DataFrame,
    reliability_panel: pd.DataFrame | None,
    consistency: pd.DataFrame | None,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """One criterion of a judge: its value, its threshold, and whether it passes; null if unknown.

    Ratings by a judge that fails a criterion that withholds are not shown. What was not measured
    withholds nothing.
    """
    options = corpus_of(context, catalog, "gate").gate
    gate = hold_to(
        measure(verdicts, judge_diagnostics, reliability_panel, consistency),
        thresholds=options.thresholds,
        withhold=options.withhold,
    )
    table = JUDGE_GATE.typed(as_table(gate))
    return dg.MaterializeResult(
        value=table,
        metadata={
            "withheld": failures(gate, withholding=True) or "no",
            "n_not_measured": int(table["value"].isna().sum()),
            "criteria": dg.MetadataValue.md(
                table.drop(columns="withholds").to_markdown(index=False)
            ),
        },
    )


def measure(
    verdicts: pd.DataFrame,
    judge_diagnostics: pd.DataFrame,
    reliability_panel: pd.DataFrame | None,
    consistency: pd.DataFrame | None = None,
) -> dict[str, Measurement]:
    """Return the measurements of a judge's criteria that its tables allow."""
    if reliability_panel is None or reliability_panel.empty:
        alone = Measurement(math.nan, "no second run of any battle: see reliability_panel")
        repeated = dict.fromkeys(("icc_average", "single_run_reliability", "run_kappa"), alone)
    else:
        columns = ("score_difference", "judge_outcome")
        repeated = panel_measurements(*(by_run(reliability_panel, name) for name in columns))
    rate = float(verdicts["status"].eq("ok").mean()) if len(verdicts) else math.nan
    return {
        **repeated,
        **{name: _diagnosed(judge_diagnostics, of) for name, of in _DIAGNOSED.items()},
        "parse_rate": Measurement(rate, f"{len(verdicts):,} verdicts"),
        "conflict_ratio": _consistent(consistency, "battles scored and compared", measure=CONFLICT),
        "non_transitivity_ratio": _consistent(
            consistency, "triples of answers", measure=VIOLATION, size=_TRIPLES
        ),
    }


def _diagnosed(diagnostics: pd.DataFrame, name: str) -> Measurement:
    rows = diagnostics[diagnostics["diagnostic"].eq(name) & diagnostics["level"].eq("")]
    if rows.empty or rows["value"].isna().all():
        return Measurement(math.nan, f"judge_diagnostics has no {name}")
    value = float(rows["value"].iloc[0])
    is_signed = name == "position_first_score"
    return Measurement(abs(value) if is_signed else value, f"{int(rows['n'].iloc[0]):,} battles")


def _consistent(consistency: pd.DataFrame | None, unit: str, **row: str | int) -> Measurement:
    """Return the ratio of a measure over the whole corpus, by the rubric if it has one."""
    if consistency is None or consistency.empty:
        return Measurement(math.nan, "consistency has no rows")
    rows = consistency[consistency["ratio"].notna()]
    for column, value in {"category": ALL, "dimension": OVERALL, **row}.items():
        rows = rows[rows[column].eq(value)]
    if rows.empty:
        return Measurement(math.nan, f"consistency has no {unit}")
    first = rows.iloc[int(rows["source"].eq("rubric").to_numpy().argmax())]
    return Measurement(float(first["ratio"]), f"{int(first['n']):,} {unit}, {first['source']}")


def gate_of(table: pd.DataFrame) -> Gate:
    """Return a stored gate as the core reads it."""
    return as_columns(Gate, table.astype({"passed": "float64"}))


def withheld_judges(leaderboards: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Return why ratings are withheld, by judge, from leaderboards; others are not in it."""
    reasons = {
        judge: withheld_reason(str(flags))
        for judge, board in leaderboards.items()
        for flags in board["flags"].head(1)
    }
    return {judge: reason for judge, reason in reasons.items() if reason}


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

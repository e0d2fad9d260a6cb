"""The judge gate: whether ratings by a judge are shown."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from judgeline.intervals import withheld_reason
from judgeline.io import as_table
from judgeline.reliability import Gate, Measurement, failures, hold_to, panel_measurements
from judgeline.steps.step import as_columns, step
from judgeline.tables.reliability import JUDGE_GATE
from judgeline.tables.trust import ALL, CONFLICT, OVERALL, VIOLATION

_DIAGNOSED = {
    "kappa": "kappa_both_ways",
    "position_flip_rate": "position_flip_rate",
    "position_effect": "position_first_score",
}
_TRIPLES = 3


@step(JUDGE_GATE, reads=("thresholds", "withhold", "method"))
def judge_gate(
    verdicts: pd.DataFrame | None,
    judge_diagnostics: pd.DataFrame,
    conformal_calibration: pd.DataFrame,
    reliability_panel: pd.DataFrame | None,
    consistency: pd.DataFrame | None,
    *,
    settings: Any,
) -> pd.DataFrame:
    """One criterion of a judge: its value, its threshold, and whether it passes; null if unknown.

    Ratings by a judge that fails a criterion that withholds are not shown. What was not measured
    withholds nothing.
    """
    measured = measure(verdicts, judge_diagnostics, reliability_panel, consistency)
    gate = hold_to(
        measured | skill_measurements(conformal_calibration, settings.method),
        thresholds=settings.thresholds,
        withhold=settings.withhold,
    )
    return JUDGE_GATE.typed(as_table(gate))


def by_run(panel: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column of a panel with a row per battle and a column per run, NaN where none."""
    return panel.pivot_table(column, "battle_id", "replicate", aggfunc="first", dropna=False)


def measure(
    verdicts: pd.DataFrame | None,
    judge_diagnostics: pd.DataFrame,
    reliability_panel: pd.DataFrame | None,
    consistency: pd.DataFrame | None = None,
) -> dict[str, Measurement]:
    """Return the measurements of a judge's criteria that its tables allow."""
    if reliability_panel is None or reliability_panel.empty:
        alone = Measurement(math.nan, "no second run of any battle: see reliability_panel")
        repeated = dict.fromkeys(("icc_average", "single_run_reliability", "run_kappa"), alone)
    else:
        repeated = repeated_measurements(reliability_panel)
    return {
        **repeated,
        **{name: _diagnosed(judge_diagnostics, of) for name, of in _DIAGNOSED.items()},
        "parse_rate": _parse_rate(verdicts),
        "conflict_ratio": _consistent(consistency, "battles scored and compared", measure=CONFLICT),
        "non_transitivity_ratio": _consistent(
            consistency, "triples of answers", measure=VIOLATION, size=_TRIPLES
        ),
    }


def repeated_measurements(panel: pd.DataFrame) -> dict[str, Measurement]:
    """Return the reliability of a judge, measured by the runs of a panel."""
    columns = ("score_difference", "judge_outcome")
    return panel_measurements(*(by_run(panel, name) for name in columns))


def weakness(gate: Gate) -> str:
    """Return why a judge is not strong, such as ``icc_average 0.84 < 0.90``; empty otherwise.

    Ratings of strong judges may be pooled; one whose ICC(3,k) is unknown is taken for one.
    """
    own = Gate(*(column[gate.criterion == "icc_average"] for column in gate))
    return failures(own, withholding=True) or failures(own, withholding=False)


def _parse_rate(verdicts: pd.DataFrame | None) -> Measurement:
    if verdicts is None:
        return Measurement(math.nan, "no table of verdicts: scores alone do not say what failed")
    rate = float(verdicts["status"].eq("ok").mean()) if len(verdicts) else math.nan
    return Measurement(rate, f"{len(verdicts):,} verdicts")


def skill_measurements(calibration: pd.DataFrame, method: str) -> dict[str, Measurement]:
    """Return the skill of a method's held-out ratings and the lower end of its interval."""
    row = calibration.set_index("method").loc[method]
    note = f"{int(row['n_models'])} models with votes"
    return {name: Measurement(float(row[name]), note) for name in ("skill", "skill_lower")}


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

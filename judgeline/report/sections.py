"""The page's section on one judge: its tables as grids, its figures, its findings."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from judgeline.intervals import kept_intervals, kept_text
from judgeline.report.browser import MOST_PER_PAGE, Browser, browser_of
from judgeline.report.companion_sections import PLACING, companions_of
from judgeline.report.companions import Companion
from judgeline.report.figures import (
    Illustration,
    beta_figure,
    error_figure,
    interval_figure,
    reliability_figure,
    residual_figure,
    ruler_figure,
)
from judgeline.report.findings import Finding, findings_of
from judgeline.report.grid import HALVES, Column, Grid, make_grid
from judgeline.report.inert import inert
from judgeline.report.judge_tables import JudgeTables
from judgeline.report.missing import MissingSection, missing_section
from judgeline.report.standings import Standing, standings_of
from judgeline.report.wording import (
    basis_text,
    count,
    method_words,
    number,
    percent,
    significant,
    span,
    status_words,
)

_one = partial(number, digits=1)
_two = partial(number, digits=2)
_three = partial(number, digits=3)
_signed = partial(number, digits=1, signed=True)


def _consequence(blocking: bool) -> str:
    return "what follows stops" if blocking else "a warning"


_METHOD = Column("method", "Method", "", method_words, numeric=False)

_ERROR_COLUMNS = (
    Column("n_models", "Models", "with votes", count),
    Column("mae", "Mean absolute error", "Elo", _one),
    Column("bias", "Mean residual", "Elo", _signed),
    Column("stretch", "Stretch", "judge Elo per human Elo", _two),
    Column("spearman", "Spearman", "correlation", _three),
    Column("kendall", "Kendall", "correlation", _three),
    Column("mean_beta", "Mean beta", "logits per rubric point", _three),
)

_COVERAGE_COLUMNS = (
    _METHOD,
    Column("target", "Target", "coverage", percent),
    Column("threshold", "Threshold", "times the spread", _two),
    Column("excess_sd", "Excess", "Elo, beyond sampling", _one),
    Column("n_models", "Models", "behind it", count),
    HALVES,
    Column("structured_coverage", "Coverage", "of groups set apart", percent),
    Column("structured", "Held, by group", "⚠ less often than chance allows", numeric=False),
    Column("median_width", "Median width", "Elo", number),
    Column("width_range", "from – to", "Elo, over splits"),
    Column("split", "Splits", "calibration + test"),
)

_BETA_COLUMNS = (
    Column("held_out_model", "Held-out model", "", numeric=False),
    Column("beta", "Beta", "logits per rubric point", _three),
    Column("std_error", "Standard error", "logits per rubric point", _three),
    Column("n_battles", "Decisive votes", "", count),
    Column("status", "Status", "", status_words, numeric=False),
)

_DIAGNOSTIC_COLUMNS = (
    Column("diagnostic", "Diagnostic", "", status_words, numeric=False),
    Column("level", "Level", "", numeric=False),
    Column("value", "Value", "", significant),
    Column("unit", "Unit", "", numeric=False),
    Column("n", "Rows", "", count),
)

_CHECK_COLUMNS = (
    Column("asset", "Of", "", status_words, numeric=False),
    Column("name", "Check", "", status_words, numeric=False),
    Column("passed", "Result", "", lambda passed: "passed" if passed else "failed", numeric=False),
    Column("blocking", "If it fails", "", _consequence, numeric=False),
    Column("observed", "Observed", "", numeric=False),
    Column("remedy", "What to do", "", numeric=False),
)

_RUN_COLUMNS = (
    Column("asset", "Table", "", status_words, numeric=False),
    Column("made_at", "Made", "UTC", numeric=False),
    Column("run_id", "Run", "", numeric=False),
    Column("code_version", "Code version", "", numeric=False),
)

_COMPARISON_COLUMNS = (
    Column("judge", "Judge", "", numeric=False),
    _METHOD,
    *_ERROR_COLUMNS,
    Column("threshold", "Threshold", "times the spread", _two),
    HALVES,
    Column("median_width", "Median width", "Elo", number),
    Column("kappa", "Cohen's kappa", "judge and humans", _three),
    Column("n_verdicts", "Verdicts", "", count),
    Column("n_failed", "Failed", "verdicts", count),
    Column("n_scored", "Scored", "battles", count),
)


@dataclass(frozen=True)
class JudgeSection:
    """The page's section on one judge."""

    key: str
    name: str
    slug: str
    coverage: str
    basis: str
    findings: list[Finding]
    headline: list[tuple[str, str, str]]  # value, unit, what it is
    standings: list[Standing]
    illustrations: list[Illustration]
    intervals: Illustration | None
    methods: Grid
    conformal: Grid
    notes: list[str]
    betas: Grid
    diagnostics: Grid
    levels: Grid
    missing: MissingSection | None
    companions: list[Companion]
    checks: Grid | None
    failed: Grid | None
    browser: Browser | None
    origin: dict[str, str]
    runs: Grid | None
    withheld: str


def section_of(tables: JudgeTables, key: str, *, room: int = MOST_PER_PAGE) -> JudgeSection:
    """Return the section of a judge."""
    coverage, withheld = _target(tables), tables.withheld
    diagnostics = tables.judge_diagnostics.assign(
        level=tables.judge_diagnostics["level"].fillna("").astype(str)
    )
    single = diagnostics["level"] == ""
    checks = _without_ratings(tables.checks) if withheld else tables.checks
    return JudgeSection(
        key=key,
        name=tables.display_name,
        slug=tables.judge,
        coverage=coverage,
        basis=basis_text(tables.leaderboard),
        findings=findings_of(tables),
        headline=[] if withheld else _judge_headline(tables, coverage),
        standings=standings_of(tables.leaderboard),
        illustrations=[] if withheld else _illustrations(tables, key),
        intervals=None
        if withheld
        else interval_figure(tables.leaderboard, key=f"{key}-intervals", coverage=coverage),
        methods=_methods(tables),
        conformal=_conformal(tables),
        notes=_notes(tables.conformal_calibration),
        betas=make_grid(tables.beta_folds, "One row per fold", _BETA_COLUMNS),
        diagnostics=make_grid(
            diagnostics[single].drop(columns="level"), "One row per number", _DIAGNOSTIC_COLUMNS
        ),
        levels=make_grid(diagnostics[~single], "One row per bin or group", _DIAGNOSTIC_COLUMNS),
        missing=missing_section(tables.missingness, None if withheld else tables.missing_bounds),
        companions=companions_of(tables.companions, key, withheld=bool(withheld)),
        checks=_checks(checks),
        failed=_failed(checks),
        browser=None if withheld else browser_of(tables.battles, room=room),
        origin={name: inert(value) for name, value in tables.origin.items()},
        runs=None
        if tables.runs is None or tables.runs.empty
        else make_grid(
            tables.runs, "One row per table: when it was made last, and by which run", _RUN_COLUMNS
        ),
        withheld=withheld,
    )


def _target(tables: JudgeTables) -> str:
    """Coverage that the leaderboard's intervals promise, such as "90 %"."""
    rows = tables.conformal_calibration
    rows = rows[rows["method"] == tables.ranking_method]
    return percent(1 - rows["miscoverage"].iloc[0]) if len(rows) else "conformal"


def _illustrations(tables: JudgeTables, key: str) -> list[Illustration]:
    heldout, scored = tables.heldout_ratings, tables.scored_battles
    return [
        ruler_figure(heldout, key=f"{key}-ruler"),
        residual_figure(heldout, key=f"{key}-residual"),
        reliability_figure(scored, key=f"{key}-reliability"),
        error_figure(tables.summary, key=f"{key}-error", ranking_method=tables.ranking_method),
        beta_figure(tables.beta_folds, key=f"{key}-beta"),
    ]


def _judge_headline(tables: JudgeTables, coverage: str) -> list[tuple[str, str, str]]:
    summary = tables.summary.set_index("method")
    ranking = tables.ranking_method
    said = [
        (number(summary.loc[name, "mae"], 1), "Elo", f"mean absolute error, {method_words(name)}")
        for name in dict.fromkeys((ranking, "soft", "hard"))
        if name in summary.index
    ]
    if ranking in summary.index:
        spearman = number(summary.loc[ranking, "spearman"], 3)
        said.insert(1, (spearman, "", "Spearman correlation with human ratings"))
    n_held, n_counted = kept_intervals(tables.leaderboard)
    if n_counted:
        what = f"intervals hold the human rating ({coverage} promised)"
        said.insert(1, (f"{n_held} of {n_counted}", "", what))
    return said


def _methods(tables: JudgeTables) -> Grid:
    return make_grid(
        tables.summary,
        "One row per way to rate; the marked one ranks the leaderboard",
        (_METHOD, *_ERROR_COLUMNS),
        marked=lambda row: row.method == tables.ranking_method,
    )


def _conformal(tables: JudgeTables) -> Grid:
    table = tables.conformal_calibration
    widths = zip(table["width_min"], table["width_max"], strict=True)
    splits = zip(table["n_splits"], table["n_calibration"], table["n_test"], strict=True)
    table = table.assign(
        target=1 - table["miscoverage"],
        width_range=[span(low, high) for low, high in widths],
        split=[f"{count(n)} × {count(held)} + {count(tested)}" for n, held, tested in splits],
    )
    if "structured" in table:  # not of earlier versions
        groups = zip(table["structured"], table["structured_below"], strict=True)
        table = table.assign(structured=[_marked_groups(*both) for both in groups])
    return make_grid(
        table,
        "One row per way to rate: do the intervals contain the human rating as often as promised?",
        _COVERAGE_COLUMNS,
        marked=lambda row: row.method == tables.ranking_method,
    )


def _marked_groups(structured: str, below: str) -> str:
    """Return the groups of models set apart, marked where chance does not explain the misses."""
    return "; ".join("⚠ " * (words in below) + words for words in structured.split("; "))


def _notes(conformal: pd.DataFrame) -> list[str]:
    """Say each note on the intervals once, with the methods it is about."""
    noted = conformal[conformal["note"] != ""].groupby("note", sort=False)["method"]
    return [f"{', '.join(method_words(name) for name in names)}: {note}." for note, names in noted]


def _without_ratings(checks: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return checks without what those of assets that place models saw: ratings, say."""
    if checks is None or "asset" not in checks:
        return checks
    hidden = checks["observed"].mask(checks["asset"].isin(PLACING), "ratings are withheld")
    return checks.assign(observed=hidden)


def _checks(checks: pd.DataFrame | None) -> Grid | None:
    if checks is None or checks.empty:
        return None
    caption = "One row per quality check; failed ones are marked"
    return make_grid(
        checks, caption, _CHECK_COLUMNS, marked=lambda row: not row.passed, mark="warns"
    )


def _failed(checks: pd.DataFrame | None) -> Grid | None:
    if checks is None or checks["passed"].all():
        return None
    failed = checks[~checks["passed"].astype(bool)]
    return make_grid(failed, "One row per check that failed", _CHECK_COLUMNS)


@dataclass(frozen=True)
class PooledSection:
    """The page's section on all judges together: their board, and the coverage of its intervals."""

    key: str
    basis: str
    coverage: str
    standings: list[Standing]
    kept: str


def pooled_section(board: pd.DataFrame, judge: JudgeTables) -> PooledSection:
    """Return the section of the pooled judges."""
    miscoverage = float(judge.conformal_calibration["miscoverage"].iloc[0])
    return PooledSection(
        "pooled",
        basis_text(board),
        percent(1 - miscoverage),
        standings_of(board),
        kept_text(board, miscoverage),
    )


def comparison_grid(comparison: pd.DataFrame, judges: Sequence[JudgeTables]) -> Grid:
    """Return the comparison of judges by their names, one row per judge and method."""
    names = {tables.judge: tables.display_name for tables in judges}
    named = comparison.assign(judge=[names.get(slug, slug) for slug in comparison["judge"]])
    return make_grid(named, "One row per judge and method", _COMPARISON_COLUMNS)

"""The page: tables and figures of every judge put into one self-contained HTML file.

Nothing in the file refers to anything outside it, and its own content policy forbids the
network. Every name that comes from data passes through the template's escaping.
"""

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup

from resources.report.figures import (
    Illustration,
    beta_figure,
    interval_figure,
    reliability_figure,
    residual_figure,
    ruler_figure,
)
from resources.report.findings import Finding, findings_of
from resources.report.grid import Column, Grid, make_grid
from resources.report.judge_tables import COMPARISON_COLUMNS, JudgeTables, require_columns
from resources.report.standings import Standing, standings_of
from resources.report.wording import (
    count,
    method_words,
    number,
    percent,
    significant,
    span,
    status_words,
)

_TEMPLATES = Path(__file__).parent / "templates"

_one = partial(number, digits=1)
_two = partial(number, digits=2)
_three = partial(number, digits=3)
_signed = partial(number, digits=1, signed=True)

_METHOD = Column("method", "Method", "", method_words, numeric=False)

_ERROR_COLUMNS = (
    Column("n_models", "Models", "with votes", count),
    Column("mae", "Mean absolute error", "Elo", _one),
    Column("bias", "Mean residual", "Elo", _signed),
    Column("spearman", "Spearman", "correlation", _three),
    Column("kendall", "Kendall", "correlation", _three),
    Column("mean_beta", "Mean beta", "logits per rubric point", _three),
)

_COVERAGE_COLUMNS = (
    _METHOD,
    Column("target", "Target", "coverage", percent),
    Column("threshold", "Threshold", "standard errors", _two),
    Column("n_models", "Models", "in threshold", count),
    Column("coverage", "Coverage", "mean of splits", percent),
    Column("coverage_range", "Coverage", "range of splits", numeric=False),
    Column("median_width", "Median width", "Elo", number),
    Column("width_range", "Width", "range, Elo", numeric=False),
    Column("split_size", "Split", "calibration + test", numeric=False),
    Column("n_splits", "Splits", "", count),
    Column("note", "Note", "", numeric=False),
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
    Column("n", "Rows behind it", "", count),
)

_CHECK_COLUMNS = (
    Column("name", "Check", "", status_words, numeric=False),
    Column("passed", "Result", "", lambda passed: "passed" if passed else "failed", numeric=False),
    Column("observed", "Observed", "", numeric=False),
    Column("remedy", "What to do", "", numeric=False),
)

_COMPARISON_COLUMNS = (
    Column("judge", "Judge", "", numeric=False),
    _METHOD,
    *_ERROR_COLUMNS,
    Column("threshold", "Threshold", "standard errors", _two),
    Column("coverage", "Coverage", "mean of splits", percent),
    Column("median_width", "Median width", "Elo", number),
    Column("kappa", "Cohen's kappa", "judge and humans", _three),
    Column("n_verdicts", "Verdicts", "", count),
    Column("n_failed", "Failed", "verdicts", count),
    Column("n_scored", "Scored", "battles", count),
)


@dataclass(frozen=True)
class JudgeSection:
    """What the page says of one judge."""

    key: str
    name: str
    slug: str
    coverage: str
    method: str
    findings: list[Finding]
    headline: list[tuple[str, str, str]]  # value, unit, what it is
    standings: list[Standing]
    illustrations: list[Illustration]
    intervals: Illustration
    methods: Grid
    conformal: Grid
    betas: Grid
    diagnostics: Grid
    levels: Grid
    checks: Grid | None


def write_report(
    path: Path,
    *,
    title: str,
    corpus_name: str,
    simulated: bool,
    judges: Sequence[JudgeTables],
    provenance: Mapping[str, str],
    comparison: pd.DataFrame | None,
) -> Path:
    """Write the report of a corpus as one HTML file, atomically.

    Parameters
    ----------
    path : Path
        File to write; its folder is made if need be.
    title, corpus_name : str
        Headings; any text, it is escaped.
    simulated : bool
        Whether the corpus is generated: the page then says so at every point of it.
    judges : sequence of JudgeTables
        At least one; sections follow this order.
    provenance : mapping of str to str
        Where the numbers came from, shown at the end in this order.
    comparison : DataFrame or None
        One row per judge and method.

    Returns
    -------
    Path
        The path written; equal arguments give an equal file.

    Raises
    ------
    ValueError
        If there is no judge, a slug comes twice, or the comparison lacks a column.
    """
    slugs = [tables.judge for tables in judges]
    if not slugs or len(set(slugs)) < len(slugs):
        raise ValueError(f"a report needs judges, each once; got {slugs}")
    if comparison is not None:
        require_columns(comparison, COMPARISON_COLUMNS, "judge_comparison")
    page = _environment().get_template("page.html.j2")
    script = (_TEMPLATES / "sort.js").read_text(encoding="utf-8")
    html = page.render(
        title=title,
        corpus_name=corpus_name,
        simulated=simulated,
        headline=_headline(judges),
        sections=[_section(tables, f"j{place}") for place, tables in enumerate(judges, start=1)],
        comparison=_comparison(comparison, judges),
        provenance=dict(provenance),
        policy=_policy(script),
        style=Markup((_TEMPLATES / "style.css").read_text(encoding="utf-8")),  # noqa: S704
        script=Markup(script),  # noqa: S704
    )
    return _write_atomically(path, html)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Only drawings pass unescaped; matplotlib escapes the names it writes into them.
    environment.filters["drawing"] = lambda svg: Markup(svg)  # noqa: S704
    return environment


def _policy(script: str) -> str:
    """Content policy: our one script by its hash, inline styles, and no network at all."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _write_atomically(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
        return unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _headline(judges: Sequence[JudgeTables]) -> list[tuple[str, str]]:
    """Numbers of the whole corpus and what each counts."""
    boards = pd.concat([tables.leaderboard[["model", "human_rating"]] for tables in judges])
    new = boards.loc[boards["human_rating"].isna(), "model"].nunique()
    battles = pd.concat(
        [tables.scored_battles[["battle_id", "human_outcome"]] for tables in judges]
    )
    battles = battles.drop_duplicates("battle_id")
    return [
        (count(boards["model"].nunique()), "models"),
        (count(new), "without human votes"),
        (count(len(battles)), "judged battles"),
        (count(battles["human_outcome"].notna().sum()), "human votes"),
        (count(len(judges)), "judge" if len(judges) == 1 else "judges"),
    ]


def _section(tables: JudgeTables, key: str) -> JudgeSection:
    coverage = _target(tables)
    diagnostics = tables.judge_diagnostics.assign(
        level=tables.judge_diagnostics["level"].fillna("").astype(str)
    )
    single = diagnostics["level"] == ""
    return JudgeSection(
        key=key,
        name=tables.display_name,
        slug=tables.judge,
        coverage=coverage,
        method=method_words(tables.ranking_method),
        findings=findings_of(tables),
        headline=_judge_headline(tables, coverage),
        standings=standings_of(tables.leaderboard),
        illustrations=_illustrations(tables, key),
        intervals=interval_figure(tables.leaderboard, key=f"{key}-intervals", coverage=coverage),
        methods=_methods(tables),
        conformal=_conformal(tables),
        betas=make_grid(tables.beta_folds, "One row per fold", _BETA_COLUMNS),
        diagnostics=make_grid(
            diagnostics[single].drop(columns="level"), "One row per number", _DIAGNOSTIC_COLUMNS
        ),
        levels=make_grid(diagnostics[~single], "One row per bin or group", _DIAGNOSTIC_COLUMNS),
        checks=_checks(tables.checks),
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
        beta_figure(tables.beta_folds, key=f"{key}-beta"),
    ]


def _judge_headline(tables: JudgeTables, coverage: str) -> list[tuple[str, str, str]]:
    summary = tables.summary.set_index("method")
    conformal = tables.conformal_calibration.set_index("method")
    said = []
    for method in ("soft", "hard"):
        if method in summary.index:
            error = number(summary.loc[method, "mae"], 1)
            said.append((error, "Elo", f"mean absolute error, {method_words(method)}"))
    method = tables.ranking_method
    if method in summary.index:
        spearman = number(summary.loc[method, "spearman"], 3)
        said.append((spearman, "", "Spearman correlation with human ratings"))
    if method in conformal.index:
        covered = percent(conformal.loc[method, "coverage"])
        said.append((covered, "", f"coverage on held-back models, target {coverage}"))
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
    ends = table[["coverage_min", "coverage_max"]].itertuples(index=False)
    widths = zip(table["width_min"], table["width_max"], strict=True)
    sizes = zip(table["n_calibration"], table["n_test"], strict=True)
    table = table.assign(
        target=1 - table["miscoverage"],
        coverage_range=[f"{percent(low)} to {percent(high)}" for low, high in ends],
        width_range=[span(low, high) for low, high in widths],
        split_size=[f"{count(held)} + {count(tested)}" for held, tested in sizes],
    )
    return make_grid(
        table,
        "One row per way to rate: do the intervals contain the human rating as often as promised?",
        _COVERAGE_COLUMNS,
        marked=lambda row: row.method == tables.ranking_method,
    )


def _checks(checks: pd.DataFrame | None) -> Grid | None:
    if checks is None:
        return None
    caption = "One row per quality check; failed ones are marked"
    return make_grid(checks, caption, _CHECK_COLUMNS, marked=lambda row: not row.passed)


def _comparison(comparison: pd.DataFrame | None, judges: Sequence[JudgeTables]) -> Grid | None:
    if comparison is None:
        return None
    names = {tables.judge: tables.display_name for tables in judges}
    named = comparison.assign(judge=[names.get(slug, slug) for slug in comparison["judge"]])
    return make_grid(named, "One row per judge and method", _COMPARISON_COLUMNS)

"""The page's section on one judge: its standings, findings, tables as grids, and figures."""

import math
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from judgeline.intervals import BY_JUDGE
from judgeline.report.battles import MOST_PER_PAGE, browser_of, lead_text
from judgeline.report.companions import PLACING, Companion, companions_of, missing_section
from judgeline.report.escaping import inert
from judgeline.report.evidence import beyond_lines, evidence_lines
from judgeline.report.figures import (
    Illustration,
    beta_figure,
    error_figure,
    interval_figure,
    reliability_figure,
    residual_figure,
    ruler_figure,
)
from judgeline.report.folded import (
    battles_finding,
    board_finding,
    boards_finding,
    coverage_finding,
    diagnostics_finding,
    methods_finding,
    residual_finding,
    section_finding,
    smoothed_finding,
)
from judgeline.report.grid import Grid, make_grid
from judgeline.report.judge_tables import JudgeTables
from judgeline.report.wording import (
    basis_text,
    count,
    flag_words,
    method_words,
    number,
    percent,
    rank_text,
    span,
    status_words,
    surrogacy_text,
    widths_text,
)

_ERRORS = "n_models; mae; bias; stretch; spearman; kendall; mean_beta"
_COVERAGE = (
    "method; target; threshold; excess_sd; n_models | behind it; coverage; structured_coverage; "
    "structured; median_width; width_range; split"
)
_BETAS = "held_out_model; beta; std_error; n_battles: Decisive votes; status"
_DIAGNOSTICS = "diagnostic; level; value; unit; n"
_CHECKS = "asset; name; passed; blocking; observed; remedy"
_RUNS = "asset: Table; made_at; run_id; code_version"
_COMPARED = (
    f"judge; method; {_ERRORS}; threshold; coverage; median_width; kappa; n_verdicts; n_failed; "
    "n_scored"
)


_NO_VOTES = "no human votes"
_SEPARATORS = re.compile("[;|~:]")  # of a list of columns


def standings_of(leaderboard: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a leaderboard, each with its places on a scale from 0 to 100."""
    shown = leaderboard[["lower", "upper", "rating", "human_rating"]].to_numpy(float)
    finite = shown[np.isfinite(shown)]
    low, reach = (float(finite.min()), float(np.ptp(finite)) or 1.0) if finite.size else (0.0, 1.0)
    places = [
        [round(100 * (one - low) / reach, 2) if np.isfinite(one) else None for one in row]
        for row in shown.tolist()
    ]
    standings = []
    for row, (left, right, dot, diamond) in zip(
        leaderboard.to_dict("records"), places, strict=True
    ):
        bar = None if left is None or right is None else (left, round(right - left, 2))
        new = row["evidence"] == BY_JUDGE
        words = flag_words(row["flags"])
        flags = [word for word in words if not (new and word == _NO_VOTES)]  # it has a badge
        standings.append(
            {
                **row,
                "rank_text": rank_text(row),
                "new": new,
                "flag_text": ", ".join(flags),
                "dot": dot,
                "bar": bar or (0.0, 100.0),
                "diamond": diamond,
                "unbounded": bar is None,
            }
        )
    return standings


def findings_of(tables: JudgeTables) -> list[tuple[str, bool]]:
    """Return the sentences above a judge's leaderboard, and whether each warns."""
    folds, warnings = tables.beta_folds, []
    failed = folds[folds["status"] != "ok"]
    if len(failed):
        reasons = ", ".join(sorted({status_words(str(status)) for status in failed["status"]}))
        warnings.append(
            f"Beta has no value in {len(failed)} of {len(folds)} folds ({reasons}): soft ratings "
            "of those models are missing."
        )
    warnings += [] if tables.withheld else _threshold_warnings(tables)
    warnings += [tables.changed] * bool(tables.changed)
    if tables.withheld:
        said = [
            (
                "The ratings of this judge are withheld, since it failed its gate: "
                f"{tables.withheld}. Nothing below places a model by this judge.",
                True,
            )
        ]
    else:
        said = evidence_lines(
            tables.leaderboard,
            tables.conformal_calibration,
            tables.summary,
            tables.companions.get("predictions"),
        )
    return [*said, *((warning, True) for warning in warnings)]


def details_of(tables: JudgeTables) -> list[str]:
    """Return the longer findings: nearer methods, the test of surrogacy, leads on few battles."""
    leads = (f"{lead_text(lead)}." for lead in tables.leads)
    sentences = _nearer_methods(tables), surrogacy_text(tables.judge_diagnostics), *leads
    return [] if tables.withheld else [sentence for sentence in sentences if sentence]


def _threshold_warnings(tables: JudgeTables) -> list[str]:
    table, ranking = tables.conformal_calibration, tables.ranking_method
    unbounded = table[(table["method"] == ranking) & np.isinf(table["threshold"])]
    few = "models are too few for this coverage"
    return [
        f"Intervals are unbounded: {row.note or f'{row.n_models} {few}'}."
        for row in unbounded.itertuples()
    ]


def _nearer_methods(tables: JudgeTables) -> str:
    """Return the sentence on methods with smaller errors than the ranking one; empty if none."""
    ranking = tables.ranking_method
    errors = tables.summary.set_index("method")["mae"].drop("human", errors="ignore")
    nearer = errors[errors < errors.get(ranking, math.nan)].sort_values(kind="stable").head(3)
    said = ", ".join(f"{method_words(name)} {number(mae, 1)} Elo" for name, mae in nearer.items())
    return said and (
        f"Another method is nearer to people here: the mean absolute error is {said}, and "
        f"{number(errors[ranking], 1)} Elo by {method_words(ranking)}, which ranks: it was chosen "
        "before these votes were looked at."
    )


def section_of(tables: JudgeTables, key: str, *, room: int = MOST_PER_PAGE) -> SimpleNamespace:
    """Return the section of a judge; a part without data is None."""
    board, withheld, coverage = tables.leaderboard, tables.withheld, _coverage_text(tables)
    has_ratings = not withheld or board["rating"].notna().any()
    return SimpleNamespace(
        key=key,
        name=tables.display_name,
        slug=tables.judge,
        coverage=coverage,
        basis=basis_text(board),
        widths=widths_text(board),
        findings=findings_of(tables),
        details=details_of(tables),
        finding=_section_finding(tables),
        diagnosed=diagnostics_finding(tables.judge_diagnostics),
        standings=standings_of(board),
        intervals=interval_figure(board, key=f"{key}-intervals", coverage=coverage)
        if has_ratings
        else None,
        betas=make_grid(tables.beta_folds, "One row per fold", _BETAS),
        companions=_companions(tables, key),
        origin={name: inert(value) for name, value in tables.origin.items()},
        runs=_runs(tables.runs),
        withheld=withheld,
        **_diagnostics(tables.judge_diagnostics),
        **_checks(tables),
        **({"headline": [], "browser": None} if withheld else _rated(tables, key, room)),
    )


def _section_finding(tables: JudgeTables) -> str:
    """Return the sentence on the folded section of a judge."""
    n_failed = 0 if tables.checks is None else int((~tables.checks["passed"].astype(bool)).sum())
    return section_finding(tables.summary, tables.ranking_method, n_failed, tables.withheld)


def _coverage_text(tables: JudgeTables) -> str:
    table = tables.conformal_calibration
    asked = 1 - table.loc[table["method"] == tables.ranking_method, "miscoverage"]
    return percent(asked.iloc[0]) if len(asked) else "conformal"


def _companions(tables: JudgeTables, key: str) -> list[Companion]:
    """Return the parts on missing verdicts and on companion methods."""
    bounds = None if tables.withheld else tables.missing_bounds
    return [
        *missing_section(tables.missingness, bounds, key),
        *companions_of(tables.companions, key, withheld=bool(tables.withheld)),
    ]


def _diagnostics(table: pd.DataFrame) -> dict[str, Grid]:
    """Return the diagnostics that are one number, and those by level, as grids."""
    levels = table["level"].fillna("").astype(str)
    single, of_levels = table[levels == ""].drop(columns="level"), table.assign(level=levels)
    return {
        "diagnostics": make_grid(single, "One row per number", _DIAGNOSTICS),
        "levels": make_grid(of_levels[levels != ""], "One row per bin or group", _DIAGNOSTICS),
    }


def _checks(tables: JudgeTables) -> dict[str, Any]:
    """Return failed and passed quality checks as grids, and the names of the failed ones.

    Withheld ratings are hidden.
    """
    checks = pd.DataFrame({"passed": []}) if tables.checks is None else tables.checks
    if tables.withheld and "asset" in checks:
        hidden = checks["observed"].mask(checks["asset"].isin(PLACING), "ratings are withheld")
        checks = checks.assign(observed=hidden)
    passed = checks["passed"].astype(bool)
    failed = checks[~passed]
    return {
        "n_checks": len(checks),
        "failed_names": ", ".join(map(status_words, failed["name"])) if len(failed) else "",
        "failed": make_grid(failed, "One row per check that failed", _CHECKS),
        "passed": make_grid(checks[passed], "One row per check that passed", _CHECKS),
    }


def _runs(runs: pd.DataFrame | None) -> Grid | None:
    if runs is None or runs.empty:
        return None
    return make_grid(runs, "One row per table: when it was made last, and by which run", _RUNS)


def _rated(tables: JudgeTables, key: str, room: int) -> dict[str, Any]:
    """Return the parts of a section that hold ratings by the judge."""
    conformal, ranking = tables.conformal_calibration, tables.ranking_method
    noted = conformal[conformal["note"] != ""].groupby("note", sort=False)["method"]
    said_above = "".join(_threshold_warnings(tables))
    return {
        "headline": _judge_headline(tables),
        "illustrations": _illustrations(tables, key),
        "illustrated": residual_finding(tables.heldout_ratings, ranking),
        "compared": methods_finding(tables.summary, ranking),
        "covered": coverage_finding(conformal, ranking),
        "fought": battles_finding(tables.battles) if tables.battles else "",
        "methods": make_grid(
            tables.summary,
            "One row per way to rate; the marked one ranks the leaderboard",
            f"method; {_ERRORS}",
            marked=lambda row: row.method == ranking,
        ),
        "conformal": _conformal(tables),
        "notes": [
            (", ".join(map(method_words, names)), "" if note in said_above else f"{note}.")
            for note, names in noted
        ],
        "browser": browser_of(tables.battles, room=room),
    }


def _illustrations(tables: JudgeTables, key: str) -> list[Illustration]:
    """Return the figures on a judge, in the order in which they are shown."""
    return [
        ruler_figure(tables.heldout_ratings, key=f"{key}-ruler"),
        residual_figure(tables.heldout_ratings, key=f"{key}-residual"),
        reliability_figure(tables.scored_battles, key=f"{key}-reliability"),
        error_figure(tables.summary, key=f"{key}-error", ranking_method=tables.ranking_method),
        beta_figure(tables.beta_folds, key=f"{key}-beta"),
    ]


def _judge_headline(tables: JudgeTables) -> list[tuple[str, str, str]]:
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
    rows = tables.conformal_calibration.set_index("method")
    skill = rows.get("skill", pd.Series(dtype=float)).get(ranking, math.nan)
    if not math.isnan(skill):
        said.insert(1, (number(skill, 2), "", "skill: what the judge knows without votes"))
    return said


def _without_untried(table: pd.DataFrame) -> pd.DataFrame:
    """Return thresholds without widths where random halves have too few models to try them."""
    is_untried = np.isinf(table["median_width"].astype(float)) & np.isfinite(table["threshold"])
    widths = [name for name in ("median_width", "width_min", "width_max") if name in table]
    return table.assign(**{name: table[name].mask(is_untried) for name in widths})


def _conformal(tables: JudgeTables) -> Grid:
    table = _without_untried(tables.conformal_calibration)
    widths = zip(table["width_min"], table["width_max"], strict=True)
    splits = zip(table["n_splits"], table["n_calibration"], table["n_test"], strict=True)
    table = table.assign(
        target=1 - table["miscoverage"],
        width_range=[span(low, high) for low, high in widths],
        split=[f"{count(n)} × {count(held)} + {count(tested)}" for n, held, tested in splits],
    )
    if "structured" in table:  # not of earlier versions
        groups = zip(table["structured"], table["structured_below"], strict=True)
        marked = [
            "; ".join("⚠ " * (words in below) + words for words in structured.split("; "))
            for structured, below in groups
        ]
        table = table.assign(structured=marked)
    return make_grid(
        table,
        "One row per way to rate: do the intervals contain the human rating as often as promised?",
        _COVERAGE,
        marked=lambda row: row.method == tables.ranking_method,
    )


def pooled_section(board: pd.DataFrame, judge: JudgeTables) -> SimpleNamespace:
    """Return the section of the pooled judges."""
    miscoverage = float(judge.conformal_calibration["miscoverage"].iloc[0])
    return SimpleNamespace(
        key="pooled",
        finding=board_finding(board),
        basis=basis_text(board),
        widths=widths_text(board),
        coverage=percent(1 - miscoverage),
        standings=standings_of(board),
        lines=[text for text, _ in beyond_lines(board)],
    )


def boards_beside(
    judges: Sequence[JudgeTables], pooled: pd.DataFrame | None
) -> tuple[Grid, str] | None:
    """Return each model's rating by every judge, all together and people, and its main finding.

    None where fewer than two judges have ratings.
    """
    boards = [(one.display_name, one.leaderboard) for one in judges if not one.withheld]
    if len(boards) < 2:
        return None
    boards += [] if pooled is None or pooled.empty else [("All judges", pooled)]
    columns = {f"board{place}": board for place, (_, board) in enumerate(boards)}
    ratings = {name: board.set_index("model")["judge_rating"] for name, board in columns.items()}
    human = pd.concat([board.set_index("model")["human_rating"] for board in columns.values()])
    table = pd.DataFrame({**ratings, "human_rating": human.groupby(level=0).first()})
    table = table.sort_values("board0", ascending=False, kind="stable").rename_axis("model")
    shown = [
        f"board{place}: {_SEPARATORS.sub(' ', name)} | Elo ~whole"
        for place, (name, _) in enumerate(boards)
    ]
    listed = "; ".join(["model", *shown, "human_rating: People | Elo ~whole"])
    grid = make_grid(table.reset_index(), "One row per model: its rating on each board", listed)
    return grid, boards_finding(table, list(columns))


def comparison_grids(
    comparison: pd.DataFrame, judges: Sequence[JudgeTables]
) -> list[tuple[Grid, str]]:
    """Return the comparison of judges by their names: all methods but the smoothed ones, and these.

    A row is a judge and method; without smoothed methods the second grid is left out. Each grid
    has its main finding beside it.
    """
    names = {tables.judge: tables.display_name for tables in judges}
    named = _without_untried(comparison).assign(
        judge=[names.get(slug, slug) for slug in comparison["judge"]]
    )
    is_smoothed = named["method"].str.startswith("smoothed")
    parts = (named[~is_smoothed], named[is_smoothed])
    caption = "One row per judge and method"
    return [
        (make_grid(part, caption, _COMPARED), smoothed_finding(part)) for part in parts if len(part)
    ]

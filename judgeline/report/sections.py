"""The page's section on one judge: its standings, findings, tables as grids, and figures."""

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.elo import VOTES_WAIT
from judgeline.intervals import kept_intervals, kept_text, missed
from judgeline.report.battles import MOST_PER_PAGE, browser_of, lead_text
from judgeline.report.companions import PLACING, companions_of
from judgeline.report.figures import (
    Illustration,
    beta_figure,
    error_figure,
    interval_figure,
    reliability_figure,
    residual_figure,
    ruler_figure,
)
from judgeline.report.grid import Grid, make_grid
from judgeline.report.inert import inert
from judgeline.report.judge_tables import JudgeTables
from judgeline.report.missing import missing_section
from judgeline.report.wording import (
    basis_text,
    count,
    flag_words,
    groups_text,
    method_words,
    number,
    percent,
    rank_text,
    span,
    status_words,
    surrogacy_text,
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
_TOGETHER = ("judge_and_votes", "judge_and_votes_lower", "judge_and_votes_upper")
_SEPARATORS = re.compile("[;|~:]")  # of a list of columns


def standings_of(leaderboard: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a leaderboard, each with its places on a scale from 0 to 100."""
    shown = leaderboard[["lower", "upper", "rating", "human_rating"]].to_numpy(float)
    shown = shown[np.isfinite(shown)]
    low, high = (float(shown.min()), float(shown.max())) if shown.size else (0.0, 0.0)
    reach = (high - low) or 1.0
    rows = zip(leaderboard.to_dict("records"), missed(leaderboard).tolist(), strict=True)
    return [_standing(row, is_missed, low, reach) for row, is_missed in rows]


def _standing(row: Mapping[Any, Any], is_missed: bool, low: float, reach: float) -> dict[str, Any]:
    def place(rating: float) -> float | None:
        return round(100 * (rating - low) / reach, 2) if np.isfinite(rating) else None

    left, right = place(row["lower"]), place(row["upper"])
    flags = [word for word in flag_words(row["flags"]) if word != _NO_VOTES]  # it has a badge
    return {
        **dict.fromkeys(_TOGETHER, np.nan),  # not of earlier versions
        **row,
        "rank_text": rank_text(row),
        "new": bool(pd.isna(row["human_rating"])) and VOTES_WAIT not in row["flags"].split(";"),
        "missed": is_missed,
        "flag_text": ", ".join(flags),
        "dot": place(row["rating"]),
        "bar": (0.0, 100.0) if left is None or right is None else (left, round(right - left, 2)),
        "diamond": place(row["human_rating"]),
        "unbounded": left is None or right is None,
    }


class Finding(NamedTuple):
    """A sentence that a reader must not miss, and whether it warns."""

    text: str
    warns: bool


def findings_of(tables: JudgeTables) -> list[Finding]:
    """Return the sentences that stand above a judge's leaderboard."""
    if tables.withheld:
        withheld = Finding(
            f"The ratings of this judge are withheld, since it failed its gate: {tables.withheld}. "
            "Nothing below places a model by this judge.",
            warns=True,
        )
        return [withheld, *_failed_folds(tables), *_failed_checks(tables)]
    surrogacy = surrogacy_text(tables.judge_diagnostics)
    return [
        *_nearer_methods(tables),
        *([Finding(surrogacy, warns=False)] if surrogacy else []),
        *(Finding(f"{lead_text(lead)}.", warns=False) for lead in tables.leads),
        *_failed_folds(tables),
        *_wide_thresholds(tables),
        *_failed_checks(tables),
    ]


def _nearer_methods(tables: JudgeTables) -> list[Finding]:
    ranking = tables.ranking_method
    known = tables.summary.set_index("method")["mae"].to_dict()
    errors = {name: known.get(name, np.nan) for name in ("hard", "soft", ranking)}
    nearer = [name for name in ("hard", "soft") if errors[name] < errors[ranking]]
    if not nearer:
        return []
    said = ", ".join(f"{method_words(name)} {number(errors[name], 1)} Elo" for name in nearer)
    return [
        Finding(
            f"Another method is nearer to people here: the mean absolute error is {said}, and "
            f"{number(errors[ranking], 1)} Elo by {method_words(ranking)}, which ranks.",
            warns=False,
        )
    ]


def _failed_folds(tables: JudgeTables) -> list[Finding]:
    folds = tables.beta_folds
    failed = folds[folds["status"] != "ok"]
    if failed.empty:
        return []
    reasons = ", ".join(sorted({status_words(str(status)) for status in failed["status"]}))
    return [
        Finding(
            f"Beta has no value in {len(failed)} of {len(folds)} folds ({reasons}): soft ratings "
            "of those models are missing.",
            warns=True,
        )
    ]


def _wide_thresholds(tables: JudgeTables) -> list[Finding]:
    table = tables.conformal_calibration
    said = []
    for row in table[table["method"] == tables.ranking_method].itertuples():
        why = row.note or f"{row.n_models} models are too few for this coverage"
        if np.isinf(row.threshold):
            said.append(Finding(f"Intervals are unbounded: {why}.", warns=True))
    if groups := groups_text(table, tables.ranking_method):
        said.append(Finding(groups, warns=True))
    return said


def _failed_checks(tables: JudgeTables) -> list[Finding]:
    if tables.checks is None or tables.checks["passed"].all():
        return []
    failed = int((~tables.checks["passed"].astype(bool)).sum())
    return [
        Finding(f"{failed} of {len(tables.checks)} quality checks failed; see below.", warns=True)
    ]


def section_of(tables: JudgeTables, key: str, *, room: int = MOST_PER_PAGE) -> SimpleNamespace:
    """Return the section of a judge; a part without data is None."""
    coverage, withheld = _target(tables), tables.withheld
    diagnostics = tables.judge_diagnostics.assign(
        level=tables.judge_diagnostics["level"].fillna("").astype(str)
    )
    single = diagnostics["level"] == ""
    checks = pd.DataFrame({"passed": []}) if tables.checks is None else tables.checks
    if withheld and "asset" in checks:  # observations of assets that place models hold ratings
        hidden = checks["observed"].mask(checks["asset"].isin(PLACING), "ratings are withheld")
        checks = checks.assign(observed=hidden)
    failed = checks[~checks["passed"].astype(bool)]
    caption = "One row per quality check; failed ones are marked"
    return SimpleNamespace(
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
        betas=make_grid(tables.beta_folds, "One row per fold", _BETAS),
        diagnostics=make_grid(
            diagnostics[single].drop(columns="level"), "One row per number", _DIAGNOSTICS
        ),
        levels=make_grid(diagnostics[~single], "One row per bin or group", _DIAGNOSTICS),
        companions=[
            *missing_section(tables.missingness, None if withheld else tables.missing_bounds, key),
            *companions_of(tables.companions, key, withheld=bool(withheld)),
        ],
        checks=make_grid(checks, caption, _CHECKS, marked=lambda row: not row.passed, mark="warns"),
        failed=make_grid(failed, "One row per check that failed", _CHECKS),
        browser=None if withheld else browser_of(tables.battles, room=room),
        origin={name: inert(value) for name, value in tables.origin.items()},
        runs=None
        if tables.runs is None or tables.runs.empty
        else make_grid(
            tables.runs, "One row per table: when it was made last, and by which run", _RUNS
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
        f"method; {_ERRORS}",
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


def _notes(conformal: pd.DataFrame) -> list[str]:
    """Return each note on the intervals once, after the names of its methods."""
    noted = conformal[conformal["note"] != ""].groupby("note", sort=False)["method"]
    return [f"{', '.join(method_words(name) for name in names)}: {note}." for note, names in noted]


def pooled_section(board: pd.DataFrame, judge: JudgeTables) -> SimpleNamespace:
    """Return the section of the pooled judges."""
    miscoverage = float(judge.conformal_calibration["miscoverage"].iloc[0])
    return SimpleNamespace(
        key="pooled",
        basis=basis_text(board),
        coverage=percent(1 - miscoverage),
        standings=standings_of(board),
        kept=kept_text(board, miscoverage),
    )


def boards_beside(judges: Sequence[JudgeTables], pooled: pd.DataFrame | None) -> Grid | None:
    """Return each model's rating by every judge, all together and people; None of one judge."""
    boards = [(one.display_name, one.leaderboard) for one in judges if not one.withheld]
    if len(boards) < 2:
        return None
    boards += [] if pooled is None or pooled.empty else [("All judges", pooled)]
    columns = {f"board{place}": board for place, (_, board) in enumerate(boards)}
    ratings = {name: board.set_index("model")["rating"] for name, board in columns.items()}
    human = pd.concat([board.set_index("model")["human_rating"] for board in columns.values()])
    table = pd.DataFrame({**ratings, "human_rating": human.groupby(level=0).first()})
    table = table.sort_values("board0", ascending=False, kind="stable").rename_axis("model")
    shown = [
        f"board{place}: {_SEPARATORS.sub(' ', name)} | Elo ~whole"
        for place, (name, _) in enumerate(boards)
    ]
    listed = "; ".join(["model", *shown, "human_rating: People | Elo ~whole"])
    return make_grid(table.reset_index(), "One row per model: its rating on each board", listed)


def comparison_grids(comparison: pd.DataFrame, judges: Sequence[JudgeTables]) -> list[Grid]:
    """Return the comparison of judges by their names: all methods but the smoothed ones, and these.

    A row is a judge and method; without smoothed methods the second grid is left out.
    """
    names = {tables.judge: tables.display_name for tables in judges}
    named = comparison.assign(judge=[names.get(slug, slug) for slug in comparison["judge"]])
    is_smoothed = named["method"].str.startswith("smoothed")
    parts = (named[~is_smoothed], named[is_smoothed])
    caption = "One row per judge and method"
    return [make_grid(part, caption, _COMPARED) for part in parts if len(part)]

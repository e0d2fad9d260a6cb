"""The page's section on missing verdicts: battles without a score, and what they could change."""

from typing import Any

import numpy as np
import pandas as pd

from judgeline.diagnostics import MAX_WIDTH, SCORED, width_limit
from judgeline.report.companions import Companion, Table
from judgeline.report.grid import FORMATS, Grid, make_grid
from judgeline.report.wording import count, method_words, number, status_words

_ALL, _TITLE = "all", "Missing verdicts"
_CLASSES = "status: Class; n_battles | without a score; share; n_verdicts | of that class"
_LEVELS = "grouping: By; level: Group; n_battles | sampled; n_missing; share; classes | battles"
_BOUNDS = (
    "model; method; rating; worst_rating; best_rating; width; half_width; "
    "n_missing | against voted models; n_battles: Scored | against voted models"
)


def missing_section(
    missingness: pd.DataFrame | None, missing_bounds: pd.DataFrame | None, key: str
) -> list[Companion]:
    """Return the section on a judge's missing verdicts; nothing without their table."""
    if missingness is None:
        return []
    whole = missingness[missingness["grouping"] == _ALL]
    n_battles = int(whole["n_battles"].sum())
    failed = whole[whole["status"] != SCORED].sort_values("n_battles", ascending=False)
    if not failed["n_battles"].any():
        return [Companion(_TITLE, [_complete(n_battles, int(failed["n_verdicts"].sum()))])]
    n_missing = int(failed["n_battles"].sum())
    share = FORMATS["share"](n_missing / n_battles)
    told = [
        f"{count(n_missing)} of {count(n_battles)} sampled battles "
        f"({share}) have no score. They count as nothing, neither a tie nor a loss; a battle takes "
        "the class of its first order that failed."
    ]
    absent = {"language", "length"} - set(missingness["grouping"])
    if absent:
        told.append(f"The corpus publishes no {' and no '.join(sorted(absent))} to count them by.")
    classes = make_grid(failed, "One row per class of battles without a score", _CLASSES)
    tables = [Table(f"{key}-missing", classes, is_central=True)]
    bounds = missingness[:0] if missing_bounds is None else _bounds(missing_bounds)
    if len(bounds):
        told += _bound_sentences(bounds)
        tables.append(Table(f"{key}-bounds", _bound_grid(bounds)))
    tables.append(Table(f"{key}-missing-levels", _levels(missingness)))
    return [Companion(_TITLE, told, tables)]


def _complete(n_battles: int, n_failed: int) -> str:
    said = f"Every one of the {count(n_battles)} sampled battles has a score"
    if not n_failed:
        return f"{said}."
    return f"{said}; {count(n_failed)} verdicts failed and another replicate stood in."


def _levels(missingness: pd.DataFrame) -> Grid:
    """Return groups in which battles are missing, the classes of each in one cell."""
    grouped = missingness[missingness["grouping"] != _ALL]
    failed = grouped[(grouped["status"] != SCORED) & (grouped["n_battles"] > 0)]
    words = [
        f"{status_words(status)} {count(n)}"
        for status, n in zip(failed["status"], failed["n_battles"], strict=True)
    ]
    keys = ["grouping", "level"]
    totals = grouped.groupby(keys)["n_battles"].sum()
    rows = failed.assign(classes=words).groupby(keys, sort=False)
    table = rows.agg(n_missing=("n_battles", "sum"), classes=("classes", ", ".join))
    table = table.join(totals).reset_index()
    table = table.assign(share=table["n_missing"] / table["n_battles"])
    caption = "One row per group with missing battles; by model, a battle counts for both models"
    return make_grid(table, caption, _LEVELS)


def _bounds(missing_bounds: pd.DataFrame) -> pd.DataFrame:
    """Return the models with missing battles, the widest bounds first."""
    table = missing_bounds[missing_bounds["n_missing"] > 0]
    table = table.assign(
        width=table["best_rating"] - table["worst_rating"], limit=width_limit(table["half_width"])
    )
    return table.sort_values(["width", "model"], ascending=[False, True], na_position="first")


def _bound_sentences(bounds: pd.DataFrame) -> list[str]:
    told = [
        "Had they a score, whatever it were, a model's rating would lie between its worst case "
        "(all of its missing battles lost, as clearly as a verdict can say) and its best (all "
        "won), with the models it is placed among and the slope as they are. Where one order of a "
        "battle was read, that verdict is not used: the range holds, and may be wider than needed. "
        "Ranges are of hard and soft ratings; a board ranked by another method, such as auto, has "
        "none of its own."
    ]
    known = bounds[bounds["width"].notna()]
    if len(known):
        widest = known.iloc[0]
        told.append(
            f"The widest such range is {number(widest['width'], 1)} Elo, of {widest['model']} "
            f"({method_words(widest['method'])})."
        )
    unrated = sorted(set(bounds.loc[bounds["width"].isna(), "model"]))
    if unrated:
        told.append(f"No rating to bound: {', '.join(unrated)}.")
    return told


def _bound_grid(bounds: pd.DataFrame) -> Grid:
    def outweighs(row: Any) -> bool:
        """Return whether a model's bounds from missing battles exceed its interval."""
        return bool(np.isnan(row.width) or row.width > row.limit)

    return make_grid(
        bounds,
        "One row per model with missing battles, by hard and by soft ratings; marked where the "
        "range exceeds what "
        f"the interval reaches to either side, or {MAX_WIDTH:g} Elo where that is unbounded",
        _BOUNDS,
        marked=outweighs,
        mark="warns",
    )

"""A table as the page shows it: columns with headings and units, cells with a text and a key.

`FIELDS` says once how a field looks: ``field: Heading | unit ~format``. A table lists its fields in
the same way, and says only what differs.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import pandas as pd

from judgeline.report.escaping import twelve_digits
from judgeline.report.wording import (
    MISSING,
    count,
    flag_words,
    method_words,
    number,
    percent,
    significant,
    status_words,
)


def _answer(yes: str, no: str, value: Any) -> str:
    return MISSING if pd.isna(value) else yes if value else no


FORMATS: dict[str, Callable[[Any], str]] = {
    "text": str,
    "status": status_words,
    "method": method_words,
    "flags": lambda value: ", ".join(flag_words(value)),
    "yes": partial(_answer, "yes", "no"),
    "verdict": partial(_answer, "passed", "failed"),
    "consequence": partial(_answer, "what follows stops", "a warning"),
    "count": count,
    "whole": number,
    "one": partial(number, digits=1),
    "two": partial(number, digits=2),
    "three": partial(number, digits=3),
    "signed": partial(number, digits=1, signed=True),
    "signed2": partial(number, digits=2, signed=True),
    "significant": significant,
    "percent": percent,
    "share": lambda value: f"{number(100 * value, 1)} %",
    "range": str,
}
"""How a value is put in words; those before `count` are texts, the others numbers."""
_TEXTS = frozenset(list(FORMATS)[: list(FORMATS).index("count")])

FIELDS = """
asked_at: Asked; asset: Of ~status; base: Base judge ~three; baseline ~significant;
best_rating: Best case | Elo ~one; beta: Beta | logits per rubric point ~three;
bias: Mean residual | Elo ~signed; blocking: If it fails ~consequence; bound: Bound | Elo ~one;
bound_is: The bound is; calibration: Labels of; change ~significant;
circular: Circular | share ~three; completion_tokens ~count; control ~status;
coverage: Coverage | random halves: near its target by design ~percent; covered: Held ~yes;
criterion ~status; diagnostic ~status; direction: Must be; epoch ~count;
equality: Equality | share ~three; estimator ~status;
excess_sd: Excess | Elo, beyond sampling ~one; flags ~flags; gap: Gap | Elo ~one; grouping ~status;
half_width: Interval | Elo to either side ~one; held_out_model: Held-out model;
human_rating: Human rating | Elo, later ~one; human_win_rate: Humans | share ~three;
kappa: Cohen's kappa | judge and humans ~three; kendall: Kendall | correlation ~three;
lower: from | Elo ~one; made_at: Made | UTC; mae: Mean absolute error | Elo ~one;
mae_rescaled: the same, on a fitted ruler | Elo ~one;
mean_absolute_error: Mean absolute error | share ~three;
mean_beta: Mean beta | logits per rubric point ~three; mean_width: Mean width | share ~three;
measure ~status; median_width: Median width | Elo, over splits ~whole; method ~method;
metric: Measure ~status;
moved ~yes; n: Rows ~count; n_battles: Battles | judged ~count;
n_bought: Bought | by the last run ~count; n_calls: Calls ~count;
n_failed: Failed | verdicts ~count; n_labelled: Labelled | battles ~count;
n_missing: Missing | battles ~count; n_models: Models | with votes ~count;
n_more_lost: More labels | lost ~count; n_more_won: More labels | won ~count;
n_prompts: Prompts ~whole; n_scored: Scored | battles ~count; n_train: Trained on | battles ~count;
n_verdicts: Verdicts ~count; n_votes: Votes | of its own ~count;
n_without: Without | models ~count; naive_win_rate: Judge's own | share ~three;
name: Check ~status; named: Judge; now ~significant; origin_shift: Zero moved | Elo ~signed;
passed: Result ~verdict; plan: In words; predicted_at: Predicted;
price: Price | of these tokens ~two; prompt_tokens ~count; rank ~count; rating: Rating | Elo ~one;
ratio: Ratio | share ~three; remedy: What to do; residual: Residual | Elo, zero as then ~signed;
rise: Rise | Elo above the bound ~signed; run_id: Run;
score_only: The same fit | without reasons ~three; scored_at: Scored; scores: Scores by;
sensitivity: Sensitivity | of the judge ~three; share: Share | of sampled battles ~share;
size: Answers | in a subset ~count; source: Comparisons by;
spearman: Spearman | correlation ~three; specificity: Specificity | of the judge ~three;
split: Splits | calibration + test ~range; statistic ~status; status ~status;
std_dev: Spread | over training sets ~three;
std_error: Standard error | logits per rubric point ~three;
stretch: Stretch | judge Elo per human Elo ~two;
structured: Held, by group | ⚠ less often than chance allows;
structured_coverage: Coverage | of groups set apart ~percent; target: Target | coverage ~percent;
threshold: Threshold | times the spread ~two; truth: Held to; upper: to | Elo ~one;
value ~significant; wanted_half_width: Wanted | half-width ~three; width: Apart | Elo ~one;
width_range: from – to | Elo, over splits ~range; win_rate: Win rate | in people's eyes ~three;
win_rate_coverage: Coverage | share of models ~three; win_rate_half_width: Half-width | now ~three;
win_rate_lower: from | share ~three; win_rate_upper: to | share ~three;
win_share: Win share | against the reference ~three; withholds: Withholds ratings ~yes;
worst_rating: Worst case | Elo ~one; z: z | standard errors ~signed2
"""
"""What a field looks like: its heading (its name, where none is given), unit and format."""


class Column(NamedTuple):
    """One column: the field it reads, its heading and unit, and how a value is put in words."""

    field: str
    label: str
    unit: str = ""
    show: Callable[[Any], str] = str
    numeric: bool = False


_COLUMN = re.compile(r"\s*(\w+)\s*(?:: *([^|~]*))?(?:\| *([^~]*))?(?:~(\w+))?\s*")


def columns(listed: str) -> tuple[Column, ...]:
    """Return the columns that a text lists, such as ``"model; rating: Now | Elo ~one"``."""
    return tuple(map(_column, listed.split(";")))


def _column(listed: str) -> Column:
    found = _COLUMN.fullmatch(listed)
    if found is None:
        raise ValueError(f"{listed!r} is no column: write field: Label | unit ~form")
    field, label, unit, form = found.groups()
    usual = _USUAL.get(field) or Column(
        field, field.removeprefix("n_").replace("_", " ").capitalize()
    )
    show, numeric = usual.show, usual.numeric
    if form is not None:
        show, numeric = FORMATS[form], form not in _TEXTS
    if label is None:
        label, unit = usual.label, usual.unit if unit is None else unit
    return Column(field, label.strip(), (unit or "").strip(), show, numeric)


_USUAL: dict[str, Column] = {}
_USUAL |= {column.field: column for column in columns(FIELDS)}


class Cell(NamedTuple):
    """A value as text and as the key that the page's sorting compares ("" goes last)."""

    text: str
    key: str
    numeric: bool


class Row(NamedTuple):
    """The cells of one row, and whether the page sets it off from the others."""

    cells: list[Cell]
    marked: bool


class Grid(NamedTuple):
    """A table ready for the page; `mark` is the style of the rows set off."""

    caption: str
    columns: list[Column]
    rows: list[Row]
    mark: str


def make_grid(
    table: pd.DataFrame,
    caption: str,
    listed: str,
    *,
    marked: Callable[[Any], bool] = lambda _row: False,
    mark: str = "marked",
) -> Grid:
    """Return the listed columns of a table as cells, without those that the table does not have."""
    present = [column for column in columns(listed) if column.field in table.columns]
    rows = [
        Row([_cell(getattr(row, column.field), column) for column in present], marked(row))
        for row in table.itertuples(index=False)
    ]
    return Grid(caption, present, rows, mark)


def _cell(value: Any, column: Column) -> Cell:
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return Cell(MISSING, "", column.numeric)
    return Cell(column.show(value), sort_key(value), column.numeric)


def sort_key(value: Any) -> str:
    """Return a cell's key for the sorting script: a number it can parse, or lower-case text."""
    if not isinstance(value, Real):
        return str(value).casefold()
    return "" if math.isnan(value) else twelve_digits(float(value)).replace("inf", "Infinity")

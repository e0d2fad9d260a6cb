"""A table as the page shows it: columns with units, cells with a text and a sorting key."""

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import pandas as pd

from judgeline.report.wording import MISSING, percent


class Column(NamedTuple):
    """One column: the field it reads, its heading and unit, and how a value is put in words."""

    field: str
    label: str
    unit: str = ""
    show: Callable[[Any], str] = str
    numeric: bool = True


HALVES = Column("coverage", "Coverage", "random halves: near its target by design", percent)
"""Coverage over random halves of the models, which says nothing of the judge."""


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
    columns: Sequence[Column],
    *,
    marked: Callable[[Any], bool] = lambda _row: False,
    mark: str = "marked",
) -> Grid:
    """Return the table's columns as cells, leaving out columns that the table does not have."""
    present = [column for column in columns if column.field in table.columns]
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
    """Return what the page's script compares: a number it can parse, or lower-case text."""
    if not isinstance(value, Real):
        return str(value).casefold()
    if math.isnan(value):
        return ""
    return repr(float(value)).replace("inf", "Infinity")

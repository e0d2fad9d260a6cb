"""A paper's tables made again: each cell beside its printed value, within a tolerance or not."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.io import write_together
from judgeline.report import in_csv

COLUMNS = (
    "item", "row", "column", "value", "printed", "difference", "tolerance", "within", "note",
)  # fmt: skip
"""Columns of a table that was made again; ``within`` is null where nothing sound is printed."""
MOST_NOTES = 3
"""Reasons in the line of an item that was not made."""


class Cell(NamedTuple):
    """One number of a table.

    `rule` says how it is held to the printed value: ``near`` it, ``at most`` that value, or
    ``apart``, not at all, where it was made from something else than the printed one.
    """

    row: str
    column: str
    value: float
    note: str = ""
    rule: str = "near"


def row_of(row: str, **values: float) -> Iterator[Cell]:
    """Yield the cells of a row by column."""
    return (Cell(row, column, value) for column, value in values.items())


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of the values that exist, NaN if there is none."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


def reduction(before: float, after: float) -> float:
    """Return by how much a number fell, in per cent; NaN from 0."""
    return 100 * (1 - after / before) if before else np.nan


def plain_name(name: str) -> str:
    """Return the letters and digits of a name, by which names of two sources are matched."""
    return re.sub("[^a-z0-9]", "", name.lower())


def in_print(name: str, known: Iterable[str], *, inside: bool = False) -> str:
    """Return the printed one of a name's spellings, or the name itself if it has none.

    A provider before a slash and the ending of instructed models count for nothing. `inside`: a
    printed name that is part of the name will do; the longest is meant.
    """

    def plain(one: str) -> str:
        return plain_name(one.rpartition("/")[2]).removesuffix("instruct").removesuffix("it")

    own, whole = plain(name), plain_name(name)
    found = [one for one in known if plain(one) == own or (inside and plain(one) in whole)]
    return max(found, key=len, default=name)


@cache
def printed_cells(file: str) -> pd.DataFrame:
    """Return a paper's printed cells: item, row, column, value with its digits, doubtful."""
    path = Path(__file__).with_name("printed") / f"{file}.csv"
    return pd.read_csv(path, dtype="str").assign(doubtful=lambda t: t["doubtful"].eq("true"))


@cache
def printed_names(item: str, by: str) -> tuple[str, ...]:
    """Return the rows or columns of a printed item, in its order."""
    cells = printed_cells(item.partition(".")[0])
    return tuple(cells.loc[cells["item"].eq(item), by].unique())


class Item(NamedTuple):
    """A table, figure or section of a paper.

    `source` names what it is made from. `make` returns its cells from what the paper's reader
    found, none if that is not enough.
    """

    name: str
    title: str
    source: str
    make: Callable[[Any], Iterable[Cell]]


Items = Mapping[str, tuple[str, str, Callable[[Any], Iterable[Cell]]]]
"""Items of a paper by their short names: title, source and maker."""


@dataclass(frozen=True)
class Paper:
    """A paper: its items by name, the reader of its data, and what is allowed beyond rounding.

    The first name in `allowed` that "row / column" contains is a cell's allowance.
    """

    file: str
    makers: Items
    read: Callable[[Path | None, Callable[[str], None]], Any]
    allowed: Mapping[str, float] = field(default_factory=dict)

    @property
    def items(self) -> tuple[Item, ...]:
        """Return the items; their names begin with the paper's."""
        return tuple(Item(f"{self.file}.{name}", *words) for name, words in self.makers.items())


class Made(NamedTuple):
    """An item with its cells, `COLUMNS`; printed cells that were not made have no value."""

    item: Item
    cells: pd.DataFrame

    @property
    def is_made(self) -> bool:
        """Return whether any cell has been made."""
        return bool(self.cells["value"].notna().any())

    @property
    def line(self) -> str:
        """Return the item in one line of the summary."""
        name, title, source, _ = self.item
        cells = self.cells
        if not self.is_made:
            notes = [n for n in dict.fromkeys(cells["note"]) if not n.startswith("needs ")]
            more = f" and {len(notes) - MOST_NOTES} more" if len(notes) > MOST_NOTES else ""
            reasons = f"; no cell made: {'; '.join(notes[:MOST_NOTES])}{more}" if notes else ""
            return f"{name}  {title}: needs {source}{reasons}"
        compared = cells[cells["within"].notna()]
        words = [f"{name}  {title}: from {source}; {cells['value'].notna().sum()} made"]
        if len(compared):
            worst = compared.loc[(compared["difference"] / compared["tolerance"]).abs().idxmax()]
            words.append(f"{int(compared['within'].sum())} of {len(compared)} within tolerance")
            words.append(
                f"largest difference {worst['difference']:+.3g} where {worst['tolerance']:.2g} is "
                f"allowed ({worst['row']}, {worst['column']})"
            )
        if absent := int((cells["printed"].notna() & cells["value"].isna()).sum()):
            words.append(f"{absent} printed cells without data")
        return ", ".join(words)


def write_table(made: Made, out: Path) -> None:
    """Write an item's cells into a folder, or remove an earlier file if it was not made."""
    path = out / f"{made.item.name}.csv"
    if made.is_made:
        text = in_csv(made.cells)
        write_together({path: lambda part: part.write_text(text, encoding="utf-8", newline="")})
    else:
        path.unlink(missing_ok=True)


def require_folder(out: Path) -> None:
    """Refuse a path that cannot become a folder."""
    first = next(path for path in (out, *out.parents) if os.path.lexists(path))
    if not first.is_dir():
        raise ValueError(f"--out is {out}, but {first} is no folder; name another folder")


def make_tables(
    paper: Paper, data: Path | None, say: Callable[[str], None] = lambda _: None
) -> Iterator[Made]:
    """Yield each item of a paper as it is made; `say` gets a line for each file that is read."""
    if data is None:
        say("without --data DIR items that need files are not made: see docs/papers.md")
    material, printed = paper.read(data, say), printed_cells(paper.file)
    for item in paper.items:
        own = printed[printed["item"].eq(item.name)]
        left = {(one.row, one.column): one for one in own.itertuples()}
        cells = [(cell, left.pop(cell[:2], None)) for cell in item.make(material)]
        needs = f"needs {item.source}"
        cells += [(Cell(*place, np.nan, needs), one) for place, one in left.items()]
        rows = [(item.name, *_compared(cell, one, paper.allowed)) for cell, one in cells]
        table = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"within": "boolean"})
        yield Made(item, table)


def _compared(cell: Cell, printed: Any, allowed: Mapping[str, float]) -> tuple[Any, ...]:
    """Return a cell beside its printed value, from which on all is null if there is none.

    The tolerance is half a unit of the last printed digit, and the allowance.
    """
    row, column, value, note, rule = cell
    value = float(value)
    if np.isnan(value) and not note:
        note = "the data give no value"
    if printed is None:
        return (row, column, value, np.nan, np.nan, np.nan, pd.NA, note)
    target, name = float(printed.value), f"{row} / {column}".lower()
    half_unit = 0.5 * 10.0 ** -len(printed.value.partition(".")[2])
    tolerance = half_unit + next((more for key, more in allowed.items() if key in name), 0.0)
    difference = value - target
    beyond = difference if rule == "at most" else abs(difference)
    within: Any = beyond <= tolerance + 1e-9
    if rule == "at most":
        note = note or "printed as an upper bound"
    if printed.doubtful:
        note = "; ".join(filter(None, (note, "the printed value is doubtful")))
    if printed.doubtful or rule == "apart" or np.isnan(value):
        within = pd.NA
    return (row, column, value, target, difference, tolerance, within, note)

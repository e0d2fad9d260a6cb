"""A paper's tables made again: each cell beside its printed value, within a tolerance or not."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
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


class Cell(NamedTuple):
    """One number of a table.

    `rule` says how it is held to the printed value: ``near`` it, ``at most`` or ``at least`` that
    value, or ``apart``, not at all, where it was made from something else than the printed one.
    `slack` is how far the rounding of other printed values may move a value that was made from
    those.
    """

    row: str
    column: str
    value: float
    note: str = ""
    rule: str = "near"
    slack: float = 0.0


def row_of(row: str, **values: float) -> Iterator[Cell]:
    """Yield the cells of a row by column."""
    return (Cell(row, column, value) for column, value in values.items())


def extremes(row: str, values: Iterable[float]) -> Iterator[Cell]:
    """Yield least and largest of the values that exist."""
    known = [value for value in values if not np.isnan(value)]
    return row_of(row, min=min(known), max=max(known)) if known else iter(())


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of the values that exist, NaN if there is none."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan


def ratio(one: float, other: float) -> float:
    """Return one number over another, NaN if that is 0."""
    return one / other if other else np.nan


def reduction(before: float, after: float) -> float:
    """Return by how much a number fell, in per cent."""
    return 100 * (1 - ratio(after, before))


# ------------------------------------------------------------------ names


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


# ------------------------------------------------------------------ printed values


@cache
def printed_cells(file: str) -> pd.DataFrame:
    """Return a paper's printed cells: item, row, column, value with its digits, doubtful."""
    path = Path(__file__).with_name("printed") / f"{file}.csv"
    return pd.read_csv(path, dtype="str").assign(doubtful=lambda t: t["doubtful"].eq("true"))


Place = tuple[str, str, str]
"""Table, without the paper's name, row and column of a printed value."""
Formula = Callable[..., Any]


@dataclass(frozen=True)
class Printed:
    """A paper's printed values, and the cells that follow from them."""

    file: str

    @cached_property
    def texts(self) -> dict[Place, str]:
        """Return the printed values with their digits, by place."""
        cells = printed_cells(self.file)
        tables = cells["item"].str.removeprefix(f"{self.file}.")
        places = zip(tables, cells["row"], cells["column"], strict=True)
        return dict(zip(places, cells["value"], strict=True))

    def rows(self, table: str) -> list[str]:
        """Return the rows of a table."""
        return list(dict.fromkeys(row for name, row, _ in self.texts if name == table))

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table."""
        return list(dict.fromkeys(column for name, _, column in self.texts if name == table))

    def places(self, table: str, column: str, row: str = "") -> list[Place]:
        """Return places of a column in rows that begin with a name; totals only if it is theirs."""
        known = (one for one in self.texts if (one[0], one[2]) == (table, column))
        return [one for one in known if one[1].startswith(row) and (row or one[1] != "Total")]

    def numbers(self, of: Iterable[Place]) -> list[float]:
        """Return the values at some places."""
        return [float(self.texts[place]) for place in of]

    def follows(
        self,
        row: str,
        column: str,
        formula: Formula,
        of: Sequence[Place],
        rule: str = "near",
        note: str | None = None,
    ) -> Cell:
        """Return a cell by a formula of printed values; its slack is what their rounding leaves.

        Each of them may be half a unit of its last digit off. The slack is the largest change of
        a formula that is monotone in each value as long as they are no further off.
        """
        values, halves = np.array(self.numbers(of)), [half_unit(self.texts[place]) for place in of]
        value, moves = formula(*values), np.diag(halves)
        signs = [np.sign(formula(*(values + one)) - formula(*(values - one))) for one in moves]
        ends = [values + side * np.array(signs) * halves for side in (-1, 1)]
        slack = max((abs(formula(*end) - value) for end in ends), default=0.0)
        tables = ", ".join(dict.fromkeys(name.replace("table", "Table ") for name, *_ in of))
        note = f"from {tables or 'the formula'}" if note is None else note
        return Cell(row, column, float(value), note, rule, float(slack))


def half_unit(printed: str) -> float:
    """Return half a unit of the last digit of a printed value."""
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


# ------------------------------------------------------------------ items


class Item(NamedTuple):
    """A table, figure or section of a paper.

    `source` names what it is made from. `make` returns its cells from what the paper's reader
    found, none if that is not enough. `of_print` then returns those that follow from `PRINT`.
    """

    name: str
    title: str
    source: str
    make: Callable[[Any], Iterable[Cell]]
    of_print: Callable[[], Iterable[Cell]] = tuple


PRINT = "other printed numbers"
"""Source of items without data of theirs."""


def items(file: str, makers: Mapping[str, tuple[str, str, Callable[..., Any]]]) -> tuple[Item, ...]:
    """Return a paper's items by name, each of a title, a source and a maker of cells."""
    return tuple(Item(f"{file}.{name}", *words) for name, words in makers.items())


class Allowance(NamedTuple):
    """How far a value may lie from the printed one beyond its rounding, absolutely and in part."""

    absolute: float = 0.0
    relative: float = 0.0


@dataclass(frozen=True)
class Paper:
    """A paper: its items, the reader of its data, and what is allowed by name of the quantity.

    The first name in `allowed` that "row / column" contains is a cell's allowance.
    """

    file: str
    items: tuple[Item, ...]
    read: Callable[[Path | None, Callable[[str], None]], Any]
    allowed: Mapping[str, Allowance] | None = None


MOST_NOTES = 3
"""Reasons in the line of an item that was not made."""


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
        name, title, source, *_ = self.item
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
    material = paper.read(data, say)
    for item in paper.items:
        of_data = list(item.make(material))
        of_print = [] if of_data else list(item.of_print())
        cells = _compared(paper, item, of_data or of_print)
        yield Made(item._replace(source=PRINT) if of_print else item, cells)


def _compared(paper: Paper, item: Item, cells: list[Cell]) -> pd.DataFrame:
    printed = printed_cells(paper.file)
    own = printed[printed["item"].eq(item.name)]
    sides = {(row.row, row.column): row for row in own.itertuples()}
    rows = [_row(paper, item, cell, sides.pop((cell.row, cell.column), None)) for cell in cells]
    for cell in sides.values():
        absent = Cell(cell.row, cell.column, np.nan, f"needs {item.source}")
        rows.append(_row(paper, item, absent, cell))
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"within": "boolean"})


def _row(paper: Paper, item: Item, cell: Cell, printed: Any) -> tuple[Any, ...]:
    """Return a cell as a row: NaN and null where nothing is printed, or nothing was made."""
    value, note = float(cell.value), cell.note
    if np.isnan(value) and not note:
        note = "the data give no value"
    if printed is None:
        return (item.name, cell.row, cell.column, value, *(np.nan,) * 3, pd.NA, note)
    target = float(printed.value)
    difference, tolerance = value - target, _tolerance(paper, cell, printed.value)
    beyond = {"at most": difference, "at least": -difference}.get(cell.rule, abs(difference))
    within: Any = beyond <= tolerance + 1e-9
    if cell.rule == "at most":
        note = note or "printed as an upper bound"
    if printed.doubtful:
        note = "; ".join(filter(None, (note, "the printed value is doubtful")))
    if printed.doubtful or cell.rule == "apart" or np.isnan(value):
        within = pd.NA
    return (
        item.name, cell.row, cell.column, value, target, difference, tolerance, within, note,
    )  # fmt: skip


def _tolerance(paper: Paper, cell: Cell, printed: str) -> float:
    """Return half a unit of the last printed digit, and the allowance of the quantity."""
    name = f"{cell.row} / {cell.column}".lower()
    found = (one for key, one in (paper.allowed or {}).items() if key.lower() in name)
    allowance = next(found, Allowance())
    return (
        half_unit(printed)
        + cell.slack
        + allowance.absolute
        + allowance.relative * abs(float(printed))
    )

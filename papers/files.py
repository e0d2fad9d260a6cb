"""Tables of a user's data in a folder: columns declared once, one set of refusals.

Rows are counted from 0 below the header, as `rank` does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.io import (
    SUFFIXES,
    ArgumentError,
    JudgedBattles,
    file_columns,
    read_judged_battles,
    require_few_lost,
)
from judgeline.io.formats import read_columns, unpacked

Say = Callable[[str], None]
"""Called with a line for each file that is read."""


class Column(NamedTuple):
    """A column: the values wanted, in words and as a rule of the table and the values.

    Values are of `kind` ``text``, ``number`` (finite) or ``any``. A column that is not `needed` may
    be missing, one that `may_lack` values may be empty; both are filled with `default`.
    """

    wanted: str = "a name"
    rule: Callable[[pd.DataFrame, pd.Series], Any] | None = None
    kind: str = "text"
    needed: bool = True
    may_lack: bool = False
    default: Any = None


Columns = Mapping[str, Column]
NAME = Column()
NUMBER = Column("a number", kind="number")


def word(default: str | None = None, *among: str, may_lack: bool = True) -> Column:
    """Return a column of text that may be missing; `among` are the words that it may have."""
    rule = (lambda _, values: values.isin(among)) if among else None
    return Column(" or ".join(among) or "a name", rule, "text", False, may_lack, default)


def folder_files(data: Path | None, what: str) -> list[Path]:
    """Return the files of a folder and of those in it by name, none without a folder."""
    if data is not None and not data.is_dir():
        raise ValueError(f"{data} is no folder; name the one with {what} by --data")
    return sorted(path for path in data.rglob("*") if path.is_file()) if data else []


def named_files(data: Path | None, stems: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files in a folder whose names before the dot are given ones, one of each."""
    what, n_files = ", ".join(stems), 0
    files = [path for path in folder_files(data, what) if path.parent == data]
    for stem in stems:
        own = [path for path in files if path.name.split(".")[0] == stem]
        if len(own) > 1:
            raise ValueError(f"{data} holds {own[0].name} and {own[1].name}; leave one of them")
        yield from ((stem, path) for path in own)
        n_files += len(own)
    if data is not None and not n_files:
        raise ValueError(f"{data} holds no file {what}; see docs/papers.md")


def telling_files(
    data: Path | None,
    what: str,
    signs: Sequence[tuple[str, set[str]]],
    suffixes: Iterable[str] = SUFFIXES,
) -> list[tuple[str, Path]]:
    """Return the tables in and below a folder by kind: the first one whose columns they have."""
    found = []
    for path in folder_files(data, what):
        if unpacked(path).suffix.lower() in suffixes:
            columns = {*file_columns(path)}
            found += [(kind, path) for kind, sign in signs if sign <= columns][:1]
    if data is not None and not found:
        wanted = ", or ".join(" and ".join(sorted(sign)) for _, sign in signs)
        raise ValueError(f"{data} holds no {what}: no table in it has {wanted}; see docs/papers.md")
    return found


def read_tables(
    files: Iterable[tuple[str, Path]], declared: Mapping[str, Columns], say: Say
) -> dict[str, pd.DataFrame]:
    """Return the rows of all files of each declared kind, of no row where there is none."""
    parts: dict[str, list[pd.DataFrame]] = {kind: [] for kind in declared}
    for kind, path in files:
        say(f"reading {path.name}")
        parts[kind].append(read_table(path, declared[kind]))
    found = {}
    for kind, own in parts.items():
        kinds = {name: one.kind for name, one in declared[kind].items()} | {"file": "text"}
        types = {name: float if one == "number" else "str" for name, one in kinds.items()}
        none = pd.DataFrame(columns=[*types, "row"]).astype(types)
        found[kind] = pd.concat(own, ignore_index=True) if own else none
    return found


def read_table(path: Path, columns: Columns) -> pd.DataFrame:
    """Return the declared columns of a file; `file` and `row` say where a row stands."""
    own = file_columns(path)
    if lacking := [name for name, one in columns.items() if one.needed and name not in own]:
        raise ValueError(
            f"{path} lacks {', '.join(lacking)} and has {', '.join(own[:30])}; add the columns or "
            "rename yours, as docs/papers.md has them"
        )
    names = [name for name in columns if name in own]
    texts = [name for name in names if columns[name].kind != "number"]
    table = read_columns(path, names, texts=texts).reset_index(drop=True)
    table = table.assign(file=str(path), row=table.index)
    for name, column in columns.items():
        if name not in own:
            table[name] = np.nan if column.kind == "number" else column.default
        elif column.kind == "number":
            values = pd.to_numeric(table[name], errors="coerce").astype(float)
            require(table, name, np.isfinite(values) | table[name].isna(), column.wanted)
            table[name] = values
        elif column.kind == "text":
            table[name] = table[name].astype("str")
    for name in names:
        column, empty = columns[name], table[name].isna()
        good = True if column.rule is None else column.rule(table, table[name])
        require(table, name, np.where(empty, column.may_lack, good), column.wanted)
        if column.default is not None:
            table[name] = table[name].fillna(column.default)
    return table


def names_of_files(table: pd.DataFrame) -> pd.Series:
    """Return the name before the dot of the file of each row."""
    return table["file"].map(lambda path: Path(path).name.partition(".")[0])


def require(table: pd.DataFrame, column: str, good: Any, wanted: str) -> None:
    """Refuse the first value of a column that is not good."""
    wrong = np.flatnonzero(~np.asarray(good, dtype=bool))
    if wrong.size:
        first, value = table.iloc[wrong[0]], table[column].iloc[wrong[0]]
        value = value.tolist() if hasattr(value, "tolist") else value
        raise ValueError(
            f"{first['file']}: {column} is {value!r:.60} in row {first['row']} "
            f"({wrong.size} such rows); expected {wanted}: correct the row or leave it out"
        )


def require_once(table: pd.DataFrame, keys: Sequence[str], remedy: str = "leave it out") -> None:
    """Refuse a row that has the keys of an earlier one."""
    again = np.flatnonzero(table.duplicated(keys))
    if again.size:
        first = table.iloc[again[0]]
        names = ", ".join(f"{name} {first[name]}" for name in keys)
        raise ValueError(
            f"{first['file']}: row {first['row']} ({again.size} such rows) is there already: "
            f"{names}; {remedy}"
        )


def read_battles(path: Path, say: Say) -> JudgedBattles:
    """Return the judged battles of a file, as `rank` reads them without any setting."""
    try:
        found = read_judged_battles(path)
    except ArgumentError as error:
        raise ValueError(f"{error} (`paper` has no such setting: correct the file)") from error
    tell_set_aside(path, found.quarantine, found.n_rows, say)
    return found


def tell_set_aside(path: Path, quarantine: pd.DataFrame, n_rows: int, say: Say) -> None:
    """Say how many rows of a file cannot be used; ValueError if they are more than `rank` takes.

    A judge's empty answer is no fault of the file.
    """
    if quarantine.empty:
        return
    counts = quarantine["reason"].value_counts()
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in counts.items())
    example = quarantine["detail"].iloc[0]
    say(f"{path.name}: set aside {reasons} of {n_rows:,} rows, such as: {example}")
    faults = [reason for reason in counts.index if reason != "no-scores"]
    require_few_lost(quarantine, n_rows, faults, str(path), "Correct the file")

"""Tables of a user's data in a folder: columns declared once, one set of refusals.

Rows are counted from 0 below the header, as `rank` does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.io import SUFFIXES, file_columns
from judgeline.io.formats import read_columns, unpacked

Rule = Callable[[pd.DataFrame, pd.Series], Any]


class Column(NamedTuple):
    """A column: the values wanted, in words and as a rule of the table and the values.

    Values are of `kind` ``text``, ``number`` (finite) or ``any``. A column that is not `needed` may
    be missing, one that `may_lack` values may be empty; both are filled with `default`.
    """

    wanted: str = "a name"
    rule: Rule | None = None
    kind: str = "text"
    needed: bool = True
    may_lack: bool = False
    default: Any = None


NAME = Column()


def number(
    wanted: str, rule: Rule | None = None, *, needed: bool = True, may_lack: bool = False
) -> Column:
    """Return a column of numbers."""
    return Column(wanted, rule, "number", needed, may_lack)


def word(default: str | None = None, *among: str, may_lack: bool = True) -> Column:
    """Return a column of text that may be missing; `among` are the words that it may have."""
    rule = (lambda _, values: values.isin(among)) if among else None
    return Column(" or ".join(among) or "a name", rule, "text", False, may_lack, default)


def folder_files(data: Path | None, what: str) -> list[Path]:
    """Return the files of a folder and of those in it by name, none without a folder."""
    if data is not None and not data.is_dir():
        raise ValueError(f"{data} is no folder; name the one with {what} by --data")
    return sorted(path for path in data.rglob("*") if path.is_file()) if data else []


def is_table(path: Path) -> bool:
    """Return whether a file's name is that of a table in a known format."""
    return unpacked(path).suffix.lower() in SUFFIXES


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


def read_table(path: Path, columns: Mapping[str, Column]) -> pd.DataFrame:
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


def no_rows(columns: Mapping[str, Column]) -> pd.DataFrame:
    """Return a table of the declared columns without a row."""
    kinds = {name: float if one.kind == "number" else "str" for name, one in columns.items()}
    return pd.DataFrame(columns=[*columns, "file", "row"]).astype({**kinds, "file": "str"})


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

"""Judged single answers of a file or table: pass or fail by a judge, and by people on some."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from judgeline.io.formats import file_columns, read_columns
from judgeline.io.outcome_codes import by_value, code_of, require_columns
from judgeline.suggest import ArgumentError

NAMES = {
    "system": ("system", "model", "generator"),
    "verdict": ("verdict", "judge", "judge_verdict", "judge_label", "prediction"),
    "label": ("label", "human", "human_label", "gold", "gold_label"),
}
"""Columns that are read, each under its first name or another usual one."""
_PASSED = ("1", "true", "pass", "passed", "yes", "correct", "good")
_FAILED = ("0", "false", "fail", "failed", "no", "incorrect", "bad")
_CODES = {**dict.fromkeys(_PASSED, 1.0), **dict.fromkeys(_FAILED, 0.0)}
PASS_OR_FAIL = frozenset(_CODES)
"""Verdicts and labels of single answers, in small letters."""
ONE_SYSTEM = "all answers"
"""Name of the system where no column names one."""
_COUNTS = ("n_answers", "n_battles", "count")
_BLANK = ("", "nan", "na", "n/a", "none", "null")


def read_answers(answers: pd.DataFrame | Path | str, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return system, verdict and label of each answer: 1 passed, 0 failed; null without a label.

    ValueError if a column is missing, or a value is neither a pass nor a fail.
    """
    if isinstance(answers, pd.DataFrame):
        place, found = "the table", answers.rename(columns=str)
        named = _named(place, [*found], columns)
    else:
        place, path = str(answers), Path(answers)
        named = _named(place, file_columns(path), columns)
        found = read_columns(path, [*named.values()], texts=[*named.values()])
    read = found[[*named.values()]].set_axis([*named], axis="columns")
    if not len(read):
        raise ValueError(f"{place} holds a header and no answers")
    if "judge" in read and len(judges := read["judge"].dropna().astype("str").unique()) > 1:
        raise ValueError(
            f"{place} holds verdicts of {len(judges)} judges, {judges[0]!r} and {judges[1]!r} "
            "among them, and each answer counts once: keep the rows of one"
        )
    table = pd.DataFrame({"system": read.get("system", ONE_SYSTEM)}, index=read.index)
    if table["system"].isna().any():
        row = int(table["system"].isna().argmax())
        raise ValueError(f"{place}: column {named['system']} is empty in row {row}; name a system")
    for column in ("verdict", "label"):
        table[column] = _passed(f"{place}: column {named[column]}", read[column])
    lacking = table["verdict"].isna()
    if lacking.any():
        row = int(lacking.to_numpy().argmax())
        raise ValueError(
            f"{place}: column {named['verdict']} is empty in {int(lacking.sum())} of {len(table)} "
            f"rows, first in row {row}; judge these answers again, or leave them out"
        )
    return table.assign(system=table["system"].astype(str).str.strip())


def _named(place: str, own: list[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the table's own name of each column that is read."""
    require_columns(place, own, columns, NAMES)
    small: dict[str, str] = {}
    for name in own:
        other = small.setdefault(name.strip().casefold().replace(" ", "_"), name)
        if other != name and not {other, name} & {*columns.values()}:
            raise ArgumentError(
                f"{place} has columns {other!r} and {name!r}, which only capitals or blanks tell "
                "apart: drop or rename one",
                "columns",
            )
    named = {
        ours: columns.get(ours) or next((small[name] for name in usual if name in small), "")
        for ours, usual in NAMES.items()
    }
    repeated = [name for name in own if f"{name}.1" in own or own.count(name) > 1]
    if twice := {*repeated} & {*named.values()}:
        raise ArgumentError(f"{place} has two columns {min(twice)!r}: rename one", "columns")
    if named["verdict"] == named["label"] != "":
        same = f"{place}: column {named['label']!r} is both verdict and label"
        raise ArgumentError(f"{same}; name the column of each with 'columns'", "columns")
    if lacking := [ours for ours in ("verdict", "label") if not named[ours]]:
        raise ArgumentError(
            f"{place} has the columns {', '.join(own[:30])}; none is {lacking[0]!r} (or "
            f"{', '.join(NAMES[lacking[0]][1:])}): add it, or state its name with "
            f"columns={lacking[0]}=NAME",
            "columns",
        )
    if counted := [small[name] for name in _COUNTS if name in small]:
        raise ArgumentError(
            f"{place} counts answers in column {counted[0]!r}, and rates take an answer a row: "
            "write each answer in a row of its own, and drop the column",
            "columns",
        )
    if "judge" in small and small["judge"] not in named.values():
        named["judge"] = small["judge"]
    return {ours: name for ours, name in named.items() if name}


def _passed(place: str, values: pd.Series) -> pd.Series:
    """Return verdicts as numbers: 1 passed, 0 failed, null for an empty cell."""

    def share(value: Any) -> float | None:
        """Return 1 for a pass, 0 for a fail, None for any other value."""
        return None if pd.isna(value) else _CODES.get(code_of(value).casefold())

    found = by_value(values, share).astype("float64")
    blank = by_value(
        values, lambda value: pd.isna(value) or str(value).strip().casefold() in _BLANK
    ).astype(bool)
    unknown = found.isna() & ~blank
    if unknown.any():
        row = int(unknown.to_numpy().argmax())
        raise ValueError(
            f"{place} is {values.iloc[row]!r} in row {row}; expected {', '.join(_PASSED)}, or "
            f"{', '.join(_FAILED)}"
        )
    return found

"""Rules of tables, each a sentence with its expectation of Great Expectations by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

Derive = Callable[[pd.DataFrame], Any]
Limit = float | Callable[[pd.DataFrame], float] | None
"""A number, or what gives it of the table."""


class Rule(NamedTuple):
    """One sentence about a table, as an expectation; `of` derives the column that is tested."""

    note: str
    expectation: str
    settings: Mapping[str, Any]
    of: Derive | None = None


def within(
    column: str,
    low: Limit = None,
    high: Limit = None,
    *,
    note: str = "",
    of: Derive | None = None,
    **limits: Any,
) -> Rule:
    """Return the rule that numbers lie between limits; null cells keep it."""
    stated = f"is at least {low}" if high is None else f"lies in [{low}, {high}]"
    settings = {"column": column, "min_value": low, "max_value": high, **limits}
    return Rule(note or f"{column} {stated}", "ExpectColumnValuesToBeBetween", settings, of)


def among(
    column: str, values: Sequence[Any], note: str = "", *, of: Derive | None = None, **limits: Any
) -> Rule:
    """Return the rule that cells hold one of some values; null cells keep it."""
    note = note or f"{column} is one of {', '.join(map(str, values))}"
    settings = {"column": column, "value_set": list(values), **limits}
    return Rule(note, "ExpectColumnValuesToBeInSet", settings, of)


def none_of(column: str, values: Sequence[Any], note: str) -> Rule:
    """Return the rule that no cell holds one of some values."""
    settings = {"column": column, "value_set": list(values)}
    return Rule(note, "ExpectColumnValuesToNotBeInSet", settings)


def holds(name: str, test: Derive | None, note: str) -> Rule:
    """Return the rule that a test holds in every row; without a test the column is there."""
    return among(name, [True], note, of=test)


def known(*columns: str, note: str = "{} is known") -> list[Rule]:
    """Return the rules that columns have no null cell."""
    kind = "ExpectColumnValuesToNotBeNull"
    return [Rule(note.format(one), kind, {"column": one}) for one in columns]


def unique(*columns: str, note: str = "") -> Rule:
    """Return the rule that columns name a row."""
    note = note or f"{', '.join(columns)} {'are together' if len(columns) > 1 else 'is'} unique"
    if len(columns) > 1:
        return Rule(note, "ExpectCompoundColumnsToBeUnique", {"column_list": list(columns)})
    return Rule(note, "ExpectColumnValuesToBeUnique", {"column": columns[0]})


def at_least(larger: str, smaller: str, note: str) -> Rule:
    """Return the rule that one column is nowhere below another."""
    settings = {"column_A": larger, "column_B": smaller, "or_equal": True}
    return Rule(note, "ExpectColumnPairValuesAToBeGreaterThanB", settings)


def different(first: str, second: str, note: str) -> Rule:
    """Return the rule that two columns never hold the same."""
    kind = "ExpectSelectColumnValuesToBeUniqueWithinRecord"
    return Rule(note, kind, {"column_list": [first, second]})


def n_rows(least: int, note: str) -> Rule:
    """Return the rule that a table has enough rows."""
    return Rule(note, "ExpectTableRowCountToBeBetween", {"min_value": least})


def has_columns(columns: Sequence[str], note: str, *, exact: bool = True) -> Rule:
    """Return the rule that a table has some columns, and where `exact` no other."""
    settings = {"column_set": list(columns), "exact_match": exact}
    return Rule(note, "ExpectTableColumnsToMatchSet", settings)


def median_within(column: str, low: float, high: float, note: str) -> Rule:
    """Return the rule that the median of a column lies between limits."""
    settings = {"column": column, "min_value": low, "max_value": high}
    return Rule(note, "ExpectColumnMedianToBeBetween", settings)

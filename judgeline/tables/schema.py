"""A table is a value: its columns, and its rules under the names of its checks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from judgeline.tables.rules import Rule
from judgeline.tables.words import WORDS

Remedy = str | Callable[[pd.DataFrame], str]


@dataclass(frozen=True)
class Check:
    """A named check: what it guards, its rules, and what to do where one is broken.

    `remedy` is a text, or a function that returns one of the table. `rows` gives the rows that
    the check is about, by default all; `ids` the columns that name them to a person, by default
    the table's key. `beside` names further tables, apart by blanks, which `rows` takes after the
    table itself.
    """

    name: str
    guards: str
    rules: Sequence[Rule]
    remedy: Remedy
    blocking: bool = False
    warns: bool = False
    rows: Callable[..., pd.DataFrame] | None = None
    ids: Sequence[str] = ()
    beside: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the lineage, by the name of its asset.

    `fields` has its columns, listed or apart by blanks, or is the result of the core with these
    fields; `WORDS` has their types, unless `types` has, and meanings. Of one that is `remembered`
    the store keeps the table that the newest one replaced.
    """

    name: str
    fields: str | Sequence[str] | type[NamedTuple]
    key: Sequence[str]
    checks: Sequence[Check] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    remembered: bool = False

    @property
    def columns(self) -> list[str]:
        """Names of the columns in their order."""
        if isinstance(self.fields, type):
            return list(self.fields._fields)
        return self.fields.split() if isinstance(self.fields, str) else list(self.fields)

    @property
    def dtypes(self) -> dict[str, str]:
        """Types by column, in the order of the columns."""
        return {name: self.types.get(name, WORDS[name][0]) for name in self.columns}

    def empty(self) -> pd.DataFrame:
        """Return the table without rows."""
        return self.typed(pd.DataFrame(columns=self.columns))

    def typed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the columns of the table, in their order and with their types."""
        return table[self.columns].astype(self.dtypes)

    def filled(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the typed columns of a table that may lack some: those are null."""
        return self.typed(table.reindex(columns=self.columns))

    @property
    def beside(self) -> set[str]:
        """Names of the tables that checks read beside this one."""
        return {name for check in self.checks for name in check.beside.split()}


def table(
    name: str,
    fields: str | Sequence[str] | type[NamedTuple],
    key: Sequence[str],
    *checks: Check,
    types: Mapping[str, str] | None = None,
    remembered: bool = False,
) -> Table:
    """Return a table with its checks."""
    return Table(name, fields, key, checks, types or {}, remembered)


def fails(name: str, guards: str, remedy: Remedy, *rules: Rule, **how: Any) -> Check:
    """Return a check; `stops` one that stops what follows, `warns` one that fails nothing."""
    return Check(name, guards, rules, remedy, **how)


stops = partial(fails, blocking=True)
warns = partial(fails, warns=True)

"""A step: the function that makes a table, the tables it takes, the settings it reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np
import pandas as pd

from judgeline.settings import Restricted
from judgeline.tables.schema import Table

Columns = TypeVar("Columns", bound=NamedTuple)


class Made(NamedTuple):
    """A made table, and notes on how it was made: numbers, texts, and tables to look at."""

    table: pd.DataFrame
    notes: Mapping[str, Any]


Function = Callable[..., pd.DataFrame | Made]


@dataclass(frozen=True)
class Step:
    """A function that makes a declared table from other tables and settings.

    Its parameters name the tables that it takes: a ``DataFrame`` has to be there, a
    ``DataFrame | None`` may be missing. Its keyword `settings`, if it has one, holds those that
    `reads` names. It returns the table, or the table with notes as `Made`.
    """

    table: Table
    function: Function
    reads: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the table that is made."""
        return self.table.name

    @property
    def takes(self) -> dict[str, bool]:
        """Names of the tables that are taken, and whether each has to be there."""
        parameters = signature(self.function).parameters.values()
        return {
            one.name: type(None) not in get_args(one.annotation)
            for one in parameters
            if one.name != "settings"
        }

    def make(self, tables: Mapping[str, pd.DataFrame | None], settings: Any) -> Made:
        """Return the table made from others by name; RuntimeError if it has undeclared columns."""
        given = {name: tables[name] for name in self.takes}
        told = {"settings": Restricted.of(settings, self.reads)} if self.reads else {}
        made = self.function(**given, **told)
        made = made if isinstance(made, Made) else Made(made, {})
        if (found := list(made.table)) != self.table.columns:
            raise RuntimeError(
                f"step {self.name} made the columns {found}; declared are {self.table.columns}"
            )
        return made


STEPS: dict[str, Step] = {}
"""Every declared step, by the name of its table."""


def step(table: Table, reads: tuple[str, ...] = ()) -> Callable[[Function], Step]:
    """Declare the step that makes a table; its docstring says what one row is."""

    def declare(function: Function) -> Step:
        """Return the step of a function; ValueError if names differ, or the table has a step."""
        if function.__name__ != table.name:
            raise ValueError(f"step {function.__name__} makes table {table.name}; name both alike")
        if ("settings" in signature(function).parameters) != bool(reads):
            raise ValueError(
                f"step {table.name}: name in reads the settings it takes, or take none"
            )
        other, here = STEPS.get(table.name), function.__module__
        if other and other.function.__module__ != here:
            both = f"{other.function.__module__} and {here}"
            raise ValueError(f"table {table.name} is made by steps of {both}; leave it to one")
        STEPS[table.name] = Step(table, function, reads)
        return STEPS[table.name]

    return declare


def as_columns(kind: type[Columns], table: pd.DataFrame) -> Columns:
    """Return the columns of a table as the named tuple `kind`."""
    require_columns(kind, table)
    return kind._make(table[field].to_numpy() for field in kind._fields)


def require_columns(kind: type[NamedTuple], table: pd.DataFrame) -> None:
    """Raise ValueError, with the remedy, if an earlier version made the table."""
    missing = [field for field in kind._fields if field not in table]
    if missing:
        raise ValueError(
            f"the stored {kind.__name__} lack {', '.join(missing)}: an earlier version made them; "
            "make them again with judgeline run"
        )


def with_newcomer(scored_battles: pd.DataFrame, model: str, own: pd.DataFrame) -> pd.DataFrame:
    """Return a corpus's scored battles and those of a model without votes.

    A model of the corpus that bears its name, without votes, is not it: its battles are left out.
    """
    is_other = scored_battles["model_a"].ne(model) & scored_battles["model_b"].ne(model)
    recorded = own["recorded_outcome"].fillna(own["judge_outcome"])
    own = own.assign(recorded_outcome=recorded, human_outcome=np.nan)
    return pd.concat([scored_battles[is_other], own[scored_battles.columns]], ignore_index=True)

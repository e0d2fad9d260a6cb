"""The engine in memory: tables from given ones, each made once."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from judgeline.io import COUNT, n_battles_of
from judgeline.settings import Settings
from judgeline.steps.coding import once
from judgeline.steps.step import STEPS


def run(
    names: str | Iterable[str], given: Mapping[str, pd.DataFrame], settings: Any
) -> dict[str, pd.DataFrame]:
    """Return the named tables, and those made on the way, from given ones.

    Parameters
    ----------
    names : str or iterable of str
        Tables to make, such as ``["leaderboard"]``.
    given : mapping of str to DataFrame
        Tables that are there, such as ``{"scored_battles": battles}``.
    settings : Settings
        Read by name as each step declares.

    Returns
    -------
    dict of str to DataFrame
        Tables by name, those given included. Optional tables that cannot be made are left out.

    Raises
    ------
    ValueError
        If a name is no table, or a table has to be there that is neither given nor made by a step.
    """
    tables: dict[str, pd.DataFrame | None] = dict(given)
    battles = given.get("scored_battles")
    if isinstance(settings, Settings) and battles is not None:
        settings = settings.resolved(n_battles_of(battles), counted=COUNT in battles)
    with once():
        for name in [names] if isinstance(names, str) else names:
            if name not in STEPS and name not in given:
                near = difflib.get_close_matches(name, STEPS, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"no step makes a table {name!r}{hint}")
            if _make(name, tables, settings) is None:
                has, lacks = ", ".join(given) or "nothing", ", ".join(_lacking(name, tables))
                raise ValueError(f"table {name} cannot be made from {has}: it needs {lacks}")
    return {name: table for name, table in tables.items() if table is not None}


def _lacking(name: str, tables: Mapping[str, pd.DataFrame | None]) -> list[str]:
    """Return the tables that have to be given for another one to be made."""
    if name not in STEPS:
        return [name]
    needed = [one for one, has_to in STEPS[name].takes.items() if has_to and tables[one] is None]
    return list(dict.fromkeys(lack for one in needed for lack in _lacking(one, tables)))


def _make(name: str, tables: dict[str, pd.DataFrame | None], settings: Any) -> pd.DataFrame | None:
    """Return a table, made with those that it takes; None if one that it needs is missing."""
    if name in tables:
        return tables[name]
    if name not in STEPS:
        tables[name] = None
        return None
    taken = STEPS[name].takes
    found = {one: _make(one, tables, settings) for one in taken}
    if any(needed and found[one] is None for one, needed in taken.items()):
        tables[name] = None
    else:
        tables[name] = STEPS[name].make(found, settings).table
    return tables[name]

"""The engine in memory: tables from given ones, each made once."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from judgeline.steps import (
    diagnostics,
    elo,
    intervals,
    methods,
    quantitative,
    reference,
    reliability,
    trust,
    winrate,
)
from judgeline.steps.coding import once
from judgeline.steps.step import Step

_SYSTEMS = (
    elo, methods, intervals, diagnostics, reliability, winrate, trust, reference, quantitative,
)  # fmt: skip

STEPS: dict[str, Step] = {
    one.name: one for system in _SYSTEMS for one in vars(system).values() if isinstance(one, Step)
}
"""Every declared step, by the name of its table."""


def run(
    names: Iterable[str], given: Mapping[str, pd.DataFrame], settings: Any
) -> dict[str, pd.DataFrame]:
    """Return the named tables, and those made on the way, from given ones.

    Parameters
    ----------
    names : iterable of str
        Tables to make, such as ``["leaderboard"]``.
    given : mapping of str to DataFrame
        Tables that are there, such as ``{"scored_battles": battles}``.
    settings : Settings
        Read by name as each step declares.

    Returns
    -------
    dict of str to DataFrame
        Tables by name, those given included. A table that may be missing, and that nothing given
        leads to, is missing.

    Raises
    ------
    ValueError
        If a table has to be there that is neither given nor made by a step.
    """
    tables: dict[str, pd.DataFrame | None] = dict(given)
    with once():
        for name in names:
            if _make(name, tables, settings) is None:
                has = ", ".join(given) or "nothing"
                raise ValueError(f"table {name} cannot be made from {has}")
    return {name: table for name, table in tables.items() if table is not None}


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

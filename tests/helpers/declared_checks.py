"""Declared checks of tables as functions, by the names of the checks."""

from functools import partial
from types import SimpleNamespace

from resources.tables.schema import Table


def checks_in(*tables: Table) -> SimpleNamespace:
    """Return an object whose attributes are the tables' checks, called with a table."""
    return SimpleNamespace(
        **{
            check.name: partial(table.check, check.name)
            for table in tables
            for check in table.checks
        }
    )

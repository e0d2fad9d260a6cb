"""Every declared table, by the name of its asset."""

from importlib import import_module

from judgeline.tables.schema import Table
from resources.judges.forms.registered import FORM_TABLES

_SYSTEMS = (
    "corpus judging elo intervals winrate diagnostics trust reference quantitative reliability "
    "candidates comparison"
)
TABLES: dict[str, Table] = {
    table.name: table
    for system in _SYSTEMS.split()
    for table in vars(import_module(f"judgeline.tables.{system}")).values()
    if isinstance(table, Table)
} | {table.name: table for table in FORM_TABLES.values()}

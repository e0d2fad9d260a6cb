"""Every declared table, by the name of its asset."""

from importlib import import_module
from pkgutil import iter_modules

from judgeline import tables
from judgeline.judges.forms.registered import FORM_TABLES
from judgeline.tables.schema import Table

TABLES: dict[str, Table] = {
    table.name: table
    for found in iter_modules(tables.__path__)
    for table in vars(import_module(f"judgeline.tables.{found.name}")).values()
    if isinstance(table, Table)
} | {table.name: table for table in FORM_TABLES.values()}

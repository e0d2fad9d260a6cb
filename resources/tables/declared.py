"""Every declared table, by the name of its asset."""

from judgeline.judges.forms.registered import FORM_TABLES
from judgeline.tables import (
    candidates,
    comparison,
    corpus,
    diagnostics,
    elo,
    intervals,
    judging,
    quantitative,
    reference,
    reliability,
    trust,
    winrate,
)
from judgeline.tables.schema import Table

_SYSTEMS = (
    corpus,
    judging,
    elo,
    intervals,
    winrate,
    diagnostics,
    trust,
    reference,
    quantitative,
    reliability,
    candidates,
    comparison,
)
TABLES: dict[str, Table] = {
    table.name: table
    for system in _SYSTEMS
    for table in vars(system).values()
    if isinstance(table, Table)
} | {table.name: table for table in FORM_TABLES.values()}

"""Declared tables of diagnostics: of the judge, and of influences."""

from judgeline.diagnostics import Diagnostics
from judgeline.tables.rules import known, n_rows, unique
from judgeline.tables.schema import Table, table, warns

JUDGE_DIAGNOSTICS = table(
    "judge_diagnostics",
    Diagnostics,
    ["diagnostic", "level"],
    warns(
        "diagnostics_could_be_computed",
        "A diagnostic without a value leaves a question about the judge open.",
        "Most need more scored battles, or more voted models, than there are.",
        n_rows(1, "there is a diagnostic"),
        unique("diagnostic", "level"),
        *known("value"),
    ),
)
BATTLE_INFLUENCES = Table(
    "battle_influences",
    "model battle_id opponent outcome expected influence is_candidate",
    key=["model", "battle_id"],
)

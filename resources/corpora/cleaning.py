"""Which battles of a corpus count: those set aside, and those that its filters leave out."""

import numpy as np
import pandas as pd

from judgeline.io import fault, set_aside, typed
from judgeline.tables.corpus import BATTLE_DTYPES
from resources.config.corpora import Filters


def clean_battles(raw: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return battles with unique ids, the first sound one of each, and the quarantined others."""
    table = raw.reset_index(drop=True)
    origin = table.assign(row=table.get("row", table.index), file=table.get("file", ""))
    nameless = table["battle_id"].isna()
    alone = table["model_a"].eq(table["model_b"]).fillna(value=False)
    sound = table.loc[~(nameless | alone), "battle_id"]
    again = table.index.isin(sound.index[sound.duplicated()])
    faults = [
        fault(table, nameless, "missing-battle-id", "the id of the battle is empty"),
        fault(table, alone, "self-battle", "{model_a!r} is compared with itself"),
        fault(table, again, "duplicate-battle", "battle {battle_id!r} came before"),
    ]
    kept, quarantine = set_aside(origin, faults)
    return typed(table[kept], BATTLE_DTYPES), quarantine


def filter_battles(battles: pd.DataFrame, filters: Filters) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the battles that pass, and counts of the others by reason, the unknown first."""
    language, n_turns = battles["language"], battles["n_turns"]
    rules: dict[str, pd.Series] = {}
    if filters.languages is not None:
        rules["unknown-language"] = language.isna()
        rules["other-language"] = ~language.isin(filters.languages)
    if filters.single_turn:
        rules["unknown-turns"] = n_turns.isna()
        rules["multi-turn"] = n_turns.ne(1).fillna(value=True)
    left = np.ones(len(battles), dtype=bool)
    dropped: dict[str, int] = {}
    for reason, fails in rules.items():
        failing = left & fails.to_numpy(dtype=bool)
        left &= ~failing
        if failing.any():
            dropped[reason] = int(failing.sum())
    return battles[left].reset_index(drop=True), dropped

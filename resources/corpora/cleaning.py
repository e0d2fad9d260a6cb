"""Which battles count: not against oneself, not twice, and only those that the filters pass."""

import numpy as np
import pandas as pd

from judgeline.io import BATTLE_DTYPES, fault, set_aside, typed
from resources.config.corpora import Filters


def clean_battles(raw: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return battles with unique ids between two different models, and the quarantined others.

    Of battles that share an id the first sound one is kept; ``row`` and ``file`` pass through.
    """
    table = raw.reset_index(drop=True)
    origin = table.assign(
        row=table.get("row", pd.Series(range(len(table)))), file=table.get("file", "")
    )
    nameless = table["battle_id"].isna()
    alone = table["model_a"].eq(table["model_b"]).fillna(value=False)
    sound = table.loc[~(nameless | alone), "battle_id"]
    again = pd.Series(False, index=table.index)
    again[sound.index] = sound.duplicated()
    kept, quarantine = set_aside(
        origin,
        [
            fault(table, nameless, "missing-battle-id", "the id of the battle is empty"),
            fault(table, alone, "self-battle", "{model_a!r} is compared with itself"),
            fault(table, again, "duplicate-battle", "battle {battle_id!r} came before"),
        ],
    )
    return typed(table[kept], BATTLE_DTYPES), quarantine


def filter_battles(battles: pd.DataFrame, filters: Filters) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the battles that pass the filters, renumbered, and how many did not, by first reason.

    An unknown language or length passes no filter that asks for it.
    """
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

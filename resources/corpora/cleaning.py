"""Battles of a corpus that its filters keep."""

import numpy as np
import pandas as pd

from resources.config.corpora import Filters


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

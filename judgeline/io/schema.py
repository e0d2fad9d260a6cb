"""Rows of a corpus that a reader sets aside, and the types of those that it returns."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.tables.corpus import QUARANTINE_DTYPES


class CorpusRead(NamedTuple):
    """A corpus as read: its battles, quarantined rows, and published verdicts."""

    battles: pd.DataFrame
    quarantine: pd.DataFrame
    verdicts: pd.DataFrame


class Fault(NamedTuple):
    """A rule that rows break: which rows, the reason's name, and a sentence for each of them."""

    wrong: np.ndarray
    reason: str
    details: list[str]


def fault(table: pd.DataFrame, wrong: Any, reason: str, sentence: str, **names: Any) -> Fault:
    """Return the fault of some rows; `sentence` may name columns, as in ``{winner!r}``."""
    mask = np.asarray(wrong, dtype=bool)
    named = [part[1] for part in Formatter().parse(sentence) if part[1] in table]
    rows = table.loc[mask, list(dict.fromkeys(named))].to_dict("records")
    return Fault(mask, reason, [sentence.format(**{**row, **names}) for row in rows])


def set_aside(origin: pd.DataFrame, faults: Sequence[Fault]) -> tuple[np.ndarray, pd.DataFrame]:
    """Return which rows have no fault, and the quarantine of the others by first fault."""
    found = [
        origin.loc[one.wrong, ["row", "file", "battle_id"]].assign(
            reason=one.reason, detail=one.details, place=np.flatnonzero(one.wrong)
        )
        for one in faults
        if one.wrong.any()
    ]
    if not found:
        return np.ones(len(origin), dtype=bool), empty(QUARANTINE_DTYPES)
    told = pd.concat(found).drop_duplicates("place").sort_values("place")
    kept = np.ones(len(origin), dtype=bool)
    kept[told["place"]] = False
    return kept, typed(told, QUARANTINE_DTYPES)


def typed(table: pd.DataFrame, dtypes: Mapping[str, str]) -> pd.DataFrame:
    """Return these columns with these types, null where the table lacks one, rows renumbered."""
    columns = {
        name: table[name].reset_index(drop=True)
        if name in table
        else pd.Series(None, index=range(len(table)), dtype=dtype)
        for name, dtype in dtypes.items()
    }
    return pd.DataFrame(columns, index=range(len(table))).astype(dict(dtypes))


def empty(dtypes: Mapping[str, str]) -> pd.DataFrame:
    """Return a table of no rows."""
    return typed(pd.DataFrame(), dtypes)


def in_file_order(quarantines: Iterable[pd.DataFrame], paths: Sequence[Path]) -> pd.DataFrame:
    """Return quarantines as one, by file in the order read, then by row."""
    both = pd.concat(list(quarantines), ignore_index=True)
    places = {path.name: place for place, path in reversed(list(enumerate(paths)))}
    order = pd.DataFrame({"file": both["file"].map(places), "row": both["row"]})
    return typed(both.loc[order.sort_values(["file", "row"]).index], QUARANTINE_DTYPES)


SELF_BATTLE = "self-battle", "{model_a!r} is compared with itself"
"""Reason and sentence of a battle whose two models are one: every reader sets it aside."""


def self_battles(table: pd.DataFrame) -> Fault:
    """Return the fault of battles of a model against itself."""
    same = table["model_a"].astype(object).eq(table["model_b"].astype(object))
    return fault(table, same, *SELF_BATTLE)


def missing_models(table: pd.DataFrame) -> list[Fault]:
    """Return the faults of battles without the name of a model."""
    return [
        fault(table, table[side].isna(), "missing-model", f"{side} is empty, expected a name")
        for side in ("model_a", "model_b")
    ]

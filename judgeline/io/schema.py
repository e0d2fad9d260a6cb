"""The tables that every reader returns: their columns, types, and rows set aside on the way."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.verdict.outcomes import CRITERIA

BATTLE_DTYPES: dict[str, str] = {
    "battle_id": "str",
    "question_id": "str",
    "cluster_id": "str",
    "model_a": "str",
    "model_b": "str",
    "human_outcome": "float64",
    "instruction": "str",
    "completion_a": "str",
    "completion_b": "str",
    "language": "str",
    "category": "str",
    "n_turns": "Int64",
    "timestamp": "datetime64[us, UTC]",
}
"""Columns of battles: ``human_outcome`` is A's share of the win, times are UTC. Several categories
of a question have ``;`` between them."""

SCORE_COLUMNS: tuple[str, ...] = tuple(f"{name}_{side}" for side in "ab" for name in CRITERIA)
"""Rubric scores of model A's completion, then of model B's, whichever was shown first."""

REPLY_DTYPES: dict[str, str] = {
    "reply_model": "str",
    "system_fingerprint": "str",
    "said": "str",
}
"""What a server said about its answer; older tables lack these columns."""

VERDICT_DTYPES: dict[str, str] = {
    "battle_id": "str",
    "judge": "str",
    "order": "str",
    "replicate": "int64",
    "status": "str",
    **dict.fromkeys(SCORE_COLUMNS, "float64"),
    "recorded_outcome": "float64",
    "answer": "str",
    "log_probabilities": "str",
    "prompt_tokens": "Int64",
    "completion_tokens": "Int64",
    "identity": "str",
    **REPLY_DTYPES,
}
"""Columns of the verdicts table and their types."""

QUARANTINE_DTYPES: dict[str, str] = {
    "row": "int64",
    "file": "str",
    "battle_id": "str",
    "reason": "str",
    "detail": "str",
}
"""Columns of rows that fit no rule; ``row`` counts from 0 within its file."""


class CorpusRead(NamedTuple):
    """What a corpus holds: battles, rows that fit no rule, and verdicts that came with it."""

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


def missing_models(table: pd.DataFrame) -> list[Fault]:
    """Return the faults of battles without the name of a model."""
    return [
        fault(table, table[side].isna(), "missing-model", f"{side} is empty, expected a name")
        for side in ("model_a", "model_b")
    ]

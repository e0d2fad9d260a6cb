"""From published files to a corpus: each file converted, rows that fit no rule set aside."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.io import (
    BATTLE_DTYPES,
    CorpusRead,
    Fault,
    in_file_order,
    missing_models,
    no_verdicts,
    set_aside,
    typed,
)
from resources.corpora.cleaning import clean_battles
from resources.corpora.conversations import Conversation, read_conversation


class Converted(NamedTuple):
    """The battles of one file, a row for each published one, and what is wrong with some."""

    battles: pd.DataFrame
    faults: list[Fault]


def assemble(paths: Sequence[Path], convert: Callable[[Path], Converted]) -> CorpusRead:
    """Return the corpus that files make: clean battles, and the rows set aside with reasons."""
    battles, quarantines = [], []
    for path in paths:
        converted = convert(path)
        table = converted.battles.assign(row=np.arange(len(converted.battles)), file=path.name)
        faults = [*missing_models(table), *converted.faults]
        kept, quarantine = set_aside(table, faults)
        battles.append(typed(table[kept], {**BATTLE_DTYPES, "row": "int64", "file": "str"}))
        quarantines.append(quarantine)
    clean, unclean = clean_battles(pd.concat(battles, ignore_index=True))
    return CorpusRead(clean, in_file_order([*quarantines, unclean], paths), no_verdicts())


def conversations(
    table: pd.DataFrame, first: str = "conversation_a", second: str = "conversation_b"
) -> tuple[pd.DataFrame, list[Fault]]:
    """Return the texts and turns of two columns of conversations, and which cannot be read."""
    read_a, faults_a = _read_column(table, first)
    read_b, faults_b = _read_column(table, second)
    both = list(zip(read_a, read_b, strict=True))
    texts = pd.DataFrame(
        {
            "instruction": [a.instruction if a else b.instruction if b else None for a, b in both],
            "completion_a": [a.completion if a else None for a, _ in both],
            "completion_b": [b.completion if b else None for _, b in both],
            "n_turns": pd.array([_n_turns(a, b) for a, b in both], dtype="Int64"),
        },
        index=table.index,
    )
    return texts, [faults_a, faults_b]


def _read_column(table: pd.DataFrame, column: str) -> tuple[list[Conversation | None], Fault]:
    read: list[Conversation | None] = []
    reasons: dict[int, str] = {}
    for place, published in enumerate(table[column]):
        conversation = None
        try:
            if not _is_null(published):
                conversation = read_conversation(published)
        except ValueError as error:
            reasons[place] = f"{column}: {error}"
        read.append(conversation)
    wrong = np.zeros(len(table), dtype=bool)
    wrong[list(reasons)] = True
    return read, Fault(wrong, "unreadable-text", list(reasons.values()))


def _is_null(published: Any) -> bool:
    return published is None or (isinstance(published, float) and np.isnan(published))


def _n_turns(first: Conversation | None, second: Conversation | None) -> int | None:
    counts = [one.n_turns for one in (first, second) if one is not None and one.n_turns]
    return max(counts) if counts else None

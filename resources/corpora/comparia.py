"""Votes published by ComparIA, with the languages of its conversations where they are there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgeline.io import (
    CorpusRead,
    Fault,
    fault,
    file_columns,
    language_code,
    names,
    read_layout,
    truths,
)
from resources.corpora.assemble import Converted, assemble, conversations

DEFAULT_LANGUAGE = "fr"
_OPTIONAL = "opening_msg conv_turns session_hash timestamp languages"


def read_comparia(paths: Sequence[Path]) -> CorpusRead:
    """Return ComparIA's votes: a tie where both are equal, else the side that was chosen.

    Ids are ``conversation_pair_id``, which also names the question; it repeats, and the first
    vote is kept. The cluster is ``session_hash``. A file that has ``languages`` and no votes is
    the conversations release: it gives the language of a pair, which is French otherwise.
    """
    columns = {path: set(file_columns(path)) for path in paths}
    spoken = [path for path in paths if _holds_languages(columns[path])]
    votes = [path for path in paths if path not in spoken]
    if not votes:
        raise ValueError(
            f"{', '.join(str(path) for path in paths)} holds conversations and no votes; add "
            "votes.parquet to the location in corpora.yaml"
        )
    known = pd.concat([_languages_of(path) for path in spoken]) if spoken else None
    return assemble(votes, lambda path: _convert(path, known))


def _holds_languages(columns: set[str]) -> bool:
    return {"conversation_pair_id", "languages"} <= columns and "both_equal" not in columns


def _languages_of(path: Path) -> pd.Series:
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["conversation_pair_id", "languages"]).to_pandas()
    first = table.drop_duplicates("conversation_pair_id")
    return first.set_index("conversation_pair_id")["languages"].map(_first_language)


def _first_language(published: Any) -> str | None:
    listed = published.tolist() if isinstance(published, np.ndarray) else published
    if isinstance(listed, str):
        listed = [part.strip(" '\"") for part in listed.strip("[]").split(",")]
    codes = [language_code(one) for one in listed] if isinstance(listed, list) else []
    return next((code for code in codes if code is not None), None)


def _convert(path: Path, known: pd.Series | None) -> Converted:
    table = read_layout(path, "comparia", _OPTIONAL)
    ids = names(table["conversation_pair_id"])
    texts, faults = conversations(table)
    outcome = _outcomes(table)
    battles = pd.DataFrame(
        {
            "battle_id": ids,
            "question_id": ids,
            "cluster_id": names(_column(table, "session_hash")).fillna(ids),
            "model_a": names(table["model_a_name"]),
            "model_b": names(table["model_b_name"]),
            "human_outcome": outcome,
            "instruction": _column(table, "opening_msg").fillna(texts["instruction"]),
            "completion_a": texts["completion_a"],
            "completion_b": texts["completion_b"],
            "language": _languages(table, ids, known),
            "n_turns": _column(table, "conv_turns").fillna(texts["n_turns"]),
            "timestamp": pd.to_datetime(_column(table, "timestamp"), utc=True),
        }
    )
    return Converted(battles, [*_undecided(table, outcome), *faults])


def _undecided(table: pd.DataFrame, outcome: pd.Series) -> list[Fault]:
    silent = table["chosen_model_name"].isna() & outcome.isna()
    sentence = (
        "chosen_model_name is {chosen_model_name!r}, which is neither {model_a_name!r} nor "
        "{model_b_name!r}"
    )
    return [
        fault(table, silent, "no-decision", "no model was chosen and none called equal"),
        fault(table, outcome.isna(), "unknown-winner", sentence),
    ]


def _outcomes(table: pd.DataFrame) -> pd.Series:
    chosen = names(table["chosen_model_name"])
    outcome = pd.Series(np.nan, index=table.index)
    outcome[chosen.eq(names(table["model_b_name"])).fillna(value=False)] = 0.0
    outcome[chosen.eq(names(table["model_a_name"])).fillna(value=False)] = 1.0
    outcome[truths(table["both_equal"])] = 0.5
    return outcome


def _languages(table: pd.DataFrame, ids: pd.Series, known: pd.Series | None) -> pd.Series:
    language = _column(table, "languages").map(_first_language)
    if known is not None:
        language = language.fillna(ids.map(known))
    return language.fillna(DEFAULT_LANGUAGE)


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    return table[name] if name in table else pd.Series(None, index=table.index, dtype=object)

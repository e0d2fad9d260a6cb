"""Human preferences published by LMArena: the releases of 100k, 140k and 55k battles."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgeline.io import CorpusRead, Fault, fault, languages, names, outcomes, read_layout
from resources.corpora.assemble import Converted, assemble, conversations, read_each
from resources.corpora.records import TURN_SEPARATOR, read_texts

WINNERS_100K = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5, "tie (bothbad)": 0.5}
WINNERS_140K = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5, "both_bad": 0.5}
_SIDES_55K = {"winner_model_a": 1.0, "winner_model_b": 0.0, "winner_tie": 0.5}


def read_lmarena_100k(paths: Sequence[Path]) -> CorpusRead:
    """Return the 100k release: one vote a question, language by name.

    Ids are ``question_id``, which also names question and cluster, for no session is published.
    Of prompts that are asked very often the publisher marks the battles to keep; the others are
    set aside as ``frequent-prompt``.
    """
    return assemble(paths, _convert_100k)


def _convert_100k(path: Path) -> Converted:
    table = read_layout(path, "lmarena-100k", "dedup_tag")
    tags = table.get("dedup_tag", pd.Series(None, index=table.index, dtype=object))
    sentence = "dedup_tag of {question_id!r} is not sampled: its prompt is asked very often"
    frequent = fault(table, tags.map(_is_not_sampled), "frequent-prompt", sentence)
    seconds = pd.to_numeric(table["tstamp"], errors="coerce")
    time = pd.to_datetime(seconds, unit="s", utc=True)
    return _converted(table, "question_id", "question_id", WINNERS_100K, time, frequent)


def _is_not_sampled(tag: Any) -> bool:
    """Return whether a tag says that its battle is left out; without a tag it is kept."""
    if isinstance(tag, str):
        try:
            tag = json.loads(tag)
        except json.JSONDecodeError:
            return bool(tag != "sampled")
    return bool(isinstance(tag, dict) and tag.get("sampled") is False)


def read_lmarena_140k(paths: Sequence[Path]) -> CorpusRead:
    """Return the 140k release: sessions of several battles, language by code.

    Ids are ``id``, which also names the question; the cluster is ``evaluation_session_id``, for
    the battles of a session depend on each other though models are drawn anew.
    """
    return assemble(paths, _convert_140k)


def _convert_140k(path: Path) -> Converted:
    table = read_layout(path, "lmarena-140k")
    time = pd.to_datetime(table["timestamp"], utc=True)
    return _converted(table, "id", "evaluation_session_id", WINNERS_140K, time)


def _converted(
    table: pd.DataFrame,
    battle_id: str,
    cluster_id: str,
    winners: dict[str, float],
    time: pd.Series,
    *faults: Fault,
) -> Converted:
    """Return a release of conversations and winners by name."""
    ids = names(table[battle_id])
    texts, unreadable = conversations(table)
    battles = pd.DataFrame(
        {
            "battle_id": ids,
            "question_id": ids,
            "cluster_id": names(table[cluster_id]).fillna(ids),
            "model_a": names(table["model_a"]),
            "model_b": names(table["model_b"]),
            "human_outcome": outcomes(table["winner"], winners),
            "language": languages(table["language"]),
            "timestamp": time,
        }
    ).join(texts)
    unknown = battles["human_outcome"].isna()
    sentence = "winner is {winner!r}; expected one of {known}"
    vote = fault(table, unknown, "unknown-winner", sentence, known=", ".join(winners))
    return Converted(battles, [*faults, vote, *unreadable])


def read_lmarena_55k(paths: Sequence[Path]) -> CorpusRead:
    """Return the 55k release: texts as JSON lists, no language, time or session.

    Ids are ``id``, which also names question and cluster.
    """
    return assemble(paths, _convert_55k)


def _convert_55k(path: Path) -> Converted:
    table = read_layout(path, "lmarena-55k")
    marks = table[list(_SIDES_55K)].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    decided = np.isin(marks, (0, 1)).all(axis=1) & (marks.sum(axis=1) == 1)
    outcome = np.where(decided, marks @ np.array(list(_SIDES_55K.values())), np.nan)
    texts, faults = _texts_55k(table)
    battles = pd.DataFrame(
        {
            **dict.fromkeys(("battle_id", "question_id", "cluster_id"), names(table["id"])),
            "model_a": names(table["model_a"]),
            "model_b": names(table["model_b"]),
            "human_outcome": outcome,
        }
    ).join(texts)
    sentence = (
        "winner_model_a, winner_model_b and winner_tie are {winner_model_a!r}, "
        "{winner_model_b!r} and {winner_tie!r}; expected one 1 and two 0"
    )
    return Converted(battles, [fault(table, ~decided, "unknown-winner", sentence), *faults])


def _texts_55k(table: pd.DataFrame) -> tuple[pd.DataFrame, list[Fault]]:
    columns: dict[str, list[list[str] | None]] = {}
    faults = []
    for column in ("prompt", "response_a", "response_b"):
        columns[column], found = read_each(table, column, _texts)
        faults.append(found)
    prompts = columns["prompt"]
    texts = pd.DataFrame(
        {
            "instruction": [listed[0] if listed else None for listed in prompts],
            "completion_a": [_joined(listed) for listed in columns["response_a"]],
            "completion_b": [_joined(listed) for listed in columns["response_b"]],
            "n_turns": pd.array([len(p) if p else None for p in prompts], dtype="Int64"),
        },
        index=table.index,
    )
    return texts, faults


def _texts(published: Any) -> list[str] | None:
    return read_texts(published) if isinstance(published, str) else None


def _joined(texts: list[str] | None) -> str | None:
    return None if texts is None else TURN_SEPARATOR.join(texts)

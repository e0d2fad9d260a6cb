"""LMArena's votes of people, a battle a row: the releases of 100,000, 140,000 and 55,000."""

import json
from typing import Any

import numpy as np
import pandas as pd

from judgeline.io import assemble
from judgeline.io.layout import VOTES, Layout
from judgeline.io.published import languages, outcomes, truths
from judgeline.io.schema import Fault, fault

_WINNERS = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5}
_TAGS = "category_tag is_code"
_HARD = 6  # of the seven criteria of a prompt, from which on LMArena calls it hard
_SIDES_55K = {"winner_model_a": 1.0, "winner_model_b": 0.0, "winner_tie": 0.5}


def _100k(table: pd.DataFrame) -> assemble.Converted:
    """Return the 100k release: one vote a question, language by name, marks of frequent prompts."""
    sentence = "dedup_tag of {question_id!r} is not sampled: its prompt is asked very often"
    left_out = assemble.column_of(table, "dedup_tag").map(_is_not_sampled)
    seconds = pd.to_numeric(table["tstamp"], errors="coerce").astype(float)
    time = pd.to_datetime(seconds, unit="s", utc=True, errors="coerce")
    late = table["tstamp"].notna() & time.isna()
    untimely = fault(table, late, "unreadable-time", "tstamp is {tstamp!r}, expected seconds")
    battles = assemble.identified(table, "question_id", "question_id", timestamp=time)
    frequent = fault(table, left_out, "frequent-prompt", sentence)
    return _with_winners(table, battles, "tie (bothbad)", frequent, untimely)


def _is_not_sampled(tag: Any) -> bool:
    """Return whether a tag says that its battle is left out; without a tag it is kept."""
    if isinstance(tag, str):
        try:
            tag = json.loads(tag)
        except json.JSONDecodeError:
            return bool(tag != "sampled")
    return bool(isinstance(tag, dict) and tag.get("sampled") is False)


def _struct(published: Any) -> dict[str, Any]:
    """Return the names and values of a struct, or of its JSON; none of anything else."""
    try:
        found = json.loads(published) if isinstance(published, str) else published
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _category(tag: dict[str, Any], is_code: bool) -> str | None:
    """Return LMArena's categories of a battle: code, hard, and the tags that are true."""
    found = {"code"} if is_code else set()
    for name, marks in tag.items():
        true = {mark for mark, value in _struct(marks).items() if value is True}
        is_criteria = name.startswith("criteria")
        found |= ({"hard"} if len(true) >= _HARD else set()) if is_criteria else true
    return ";".join(sorted(found)) or None


def _140k(table: pd.DataFrame) -> assemble.Converted:
    """Return the 140k release: language by code, and sessions of several battles as clusters."""
    time, untimely = assemble.read_times(table)
    battles = assemble.identified(table, "id", "evaluation_session_id", timestamp=time)
    return _with_winners(table, battles, "both_bad", untimely)


def _with_winners(
    table: pd.DataFrame, battles: pd.DataFrame, both_bad: str, *faults: Fault
) -> assemble.Converted:
    """Return a release of conversations and winners by name; both bad is a tie too."""
    texts, unreadable = assemble.conversations(table)
    winners = {**_WINNERS, both_bad: 0.5}
    outcome = outcomes(table["winner"], winners)
    sentence = f"winner is {{winner!r}}; expected one of {', '.join(winners)}"
    vote = fault(table, outcome.isna(), "unknown-winner", sentence)
    given = (assemble.column_of(table, name) for name in _TAGS.split())
    tags, is_code = next(given), truths(next(given))
    battles = battles.assign(
        human_outcome=outcome,
        language=languages(table["language"]),
        category=[_category(_struct(tag), code) for tag, code in zip(tags, is_code, strict=True)],
    )
    return assemble.Converted(battles.join(texts), [*faults, vote, *unreadable])


def _55k(table: pd.DataFrame) -> assemble.Converted:
    """Return the 55k release: texts as JSON lists, no language, time or session."""
    marks = table[list(_SIDES_55K)].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    decided = np.isin(marks, (0, 1)).all(axis=1) & (marks.sum(axis=1) == 1)
    outcome = np.full(len(table), np.nan)
    outcome[decided] = marks[decided] @ np.array(list(_SIDES_55K.values()))
    sentence = (
        "winner_model_a, winner_model_b and winner_tie are {winner_model_a!r}, "
        "{winner_model_b!r} and {winner_tie!r}; expected one 1 and two 0"
    )
    text_columns = ("prompt", "response_a", "response_b")
    columns = [assemble.read_each(table, name, assemble.read_texts, None) for name in text_columns]
    (prompts, *answers), faults = zip(*columns, strict=True)
    turns = assemble.TURN_SEPARATOR
    joined = [[one if one is None else turns.join(one) for one in own] for own in answers]
    battles = assemble.identified(table, "id", "id", human_outcome=outcome).assign(
        instruction=[listed[0] if listed else None for listed in prompts],
        completion_a=joined[0],
        completion_b=joined[1],
        n_turns=pd.array([len(p) if p else None for p in prompts], dtype="Int64"),
    )
    undecided = fault(table, ~decided, "unknown-winner", sentence)
    return assemble.Converted(battles, [undecided, *faults])


LMARENA_100K = Layout(
    "lmarena-100k",
    ("question_id model_a model_b winner conversation_a conversation_b language tstamp",),
    advice=VOTES,
    corpus=assemble.of_tables(_100k, f"dedup_tag {_TAGS}"),
)
LMARENA_140K = Layout(
    "lmarena-140k",
    (
        "id model_a model_b winner evaluation_session_id conversation_a conversation_b language "
        "timestamp",
    ),
    advice=VOTES,
    corpus=assemble.of_tables(_140k, _TAGS),
)
LMARENA_55K = Layout(
    "lmarena-55k",
    ("id model_a model_b prompt response_a response_b winner_model_a winner_model_b winner_tie",),
    advice=VOTES,
    corpus=assemble.of_tables(_55k),
)

"""Human preferences as LMArena and ComparIA publish them, a battle a row."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgeline.io import (
    CorpusRead,
    Fault,
    categories,
    fault,
    file_columns,
    language_code,
    languages,
    names,
    outcomes,
    read_layout,
    truths,
)
from resources.corpora.assemble import (
    TURN_SEPARATOR,
    Converted,
    assemble,
    column_of,
    conversations,
    is_count,
    read_each,
    read_texts,
    read_times,
)

_WINNERS = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5}
_TAGS = "category_tag is_code"
_HARD = 6  # of the seven criteria of a prompt, from which on LMArena calls it hard
_SIDES_55K = {"winner_model_a": 1.0, "winner_model_b": 0.0, "winner_tie": 0.5}


def _battles(
    table: pd.DataFrame, ids: str, cluster: str, models: str = "model_a model_b", **others: Any
) -> pd.DataFrame:
    """Return battles with the question's id as theirs, and as their cluster if none is given."""
    own = names(table[ids])
    model_a, model_b = (names(table[model]) for model in models.split())
    clusters = names(column_of(table, cluster)).fillna(own)
    columns = {"cluster_id": clusters, "model_a": model_a, "model_b": model_b, **others}
    return pd.DataFrame({"battle_id": own, "question_id": own, **columns})


def lmarena_100k(path: Path) -> Converted:
    """Return the 100k release: one vote a question, language by name, marks of frequent prompts."""
    table = read_layout(path, "lmarena-100k", f"dedup_tag {_TAGS}")
    sentence = "dedup_tag of {question_id!r} is not sampled: its prompt is asked very often"
    left_out = column_of(table, "dedup_tag").map(_is_not_sampled)
    seconds = pd.to_numeric(table["tstamp"], errors="coerce").astype(float)
    time = pd.to_datetime(seconds, unit="s", utc=True, errors="coerce")
    late = table["tstamp"].notna() & time.isna()
    untimely = fault(table, late, "unreadable-time", "tstamp is {tstamp!r}, expected seconds")
    battles = _battles(table, "question_id", "question_id", timestamp=time)
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
    """Return LMArena's categories of a battle: code, hard, and what its tags say is true."""
    found = {"code"} if is_code else set()
    for name, marks in tag.items():
        true = {mark for mark, value in _struct(marks).items() if value is True}
        is_criteria = name.startswith("criteria")
        found |= ({"hard"} if len(true) >= _HARD else set()) if is_criteria else true
    return ";".join(sorted(found)) or None


def lmarena_140k(path: Path) -> Converted:
    """Return the 140k release: language by code, and sessions of several battles as clusters."""
    table = read_layout(path, "lmarena-140k", _TAGS)
    time, untimely = read_times(table)
    battles = _battles(table, "id", "evaluation_session_id", timestamp=time)
    return _with_winners(table, battles, "both_bad", untimely)


def _with_winners(
    table: pd.DataFrame, battles: pd.DataFrame, both_bad: str, *faults: Fault
) -> Converted:
    """Return a release of conversations and winners by name; both bad is a tie too."""
    texts, unreadable = conversations(table)
    winners = {**_WINNERS, both_bad: 0.5}
    outcome = outcomes(table["winner"], winners)
    sentence = "winner is {winner!r}; expected one of {known}"
    known = ", ".join(winners)
    vote = fault(table, outcome.isna(), "unknown-winner", sentence, known=known)
    tags, is_code = column_of(table, "category_tag"), truths(column_of(table, "is_code"))
    battles = battles.assign(
        human_outcome=outcome,
        language=languages(table["language"]),
        category=[_category(_struct(tag), code) for tag, code in zip(tags, is_code, strict=True)],
    )
    return Converted(battles.join(texts), [*faults, vote, *unreadable])


def lmarena_55k(path: Path) -> Converted:
    """Return the 55k release: texts as JSON lists, no language, time or session."""
    table = read_layout(path, "lmarena-55k")
    marks = table[list(_SIDES_55K)].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    decided = np.isin(marks, (0, 1)).all(axis=1) & (marks.sum(axis=1) == 1)
    outcome = np.full(len(table), np.nan)
    outcome[decided] = marks[decided] @ np.array(list(_SIDES_55K.values()))
    sentence = (
        "winner_model_a, winner_model_b and winner_tie are {winner_model_a!r}, "
        "{winner_model_b!r} and {winner_tie!r}; expected one 1 and two 0"
    )
    text_columns = ("prompt", "response_a", "response_b")
    columns = [read_each(table, name, read_texts, None) for name in text_columns]
    (prompts, *answers), faults = zip(*columns, strict=True)
    joined = [[one if one is None else TURN_SEPARATOR.join(one) for one in own] for own in answers]
    battles = _battles(
        table,
        "id",
        "id",
        human_outcome=outcome,
        instruction=[listed[0] if listed else None for listed in prompts],
        completion_a=joined[0],
        completion_b=joined[1],
        n_turns=pd.array([len(p) if p else None for p in prompts], dtype="Int64"),
    )
    return Converted(battles, [fault(table, ~decided, "unknown-winner", sentence), *faults])


def read_comparia(paths: Sequence[Path]) -> CorpusRead:
    """Return ComparIA's votes: a tie where both are equal, else the side that was chosen.

    Ids are ``conversation_pair_id``, which repeats, and the first vote is kept. The cluster is
    ``session_hash``. A file that has ``languages`` and no votes is the conversations release: it
    gives the language of a pair, which is French otherwise.
    """
    wanted = {"conversation_pair_id", "languages"}
    columns = {path: set(file_columns(path)) for path in paths}
    spoken = [path for path, own in columns.items() if wanted <= own and "both_equal" not in own]
    votes = [path for path in paths if path not in spoken]
    if not votes:
        raise ValueError(
            f"{', '.join(str(path) for path in paths)} holds conversations and no votes; add "
            "votes.parquet to the location in corpora.yaml"
        )
    known = None
    if spoken:
        tables = [pd.read_parquet(path, columns=sorted(wanted)) for path in spoken]
        firsts = [one.drop_duplicates("conversation_pair_id") for one in tables]
        by_pair = pd.concat(firsts).set_index("conversation_pair_id")["languages"]
        known = by_pair.map(_first_language)
    return assemble(votes, lambda path: _comparia(path, known))


def _first_language(published: Any) -> str | None:
    listed = published.tolist() if isinstance(published, np.ndarray) else published
    if isinstance(listed, str):
        listed = [part.strip(" '\"") for part in listed.strip("[]").split(",")]
    codes = [language_code(one) for one in listed] if isinstance(listed, list) else []
    return next((code for code in codes if code is not None), None)


def _comparia(path: Path, known: pd.Series | None) -> Converted:
    optional = "opening_msg conv_turns session_hash timestamp languages selected_category"
    table = read_layout(path, "comparia", optional)
    given = {name: column_of(table, name) for name in optional.split()}
    texts, faults = conversations(table)
    n_turns = pd.to_numeric(given["conv_turns"], errors="coerce").astype(float)
    wrong = given["conv_turns"].notna() & ~is_count(n_turns)
    turns = fault(table, wrong, "unreadable-turns", "conv_turns is {conv_turns!r}, no count")
    time, untimely = read_times(table)
    battles = _battles(
        table,
        "conversation_pair_id",
        "session_hash",
        "model_a_name model_b_name",
        **texts.assign(
            instruction=given["opening_msg"].fillna(texts["instruction"]),
            n_turns=n_turns.where(is_count(n_turns)).astype("Int64").fillna(texts["n_turns"]),
        ),
        category=categories(given["selected_category"]),
        timestamp=time,
    )
    language = given["languages"].map(_first_language)
    if known is not None:
        language = language.fillna(battles["battle_id"].map(known))
    chosen = names(table["chosen_model_name"])
    outcome = pd.Series(np.nan, index=table.index)
    for side, share in (("model_b", 0.0), ("model_a", 1.0)):
        outcome[chosen.eq(battles[side]).fillna(value=False)] = share
    outcome[truths(table["both_equal"])] = 0.5
    silent = table["chosen_model_name"].isna() & outcome.isna()
    sentence = (
        "chosen_model_name is {chosen_model_name!r}, which is neither {model_a_name!r} nor "
        "{model_b_name!r}"
    )
    undecided = [
        fault(table, silent, "no-decision", "no model was chosen and none called equal"),
        fault(table, outcome.isna(), "unknown-winner", sentence),
    ]
    battles = battles.assign(human_outcome=outcome, language=language.fillna("fr"))
    return Converted(battles, [*undecided, turns, untimely, *faults])


VOTES = {"lmarena-100k": lmarena_100k, "lmarena-140k": lmarena_140k, "lmarena-55k": lmarena_55k}
"""Readers of votes by name."""

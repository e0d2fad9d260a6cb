"""Our own layout: battles as Parquet, JSON lines or CSV, with few columns needed."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from judgeline.io import (
    EXPECTED_WINNERS,
    STATED_AS,
    CorpusRead,
    Fault,
    fault,
    languages,
    names,
    outcomes_by_code,
    outcomes_by_winner,
    read_layout,
    require_known_codes,
    without_blanks,
)
from resources.corpora.assemble import Converted, assemble
from resources.corpora.recorded import with_verdicts, without_verdicts
from resources.corpora.records import encodable

_STATE_CODES = (
    f"State the codes as 'outcomes: {{codes}}' ({STATED_AS}) of this corpus in "
    "corpora.yaml, or convert the column"
)
_TEXTS = ("instruction", "completion_a", "completion_b")
_OPTIONAL = (
    "battle_id question_id cluster_id instruction completion_a completion_b language n_turns "
    "timestamp"
)


def read_battles(paths: Sequence[Path], stated: Mapping[str, float] | None = None) -> CorpusRead:
    """Return battles of our own layout.

    Needed are ``model_a``, ``model_b`` and either ``human_outcome`` (1, 0.5 or 0, A's share of the
    win) or ``winner`` (model_a, model_b, tie, a model's name), empty where nobody voted;
    ``stated`` gives the share by code where a file has others. A battle without ``battle_id``
    gets one that hashes models, question and texts, with a counter for repeated content, so that
    rows can be added without changing it; a battle without ``question_id`` has a hash of its
    instruction, or its own id where there is no text.

    Where a file is called ``battles.parquet``, ``verdicts.parquet`` beside it holds verdicts that
    came with it.
    """
    files = without_verdicts(paths)
    return with_verdicts(assemble(files, partial(_convert, stated=stated)), files)


def _convert(path: Path, stated: Mapping[str, float] | None) -> Converted:
    table = read_layout(path, "battles", _OPTIONAL)
    columns = {name: _column(table, name) for name in _OPTIONAL.split()}
    texts = {name: columns[name].map(encodable, na_action="ignore") for name in _TEXTS}
    outcome, vote = _outcomes(table, path, stated)
    n_turns = pd.to_numeric(columns["n_turns"], errors="coerce")
    time = pd.to_datetime(columns["timestamp"], utc=True, errors="coerce", format="ISO8601")
    battles = pd.DataFrame(
        {
            "model_a": names(table["model_a"]),
            "model_b": names(table["model_b"]),
            "human_outcome": outcome,
            **texts,
            "language": languages(columns["language"]),
            "n_turns": n_turns.where(_is_count(n_turns)),
            "timestamp": time,
        }
    )
    given = {name: names(columns[name]) for name in ("battle_id", "question_id", "cluster_id")}
    battles = battles.assign(**_identified(battles, given))
    turns_wrong = columns["n_turns"].notna() & ~_is_count(n_turns)
    time_wrong = columns["timestamp"].notna() & time.isna()
    return Converted(
        battles,
        [
            vote,
            fault(table, turns_wrong, "unreadable-turns", "n_turns is {n_turns!r}, no count"),
            fault(table, time_wrong, "unreadable-time", "timestamp is {timestamp!r}, not ISO 8601"),
        ],
    )


def _is_count(numbers: pd.Series) -> pd.Series:
    return numbers.ge(1) & numbers.mod(1).eq(0)


def _outcomes(
    table: pd.DataFrame, path: Path, stated: Mapping[str, float] | None
) -> tuple[pd.Series, Fault]:
    """Return A's share of the win, and the votes whose code has no meaning."""
    name = "human_outcome" if "human_outcome" in table else "winner"
    published = without_blanks(table[name])
    if stated is not None:
        outcome, expected = outcomes_by_code(published, stated), ", ".join(stated)
    elif name == "winner":
        outcome, expected = outcomes_by_winner(published, table), EXPECTED_WINNERS
    else:
        numbers = pd.to_numeric(published, errors="coerce").astype(float)
        outcome, expected = numbers.where(numbers.isin([0.0, 0.5, 1.0])), "1, 0.5, 0"
    if stated is None:
        require_known_codes(published, outcome.notna(), f"{path}: column {name}", _STATE_CODES)
    wrong = published.notna() & outcome.isna()
    sentence = f"{name} is {{{name}!r}}; expected one of {{known}}, or empty"
    return outcome, fault(table, wrong, "unknown-winner", sentence, known=expected)


def _identified(battles: pd.DataFrame, given: dict[str, pd.Series]) -> dict[str, pd.Series]:
    asked = battles["instruction"].map(lambda text: f"q-{_digest(text)}", na_action="ignore")
    question = given["question_id"].fillna(asked.astype("str"))
    parts = pd.DataFrame(
        {"question": question, **battles[["model_a", "model_b", "completion_a", "completion_b"]]}
    )
    parts = parts.astype("str").fillna("")
    content = pd.Series(
        [_digest("\x1f".join(row)) for row in parts.itertuples(index=False)],
        index=battles.index,
        dtype="str",
    )
    occurrence = content.groupby(content).cumcount().astype(str)
    battle_id = given["battle_id"].fillna(content + "-" + occurrence)
    question = question.fillna(battle_id)
    return {
        "battle_id": battle_id,
        "question_id": question,
        "cluster_id": given["cluster_id"].fillna(question),
    }


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    if name in table:
        return table[name]
    return pd.Series(np.full(len(table), None), index=table.index, dtype=object)

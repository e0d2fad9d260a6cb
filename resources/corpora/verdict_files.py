"""Verdict files of other programs: outcomes that a judge gave, without rubric scores.

What belongs here: what the readers of such files share, from records to battles and recorded
verdicts. What does not: what a label of one program means (its reader). No score is made up: a
verdict has the outcome that its file states, or none and a failure class.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from judgeline.io import (
    BATTLE_DTYPES,
    QUARANTINE_DTYPES,
    VERDICT_DTYPES,
    CorpusRead,
    empty,
    judge_slugs,
    layout_of,
    typed,
)
from judgeline.verdict import identity_hash
from resources.corpora.records import Record, RowError, brief, read_records, text_of

FAILED = "parse_error"
"""Class of a verdict for which its file has no outcome, whatever the reason was."""


class Told(NamedTuple):
    """A published verdict on one presentation.

    `outcome` is A's share of the win, None where it failed; `answer` its words as far as the
    file has them; `trouble` says what is wrong with an outcome that fits no rule.
    """

    order: str
    outcome: float | None
    answer: str | None
    trouble: str = ""


class Judged(NamedTuple):
    """A record: one battle, in the columns of battles, and all that one judge said of it."""

    battle: Mapping[str, Any]
    judge: str
    told: tuple[Told, ...]


class _Found(NamedTuple):
    """Rows of the three tables, read so far."""

    battles: dict[str, Mapping[str, Any]]
    quarantine: list[dict[str, Any]]
    verdicts: list[dict[str, Any]]
    seen: set[tuple[str, str]]


def read_verdict_files(
    paths: Sequence[Path],
    reader: str,
    convert: Callable[[Mapping[str, Any]], Judged],
    records_of: Callable[[Path], Iterable[Record]] = read_records,
) -> CorpusRead:
    """Return the battles and verdicts of files of one layout.

    A battle is never lost to a bad verdict: an outcome that fits no rule gives a failed verdict,
    and its record is quarantined with the reason as well. One that its publisher marks as failed is
    a failed verdict and nothing else. Of records of the same battle and judge the first counts.
    """
    found = _Found({}, [], [], set())
    for path in paths:
        records = list(records_of(path))
        keys = (key for _, record, _ in records if record is not None for key in record)
        layout_of(path, reader, list(dict.fromkeys(keys)))
        for row, record, trouble in records:
            place = {"row": row, "file": path.name}
            try:
                if record is None:
                    raise RowError("unreadable-record", trouble)
                _take(found, convert(record), place)
            except RowError as error:
                found.quarantine.append({**place, "reason": error.reason, "detail": str(error)})
    return CorpusRead(
        _table(found.battles.values(), BATTLE_DTYPES),
        _table(found.quarantine, QUARANTINE_DTYPES),
        _verdicts(found.verdicts),
    )


def _take(found: _Found, judged: Judged, place: Mapping[str, Any]) -> None:
    battle = judged.battle["battle_id"]
    if judged.battle["model_a"] == judged.battle["model_b"]:
        raise RowError("self-battle", f"{judged.battle['model_a']!r} is compared with itself")
    if (battle, judged.judge) in found.seen:
        raise RowError("duplicate-battle", f"{battle!r} came before from judge {judged.judge!r}")
    found.seen.add((battle, judged.judge))
    found.battles.setdefault(battle, judged.battle)
    found.verdicts.extend(_verdict(battle, judged.judge, told) for told in judged.told)
    troubles = "; ".join(told.trouble for told in judged.told if told.trouble)
    if troubles:
        found.quarantine.append(
            {**place, "battle_id": battle, "reason": "unknown-outcome", "detail": troubles}
        )


def _verdict(battle: str, judge: str, told: Told) -> dict[str, Any]:
    published = {
        "battle": battle,
        "judge": judge,
        "order": told.order,
        "outcome": repr(told.outcome),
        "answer": told.answer or "",
    }
    return {
        "battle_id": battle,
        "judge": judge,
        "order": told.order,
        "replicate": 0,
        "status": FAILED if told.outcome is None else "ok",
        "recorded_outcome": told.outcome,
        "answer": told.answer,
        "identity": identity_hash(published),
    }


def _verdicts(rows: list[dict[str, Any]]) -> pd.DataFrame:
    table = _table(rows, VERDICT_DTYPES)
    return typed(table.assign(judge=judge_slugs(table["judge"])), VERDICT_DTYPES)


def _table(rows: Any, dtypes: Mapping[str, str]) -> pd.DataFrame:
    listed = list(rows)
    return typed(pd.DataFrame(listed, dtype=object), dtypes) if listed else empty(dtypes)


def battle_of(
    battle_id: str, question: str, models: Sequence[str], **others: Any
) -> dict[str, Any]:
    """Return a battle of two models on a question, which is the unit of dependence too."""
    names = dict(zip(("model_a", "model_b"), models, strict=True))
    return {
        "battle_id": battle_id,
        "question_id": question,
        "cluster_id": question,
        **names,
        **others,
    }


def labelled(label: Any, words: str | None) -> str | None:
    """Return an answer whose first line is the published label, and the judge's words after it.

    `split_answer` takes it apart.
    """
    first = text_of(label)
    if words is None:
        return first
    return f"{first or ''}\n{words}"


def split_answer(answer: str | None, labels: Sequence[str]) -> tuple[str, str]:
    """Return label and words of an answer; the label is empty where it is none of `labels`."""
    label, _, words = (answer or "").partition("\n")
    return (label, words) if label in labels else ("", answer or "")


def joined(*parts: object) -> str:
    """Return an id made of parts, such that other parts make another id."""
    return ":".join(str(part).replace("%", "%25").replace(":", "%3A") for part in parts)


def unknown(label: Any, expected: str) -> str:
    """Return the sentence about an outcome that fits no rule."""
    return f"{brief(label)} is no outcome; expected {expected}"

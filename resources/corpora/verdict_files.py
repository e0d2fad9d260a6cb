"""Verdict files of other programs: outcomes that a judge gave, without rubric scores.

What belongs here: what the readers of such files share, from records to battles and recorded
verdicts. What does not: what a label of one program means (its reader). No score is made up: a
verdict has the outcome that its file states, or none and a failure class.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from judgeline.identity import identity_hash
from resources.corpora.assemble import judge_slugs
from resources.corpora.conversations import encodable
from resources.corpora.files import layout_of
from resources.corpora.schema import (
    BATTLE_DTYPES,
    QUARANTINE_DTYPES,
    CorpusRead,
    empty,
    typed,
)
from resources.judges.annotation import VERDICT_DTYPES

FAILED = "parse_error"
"""Class of a verdict for which its file has no outcome, whatever the reason was."""


class RowError(ValueError):
    """A record that tells of no battle; `reason` is the slug under which it is quarantined."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Told(NamedTuple):
    """What the judge said of one presentation.

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
    """What files held so far, as rows of the three tables."""

    battles: dict[str, Mapping[str, Any]]
    quarantine: list[dict[str, Any]]
    verdicts: list[dict[str, Any]]
    seen: set[tuple[str, str]]


def read_verdict_files(
    paths: Sequence[Path], reader: str, convert: Callable[[Mapping[str, Any]], Judged]
) -> CorpusRead:
    """Return the battles and verdicts of files of one layout.

    A battle is never lost to a bad verdict: an outcome that fits no rule gives a failed verdict,
    and its record is quarantined with the reason as well. One that its publisher marks as failed
    is a failed verdict and nothing else. Of records of the same battle and judge the first counts.

    Parameters
    ----------
    paths : sequence of Path
        JSON lines, or JSON lists.
    reader : str
        Name of the layout.
    convert : callable
        Reads one record; raises `RowError` for one that tells of no battle.

    Raises
    ------
    ValueError
        If a file is empty, is neither JSON lines nor a JSON list, or has another layout, or two
        judges share a slug.
    """
    found = _Found({}, [], [], set())
    for path in paths:
        records = list(_records(path))
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


# Records


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | None, str]]:
    """Yield position, record and what is wrong with it, of JSON lines or one JSON list."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 ({error}); download or write it again") from error
    if not text.strip():
        raise ValueError(f"{path} is empty; download or write it again")
    return _listed(path, text) if text.lstrip().startswith("[") else _lines(text)


def _listed(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any] | None, str]]:
    try:
        elements = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} begins like a JSON list and is none ({error}); download or write it again"
        ) from error
    for row, element in enumerate(elements):
        yield row, *_object(element)


def _lines(text: str) -> Iterator[tuple[int, Mapping[str, Any] | None, str]]:
    lines = (line for line in text.split("\n") if line.strip())
    for row, line in enumerate(lines):
        try:
            yield row, *_object(json.loads(line))
        except (ValueError, RecursionError) as error:
            yield row, None, f"not JSON: {error}"


def _object(value: Any) -> tuple[Mapping[str, Any] | None, str]:
    if isinstance(value, dict):
        return value, ""
    return None, f"{type(value).__name__}, expected an object"


# Fields of a record


def name_of(record: Mapping[str, Any], key: str, reason: str) -> str:
    """Return the name under a key, without blanks around it.

    Raises
    ------
    RowError
        If it is no text, or empty.
    """
    value = record.get(key)
    if not isinstance(value, str) or not value.strip():
        raise RowError(reason, f"{key} is {_brief(value)}, expected a name")
    return encodable(value.strip())


def id_of(record: Mapping[str, Any], *keys: str) -> str:
    """Return the first of some keys that holds a number or text that names a question.

    Raises
    ------
    RowError
        If none does.
    """
    for key in keys:
        value = record.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return encodable(value.strip())
    raise RowError("missing-question", f"{keys[0]} is {_brief(record.get(keys[0]))}, expected one")


def text_of(value: Any) -> str | None:
    """Return text as it is, nothing as None, and anything else as compact JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return encodable(value)
    return encodable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


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
    return f"{_brief(label)} is no outcome; expected {expected}"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"

"""Verdict files of other programs: outcomes that a judge gave, without rubric scores."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from judgeline.io import (
    BATTLE_DTYPES,
    QUARANTINE_DTYPES,
    VERDICT_DTYPES,
    CorpusRead,
    judge_slugs,
    layout_of,
    typed,
)
from judgeline.verdict import identity_hash
from resources.corpora.records import Record, RowError, read_records, text_of

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
    judged: dict[tuple[str, str], Judged] = {}
    quarantine: list[dict[str, Any]] = []
    for path in paths:
        records = list(records_of(path))
        keys = (key for _, record, _ in records if record is not None for key in record)
        layout_of(path, reader, list(dict.fromkeys(keys)))
        for row, record, trouble in records:
            aside = {"row": row, "file": path.name}
            try:
                if record is None:
                    raise RowError("unreadable-record", trouble)
                one = convert(record)
                aside |= _add(judged, one)
            except RowError as error:
                aside |= {"reason": error.reason, "detail": str(error)}
            if "reason" in aside:
                quarantine.append(aside)
    battles: dict[str, Mapping[str, Any]] = {}
    for (name, _), one in judged.items():
        battles.setdefault(name, one.battle)
    verdicts = _table([_verdict(*key, told) for key in judged for told in judged[key].told])
    return CorpusRead(
        _table(battles.values(), BATTLE_DTYPES),
        _table(quarantine, QUARANTINE_DTYPES),
        verdicts.assign(judge=judge_slugs(verdicts["judge"])).astype({"judge": "str"}),
    )


def _add(judged: dict[tuple[str, str], Judged], one: Judged) -> dict[str, str]:
    """Add a record to those that count; return why it is quarantined all the same, if so."""
    battle = one.battle["battle_id"]
    if one.battle["model_a"] == one.battle["model_b"]:
        raise RowError("self-battle", f"{one.battle['model_a']!r} is compared with itself")
    if (battle, one.judge) in judged:
        raise RowError("duplicate-battle", f"{battle!r} came before from judge {one.judge!r}")
    judged[battle, one.judge] = one
    troubles = "; ".join(told.trouble for told in one.told if told.trouble)
    aside = {"battle_id": battle, "reason": "unknown-outcome", "detail": troubles}
    return aside if troubles else {}


def _verdict(battle: str, judge: str, told: Told) -> dict[str, Any]:
    call = {"judge": judge, "order": told.order}
    said = {"outcome": repr(told.outcome), "answer": told.answer or ""}
    return {
        "battle_id": battle,
        **call,
        "replicate": 0,
        "status": FAILED if told.outcome is None else "ok",
        "recorded_outcome": told.outcome,
        "answer": told.answer,
        "identity": identity_hash({"battle": battle, **call, **said}),
    }


def _table(rows: Iterable[Any], dtypes: Mapping[str, str] = VERDICT_DTYPES) -> pd.DataFrame:
    return typed(pd.DataFrame(list(rows), dtype=object), dtypes)


def battle_of(
    battle_id: str, question: str, model_a: str, model_b: str, **others: Any
) -> dict[str, Any]:
    """Return a battle of two models on a question, which is the unit of dependence too."""
    ids = {"battle_id": battle_id, "question_id": question, "cluster_id": question}
    return {**ids, "model_a": model_a, "model_b": model_b, **others}


def labelled(label: Any, words: str | None) -> str | None:
    """Return an answer whose first line is the published label, and the judge's words after it."""
    first = text_of(label)
    return first if words is None else f"{first or ''}\n{words}"


def split_answer(answer: str | None, labels: Sequence[str]) -> tuple[str, str]:
    """Return label and words of an answer; the label is empty where it is none of `labels`."""
    label, _, words = (answer or "").partition("\n")
    return (label, words) if label in labels else ("", answer or "")


def joined(*parts: object) -> str:
    """Return an id made of parts, such that other parts make another id."""
    return ":".join(str(part).replace("%", "%25").replace(":", "%3A") for part in parts)

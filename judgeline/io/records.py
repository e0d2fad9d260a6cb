"""Files of records, each a battle with one judge's verdict, as battles and verdicts.

A layout of `judgeline.io.layouts` turns one record into a battle and its verdicts.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from judgeline.io.layout import Layout, Stated
from judgeline.io.published import judge_slugs
from judgeline.io.schema import SELF_BATTLE, CorpusRead, typed
from judgeline.suggest import quoted
from judgeline.tables.corpus import BATTLE_DTYPES, QUARANTINE_DTYPES, VERDICT_DTYPES
from judgeline.verdict import identity_hash, readable

Record = Mapping[str, Any] | str
"""A record of a file, or what is wrong with it."""


class RowError(ValueError):
    """A record without a battle; `reason` is the slug under which it is quarantined."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def read_records(path: Path) -> list[Record]:
    """Return the records of JSON lines or of one JSON list."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 ({error}); download or write it again") from error
    if not text.strip():
        raise ValueError(f"{path} is empty; download or write it again")
    if not text.lstrip().startswith("["):
        return [_record(line, is_line=True) for line in text.split("\n") if line.strip()]
    try:
        return [_record(one) for one in json.loads(text)]
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} begins like a JSON list and is none ({error}); download or write it again"
        ) from error


def _record(value: Any, *, is_line: bool = False) -> Record:
    if is_line:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            return f"not JSON: {error}"
    return value if isinstance(value, dict) else f"{type(value).__name__}, expected an object"


def name_of(record: Mapping[str, Any], key: str, reason: str) -> str:
    """Return the name under a key, without blanks around it."""
    value = record.get(key)
    if isinstance(value, str) and value.strip():
        return readable(value.strip())
    raise RowError(reason, f"{key} is {quoted(value)}, expected a name")


def id_of(record: Mapping[str, Any], *keys: str) -> str:
    """Return the first of some keys that holds a number or text that names a question."""
    for value in map(record.get, keys):
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return readable(value.strip())
    raise RowError("missing-question", f"{keys[0]} is {quoted(record.get(keys[0]))}, expected one")


def text_of(value: Any) -> str | None:
    """Return a JSON value as text: strings unchanged, null as None, others as compact JSON."""
    if value is None or isinstance(value, str):
        return value and readable(value)
    return readable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


FAILED = "parse_error"
"""Class of a verdict for which its file has no outcome, whatever the reason was."""


class PublishedVerdict(NamedTuple):
    """A published verdict: A's share of the win (None: failed), the words, and what is wrong."""

    order: str
    outcome: float | None
    answer: str | None
    trouble: str = ""


class Judged(NamedTuple):
    """A record: one battle, in the columns of battles, and one judge's verdicts on it."""

    battle: Mapping[str, Any]
    judge: str
    told: tuple[PublishedVerdict, ...]


def of_records(
    convert: Callable[[Mapping[str, Any]], Judged],
    records_of: Callable[[Path], Sequence[Record]] = read_records,
) -> Callable[[Layout, Sequence[Path], Stated], CorpusRead]:
    """Return the reader of a layout each of whose records is a battle."""
    return lambda layout, paths, _: read_verdict_files(layout, paths, convert, records_of)


def read_verdict_files(
    layout: Layout,
    paths: Sequence[Path],
    convert: Callable[[Mapping[str, Any]], Judged],
    records_of: Callable[[Path], Sequence[Record]] = read_records,
) -> CorpusRead:
    """Return the battles and verdicts of files of one layout.

    A battle is never lost to a bad verdict: an outcome that fits no rule gives a failed verdict,
    and its record is quarantined with the reason as well. One that its publisher marks as failed is
    a failed verdict and nothing else. Of records of the same battle and judge the first counts.
    """
    judged: dict[tuple[str, str], Judged] = {}
    quarantine: list[dict[str, Any]] = []
    for path in paths:
        records = records_of(path)
        keys = (key for record in records if not isinstance(record, str) for key in record)
        layout.needed(path, list(dict.fromkeys(keys)))
        for row, record in enumerate(records):
            try:
                if isinstance(record, str):
                    raise RowError("unreadable-record", record)
                aside = _add(judged, convert(record))
            except RowError as error:
                aside = {"reason": error.reason, "detail": str(error)}
            if aside:
                quarantine.append({"row": row, "file": path.name, **aside})
    battles: dict[str, Mapping[str, Any]] = {}
    for (name, _), one in judged.items():
        battles.setdefault(name, one.battle)
    verdicts = _table([_row(*key, told) for key, one in judged.items() for told in one.told])
    return CorpusRead(
        _table(battles.values(), BATTLE_DTYPES),
        _table(quarantine, QUARANTINE_DTYPES),
        verdicts.assign(judge=judge_slugs(verdicts["judge"])).astype({"judge": "str"}),
    )


def _add(judged: dict[tuple[str, str], Judged], one: Judged) -> dict[str, str]:
    """Add a record to those that count; return why it is quarantined all the same, if so."""
    battle = one.battle["battle_id"]
    if one.battle["model_a"] == one.battle["model_b"]:
        raise RowError(SELF_BATTLE[0], SELF_BATTLE[1].format_map(one.battle))
    if (battle, one.judge) in judged:
        raise RowError("duplicate-battle", f"{battle!r} came before from judge {one.judge!r}")
    judged[battle, one.judge] = one
    troubles = "; ".join(told.trouble for told in one.told if told.trouble)
    aside = {"battle_id": battle, "reason": "unknown-outcome", "detail": troubles}
    return aside if troubles else {}


def _row(battle: str, judge: str, told: PublishedVerdict) -> dict[str, Any]:
    call = {"judge": judge, "order": told.order}
    said = {"outcome": repr(told.outcome), "answer": told.answer or ""}
    return {
        **call,
        "battle_id": battle,
        "replicate": 0,
        "status": FAILED if told.outcome is None else "ok",
        "recorded_outcome": told.outcome,
        "answer": told.answer,
        "identity": identity_hash({"battle": battle, **call, **said}),
    }


def _table(rows: Iterable[Any], dtypes: Mapping[str, str] = VERDICT_DTYPES) -> pd.DataFrame:
    return typed(pd.DataFrame(list(rows), dtype=object), dtypes)


def battle_of(question: str, model_a: str, model_b: str, **others: Any) -> dict[str, Any]:
    """Return a battle of two models on a question, which is the unit of dependence too."""
    names = {"model_a": model_a, "model_b": model_b}
    ids = {"battle_id": joined(question, model_a, model_b), "question_id": question}
    return {**ids, "cluster_id": question, **names, **others}


def labelled(label: Any, words: str | None) -> str | None:
    """Return an answer whose first line is the published label, and the judge's words after it."""
    first = text_of(label)
    return first if words is None else f"{first or ''}\n{words}"


def joined(*parts: object) -> str:
    """Return an id made of parts, such that other parts make another id."""
    return ":".join(str(part).replace("%", "%25").replace(":", "%3A") for part in parts)


def verdict_of(
    order: str,
    published: Any,
    share_of: Callable[[Any], float | None],
    expected: str,
    answer: str | None,
    key: str = "",
) -> PublishedVerdict:
    """Return a verdict; `share_of` has A's share, None of a failure, or raises of no outcome."""
    try:
        return PublishedVerdict(order, share_of(published), answer)
    except (KeyError, TypeError, ValueError):
        trouble = f"{key}{quoted(published)} is no outcome; expected {expected}"
        return PublishedVerdict(order, None, answer, trouble)


def models_of(record: Mapping[str, Any], *keys: str) -> list[str]:
    """Return the names of models under some keys."""
    return [name_of(record, key, "missing-model") for key in keys]

"""Explanations of store hits and misses: the part of a call's identity that differs."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from resources.store.verdicts import VerdictStore

_COLUMNS = ("identity", "status", "answered_at", "judge", "battle_id", "order", "parts")
_TEXTS = ("instruction", "first_completion", "second_completion")
_NAMES = {
    "instruction": "the instruction",
    "first_completion": "the first text",
    "second_completion": "the second text",
    "judge.template": "the template",
}
_LONG = 80


class Nearest(NamedTuple):
    """The stored verdict that differs least from a call, and in what, one phrase a part."""

    judge: str
    battle_id: str
    order: str
    status: str
    differences: tuple[str, ...]


def verdicts_of_battle(
    store: VerdictStore, battle_id: str, parts: Mapping[str, str]
) -> pd.DataFrame:
    """Return the stored verdicts of a battle by any judge, found by id or by texts."""
    texts = {parts[name] for name in _TEXTS}
    found = []
    for key in store.judge_keys():
        table = store.scan(key, _COLUMNS).table
        same_battle = pc.equal(table["battle_id"], battle_id)
        same_question = pc.match_substring(table["parts"], parts["instruction"])
        rows = table.filter(pc.or_(same_battle, same_question)).to_pandas()
        own = [set(_texts(json.loads(text))) == texts for text in rows["parts"]]
        found.append(rows[rows["battle_id"].eq(battle_id) | pd.Series(own, rows.index, dtype=bool)])
    empty = pa.table({name: pa.array([], pa.string()) for name in _COLUMNS}).to_pandas()
    return pd.concat(found, ignore_index=True) if found else empty


def nearest(stored: pd.DataFrame, order: str, parts: Mapping[str, str]) -> Nearest | None:
    """Return the stored verdict with the fewest differing parts; of equals that of this order.

    None where nothing is stored of the battle.
    """
    candidates = [
        (row, _differences(json.loads(row["parts"]), parts)) for row in stored.to_dict("records")
    ]
    if not candidates:
        return None

    def distance(candidate: tuple[dict[str, Any], tuple[str, ...]]) -> tuple[int, bool, int]:
        row, differences = candidate
        return len(differences), row["order"] != order, -row["answered_at"].value

    row, differences = min(candidates, key=distance)
    return Nearest(row["judge"], row["battle_id"], row["order"], row["status"], differences)


def _differences(stored: Mapping[str, str], parts: Mapping[str, str]) -> tuple[str, ...]:
    names = sorted({*stored, *parts})
    return tuple(
        _told(name, stored.get(name), parts.get(name))
        for name in names
        if stored.get(name) != parts.get(name)
    )


def _told(name: str, was: str | None, now: str | None) -> str:
    if name in _NAMES:
        return _NAMES[name]
    what = name.replace("judge.", "judge setting ", 1)
    return f"{what} (stored {_shown(was, now)}, now {_shown(now, was)})"


def _shown(value: str | None, other: str | None) -> str:
    """Return a setting for people; of two objects in JSON only the keys that differ."""
    if value is None:
        return "nothing"
    own, others = _object(value), _object(other or "")
    if own and others:
        value = ", ".join(f"{k} {own[k]!r}" for k in own if own[k] != others.get(k)) or "fewer keys"
    return value if len(value) <= _LONG else f"{value[: _LONG - 1]}…"


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _texts(parts: Mapping[str, str]) -> list[str]:
    return [parts[name] for name in _TEXTS]

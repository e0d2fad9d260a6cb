"""Command `judgeline verdicts explain`: store hits and misses, by the parts of an identity."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from upath import UPath

from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition, load_corpora
from resources.config.paths import verdicts_uri
from resources.judges import judge as calls
from resources.judges.buying import is_retried
from resources.judges.catalog import open_judge, was_probed
from resources.store.verdicts import VerdictStore
from resources.tables.store import open_store

Row = tuple[str, int, str, str]

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
    """The stored verdict with the fewest differences from a call, a phrase for each."""

    judge: str
    battle_id: str
    order: str
    status: str
    differences: tuple[str, ...]


def explain_battle(battle: str, judge: str, corpus: str | None = None) -> tuple[str, list[Row]]:
    """Return the corpus of a battle, and per call its order, replicate, fate and reason."""
    definition = Catalog().judge(judge)
    if definition.kind == "recorded":
        raise ValueError(
            f"judge {judge!r} is recorded: its verdicts came with the corpus and are never asked "
            "for; name a judge of another kind"
        )
    found, row = _find(battle, corpus)
    store = VerdictStore(UPath(verdicts_uri()))
    shown = calls.present(row, definition.replicates)
    if definition.kind == "openai" and not was_probed(definition):
        why = "its endpoint was never asked what it supports: no verdict of it can be stored"
        return found.slug, [(one.order, one.replicate, "miss", why) for one in shown]
    opened = open_judge(definition, found)
    stored, _ = store.find(
        calls.judge_key(opened), [calls.call_identity(opened, one) for one in shown]
    )
    known = {row["identity"]: row for row in stored.to_dict("records")}
    return found.slug, [
        (one.order, one.replicate, *_fate(store, opened, one, known)) for one in shown
    ]


def _fate(
    store: VerdictStore, judge: calls.Judge, call: calls.Presentation, known: Mapping[str, Any]
) -> tuple[str, str]:
    row = known.get(calls.call_identity(judge, call))
    if row is None:
        parts = calls.call_parts(judge, call)
        near = nearest(verdicts_of_battle(store, call.battle_id, parts), call.order, parts)
        return "miss", (
            "no verdict of this battle is stored"
            if near is None
            else f"the nearest stored verdict (of {near.judge}, battle {near.battle_id}, order "
            f"{near.order}) differs in {'; '.join(near.differences)}"
        )
    status, n_attempts = row["status"], int(row["n_attempts"])
    model, words = (  # of a server, which may have had none
        value if isinstance(value, str) else "" for value in (row["reply_model"], row["said"])
    )
    if status == "ok":
        return "hit", f"answered by {model}" if model else "answered"
    tries = f" {n_attempts} times" if n_attempts > 1 else ""
    came = f"answered with {status}{tries}{f' ({words})' if words else ''}"
    if is_retried(status, n_attempts):
        return "miss", f"{came}, which is asked for again"
    return "hit", f"{came}; --retry {status} asks for it again"


def _find(battle: str, corpus: str | None) -> tuple[CorpusDefinition, pd.DataFrame]:
    known, tables = load_corpora(), open_store()
    read = []
    for slug in [Catalog().corpus(corpus).slug] if corpus else known:
        for name in ("sampled_battles", "battles"):
            if (table := tables.stored(name, slug)) is None:
                continue
            read.append(slug)
            if (own := table["battle_id"].eq(battle)).any():
                return known[slug], table[own].head(1)
    where = f"corpus {corpus!r}" if corpus else "any configured corpus"
    remedy = f"make them first: judgeline run --corpus {corpus or 'SLUG'} --select group:corpus"
    if read:
        those = (
            ""
            if corpus
            else f", or read its corpus (read so far: {', '.join(dict.fromkeys(read))})"
        )
        remedy = f"correct the id{those}"
    raise ValueError(f"no battle {battle!r} in the tables of {where}; {remedy}")


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

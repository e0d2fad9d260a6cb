"""Command `judgeline verdicts`: a stored answer of a call explained, or why there is none."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from upath import UPath

from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition, load_corpora
from resources.config.paths import verdicts_uri
from resources.judges import judge as calls
from resources.judges.buying import is_retried
from resources.judges.catalog import open_judge, was_probed
from resources.store.explaining import nearest, verdicts_of_battle
from resources.store.verdicts import VerdictStore
from resources.tables.store import open_store

Row = tuple[str, int, str, str]


def explain_battle(
    battle: str, judge: str, corpus: str | None = None, *, store: VerdictStore | None = None
) -> tuple[str, list[Row]]:
    """Return the corpus of a battle, and per call its order, replicate, fate and reason."""
    definition = Catalog().judge(judge)
    if definition.kind == "recorded":
        raise ValueError(
            f"judge {judge!r} is recorded: its verdicts came with the corpus and are never asked "
            "for; name a judge of another kind"
        )
    found, row = _find(battle, corpus)
    store = store or VerdictStore(UPath(verdicts_uri()))
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

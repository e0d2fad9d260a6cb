"""Command `judgeline verdicts`: a stored answer of a call explained, or why there is none."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from upath import UPath

from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition, load_corpora
from resources.config.judges import JudgeDefinition
from resources.config.paths import verdicts_uri
from resources.judges.buying import is_retried
from resources.judges.catalog import open_judge, was_probed
from resources.judges.judge import (
    Judge,
    Presentation,
    call_identity,
    call_parts,
    judge_key,
    present,
)
from resources.store.explaining import nearest, verdicts_of_battle
from resources.store.verdicts import VerdictStore
from resources.tables.store import open_store

_TABLES = ("sampled_battles", "battles")

Row = tuple[str, int, str, str]


def explain_battle(
    battle: str, judge: str, corpus: str | None = None, *, store: VerdictStore | None = None
) -> tuple[str, list[Row]]:
    """Return the corpus of a battle, and per call its order, replicate, fate and reason."""
    definition = _configured(judge)
    found, row = _find(battle, corpus)
    store = store or VerdictStore(UPath(verdicts_uri()))
    shown = present(row, definition.replicates)
    if definition.kind == "openai" and not was_probed(definition):
        why = "its endpoint was never asked what it supports: no verdict of it can be stored"
        return found.slug, [(one.order, one.replicate, "miss", why) for one in shown]
    opened = open_judge(definition, found)
    stored, _ = store.find(judge_key(opened), [call_identity(opened, one) for one in shown])
    known = {row["identity"]: row for row in stored.to_dict("records")}
    return found.slug, [
        (one.order, one.replicate, *_fate(store, opened, one, known)) for one in shown
    ]


def _fate(
    store: VerdictStore, judge: Judge, call: Presentation, known: Mapping[str, Any]
) -> tuple[str, str]:
    row = known.get(call_identity(judge, call))
    if row is None:
        return "miss", _why_not(store, judge, call)
    status, n_attempts = row["status"], int(row["n_attempts"])
    if status == "ok":
        return "hit", f"answered{_shown(' by {}', row['reply_model'])}"
    tries = f" {n_attempts} times" if n_attempts > 1 else ""
    came = f"answered with {status}{tries}{_shown(' ({})', row['said'])}"
    if is_retried(status, n_attempts):
        return "miss", f"{came}, which is asked for again"
    return "hit", f"{came}; --retry {status} asks for it again"


def _shown(form: str, words: object) -> str:
    """Return a server's words in a form, or nothing where it had none."""
    return form.format(words) if isinstance(words, str) and words else ""


def _why_not(store: VerdictStore, judge: Judge, call: Presentation) -> str:
    parts = call_parts(judge, call)
    near = nearest(verdicts_of_battle(store, call.battle_id, parts), call.order, parts)
    if near is None:
        return "no verdict of this battle is stored"
    return (
        f"the nearest stored verdict (of {near.judge}, battle {near.battle_id}, order "
        f"{near.order}) differs in {'; '.join(near.differences)}"
    )


def _configured(slug: str) -> JudgeDefinition:
    judge = Catalog().judge(slug)
    if judge.kind == "recorded":
        raise ValueError(
            f"judge {slug!r} is recorded: its verdicts came with the corpus and are never asked "
            "for; name a judge of another kind"
        )
    return judge


def _find(battle: str, corpus: str | None) -> tuple[CorpusDefinition, pd.DataFrame]:
    known = load_corpora()
    tables = open_store()
    for slug in [Catalog().corpus(corpus).slug] if corpus else known:
        for name in _TABLES:
            table = tables.stored(name, slug)
            if table is not None and table["battle_id"].eq(battle).any():
                return known[slug], table[table["battle_id"].eq(battle)].head(1)
    where = f"corpus {corpus!r}" if corpus else "any configured corpus"
    raise ValueError(
        f"no battle {battle!r} in the tables of {where}; make them first: "
        f"judgeline run --corpus {corpus or 'SLUG'} --select group:corpus"
    )

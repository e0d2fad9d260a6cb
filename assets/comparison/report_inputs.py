"""Inputs of the report beside its tables: battles with their texts, costs and runs."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import pandas as pd

from assets.provenance import OF_CORPUS, OF_JUDGE, SAID, last_made, said_of
from judgeline.report import COST_COLUMNS, MOST_PER_SIDE, Evidence, evidence_of, strongest
from resources.config.catalog import Catalog
from resources.judges.live.fields import Price
from resources.tables.store import ParquetStore

ASKING = (
    "verdicts",
    "reliability_panel",
    "score_verdicts",
    "choice_verdicts",
    "candidate_verdicts",
    "drift_answers",
)
"""Tables of answers: what a judge is asked for."""

_TEXTS = {False: ("sampled_battles", "verdicts"), True: ("candidate_battles", "candidate_verdicts")}
_COUNTED = ["status", "prompt_tokens", "completion_tokens"]


def battles_behind(
    store: ParquetStore, corpus: str, judge: str, influences: pd.DataFrame
) -> list[Evidence]:
    """Return the battles that move each rating by a judge most, with texts and answers.

    Only those few rows of the tables of battles and verdicts are kept in memory.
    """
    found = []
    for is_candidate, own in influences.groupby("is_candidate", sort=True):
        chosen = strongest(own, MOST_PER_SIDE)
        battles, verdicts = _TEXTS[bool(is_candidate)]
        ids = set(chosen["battle_id"])
        texts = store.matching(battles, corpus, column="battle_id", among=ids)
        answers = store.matching(verdicts, corpus, judge, column="battle_id", among=ids)
        if texts is not None and answers is not None:
            found += evidence_of(chosen, texts, answers)
    return found


def costs_of(
    instance: dg.DagsterInstance, store: ParquetStore, catalog: Catalog, corpus: str
) -> pd.DataFrame:
    """Return what judges were asked on a corpus and what that takes, one row per table of answers.

    Tokens are those of every answer that stands in the table, whenever it was bought; the price is
    that of as many tokens, null where none is configured.
    """
    judges = catalog.judges()
    rows = []
    for asset in ASKING:
        for judge in store.partitions(asset, corpus):
            answers = store.picked(asset, corpus, judge, columns=_COUNTED)
            if answers is not None and len(answers):
                made = last_made(instance, corpus, judge, [asset])
                account = made[0].said if made else {}
                price = judges[judge].price_per_million if judge in judges else None
                rows.append({"judge": judge, "asset": asset, **_cost(answers, account, price)})
    table = pd.DataFrame(rows, columns=list(COST_COLUMNS))
    return table.sort_values(["judge"], kind="stable", ignore_index=True)


def _cost(answers: pd.DataFrame, account: Mapping[str, Any], price: Price | None) -> dict[str, Any]:
    n_calls, tokens = _taken(answers, account)
    price = price if tokens.notna().all() else None
    return {
        "n_calls": n_calls,
        "n_failed": int(answers["status"].ne("ok").sum()),
        **tokens.astype("Int64").to_dict(),
        "price": price.of(*map(int, tokens)) if price else None,
        "currency": price.currency if price else None,
        "n_bought": account.get("n_asked"),
    }


def _taken(answers: pd.DataFrame, account: Mapping[str, Any]) -> tuple[int, pd.Series]:
    """Return calls and tokens of a table of answers; of one without tokens, from its account."""
    columns = _COUNTED[1:]
    if set(columns) <= set(answers):
        return len(answers), answers[columns].astype("Int64").sum(min_count=1)
    bought = {name: account.get(f"{name}_bought", pd.NA) for name in columns}
    return int(account.get("n_calls", len(answers))), pd.Series(bought, dtype="Int64")


def runs_behind(
    instance: dg.DagsterInstance, corpus: str, judge: str
) -> tuple[dict[str, str], pd.DataFrame]:
    """Return what a judge's ratings were made of, in words, and the runs that made each table."""
    made = last_made(instance, corpus, judge, (*OF_CORPUS, *OF_JUDGE))
    runs = [[one.asset, one.made_at, one.run_id, one.code_version] for one in made]
    columns = ["asset", "made_at", "run_id", "code_version"]
    return _words(said_of(made)), pd.DataFrame(runs, columns=columns)


def _words(said: Mapping[str, Any]) -> dict[str, str]:
    plain = {name: said[name] for name in SAID if isinstance(said.get(name), str | int)}
    return {name.replace("_", " "): str(value) for name, value in plain.items()}

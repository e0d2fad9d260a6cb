"""Forgets a judge, a corpus or a model: its tables, the verdicts bought for it, its runs."""

import sys
from collections.abc import Iterator, Mapping, Set
from functools import partial
from typing import NamedTuple

import dagster as dg
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich.console import Console
from upath import UPath

from judgeline.terminal import plain
from pipelines.instance.homes import open_instance
from resources.config.paths import home, tables_uri, verdicts_uri
from resources.store.verdicts import VerdictStore

_ENDED = {dg.DagsterRunStatus[name] for name in ("SUCCESS", "FAILURE", "CANCELED")}
_UNFINISHED = [one for one in dg.DagsterRunStatus if one not in _ENDED]


class _Stored(NamedTuple):
    """A stored table and the partition that it is of; `judge` is empty where it is a corpus'."""

    path: UPath
    asset: str
    corpus: str
    judge: str


class Forgotten(NamedTuple):
    """What goes: tables and reports, answers by key of the store, runs, and a partition's name."""

    files: list[UPath]
    answers: Mapping[str, pa.Array]
    runs: list[str]
    partition: tuple[str, str] | None = None


def forget(console: Console, kind: str, name: str, *, yes: bool, dry_run: bool) -> None:
    """State what is deleted of a judge, corpus or model, have it confirmed, and delete it."""
    store = VerdictStore(UPath(verdicts_uri()))
    with open_instance() as instance:
        found = _found(instance, store, kind, name)
        n_answers = sum(map(len, found.answers.values()))
        console.print(
            f"Stored of {kind} {plain(name)}: {len(found.files):,} tables and reports, "
            f"{n_answers:,} answers, {len(found.runs):,} records of runs."
        )
        if dry_run or not (found.files or n_answers or found.runs or found.partition):
            return
        if busy := instance.get_run_ids(dg.RunsFilter(statuses=_UNFINISHED)):
            raise ValueError(f"run {busy[0]} has not ended; wait for it, or end it, and run again")
        if not yes:
            if not sys.stdin.isatty():
                raise ValueError("nobody is there to confirm; add --yes, or look with --dry-run")
            typer.confirm("Delete them for good?", abort=True, err=True)
        _delete(found, instance, store)
    console.print(
        "Gone. Your configuration, sources and files of candidates stay: what still names it there "
        "brings it back with the next run."
    )


def _delete(found: Forgotten, instance: dg.DagsterInstance, store: VerdictStore) -> None:
    for key, identities in found.answers.items():
        store.discard(key, identities)
    for path in found.files:
        path.unlink()
    for run in found.runs:
        instance.delete_run(run)
    if found.partition:
        instance.delete_dynamic_partition(*found.partition)


def _found(instance: dg.DagsterInstance, store: VerdictStore, kind: str, name: str) -> Forgotten:
    stored = list(_stored(UPath(tables_uri())))
    battles = _battles(stored)
    own = battles["corpus"].eq(name)
    if kind == "model":
        own = battles["model_a"].eq(name) | battles["model_b"].eq(name)
    elsewhere = battles["battle_id"].isin(battles.loc[~own, "battle_id"])
    about = battles.loc[own & ~elsewhere, "battle_id"]
    answers = (
        _answers(store, "judge", pd.Series([name]))
        if kind == "judge"
        else _answers(store, "battle_id", about)
    )
    gone = [
        one
        for one in stored
        if getattr(one, kind, None) == name
        or (kind == "judge" and _names_judge(one.path, name))
        or (kind == "model" and _speaks_of(one.path, name, {*about}))
    ]
    pages = [home() / "reports" / f"{corpus}.html" for corpus in {one.corpus for one in gone}]
    files = [*(one.path for one in gone), *(UPath(page) for page in pages if page.exists())]
    if kind == "model":
        return Forgotten(files, answers, [])
    runs = instance.get_run_ids(dg.RunsFilter(tags={f"dagster/partition/{kind}": name}))
    is_known = name in instance.get_dynamic_partitions(kind)
    return Forgotten(files, answers, list(runs), (kind, name) if is_known else None)


def _stored(base: UPath) -> Iterator[_Stored]:
    for path in base.glob("*/*.parquet"):
        yield _Stored(path, path.parent.name, path.stem, "")
    for path in base.glob("*/*/*.parquet"):
        yield _Stored(path, path.parent.parent.name, path.parent.name, path.stem)


def _battles(stored: list[_Stored]) -> pd.DataFrame:
    """Return what was judged of every corpus: battles, candidates' battles and single answers."""
    columns = ["battle_id", "model_a", "model_b"]
    names = dict.fromkeys(("battles", "candidate_battles"), columns)
    names["score_verdicts"] = ["completion_id", "model", "model"]
    tables = [
        pd.read_parquet(one.path, columns=[*{*names[one.asset]}])[names[one.asset]]
        .set_axis(columns, axis=1)
        .assign(corpus=one.corpus)
        for one in stored
        if one.asset in names
    ]
    return pd.concat([pd.DataFrame(columns=[*columns, "corpus"]), *tables])


def _names_judge(path: UPath, judge: str) -> bool:
    table = pd.read_parquet(path)
    cells = {str(cell) for name in ("judge", "judges") if name in table for cell in table[name]}
    return any(judge in cell.split(", ") for cell in cells)


def _speaks_of(path: UPath, model: str, about: Set[str]) -> bool:
    """Return whether a model's name stands anywhere in a table, or one of its battles."""
    texts = pd.read_parquet(path).select_dtypes(["string", "object"])
    cells = {str(cell) for name in texts for cell in texts[name].unique()}
    return not cells.isdisjoint(about) or any(model in cell for cell in cells)


def _answers(store: VerdictStore, column: str, values: "pd.Series[str]") -> dict[str, pa.Array]:
    """Return the identities of the stored answers of a judge or of battles, by key."""
    wanted = pa.array(values.unique(), pa.string())
    scan = partial(store.scan, columns=["identity", column])
    found = {key: scan(key).table for key in store.judge_keys()}
    chosen = {
        key: table.filter(pc.is_in(table[column], value_set=wanted))["identity"].unique()
        for key, table in found.items()
    }
    return {key: identities for key, identities in chosen.items() if len(identities)}

"""Forgets a judge, a corpus or a model: its tables, the verdicts bought for it, its runs."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer
from rich.console import Console
from upath import UPath

from judgeline.atomic import write_whole
from judgeline.judges.store.keyed import is_local
from judgeline.judges.store.verdicts import VerdictStore
from judgeline.paths import home, tables_uri, verdicts_uri
from judgeline.suggest import near_names
from pipelines.commands.console import said
from pipelines.instance.homes import UNFINISHED, open_instance

RECORDS = ("candidates", "drift_answers", "predictions")
"""Tables that grow and cannot be made again: a model's rows go, the others stay."""


class _Stored(NamedTuple):
    """A stored table and the partition that it is of; `judge` is empty where it is a corpus'."""

    path: UPath
    asset: str
    corpus: str
    judge: str


class _Forgotten(NamedTuple):
    """Data to delete: tables, rows of records (the rest is here), pages, answers by key, runs."""

    tables: list[_Stored]
    records: dict[_Stored, pd.DataFrame]
    pages: list[UPath]
    answers: Mapping[str, Set[str]]
    runs: list[str]


def forget(console: Console, kind: str, name: str, *, yes: bool, dry_run: bool) -> None:
    """List the data of a judge, corpus or model, ask for confirmation, and delete them."""
    store = VerdictStore(UPath(verdicts_uri()))
    stored = list(_stored(UPath(tables_uri())))
    with open_instance() as instance:
        found = _found(instance, store, stored, kind, name)
        for line in _account(found):
            said(console, line)
        if dry_run:
            return
        _require_rest(instance)
        if not yes:
            if not sys.stdin.isatty():
                raise ValueError("nobody is there to confirm; add --yes, or look with --dry-run")
            typer.confirm("Delete them for good?", abort=True, err=True)
            _require_rest(instance)
        damaged = _delete(found, store)
        for run in found.runs:
            instance.delete_run(run)
        if kind != "model" and name in instance.get_dynamic_partitions(kind):
            instance.delete_dynamic_partition(kind, name)
    if damaged:
        raise ValueError(
            f"{len(damaged)} files of the verdict store are damaged and may hold answers still, "
            f"such as {damaged[0]}: delete them; all else is gone"
        )
    said(console, "Gone. Configuration, sources and files of candidates are yours, and stay.")


def _delete(found: _Forgotten, store: VerdictStore) -> list[str]:
    """Delete answers, tables and pages; return the damaged files of the store."""
    damaged = [one for key, ids in found.answers.items() for one in store.discard(key, ids)]
    for path in (*(one.path for one in found.tables), *found.pages):
        path.unlink(missing_ok=True)
    for one, kept in found.records.items():
        content = kept.to_parquet(index=False)
        if is_local(one.path):
            write_whole(Path(one.path.path), memoryview(content))
        else:
            one.path.write_bytes(content)
    return damaged


def _require_rest(instance: dg.DagsterInstance) -> None:
    if busy := instance.get_run_ids(dg.RunsFilter(statuses=UNFINISHED)):
        raise ValueError(f"run {busy[0]} has not ended; wait for it, or end it, and run again")


def _account(found: _Forgotten) -> Iterator[str]:
    by_asset = Counter(one.asset for one in found.tables)
    counts = ", ".join(f"{asset} {n}" for asset, n in sorted(by_asset.items()))
    yield f"{len(found.tables):,} tables{': ' if counts else ''}{counts}"
    for one, kept in found.records.items():
        yield f"rows of {one.asset}, {' '.join((one.corpus, one.judge))}: {len(kept):,} stay"
    yield f"{len(found.pages):,} reports, {len(found.runs):,} records of runs"
    n_answers = sum(map(len, found.answers.values()))
    yield f"{n_answers:,} answers, which cost again if they are asked for again"


def _found(
    instance: dg.DagsterInstance, store: VerdictStore, stored: list[_Stored], kind: str, name: str
) -> _Forgotten:
    tables = [one for one in stored if getattr(one, kind, None) == name]
    records: dict[_Stored, pd.DataFrame] = {}
    runs: list[str] = []
    battles = _battles(stored)
    if kind == "judge":
        tables += [one for one in stored if not one.judge and _names_judge(one.path, name)]
        answers = _answers(store, "judge", {name}, _identities(tables))
        of_others = _identities([one for one in stored if one.judge not in ("", name)])
        answers = {key: found - of_others for key, found in answers.items()}
    else:
        of_model = battles["model_a"].eq(name) | battles["model_b"].eq(name)
        own = of_model if kind == "model" else battles["corpus"].eq(name)
        about = {*battles.loc[own, "battle_id"]} - {*battles.loc[~own, "battle_id"]}
        answers = _answers(store, "battle_id", about, set())
        if kind == "model":
            tables, records = _about_model(stored, name, about)
    if kind != "model":
        tags = [f"dagster/partition/{kind}", *(["dagster/partition"] if kind == "corpus" else [])]
        runs = [r for tag in tags for r in instance.get_run_ids(dg.RunsFilter(tags={tag: name}))]
    corpora = {one.corpus for one in (*tables, *records)}
    pages = [UPath(home() / "reports" / f"{corpus}.html") for corpus in sorted(corpora)]
    found = _Forgotten(tables, records, [page for page in pages if page.exists()], answers, runs)
    if not any((tables, records, runs, *answers.values())):
        known = {getattr(one, kind, "") for one in stored} - {""}
        known = known or {*battles["model_a"], *battles["model_b"]}
        hint = near_names(name, map(str, known))
        raise ValueError(f"nothing is stored of {kind} {name!r}; {hint}")
    return found


def _about_model(
    stored: list[_Stored], model: str, battles: Set[str]
) -> tuple[list[_Stored], dict[_Stored, pd.DataFrame]]:
    """Return the tables about a model or its battles, and the records without their rows."""
    tables: list[_Stored] = []
    records: dict[_Stored, pd.DataFrame] = {}
    in_json = {json.dumps(model), json.dumps(model, ensure_ascii=False)}
    for one in stored:
        table = pd.read_parquet(one.path)
        texts = table.select_dtypes(["string", "object"])
        texts = texts.map(lambda cell: cell if isinstance(cell, str) else "")
        is_about = texts.isin({model, *battles}).any(axis=1)
        cells = {cell for column in texts for cell in texts[column].unique()}
        if one.asset in RECORDS:
            records |= {one: table[~is_about]} if is_about.any() else {}
        elif is_about.any() or any(quoted in cell for cell in cells for quoted in in_json):
            tables.append(one)
    return tables, records


def _stored(base: UPath) -> Iterator[_Stored]:
    for path in base.glob("*/*.parquet"):
        yield _Stored(path, path.parent.name, path.stem, "")
    for path in base.glob("*/*/*.parquet"):
        yield _Stored(path, path.parent.parent.name, path.parent.name, path.stem)


def _battles(stored: list[_Stored]) -> pd.DataFrame:
    """Return the judged items of every corpus: battles, candidates' battles and single answers."""
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


def _identities(tables: Iterable[_Stored]) -> set[str]:
    found: set[str] = set()
    for one in tables:
        with one.path.open("rb") as content:
            file = pq.ParquetFile(content)
            if "identity" in file.schema_arrow.names:
                found.update(file.read(["identity"])["identity"].to_pylist())
    return found


def _answers(
    store: VerdictStore, column: str, values: Set[str], identities: Set[str]
) -> dict[str, Set[str]]:
    """Return the identities of stored answers by key: of a judge or battles, and some more."""
    chosen: dict[str, Set[str]] = {}
    wanted: Any = {column: values, "identity": identities}
    for key in store.judge_keys():
        table = store.scan(key, ["identity", column]).table
        parts = [
            table.filter(pc.is_in(table[name], value_set=pa.array([*some], pa.string())))
            for name, some in wanted.items()
        ]
        if found := {one for part in parts for one in part["identity"].to_pylist()}:
            chosen[key] = found
    return chosen

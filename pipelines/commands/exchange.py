"""`judgeline verdicts import` and `export`: which files and tables take part, and their account."""

import json
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml
from rich.console import Console

from judgeline.io import SCORE_COLUMNS, files_of
from judgeline.report import in_csv
from judgeline.terminal import plain, plain_table, show_files
from judgeline.verdict import slug
from resources.config.catalog import Catalog
from resources.config.corpora import KIND as CORPORA
from resources.config.corpora import load_corpora
from resources.config.judges import KIND as JUDGES
from resources.config.judges import load_judges
from resources.corpora.battles import BATTLES, VERDICTS
from resources.corpora.reading import CorpusRead, read_files
from resources.exchange.formats import (
    UNKNOWN,
    arena_hard_options,
    write_alpaca_eval,
    write_arena_hard,
    write_mt_bench,
    write_soft_elo,
)
from resources.exchange.games import Account, judged_battles, require_free, write_together
from resources.tables.store import ParquetStore, open_store

NOTES: dict[str, str] = {
    "alpaca-eval": "a draw is 1.5; several rubric criteria become one preference",
    "arena-hard": "models, questions and labels only: texts stay in the tables",
    "mt-bench": "models, questions and winners only: texts stay in the tables, tstamp is null",
    "soft-elo": f"0 is a win of A; lengths in characters; empty: {', '.join(UNKNOWN)}",
}


class Imported(NamedTuple):
    """Verdicts imported from files: counts, the written tables, and the next commands.

    `renamed` has the new slugs of judges whose own belong to a configured judge of another kind.
    """

    found: CorpusRead
    files: dict[str, Path]
    commands: list[str]
    renamed: dict[str, str]


def import_verdicts(
    files: Sequence[Path],
    style: str,
    out: Path,
    baseline: Sequence[str] = (),
    baseline_first_in: int = 1,
    *,
    force: bool = False,
) -> Imported:
    """Convert files of verdicts to battles and verdicts of our own layout."""
    files = [one for file in files for one in files_of(file)]
    places = {name: out / name for name in (BATTLES, VERDICTS, "quarantine.csv")}
    require_free(places, force=force)
    options = arena_hard_options(style, baseline, baseline_first_in)
    reader = "softelo-annotations" if style == "soft-elo" else style
    found = read_files(reader, files, options)
    if found.battles.empty:
        counts = found.quarantine["reason"].value_counts()
        reasons = ", ".join(f"{n} {reason}" for reason, n in counts.items())
        example = found.quarantine["detail"].iloc[0] if len(counts) else "no rows at all"
        raise ValueError(
            f"no row could be read ({reasons or 'the file has none'}), such as: {example}. Correct "
            "the format or the file"
        )
    found, renamed = _own_slugs(found)
    commands = _commands(found, places[BATTLES])
    quarantine = in_csv(found.quarantine)
    battles, verdicts, rest = places.values()
    write_together(
        {
            battles: lambda path: found.battles.to_parquet(path, index=False),
            verdicts: lambda path: found.verdicts.to_parquet(path, index=False),
            rest: lambda path: path.write_text(quarantine, encoding="utf-8", newline=""),
        }
    )
    return Imported(found, places, commands, renamed)


def _own_slugs(found: CorpusRead) -> tuple[CorpusRead, dict[str, str]]:
    """Rename judges whose slug belongs to a configured judge of another kind."""
    examples = {
        name: yaml.safe_load(text)[name]["kind"] for name, text in JUDGES.examples().items()
    }
    kinds = {**examples, **{name: judge.kind for name, judge in load_judges().items()}}
    asked, judges = {name for name in kinds if kinds[name] != "recorded"}, found.verdicts["judge"]
    taken = asked.union(judges)
    renamed = {name: _free(name, taken) for name in sorted(asked.intersection(judges))}
    verdicts = found.verdicts.assign(judge=[renamed.get(name, name) for name in judges])
    return found._replace(verdicts=verdicts), renamed


def _free(name: str, taken: Collection[str]) -> str:
    """Return a free slug for a recorded judge."""
    numbered = (f"{name}-recorded-{n}" for n in count(2))
    return next(one for one in chain([f"{name}-recorded"], numbered) if one not in taken)


def _commands(found: CorpusRead, battles: Path) -> list[str]:
    """Return the commands that configure a corpus of these battles with its judges, and run it."""
    judges = sorted(found.verdicts["judge"].unique())
    try:
        name = slug(battles.resolve().parent.name)
    except ValueError:
        name = "imported"
    place, known = str(battles.resolve()), load_corpora()
    here = next((corpus for corpus in known if known[corpus].location == place), "")
    taken = {*known, *CORPORA.examples()}
    name = here or (_free(name, taken) if name in taken else name)
    recorded = {"kind": "recorded", "family": "unknown"}
    entries: list[tuple[str, str, Mapping[str, object]]] = [
        ("judges", judge, {**recorded, "display_name": judge})
        for judge in judges
        if judge not in load_judges()
    ]
    if not here:
        fields = {"reader": "battles", "location": place, "judges": judges}
        entries.append(("corpora", name, fields))
    return [*(_command(*entry) for entry in entries), f"judgeline run --corpus {name}"]


def _command(group: str, name: str, settings: Mapping[str, object]) -> str:
    values = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in settings.items())
    stated = " ".join(f"--set {shlex.quote(value)}" for value in values)
    return f"judgeline {group} add {name} {stated}"


def export_verdicts(
    corpus: str,
    judge: str,
    style: str,
    out: Path,
    baseline: Sequence[str] = (),
    baseline_first_in: int = 1,
    *,
    force: bool = False,
) -> Account:
    """Write a judge's verdicts on a corpus in the format of another program."""
    require_free({"out": out}, force=force)
    options = arena_hard_options(style, baseline, baseline_first_in)
    battles, verdicts = _stored(open_store(), corpus, judge)
    judged, account = judged_battles(battles, verdicts)
    if style == "arena-hard":
        text = write_arena_hard(judged, account, judge, options)
    elif style == "soft-elo":
        text = write_soft_elo(judged, account, judge, corpus)
    else:
        writer = {"mt-bench": write_mt_bench, "alpaca-eval": write_alpaca_eval}[style]
        text = writer(judged, account, judge)
    if not account.n_written:
        reasons = "; ".join(counted(account.left_out)) or "no battle has a verdict"
        raise ValueError(f"nothing to write as {style}: {reasons}. Choose another format or judge")
    write_together({out: lambda path: path.write_text(text, encoding="utf-8")})
    return account


def counted(counts: Counter[str]) -> list[str]:
    """Return the counts above zero, in words."""
    return [f"{count:,} {what}" for what, count in counts.items() if count]


def _stored(store: ParquetStore, corpus: str, judge: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    verdicts = store.stored("verdicts", corpus, judge)
    battles = store.stored("sampled_battles", corpus)
    if verdicts is not None and battles is not None:
        return battles, verdicts
    catalog = Catalog()
    catalog.corpus(corpus), catalog.judge(judge)  # an unknown name is said first
    raise ValueError(
        f"no verdicts of judge {judge!r} on corpus {corpus!r} are stored; make them first: "
        f"judgeline run --corpus {corpus} --judge {judge} --select '+verdicts'"
    )


def show_imported(console: Console, imported: Imported) -> None:
    """Print the imported verdicts by judge, the rows left out, and the next commands."""
    battles, quarantine, verdicts = imported.found
    by_status = verdicts.groupby("judge")["status"].value_counts()
    rows = [(judge, status, f"{n:,}") for (judge, status), n in by_status.items()]
    console.print(f"{len(battles):,} battles, {len(verdicts):,} verdicts")
    console.print(plain_table("Verdicts", ("judge", "status", "verdicts"), rows))
    if len(quarantine):
        counts = quarantine["reason"].value_counts()
        console.print(plain_table("Quarantined rows", ("reason", "rows"), counts.items()))
        console.print(f"Such as: {plain(quarantine['detail'].iloc[0])}", soft_wrap=True)
    if verdicts[list(SCORE_COLUMNS)].isna().all(axis=None):
        console.print(
            "[yellow]Note[/]: these verdicts carry outcomes without rubric scores. Wins, ties and "
            "losses rate models once battles.parquet has votes (human_outcome): a win counts as "
            "a score difference of 1. Other preferences can be kept and exported.",
            soft_wrap=True,
        )
    for name, other in imported.renamed.items():
        console.print(
            f"[yellow]Note[/]: judge {plain(name)} is called {plain(other)} here, since that of "
            "the configuration is no recorded one and would be asked."
        )
    show_files(console, imported.files)
    console.print("\nTo run it (a board takes votes; without them, ratings against a reference):")
    console.print(plain(" && \\\n".join(imported.commands)), soft_wrap=True)


def show_exported(console: Console, account: Account, style: str, path: Path) -> None:
    """Print the number of battles written, and the losses of the format."""
    console.print(f"{account.n_written:,} of {account.n_battles:,} judged battles written")
    for title, counts in (
        ("Left out", account.left_out),
        ("Not part of the export", account.not_read),
        ("Written with a loss", account.changed),
    ):
        if lines := counted(counts):
            console.print(f"{title}: {plain('; '.join(lines))}", soft_wrap=True)
    console.print(f"Note: {NOTES[style]}", soft_wrap=True)
    show_files(console, {"out": path})

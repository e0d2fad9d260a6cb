"""Commands `judgeline verdicts`: hits and misses of the store, and files of other programs."""

import json
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import yaml
from rich.console import Console
from upath import UPath

from judgeline.io import files_of
from judgeline.io.layouts.battles import BATTLES_FILE, VERDICTS_FILE
from judgeline.judges import judge as calls
from judgeline.judges.buying import is_retried
from judgeline.judges.opening import was_probed
from judgeline.judges.presentation import Presentation, present
from judgeline.judges.store.verdicts import VerdictStore
from judgeline.paths import verdicts_uri
from judgeline.report import in_csv
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.terminal import plain, plain_table, show_files
from judgeline.verdict import slug
from resources.config.catalog import Catalog
from resources.config.corpora import KIND as CORPORA
from resources.config.corpora import ArenaHardOptions, CorpusDefinition, load_corpora
from resources.config.judges import KIND as JUDGES
from resources.config.judges import load_judges
from resources.corpora.reading import CorpusRead, read_files, stated_of
from resources.exchange.games import Account, judged_battles, require_free, write_together
from resources.exchange.softelo import UNKNOWN, write_soft_elo
from resources.opening import open_judge
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
    shown = present(row, definition.replicates)
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
    store: VerdictStore, judge: calls.Judge, call: Presentation, known: Mapping[str, Any]
) -> tuple[str, str]:
    row = known.get(calls.call_identity(judge, call))
    if row is None:
        parts = calls.call_parts(judge, call)
        near = nearest(verdicts_of_battle(store, call.battle_id, parts), call.order, parts)
        if near is None:
            return "miss", "no verdict of this battle is stored"
        of = f"of {near.judge}, battle {near.battle_id}, order {near.order}"
        differences = "; ".join(near.differences)
        return "miss", f"the nearest stored verdict ({of}) differs in {differences}"
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
    for one in [Catalog().corpus(corpus).slug] if corpus else known:
        for name in ("sampled_battles", "battles"):
            if (table := tables.stored(name, one)) is None:
                continue
            read.append(one)
            if (own := table["battle_id"].eq(battle)).any():
                return known[one], table[own].head(1)
    where = f"corpus {corpus!r}" if corpus else "any configured corpus"
    remedy = f"make them first: judgeline run --corpus {corpus or 'SLUG'} --select group:corpus"
    if read:
        those = f", or read its corpus (read so far: {', '.join(dict.fromkeys(read))})"
        remedy = f"correct the id{'' if corpus else those}"
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
        own = [{json.loads(text)[name] for name in _TEXTS} == texts for text in rows["parts"]]
        found.append(rows[rows["battle_id"].eq(battle_id) | pd.Series(own, rows.index, dtype=bool)])
    empty = pa.table({name: pa.array([], pa.string()) for name in _COLUMNS}).to_pandas()
    return pd.concat(found, ignore_index=True) if found else empty


def nearest(stored: pd.DataFrame, order: str, parts: Mapping[str, str]) -> Nearest | None:
    """Return the stored verdict with the fewest differing parts; of equals that of this order.

    None where nothing is stored of the battle.
    """
    candidates = []
    for row in stored.to_dict("records"):
        was = json.loads(row["parts"])
        names = [n for n in sorted({*was, *parts}) if was.get(n) != parts.get(n)]
        told = tuple(_told(n, was.get(n), parts.get(n)) for n in names)
        found = Nearest(row["judge"], row["battle_id"], row["order"], row["status"], told)
        candidates.append((len(told), row["order"] != order, -row["answered_at"].value, found))
    return min(candidates, key=lambda one: one[:3])[3] if candidates else None


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
    places = {name: out / name for name in (BATTLES_FILE, VERDICTS_FILE, "quarantine.csv")}
    require_free(places, force=force)
    options = arena_hard_options(style, baseline, baseline_first_in)
    reader = "softelo-annotations" if style == "soft-elo" else style
    found = read_files(reader, files, stated_of(options))
    if found.battles.empty:
        counts = found.quarantine["reason"].value_counts()
        reasons = ", ".join(f"{n} {reason}" for reason, n in counts.items())
        example = found.quarantine["detail"].iloc[0] if len(counts) else "no rows at all"
        raise ValueError(
            f"no row could be read ({reasons or 'the file has none'}), such as: {example}. Correct "
            "the format or the file"
        )
    judges = found.verdicts["judge"]
    kinds = {name: yaml.safe_load(text)[name]["kind"] for name, text in JUDGES.examples().items()}
    kinds |= {name: judge.kind for name, judge in load_judges().items()}
    asked = {name for name in kinds if kinds[name] != "recorded"}
    taken = asked.union(judges)
    renamed = {name: _free(name, taken) for name in sorted(asked.intersection(judges))}
    renaming = found.verdicts.assign(judge=[renamed.get(name, name) for name in judges])
    found = found._replace(verdicts=renaming)
    commands = _commands(found, places[BATTLES_FILE])
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


def arena_hard_options(style: str, named: Sequence[str], first_in: int) -> ArenaHardOptions | None:
    """Return Arena-Hard options from one name, or CATEGORY=NAME each; None without a name."""
    if not named:
        return None
    if style != "arena-hard":
        raise ValueError(f"--baseline belongs to the format arena-hard, not {style}; remove it")
    baseline: Any = named[0]
    if len(named) > 1 or "=" in baseline:
        pairs = {name: name.partition("=")[::2] for name in named}
        for name, pair in pairs.items():
            if not all(pair):
                raise ValueError(
                    f"--baseline {name!r} is one of several and names no category; write "
                    "CATEGORY=NAME for each (a name that holds '=' can stand in corpora.yaml)"
                )
        baseline = dict(pairs.values())
    return ArenaHardOptions.model_validate({"baseline": baseline, "baseline_first_in": first_in})


def _free(name: str, taken: Collection[str]) -> str:
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

    def added(group: str, entry: str, **settings: object) -> str:
        values = [f"{key}={json.dumps(x, ensure_ascii=False)}" for key, x in settings.items()]
        stated = " ".join(f"--set {shlex.quote(value)}" for value in values)
        return f"judgeline {group} add {entry} {stated}"

    commands = [
        added("judges", judge, kind="recorded", family="unknown", display_name=judge)
        for judge in judges
        if judge not in load_judges()
    ]
    if not here:
        commands.append(added("corpora", name, reader="battles", location=place, judges=judges))
    return [*commands, f"judgeline run --corpus {name}"]


def export_verdicts(corpus: str, judge: str, out: Path, *, force: bool = False) -> Account:
    """Write a judge's verdicts on a corpus as Soft-Elo annotations."""
    require_free({"out": out}, force=force)
    tables = open_store()
    verdicts = tables.stored("verdicts", corpus, judge)
    battles = tables.stored("sampled_battles", corpus)
    if verdicts is None or battles is None:
        Catalog().corpus(corpus), Catalog().judge(judge)  # an unknown name is said first
        raise ValueError(
            f"no verdicts of judge {judge!r} on corpus {corpus!r} are stored; make them first: "
            f"judgeline run --corpus {corpus} --judge {judge} --select '+verdicts'"
        )
    judged, account = judged_battles(battles, verdicts)
    votes = tables.stored("votes", corpus)
    account.not_read["votes of pages"] += 0 if votes is None else len(votes)
    text = write_soft_elo(judged, account, judge, corpus)
    if not account.n_written:
        reasons = "; ".join(counted(account.left_out)) or "no battle has a verdict"
        raise ValueError(f"nothing to write: {reasons}. Choose another judge")
    write_together({out: lambda path: path.write_text(text, encoding="utf-8")})
    return account


def counted(counts: Counter[str]) -> list[str]:
    """Return the counts above zero, in words."""
    return [f"{count:,} {what}" for what, count in counts.items() if count]


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


def show_exported(console: Console, account: Account, path: Path) -> None:
    """Print the number of battles written, and the losses of the format."""
    console.print(f"{account.n_written:,} of {account.n_battles:,} judged battles written")
    for title, counts in (
        ("Left out", account.left_out),
        ("Not part of the export", account.not_read),
        ("Written with a loss", account.changed),
    ):
        if lines := counted(counts):
            console.print(f"{title}: {plain('; '.join(lines))}", soft_wrap=True)
    note = f"0 is a win of A; lengths in characters; empty: {', '.join(UNKNOWN)}"
    console.print(f"Note: {note}", soft_wrap=True)
    show_files(console, {"out": path})

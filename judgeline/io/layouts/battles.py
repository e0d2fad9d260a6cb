"""Our own layout: battles as Parquet, JSON lines or CSV, with few columns needed."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from judgeline.io import assemble
from judgeline.io import outcome_codes as codes
from judgeline.io.formats import file_columns, read_columns
from judgeline.io.layout import Layout, Stated, read_layout
from judgeline.io.published import categories, judge_slugs, languages, names
from judgeline.io.schema import CorpusRead, Fault, fault, set_aside, typed
from judgeline.io.voters import are_machines, columns_of_judges, columns_of_voters
from judgeline.suggest import near_names
from judgeline.tables.corpus import REPLY_DTYPES, SCORE_COLUMNS, VERDICT_DTYPES
from judgeline.tables.judging import FAILURES
from judgeline.verdict import HIGHEST_SCORE, LOWEST_SCORE, text_hash

_STATE_CODES = (
    f"State the codes as 'outcomes: {{codes}}' ({codes.STATED_AS}) of this corpus in "
    "corpora.yaml, or convert the column"
)
_NO_VOTE = (
    "{path}: column {column!r} {said}, so that 'winner' is no vote of people. If people decided, "
    "name the column human_outcome; if a judge did, leave its rows out and have it recorded "
    "(verdicts.parquet beside battles.parquet)"
)
_TEXTS = ("instruction", "completion_a", "completion_b")
_SIDES = "model_a model_b human_outcome winner"
_MAY_SHARE = "battle_id question_id cluster_id instruction"
_OPTIONAL = (
    "battle_id question_id cluster_id instruction completion_a completion_b language category "
    "n_turns timestamp"
)


def require_names(stated: dict[str, str]) -> dict[str, str]:
    """Return what a file calls our columns; ValueError if one is none of ours, or is two."""
    names = [*_SIDES.split(), *_OPTIONAL.split()]
    for name in stated:
        if name not in names:
            raise ValueError(f"{name!r} is no column of battles; {near_names(name, names)}")
    sides = [own for name, own in stated.items() if name not in _MAY_SHARE.split()]
    if {"human_outcome", "winner"} <= {*stated}:
        raise ValueError("human_outcome and winner are both votes; name one of them")
    if twice := [own for own in sides if sides.count(own) > 1]:
        raise ValueError(f"the file's column {twice[0]!r} cannot be two of ours; name each once")
    return stated


def _read(_layout: Layout, paths: Sequence[Path], stated: Stated) -> CorpusRead:
    """Return battles of our own layout.

    Needed are ``model_a``, ``model_b`` and either ``human_outcome`` (1, 0.5 or 0, A's share of the
    win) or ``winner`` (model_a, model_b, tie, a model's name), empty where nobody voted;
    codes give the share where they are stated, and values that are stated as missing are
    no votes. A ``winner`` that a column calls a judge's is refused. A battle without ``battle_id``
    gets one that hashes models, question and texts, with a counter for repeated content, so that
    rows can be added without changing it; a battle without ``question_id`` has a hash of its
    instruction, or its own id where there is no text.

    Columns with other names are read where their names are stated.
    Where a file is called ``battles.parquet``, ``verdicts.parquet`` beside it holds verdicts that
    came with it.
    """
    files = [path for path in paths if path.name != VERDICTS_FILE]
    if not files:
        raise ValueError(
            f"{paths[0]} holds verdicts without battles; name the place of the battles as location "
            "in corpora.yaml"
        )
    return _with_verdicts(assemble.assemble(files, partial(_convert, stated=stated)), files)


def _convert(path: Path, stated: Stated) -> assemble.Converted:
    if codes.COUNT in file_columns(path):
        raise ValueError(
            f"{path} has counted battles (column {codes.COUNT}), and a corpus needs each battle "
            "with its texts; rate the file by 'judgeline rank', or give a battle a row"
        )
    by_winner = "winner" in stated.columns  # whatever else the file holds
    layout = replace(BATTLES, columns=BATTLES.columns[1:]) if by_winner else BATTLES
    table = read_layout(path, layout, _OPTIONAL, stated.columns)
    _require_people(path, table)
    columns = {name: assemble.column_of(table, name) for name in _OPTIONAL.split()}
    given = pd.DataFrame(columns, dtype=object)
    read, unreadable = zip(
        *(assemble.read_each(given, name, assemble.read_text, None) for name in _TEXTS), strict=True
    )
    outcome, vote = _outcomes(table, path, stated)
    n_turns = pd.to_numeric(columns["n_turns"], errors="coerce")
    time, untimely = assemble.read_times(table)
    battles = pd.DataFrame(
        {
            "model_a": names(table["model_a"]),
            "model_b": names(table["model_b"]),
            "human_outcome": outcome,
            **dict(zip(_TEXTS, read, strict=True)),
            "language": languages(columns["language"]),
            "category": categories(columns["category"]),
            "n_turns": n_turns.where(assemble.is_count(n_turns)),
            "timestamp": time,
        }
    )
    ids = {name: names(columns[name]) for name in ("battle_id", "question_id", "cluster_id")}
    battles = battles.assign(**_identified(battles, ids))
    wrong = columns["n_turns"].notna() & ~assemble.is_count(n_turns)
    turns = fault(table, wrong, "unreadable-turns", "n_turns is {n_turns!r}, no count")
    return assemble.Converted(battles, [vote, turns, untimely, *unreadable])


def _require_people(path: Path, table: pd.DataFrame) -> None:
    """Raise where a column says that the winner is a judge's verdict."""
    found = {name: name for name in file_columns(path)}
    if "human_outcome" in table:
        return
    for name in columns_of_voters(found, has_verdict=False):
        values = read_columns(path, [name], [name])[name]
        if (machine := are_machines(values)).any():
            said = f"says {values[machine].iloc[0]!r} in {machine.sum():,} rows"
            raise ValueError(_NO_VOTE.format(path=path, column=name, said=said))
    for name in columns_of_judges(found):
        raise ValueError(_NO_VOTE.format(path=path, column=name, said="is a judge's"))


def _outcomes(table: pd.DataFrame, path: Path, stated: Stated) -> tuple[pd.Series, Fault]:
    """Return A's share of the win, and the faults of votes with an unknown code."""
    name = "human_outcome" if "human_outcome" in table else "winner"
    published = codes.without_blanks(table[name])
    if stated.codes is not None:
        outcome, expected = codes.outcomes_by_code(published, stated.codes), ", ".join(stated.codes)
    elif name == "winner":
        outcome, expected = codes.outcomes_by_winner(published, table), codes.EXPECTED_WINNERS
    else:
        numbers = pd.to_numeric(published, errors="coerce").astype(float)
        outcome, expected = numbers.where(numbers.isin([0.0, 0.5, 1.0])), "1, 0.5, 0"
    published = published.mask(stated.missing.are(published) & outcome.isna())
    if stated.codes is None:
        place = f"{path}: column {stated.columns.get(name, name)}"
        codes.require_known_codes(published, outcome.notna(), place, _STATE_CODES)
    wrong = published.notna() & outcome.isna()
    sentence = f"{name} is {{{name}!r}}; expected one of {{known}}, or empty"
    return outcome, fault(table, wrong, "unknown-winner", sentence, known=expected)


def _identified(battles: pd.DataFrame, given: dict[str, pd.Series]) -> dict[str, pd.Series]:
    asked = battles["instruction"].map(lambda text: f"q-{_digest(text)}", na_action="ignore")
    question = given["question_id"].fillna(asked.astype("str"))
    sides = battles[["model_a", "model_b", "completion_a", "completion_b"]]
    content = _hashes(pd.DataFrame({"question": question, **sides}), _digest)
    occurrence = content.groupby(content).cumcount().astype(str)
    battle_id = given["battle_id"].fillna(content + "-" + occurrence)
    question = question.fillna(battle_id)
    cluster = given["cluster_id"].fillna(question)
    return {"battle_id": battle_id, "question_id": question, "cluster_id": cluster}


def _hashes(parts: pd.DataFrame, digest: Callable[[str], str]) -> pd.Series:
    rows = parts.astype("str").fillna("").itertuples(index=False)
    hashes = [digest("\x1f".join(row)) for row in rows]
    return pd.Series(hashes, index=parts.index, dtype="str")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


# Verdicts beside battles: `judgeline verdicts import` writes the pair

BATTLES_FILE, VERDICTS_FILE = "battles.parquet", "verdicts.parquet"

_NEEDED = ("battle_id", "judge", "order", "status")


def _with_verdicts(found: CorpusRead, paths: Sequence[Path]) -> CorpusRead:
    """Return a corpus with the verdicts beside its files; a missing column is empty."""
    verdicts, quarantines = [found.verdicts], [found.quarantine]
    for path in (path.with_name(VERDICTS_FILE) for path in paths if path.name == BATTLES_FILE):
        if path.is_file():
            table = _read_verdicts(path)
            kept, quarantine = set_aside(table, _verdict_faults(table, found.battles))
            verdicts.append(typed(table[kept], VERDICT_DTYPES))
            quarantines.append(quarantine)
    return CorpusRead(
        found.battles,
        pd.concat(quarantines, ignore_index=True),
        pd.concat(verdicts, ignore_index=True),
    )


def _read_verdicts(path: Path) -> pd.DataFrame:
    published = pd.read_parquet(path)
    if lacking := [name for name in _NEEDED if name not in published]:
        raise ValueError(
            f"{path} lacks {', '.join(lacking)}; a table of verdicts has {', '.join(_NEEDED)} and "
            "either rubric scores or recorded_outcome. Correct it, or give it another name"
        )
    try:
        filled = published.assign(replicate=published.get("replicate", 0))
        table = typed(filled.fillna({"replicate": 0}), VERDICT_DTYPES)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: a column has another type ({error}); correct it") from error
    parts = table.drop(columns=["identity", *REPLY_DTYPES])
    return table.assign(
        judge=judge_slugs(table["judge"]),
        identity=table["identity"].fillna(_hashes(parts, text_hash)),
        row=np.arange(len(table)),
        file=path.name,
    )


def _verdict_faults(table: pd.DataFrame, battles: pd.DataFrame) -> list[Fault]:
    points, outcome = table[list(SCORE_COLUMNS)], table["recorded_outcome"]
    n_scores = points.notna().sum(axis=1)
    has_result = n_scores.eq(len(SCORE_COLUMNS)) | (n_scores.eq(0) & outcome.notna())
    off_scale = points.lt(LOWEST_SCORE) | points.gt(HIGHEST_SCORE)  # averages lie between points
    first = off_scale.to_numpy().argmax(axis=1)
    named = table.assign(
        criterion=np.array(SCORE_COLUMNS)[first],
        score=points.to_numpy()[np.arange(len(table)), first],
    )
    is_ok = table["status"].eq("ok").fillna(value=False)
    states, scale = ", ".join(FAILURES), f"{LOWEST_SCORE} to {HIGHEST_SCORE}"
    known = table["order"].isin(["AB", "BA", "mean"])
    rules = (
        ("incomplete-verdict", table[list(_NEEDED)].isna().any(axis=1),
         f"one of {', '.join(_NEEDED)} is empty"),
        ("unknown-battle", ~table["battle_id"].isin(battles["battle_id"]),
         "no battle {battle_id!r} in the corpus"),
        ("unknown-order", ~known, "order is {order!r}; expected AB, BA or mean"),
        ("unknown-status", ~table["status"].isin(["ok", *FAILURES]),
         f"status is {{status!r}}; expected ok, or one of {states}"),
        ("score-off-scale", off_scale.any(axis=1),
         f"{{criterion}} is {{score:g}}; expected {scale}"),
        ("unknown-outcome", outcome.notna() & ~outcome.between(0, 1),
         "recorded_outcome is {recorded_outcome}; expected A's share, 0 to 1"),
        ("empty-verdict", is_ok & ~has_result,
         "ok, with neither all twelve scores nor an outcome instead"),
        ("duplicate-verdict", table.duplicated(["battle_id", "judge", "order", "replicate"]),
         "order {order} of battle {battle_id!r} came before from judge {judge!r}"),
    )  # fmt: skip
    return [fault(named, rows, reason, sentence) for reason, rows, sentence in rules]


BATTLES = Layout(
    "battles", ("model_a model_b human_outcome", "model_a model_b winner"), corpus=_read
)

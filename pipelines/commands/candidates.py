"""Command `judgeline candidates`: questions to answer, a check of a file, and the list."""

import os
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from upath import UPath

from assets.candidates.accepting import accept, history_in
from assets.candidates.assets import choose_candidate_battles, of_asked_judges, read_candidates
from assets.candidates.choosing import Needs, anchor_answers, questions_to_answer
from assets.reliability.gate import withheld_judges
from pipelines.commands.plan import tables_by_judge
from pipelines.sensors.activity import active_or_why
from resources.candidates.file import quoted
from resources.candidates.folder import (
    PATIENCE_SECONDS,
    SETTLED_SECONDS,
    Seen,
    folder_of,
    is_passed_over,
    list_files,
    look,
    printable_name,
)
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.judges.catalog import missing_variable
from resources.tables.store import ParquetStore, open_store

_QUESTION_COLUMNS = ["question_id", "instruction", "language"]


class Told(NamedTuple):
    """What would become of a file, in lines, and whether its model would be taken."""

    is_taken: bool
    lines: list[str]


def where(corpus: str) -> str:
    """Return the folder, or address, of a corpus' candidate files."""
    return str(folder_of(corpus))


def write_questions(
    corpus: str, out: Path, n_questions: int | None = None, *, force: bool = False
) -> tuple[int, int]:
    """Write the questions that a new model should answer; return how many, of how many."""
    definition, battles = _battles(corpus)
    if out.suffix not in (".jsonl", ".parquet"):
        raise ValueError(f"{out} ends in {out.suffix!r}; write to a .jsonl or .parquet file")
    if not out.parent.is_dir():
        raise ValueError(f"there is no folder {out.parent} to write into; make it first")
    if out.exists() and not force:
        raise ValueError(f"{out} is there already; name another file, or add --force")
    answers = anchor_answers(battles).answers
    if answers.empty:
        raise ValueError(
            f"corpus {corpus!r} has no model with votes and published answers, so that a new one "
            "cannot be held against any"
        )
    wanted = n_questions or definition.candidates.max_battles
    chosen = questions_to_answer(answers, wanted, definition.seed)[_QUESTION_COLUMNS]
    part = out.with_name(f"{out.name}.{uuid.uuid4().hex}.part")
    try:
        if out.suffix == ".parquet":
            chosen.to_parquet(part, index=False)
        else:
            chosen.to_json(part, orient="records", lines=True, force_ascii=False)
        os.replace(part, out)
    finally:
        part.unlink(missing_ok=True)
    return len(chosen), answers["question_id"].nunique()


class _AfterDrop(NamedTuple):
    """The candidates folder as it would be with one more file, or with another in its place."""

    folder: UPath
    file: UPath

    def __truediv__(self, name: str) -> UPath:
        return self.file if name == self.file.name else self.folder / name


def check_file(file: Path, corpus: str) -> Told:
    """Return what would become of a file in the candidates folder of a corpus."""
    definition, battles = _battles(corpus)
    tables = open_store()
    if not file.is_file():
        raise _no_file(file)
    if is_passed_over(file.name):
        return Told(False, [f"{file.name!r} is passed over: its name says it is being written."])
    after: Any = _AfterDrop(folder_of(corpus), UPath(str(file.absolute())))
    own = look(after.file, now=file.stat().st_mtime + PATIENCE_SECONDS)
    if own is None:  # gone since
        raise _no_file(file)
    files = list_files(after.folder)
    found = accept(
        after,
        [own, *(one for one in files if one.name != own.name)],
        battles,
        definition.candidates.model_copy(update={"controls": {}}),
        seed=definition.seed,
        history=history_in(tables, corpus),
    )
    refused, taken = (
        table[table["content_hash"].eq(own.content_hash)]
        for table in (found.refused, found.candidates)
    )
    if len(refused):
        row = refused.iloc[0]
        return Told(False, [f"It would be set aside ({row['reason']}): {row['detail']}."])
    twins = [one.name for one in files if one.content_hash == own.content_hash]
    named = tuple(quoted(name) for name in (own.name, *twins))
    lines = [
        f"It would be taken: {len(taken):,} answers of {str(taken['model'].iloc[0])!r}.",
        *(note for note in found.notes if note.startswith(named)),
    ]
    if own.name in {one.name for one in files} - {*twins}:
        lines.append(f"It would replace {own.name!r}, which is there: its battles are judged anew.")
    if twins:
        lines.append(f"Its content is there already, as {twins[0]!r}: nothing would happen.")
    lines += _battle_lines(*_battles_of(definition, battles, tables, taken))
    lines.append(f"A file is read {SETTLED_SECONDS:.0f} s after its last change.")
    return Told(True, [*lines, *unasked_notes(definition, tables)])


def _no_file(file: Path) -> FileNotFoundError:
    return FileNotFoundError(
        f"{file} is a folder; name one of the files in it"
        if file.is_dir()
        else f"there is no file {file}; correct the name"
    )


def _battle_lines(chosen: pd.DataFrame, needs: Needs) -> list[str]:
    """Return how many battles a model gets, and what keeps it from more."""
    lines = [
        f"{len(chosen):,} battles; {_width_text(needs, len(chosen))}. Each judge is asked "
        f"{2 * len(chosen):,} calls per replicate."
    ]
    if len(chosen) < needs.n_battles:
        lines.append(
            f"{needs.n_battles:,} battles would be taken if it answered more questions of those "
            "that `judgeline candidates questions` lists."
        )
    return lines


def unasked_notes(corpus: CorpusDefinition, tables: ParquetStore) -> list[str]:
    """Return why no judge, or one with a leaderboard, can be asked about candidates now."""
    judges, why = active_or_why(corpus, Catalog(), tables.partitions("leaderboard", corpus.slug))
    return [why] if why else [lack for judge in judges if (lack := missing_variable(judge))]


def _battles_of(
    definition: CorpusDefinition, battles: pd.DataFrame, tables: ParquetStore, own: pd.DataFrame
) -> tuple[pd.DataFrame, Needs]:
    heldout, calibration = (
        tables_by_judge(tables, name, definition.slug)
        for name in ("heldout_ratings", "conformal_calibration")
    )
    asked = of_asked_judges(heldout, Catalog())
    sampled = tables.stored("sampled_battles", definition.slug)
    return choose_candidate_battles(
        definition, own, battles, asked, calibration, sampled=sampled, before=None
    )


def _width_text(needs: Needs, n_battles: int) -> str:
    width = needs.half_width(n_battles)
    if not needs.by_judge:
        return "how wide its interval will be nobody knows before a judge has ratings"
    if np.isinf(width):
        return "its interval will be infinite: too few models calibrate"
    return f"expected half-width about {width:.0f} Elo"


def candidate_rows(corpus: str) -> list[tuple[str, ...]]:
    """Return a row per file or control: file, model, state, battles, and ratings by judge."""
    definition, battles = _battles(corpus)
    tables = open_store()
    files, found = read_candidates(definition, battles, tables)
    stored = tables.stored("candidate_battles", corpus)
    counts = pd.Series(dtype=int) if stored is None else stored["candidate"].value_counts()
    ratings = _ratings_shown(tables, corpus)
    rows: list[tuple[str, ...]] = [
        (
            str(file) if pd.notna(file) else "-",
            str(model),
            "taken",
            str(int(counts.get(model, 0))),
            "; ".join(told[model] for told in ratings if model in told) or "-",
        )
        for file, model in found.candidates[["file", "model"]]
        .drop_duplicates()
        .itertuples(index=False)
    ]
    rows += [
        (file or "-", "-", f"set aside: {reason}", "-", "-")
        for file, reason in found.refused[["file", "reason"]].itertuples(index=False)
    ]
    rows += [_unread(one) for one in files if one.is_waiting]
    rows += _repeated(files, {row[0] for row in rows}, found.candidates)
    return sorted(rows)


def _repeated(files: list[Seen], told: set[str], candidates: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return rows of the files whose content another file holds that was taken."""
    taken = dict(zip(candidates["content_hash"], candidates["file"], strict=True))
    return [
        (printable_name(one.name), "-", f"same content as {taken[one.content_hash]}", "-", "-")
        for one in files
        if printable_name(one.name) not in told and taken.get(one.content_hash)
    ]


def _unread(seen: Seen) -> tuple[str, ...]:
    why = "changed just now" if seen.state == "settling" else "no end yet"
    return (printable_name(seen.name), "-", f"waiting: {why}", "-", "-")


def list_notes(corpus: str) -> list[str]:
    """Return a sentence per judge whose ratings are withheld or that cannot be asked, and why."""
    tables = open_store()
    reasons = _withheld(tables, corpus)
    told = [f"Ratings by {judge} are withheld: {why}" for judge, why in sorted(reasons.items())]
    return [*told, *unasked_notes(Catalog().corpus(corpus), tables)]


def _withheld(tables: ParquetStore, corpus: str) -> dict[str, str]:
    """Return why ratings are withheld, by judge."""
    return withheld_judges(tables_by_judge(tables, "leaderboard", corpus))


def _ratings_shown(tables: ParquetStore, corpus: str) -> list[dict[str, str]]:
    """Return for each judge what to say of the candidates that it placed, by model.

    Where the leaderboard has no ratings, nor has this.
    """
    withheld = _withheld(tables, corpus)
    return [
        {
            str(row["model"]): f"{'withheld' if judge in withheld else _rated(row)} by {judge}"
            for _, row in placed.iterrows()
        }
        for judge, placed in tables_by_judge(tables, "candidate_ratings", corpus).items()
    ]


def _rated(row: pd.Series) -> str:
    if np.isnan(row["rating"]):
        return f"not rated ({row['flags']})"
    return f"{row['rating']:.0f} [{row['lower']:.0f}, {row['upper']:.0f}]"


def _battles(corpus: str) -> tuple[CorpusDefinition, pd.DataFrame]:
    definition = Catalog().corpus(corpus)
    battles = open_store().stored("battles", corpus)
    if battles is None:
        raise ValueError(
            f"the battles of {corpus!r} were not read yet; run: judgeline run --corpus {corpus} "
            "--select group:corpus"
        )
    return definition, battles

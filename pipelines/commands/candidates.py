"""Command `judgeline candidates`: questions to answer, a check of a file, and the list."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from upath import UPath

from assets.candidates.accepting import accept, history_in
from assets.candidates.assets import choose_candidate_battles, of_asked_judges, read_candidates
from assets.candidates.choosing import anchor_answers, questions_to_answer
from judgeline.atomic import write_whole
from judgeline.judges.opening import missing_variable
from judgeline.report import beyond_lines, rating_text
from judgeline.steps.reliability import withheld_judges
from judgeline.suggest import quoted
from pipelines.commands.plan import tables_by_judge
from pipelines.sensors.activity import active_or_why
from resources.candidates import folder as folders
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.exchange.games import require_free
from resources.tables.store import ParquetStore, open_store

_WAITS = {"settling": "changed just now", "no-end": "no end yet"}


def write_questions(
    corpus: str, out: Path, n_questions: int | None = None, *, force: bool = False
) -> tuple[int, int]:
    """Write the questions that a new model should answer; return how many, of how many."""
    definition, battles = _battles(corpus)
    if out.suffix not in (".jsonl", ".parquet"):
        raise ValueError(f"{out} ends in {out.suffix!r}; write to a .jsonl or .parquet file")
    if not out.parent.is_dir():
        raise ValueError(f"there is no folder {out.parent} to write into; make it first")
    require_free({"out": out}, force=force)
    answers = anchor_answers(battles).answers
    if answers.empty:
        raise ValueError(
            f"corpus {corpus!r} has no model with votes and published answers, so that a new one "
            "cannot be held against any"
        )
    wanted = n_questions or definition.candidates.max_battles
    columns = ["question_id", "instruction", "language"]
    chosen = questions_to_answer(answers, wanted, definition.seed)[columns]
    if out.suffix == ".parquet":
        content = chosen.to_parquet(index=False)
    else:
        content = chosen.to_json(orient="records", lines=True, force_ascii=False).encode()
    write_whole(out, content)
    return len(chosen), answers["question_id"].nunique()


class _AfterDrop(NamedTuple):
    """The candidates folder as it would be with one more file, or with another in its place."""

    folder: UPath
    file: UPath

    def __truediv__(self, name: str) -> UPath:
        return self.file if name == self.file.name else self.folder / name


def check_file(file: Path, corpus: str) -> tuple[bool, list[str]]:
    """Return whether a file would be accepted as a candidate, with lines that explain it."""
    definition, battles = _battles(corpus)
    tables = open_store()
    after: Any = _AfterDrop(folders.folder_of(corpus), UPath(str(file.absolute())))
    own = None
    if file.is_file():
        if folders.is_passed_over(file.name):
            return False, [f"{file.name!r} is passed over: its name says it is being written."]
        own = folders.look(after.file, now=file.stat().st_mtime + folders.PATIENCE_SECONDS)
    if own is None:
        problem = f"there is no file {file}; correct the name"
        if file.is_dir():
            problem = f"{file} is a folder; name one of the files in it"
        raise FileNotFoundError(problem)
    files = folders.list_files(after.folder)
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
        return False, [f"It would be set aside ({row['reason']}): {row['detail']}."]
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
    lines += _battle_lines(definition, battles, tables, taken)
    lines.append(f"A file is read {folders.SETTLED_SECONDS:.0f} s after its last change.")
    return True, [*lines, *_unasked_notes(definition, tables)]


def _battle_lines(
    definition: CorpusDefinition, battles: pd.DataFrame, tables: ParquetStore, own: pd.DataFrame
) -> list[str]:
    """Return sentences on a model's number of battles, and on the limits to it."""
    heldout, calibration = (
        tables_by_judge(tables, name, definition.slug)
        for name in ("heldout_ratings", "conformal_calibration")
    )
    asked = of_asked_judges(heldout, Catalog())
    sampled = tables.stored("sampled_battles", definition.slug)
    chosen, needs = choose_candidate_battles(
        definition, own, battles, asked, calibration, sampled=sampled, before=None
    )
    width = needs.half_width(len(chosen))
    says = f"expected half-width about {width:.0f} Elo"
    if not needs.by_judge:
        says = "how wide its interval will be nobody knows before a judge has ratings"
    elif np.isinf(width):
        says = "its interval will be infinite: too few models calibrate"
    calls = f"Each judge is asked {2 * len(chosen):,} calls per replicate."
    lines = [f"{len(chosen):,} battles; {says}. {calls}"]
    if len(chosen) < needs.n_battles:
        lines.append(
            f"{needs.n_battles:,} battles would be taken if it answered more questions of those "
            "that `judgeline candidates questions` lists."
        )
    return lines


def _unasked_notes(corpus: CorpusDefinition, tables: ParquetStore) -> list[str]:
    """Return why no judge, or one with a leaderboard, can be asked about candidates now."""
    judges, why = active_or_why(corpus, Catalog(), tables.partitions("leaderboard", corpus.slug))
    return [why] if why else [lack for judge in judges if (lack := missing_variable(judge))]


def candidate_rows(corpus: str) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return file, model, state, battles and ratings by row, and reasons for missing ratings."""
    definition, battles = _battles(corpus)
    tables = open_store()
    withheld = withheld_judges(tables_by_judge(tables, "leaderboard", corpus))
    notes = [f"Ratings by {judge} are withheld: {why}" for judge, why in sorted(withheld.items())]
    files, found = read_candidates(definition, battles, tables)
    stored = tables.stored("candidate_battles", corpus)
    counts = pd.Series(dtype=int) if stored is None else stored["candidate"].value_counts()
    ratings: dict[str, list[str]] = {}
    for judge, placed in tables_by_judge(tables, "candidate_ratings", corpus).items():
        board = tables.stored("leaderboard", corpus, judge)
        if board is not None and judge not in withheld:
            notes += [f"By {judge}: {text}" for text, _ in beyond_lines(placed, board)]
        for row in placed.to_dict("records"):
            rating = rating_text(row)
            if judge in withheld or np.isnan(row["rating"]):
                rating = "withheld" if judge in withheld else f"not rated ({row['flags']})"
            ratings.setdefault(str(row["model"]), []).append(f"{rating} by {judge}")
    rows = []
    for file, model in found.candidates[["file", "model"]].drop_duplicates().to_numpy():
        n_battles, rated = str(int(counts.get(model, 0))), ratings.get(str(model), ["-"])
        name = str(file) if pd.notna(file) else "-"
        rows.append((name, str(model), "taken", n_battles, "; ".join(rated)))
    states = [
        (file or "-", f"set aside: {reason}")
        for file, reason in found.refused[["file", "reason"]].to_numpy()
    ]
    states += [
        (folders.printable_name(seen.name), f"waiting: {_WAITS[seen.state]}")
        for seen in files
        if seen.is_waiting
    ]
    taken = dict(zip(found.candidates["content_hash"], found.candidates["file"], strict=True))
    listed = {row[0] for row in (*rows, *states)}
    states += [
        (name, f"same content as {taken[seen.content_hash]}")
        for seen in files
        if (name := folders.printable_name(seen.name)) not in listed
        and taken.get(seen.content_hash)
    ]
    rows += [(name, "-", state, "-", "-") for name, state in states]
    return sorted(rows), [*notes, *_unasked_notes(definition, tables)]


def _battles(corpus: str) -> tuple[CorpusDefinition, pd.DataFrame]:
    definition, battles = Catalog().corpus(corpus), open_store().stored("battles", corpus)
    if battles is None:
        raise ValueError(
            f"the battles of {corpus!r} were not read yet; run: judgeline run --corpus {corpus} "
            "--select group:corpus"
        )
    return definition, battles

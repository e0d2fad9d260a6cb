"""Seals: a board stated before people vote, recomputed by others, scored when votes arrive.

What belongs here: what a seal holds, and what can and cannot be verified of it. What does not:
statements and scores of models (`judgeline.steps.predictions`), evidence (`judgeline.intervals`).
"""

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from inspect import signature
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgeline.api import Board, Settings, rank
from judgeline.atomic import write_whole
from judgeline.comparing import promised, stated_rows
from judgeline.intervals import BROKEN_FROM, evidence_against
from judgeline.io import files_of
from judgeline.io.ledgers import Entry, Kinds, extend_ledger, read_ledger
from judgeline.rating_options import STATED
from judgeline.report import json_value
from judgeline.steps.predictions import PEOPLE, score_predictions, state_predictions, typed_record
from judgeline.suggest import QualityGateError
from judgeline.voting import are_votes

_PACKAGE = Path(__file__).parent
_FORMAT = 1
_PROMISED = 0.05 + 1e-6  # Elo points: half of the last digit that a seal holds
_STATED = ["model", "method", "rating", "lower", "upper", "std_error", "vote_std_error",
           "miscoverage", "anchors"]  # fmt: skip
_SCORED = ["model", "method", "miscoverage", "covered", "residual", "origin_shift", "scored_at"]
_KINDS: Kinds = {"seal": str, "sealed_at": str, "n_sealed": int, "model": str,
                 "miscoverage": (int, float), "covered": bool, "scored_at": str}  # fmt: skip
_PARTS: Kinds = {"format": int, "sealed_at": str, "code": dict, "settings": dict, "reading": dict,
                 "source": str, "inputs": dict, "board": list, "predictions": list}  # fmt: skip
_UNVERIFIED = (
    "who voted and what the judge was: the files say so, and nobody can recompute it",
    "when it was sealed, unless its digest was published at that time",
)

Document = dict[str, Any]


def seal(file: Path, out: Path, settings: Settings, reading: Mapping[str, Any]) -> Document:
    """Rate the models of a file and seal the board: ratings, inputs, code and settings.

    Parameters
    ----------
    file : Path
        Battles as `judgeline.api.rank` reads them.
    out : Path
        The seal to write; one that is there is not replaced.
    settings : Settings
        How to rate.
    reading : mapping of str to object
        Options of `judgeline.api.rank` that say how the file is read, files of votes too.

    Returns
    -------
    dict
        The seal. Numbers are rounded to a tenth of an Elo point; `digest` is the SHA-256 of all
        else, and `predictions` has the models without votes.

    Raises
    ------
    ValueError
        If `out` exists or lies in the folder `file`, or as of `judgeline.api.rank`.
    """
    if out.exists():
        raise ValueError(f"{out} exists, and a seal is never replaced: name another with --out")
    if file.is_dir() and out.resolve().is_relative_to(file.resolve()):
        raise ValueError(
            f"{out} lies in {file}, whose files are sealed: name a place outside of it with --out"
        )
    board, now = rank(file, settings, **reading), _now()
    plain = {name: value for name, value in reading.items() if name != "votes"}
    votes = [Path(one) for one in reading.get("votes", ())]
    document: Document = {
        "format": _FORMAT,
        "sealed_at": now,
        "code": code_version(),
        "settings": {name: getattr(settings, name) for name in STATED},
        "reading": plain,
        "source": os.path.relpath(file, out.parent),
        "inputs": input_digests(file),
        "votes": {os.path.relpath(one, out.parent): _digest_of_file(one) for one in votes},
        "board": [_rounded(row) for row in stated_rows(board.leaderboard)],
        "predictions": _predictions(board, now),
    }
    document = json_value(document)
    document["digest"] = digest_of(document)
    write_whole(out, _text(document).encode())
    return document


def _predictions(board: Board, now: str) -> list[Document]:
    stated = state_predictions(
        typed_record(None), board.leaderboard, pd.Series(dtype="str"), board.battles.scored,
        miscoverage=board.settings.miscoverage, now=now, run_id="",
    )  # fmt: skip
    rows = stated[_STATED].astype(object).where(stated[_STATED].notna(), None).to_dict("records")
    return [_rounded({**row, "anchors": _rounded(json.loads(row["anchors"]))}) for row in rows]


def _rounded(row: Mapping[str, Any]) -> Document:
    return {
        name: value if name == "miscoverage" else promised(value) for name, value in row.items()
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _text(document: Document) -> str:
    return json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n"


def digest_of(document: Document) -> str:
    """Return the SHA-256 of a seal without its own digest."""
    rest = {name: value for name, value in document.items() if name != "digest"}
    return hashlib.sha256(_text(rest).encode()).hexdigest()


def input_digests(file: Path) -> Document:
    """Return the SHA-256 of each file of a source, by its path from there."""
    folder = file if file.is_dir() else file.parent
    return {os.path.relpath(path, folder): _digest_of_file(path) for path in files_of(file)}


def _digest_of_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def code_version() -> Document:
    """Return versions, and the SHA-256 of all sources of judgeline."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*")):
        if path.suffix in (".py", ".txt"):
            digest.update(f"{path.relative_to(_PACKAGE).as_posix()}\0".encode() + path.read_bytes())
    packages = {name: version(name) for name in ("judgeline", "numpy", "pandas", "scipy")}
    return {**packages, "python": platform.python_version(), "sources": digest.hexdigest()}


def read_seal(path: Path) -> Document:
    """Return a seal; QualityGateError if a byte of it was changed since it was written.

    ValueError of a seal that another version of judgeline wrote in another form.
    """
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    if (document := _whole(text)) is None:
        if _whole(text.removeprefix("\ufeff").replace("\r\n", "\n")) is not None:
            raise QualityGateError(
                f"{path} has other ends of lines or a byte order mark since it was sealed: restore "
                "it byte by byte (in git, with '*.seal.json -text' in .gitattributes)"
            )
        raise QualityGateError(
            f"{path} is no seal, or was changed since it was sealed: name the file that judgeline "
            "seal wrote, or restore it byte by byte"
        )
    if odd := _of_another_form(document):
        code = document.get("code")
        by = code.get("judgeline") if isinstance(code, dict) else "of another version"
        raise ValueError(
            f"{path} was sealed by judgeline {by} in another form ({', '.join(odd)}): read it by "
            "that version"
        )
    return document


def _of_another_form(document: Document) -> list[str]:
    """Return the parts that a seal lacks or has otherwise, and what is unknown here among them."""
    odd = [name for name, kind in _PARTS.items() if not isinstance(document.get(name), kind)]
    if document.get("format") != _FORMAT and "format" not in odd:
        odd = ["format", *odd]
    if odd:
        return odd
    known = {*STATED, *signature(rank).parameters}
    return sorted({*document["settings"], *document["reading"]} - known)


def _whole(text: str) -> Document | None:
    """Return the document of a seal's text; None if it is not the text that was written."""
    try:
        document = json.loads(text)
        is_whole = _text(document) == text and document["digest"] == digest_of(document)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return dict(document) if is_whole else None


# ------------------------------------------------------------------ verifying


@dataclass(frozen=True)
class Verification:
    """Parts of a seal that were recomputed alike, that differ, and that cannot be recomputed."""

    digest: str
    verified: tuple[str, ...]
    problems: tuple[str, ...]
    unverified: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return a sentence for each part."""
        heads = ("Verified", "Differs", "Not verified")
        parts = zip(heads, (self.verified, self.problems, self.unverified), strict=True)
        return [f"{head}: {text}." for head, texts in parts for text in texts]


def verify(path: Path, file: Path | None = None, *, expect: str | None = None) -> Verification:
    """Recompute a seal from its inputs, offline.

    Parameters
    ----------
    path : Path
        The seal.
    file : Path, optional
        The battles, where they are not where they were when they were sealed.
    expect : str, optional
        The digest as it was published: whoever changes seal and inputs together changes it.

    Returns
    -------
    Verification
        What agrees, what differs and what cannot be known.

    Raises
    ------
    ValueError
        If the inputs are missing or cannot be read.
    QualityGateError
        If the seal was changed since it was sealed.
    """
    document = read_seal(path)
    verified, problems, unverified = ["the seal is as it was written"], [], list(_UNVERIFIED)
    if expect is None:
        unverified.insert(0, "the digest: state the published one with --expect")
    elif expect.strip().lower() == document["digest"]:
        verified.append(f"its digest is {document['digest']}, as expected")
    else:
        wanted = expect or "an empty one"
        problems.append(f"its digest is {document['digest']}, and {wanted} was expected")
    source = file or path.parent / document["source"]
    if file is None and not source.exists():
        raise ValueError(
            f"no battles at {source}, where they lay beside the seal: name them with --file"
        )
    votes = {path.parent / name: digest for name, digest in document.get("votes", {}).items()}
    changed = changed_inputs(document["inputs"], source) + _changed_votes(votes)
    problems += (differing := changed or _differing_rows(document, source, [*votes]))
    if not changed:
        more = f" and {len(votes)} of votes" * bool(votes)
        verified.append(f"inputs: {len(document['inputs'])} of {source}{more}, byte by byte")
        told = f"the board: {len(document['board'])} models, recomputed to 0.1 Elo"
        verified += [told] * (not differing)
    used = code_version()
    if other := [name for name, value in used.items() if document["code"].get(name) != value]:
        unverified.append(f"that the code is the same: {', '.join(other)} of another version here")
    return Verification(document["digest"], tuple(verified), tuple(problems), tuple(unverified))


def changed_inputs(sealed: Mapping[str, str], source: Path) -> list[str]:
    """Return which files of a source are not those that were sealed."""
    found = input_digests(source)
    if len(sealed) == len(found) == 1:  # one file may be called otherwise
        sealed = dict(zip(found, sealed.values(), strict=True))
    wrong = sorted(name for name in {*sealed, *found} if sealed.get(name) != found.get(name))
    return [f"input {name} is not what was sealed" for name in wrong]


def _changed_votes(sealed: Mapping[Path, str]) -> list[str]:
    """Return which files of votes are gone or not those that were sealed."""
    gone = "are not there: put them where they lay, beside the seal as it was"
    told = {
        one: gone if not one.is_file() else "are not what was sealed"
        for one, digest in sealed.items()
        if not one.is_file() or _digest_of_file(one) != digest
    }
    return [f"votes {one} {words}" for one, words in told.items()]


def _differing_rows(document: Document, source: Path, votes: Sequence[Path]) -> list[str]:
    """Return the models whose numbers, made again, differ by more than a seal promises."""
    board = rank(source, Settings(**document["settings"]), **document["reading"], votes=votes)
    rows = {row["model"]: json_value(row) for row in stated_rows(board.leaderboard)}
    problems = []
    for row in document["board"]:
        again = rows.pop(row["model"], {})
        if wrong := [name for name, value in row.items() if not _agree(value, again.get(name))]:
            name, shown = wrong[0], (row[wrong[0]], again.get(wrong[0]))
            problems.append(
                f"{row['model']}: {name} is sealed as {shown[0]}, recomputed {shown[1]}"
            )
    return problems + [f"{model} is rated and was not sealed" for model in rows]


def _agree(sealed: Any, again: Any) -> bool:
    if isinstance(sealed, float) and isinstance(again, float):
        return abs(sealed - again) <= _PROMISED
    return bool(sealed == again)


# ------------------------------------------------------------------ scoring


@dataclass(frozen=True)
class PredictionRecord:
    """How many sealed predictions held, and the evidence against what was promised.

    `evidence` is an e-process (`judgeline.intervals.evidence_against`) over `n_releases`: seals
    that were made before any of them was scored count as one, once nothing of them waits.
    """

    n_held: int
    n_scored: int
    n_waiting: int
    n_new: int
    n_releases: int
    promised: float
    evidence: float

    @property
    def is_broken(self) -> bool:
        """Whether the promise is broken, at an error of 5 % over all looks."""
        return self.evidence >= BROKEN_FROM

    def lines(self) -> list[str]:
        """Return the record in sentences."""
        against = f"evidence against {100 * self.promised:.4g} %: {self.evidence:.2g}"
        record = f"{self.n_held} of {self.n_scored} held; {against}."
        waiting = "1 prediction of these seals waits"
        if self.n_waiting != 1:
            waiting = f"{self.n_waiting} predictions of these seals wait"
        lines = [
            record if self.n_scored else "No prediction was scored yet.",
            f"{self.n_new} new; {waiting} for votes, about as many as nine in ten other models "
            "have (docs/predictions.md).",
            f"Complete releases in evidence: {self.n_releases}; evidence of {BROKEN_FROM:g} breaks "
            "the promise.",
        ]
        return lines + ["The promise is broken: read intervals as too narrow."] * self.is_broken


def score_seals(
    paths: Sequence[Path], votes: Path, ledger: Path, reading: Mapping[str, Any]
) -> PredictionRecord:
    """Score sealed predictions by votes that have come, each once, and keep the record.

    Parameters
    ----------
    paths : sequence of Path
        Seals.
    votes : Path
        Battles with the votes, as `judgeline.api.rank` reads them; or a file or folder of votes
        that a page saved, which are joined to the battles beside the seal.
    ledger : Path
        File of the scores; those that it holds stay as they are.
    reading : mapping of str to object
        How the file is read; where it is empty, as the sealed file was.

    Returns
    -------
    PredictionRecord
        Of all that the ledger holds.

    Raises
    ------
    ValueError
        If the votes cannot be read, or the ledger is damaged.
    QualityGateError
        If a seal was changed, or as of `judgeline.api.rank`.
    """
    files_of(votes)  # tells a wrong path, also where nothing is left to score
    entries, new, n_waiting, now = read_ledger(ledger, _KINDS), [], 0, _now()
    known = {(entry["seal"], entry["model"]) for entry in entries}
    read = [(path, read_seal(path)) for path in paths]
    seals = {document["digest"]: (path, document) for path, document in read}  # each counts once
    for digest, (path, document) in seals.items():
        rows = document["predictions"]
        own = {"seal": digest, "sealed_at": document["sealed_at"], "n_sealed": len(rows)}
        left = [row for row in rows if (digest, row["model"]) not in known]
        board = _board_with(votes, path, document, reading) if left else None
        scored = [] if board is None else _scored(document, left, votes, board, now)
        n_waiting += len(left) - len(scored)
        new += [{**own, **row} for row in scored]
        known |= {(digest, row["model"]) for row in scored}
    extend_ledger(ledger, new)
    entries += new
    missed, miscoverage = _releases(entries)
    evidence = evidence_against(missed, miscoverage)
    levels = [entry["miscoverage"] for entry in entries]
    return PredictionRecord(
        sum(entry["covered"] for entry in entries), len(entries), n_waiting, len(new), len(missed),
        1 - float(np.mean(levels)) if levels else np.nan, float(evidence[-1]) if missed else 1.0,
    )  # fmt: skip


def _board_with(
    votes: Path, path: Path, document: Document, reading: Mapping[str, Any]
) -> pd.DataFrame:
    """Return the board of battles with votes, or of those beside the seal with a page's votes."""
    settings, told = Settings(**document["settings"]), reading or document["reading"]
    if not are_votes(votes):
        return rank(votes, settings, **told).leaderboard
    known = [path.parent / name for name in document.get("votes", {})]
    new = [one for one in files_of(votes) if one.resolve() not in {of.resolve() for of in known}]
    source = path.parent / document["source"]
    if changed := changed_inputs(document["inputs"], source):
        raise QualityGateError(
            f"{source} is not what {path} was sealed on ({'; '.join(changed)}): restore it, or "
            "give --votes the battles with their votes"
        )
    return rank(source, settings, votes=[*known, *new], **told).leaderboard


def _scored(
    document: Document, left: Sequence[Document], votes: Path, board: pd.DataFrame, now: str
) -> list[Entry]:
    if not {row["model"] for row in document["board"]} & {*board["model"]}:
        raise ValueError(
            f"no model of the seal, such as {document['board'][0]['model']}, is in {votes}: name "
            "the battles of the sealed models with --votes"
        )
    table = pd.DataFrame(left).assign(anchors=[json.dumps(row["anchors"]) for row in left])
    further = pd.DataFrame(columns=PEOPLE, dtype=float)
    record = score_predictions(typed_record(table), board, further, now=now)
    rows = record.loc[record["scored_at"].notna(), [*_SCORED, *PEOPLE]]
    plain = rows.astype(object).where(rows.notna(), None).to_dict("records")
    return [{**json_value(row), "covered": bool(row["covered"])} for row in plain]


def _releases(entries: Sequence[Entry]) -> tuple[list[float], list[float]]:
    """Return the missed share and the miscoverage of each complete release, oldest first.

    Seals made before any of them was scored share their calibrating models: they are one release.
    One whose first score comes when its release is complete counts in none, so that no evidence
    that was read is revised.
    """
    groups: list[dict[str, list[Entry]]] = []
    late: set[str] = set()
    for _, scored in groupby(entries, key=lambda one: str(one["scored_at"])):
        seals: dict[str, list[Entry]] = {}
        for entry in sorted(scored, key=lambda one: str(one["sealed_at"])):
            seals.setdefault(entry["seal"], []).append(entry)
        was_complete = [_is_complete(group) for group in groups]
        for seal, rows in seals.items():
            own = next((group for group in groups if seal in group), None)
            if own is None and groups and rows[0]["sealed_at"] <= _first_scored(groups[-1]):
                own = groups[-1]
                if len(was_complete) == len(groups) and was_complete[-1]:
                    late.add(seal)
            elif own is None:
                groups.append(own := {})
            if seal not in late:
                own.setdefault(seal, []).extend(rows)
    complete = [group for group in groups if _is_complete(group)]
    tables = [pd.DataFrame([row for rows in one.values() for row in rows]) for one in complete]
    missed = [float(1 - table["covered"].astype(float).mean()) for table in tables]
    return missed, [float(table["miscoverage"].mean()) for table in tables]


def _is_complete(group: Mapping[str, Sequence[Entry]]) -> bool:
    """Return whether nothing of a release waits for votes."""
    return all(len(rows) == rows[0]["n_sealed"] for rows in group.values())


def _first_scored(group: Mapping[str, Sequence[Entry]]) -> str:
    return min(str(row["scored_at"]) for rows in group.values() for row in rows)

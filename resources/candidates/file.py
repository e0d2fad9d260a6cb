"""One candidate file: whose answers it holds, to what, and whether that can be believed."""

import json
import unicodedata
from typing import Any, NamedTuple

from resources.candidates.rows import Rows, read_rows
from resources.candidates.schema import CONTROL_PREFIX, RefusedError, told

LONGEST_NAME = 120
LONGEST_COMPLETION = 200_000
_KEYS = ("question_id", "instruction", "completion", "model", "family")


class Answered(NamedTuple):
    """One answer: the number of its row, what it answers by id or by text, and its text."""

    number: int
    question_id: str | None
    instruction: str | None
    completion: str


class CandidateFile(NamedTuple):
    """A new model's answers as dropped: its name, family and metadata, and an answer per row."""

    model: str
    family: str | None
    metadata: dict[str, Any]
    answers: list[Answered]
    unit: str


def read_candidate(name: str, content: bytes) -> CandidateFile:
    """Return what a candidate file says."""
    rows = read_rows(name, content)
    _require_columns(name, rows)
    model = _constant(name, rows, "model", "two-models") or name[: name.rfind(".")]
    _require_model(name, model)
    answers = [_answer(name, rows, place) for place in range(len(rows.number))]
    family = _constant(name, rows, "family", "two-families")
    return CandidateFile(model, family, _metadata(rows), answers, rows.unit)


def _require_columns(name: str, rows: Rows) -> None:
    found = ", ".join(told(column) for column in rows.columns) or "none"
    if "completion" not in rows.columns:
        raise RefusedError(
            "missing-column",
            f"{told(name)} has no column 'completion'; it has {found}: add the answers under "
            "that name",
        )
    if not {"question_id", "instruction"} & rows.columns.keys():
        raise RefusedError(
            "missing-column",
            f"{told(name)} has neither a column 'question_id' nor 'instruction'; it has {found}: "
            "add one, so that answers can be matched with those of other models",
        )


def _constant(name: str, rows: Rows, column: str, reason: str) -> str | None:
    """Return the one value of a column of names; None where there is none."""
    first: tuple[Any, int] | None = None
    for value, number in zip(rows.columns.get(column, ()), rows.number, strict=False):
        if value is None:
            continue
        if not isinstance(value, str):
            raise RefusedError(
                "not-text",
                f"{told(name)}, {rows.unit} {number}, column {column!r}: found {told(value)}; "
                "write it as text",
            )
        if first is not None and value != first[0]:
            raise RefusedError(
                reason,
                f"{told(name)}: column {column!r} is {told(first[0])} in {rows.unit} {first[1]} "
                f"and {told(value)} in {rows.unit} {number}; write one file per model",
            )
        first = first or (value, number)
    return None if first is None else _encodable(name, rows, first[1], column, str(first[0]))


def _require_model(name: str, model: str) -> None:
    """Raise unless a model's name can stand in a table, a page and a message."""
    strange = [c for c in model if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    if not model.strip() or model != model.strip() or strange:
        raise RefusedError(
            "unsafe-model-name",
            f"{told(name)}: the model's name is {told(model)}; use printable characters, none of "
            "them invisible, and no space at either end",
        )
    if len(model) > LONGEST_NAME:
        raise RefusedError(
            "unsafe-model-name",
            f"{told(name)}: the model's name has {len(model)} characters ({told(model)}); use at "
            f"most {LONGEST_NAME}",
        )
    if model.casefold().startswith(CONTROL_PREFIX):
        raise RefusedError(
            "unsafe-model-name",
            f"{told(name)}: the model's name is {told(model)}, but names that begin with "
            f"{CONTROL_PREFIX!r} are those of attack controls; choose another",
        )


def _answer(name: str, rows: Rows, place: int) -> Answered:
    number = rows.number[place]
    values = {key: rows.columns[key][place] for key in _KEYS[:3] if key in rows.columns}
    completion = values["completion"]
    where = f"{told(name)}, {rows.unit} {number}, column 'completion'"
    if completion is None or (isinstance(completion, str) and not completion.strip()):
        raise RefusedError(
            "empty-completion",
            f"{where}: found {told(completion)}; write the model's answer, or leave the row out "
            "if it gave none",
        )
    if not isinstance(completion, str):
        raise RefusedError("not-text", f"{where}: found {told(completion)}; write it as text")
    if len(completion) > LONGEST_COMPLETION:
        raise RefusedError(
            "too-large",
            f"{where}: {len(completion):,} characters, at most {LONGEST_COMPLETION:,} are shown to "
            "a judge; leave the row out",
        )
    question, instruction = _asked(name, rows, number, values)
    return Answered(
        number, question, instruction, _encodable(name, rows, number, "completion", completion)
    )


def _asked(
    name: str, rows: Rows, number: int, values: dict[str, Any]
) -> tuple[str | None, str | None]:
    question, instruction = values.get("question_id"), values.get("instruction")
    if isinstance(question, int) and not isinstance(question, bool):
        question = str(question)
    for column, value in (("question_id", question), ("instruction", instruction)):
        if value is not None and not isinstance(value, str):
            raise RefusedError(
                "not-text",
                f"{told(name)}, {rows.unit} {number}, column {column!r}: found {told(value)}; "
                "write it as text",
            )
    if not question and not instruction:
        raise RefusedError(
            "no-question",
            f"{told(name)}, {rows.unit} {number}: question_id and instruction are empty; say what "
            "this answers, or leave the row out",
        )
    return question or None, instruction or None


def _encodable(name: str, rows: Rows, number: int, column: str, text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RefusedError(
            "not-text",
            f"{told(name)}, {rows.unit} {number}, column {column!r}: character {error.start} is "
            f"{told(text[error.start])}, half of a pair; write the text again in UTF-8",
        ) from None
    return text


def _metadata(rows: Rows) -> dict[str, Any]:
    """Return the further columns that have one value in all rows, as JSON can hold them."""
    found = {}
    for column, values in rows.columns.items():
        if column in _KEYS or values[0] is None:
            continue
        texts = [json.dumps(value, sort_keys=True, default=str) for value in values]
        if len(set(texts)) == 1 and len(texts[0]) <= 1000:
            found[column] = json.loads(texts[0])
    return found

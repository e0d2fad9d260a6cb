"""One candidate file: whose answers it holds, to what, and whether that can be believed."""

import json
import unicodedata
from collections.abc import Sequence
from io import BytesIO
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from resources.candidates.folder import MAX_BYTES
from resources.candidates.schema import CONTROL_PREFIX, RefusedError, told

FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
MAX_ROWS = 1_000_000
MAX_CELLS = 20_000_000
"""Rows times columns: a short line of JSON may name a column that no other has."""


class Rows(NamedTuple):
    """What a file holds: columns by name, all of one length, and the number of each row.

    `number` counts lines of JSON from 1, and rows of Parquet from 0; `unit` is what it counts.
    """

    columns: dict[str, list[Any]]
    number: Sequence[int]
    unit: str


def read_rows(name: str, content: bytes) -> Rows:
    """Return the rows of a candidate file."""
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    if suffix not in FORMATS:
        raise RefusedError(
            "unknown-format",
            f"{told(name)} ends in {told(suffix)}; write one JSON object a line into a file that "
            "ends in .jsonl, or a .parquet file",
        )
    if not content.strip():
        raise RefusedError("empty-file", f"{told(name)} holds nothing; write it again")
    rows = _json_rows(name, content) if FORMATS[suffix] == "jsonl" else _parquet_rows(name, content)
    if not rows.number:
        raise RefusedError("empty-file", f"{told(name)} holds no rows; write it again")
    return rows


def require_size(name: str, size: int) -> None:
    """Raise RefusedError if a file is larger than what is read."""
    if size > MAX_BYTES:
        raise RefusedError(
            "too-large",
            f"{told(name)} has {size:,} bytes, at most {MAX_BYTES:,} are read; leave out questions "
            "that no anchor answered (`judgeline candidates questions` lists those that count)",
        )


def require_extent(name: str, n_rows: int, n_columns: int = 1) -> None:
    """Raise RefusedError if a file has more rows, or more cells, than are read."""
    if n_rows > MAX_ROWS:
        raise RefusedError(
            "too-large",
            f"{told(name)} has {n_rows:,} rows, at most {MAX_ROWS:,} are read; leave out questions "
            "that no anchor answered",
        )
    if n_rows * n_columns > MAX_CELLS:
        raise RefusedError(
            "too-large",
            f"{told(name)} has {n_columns:,} columns in {n_rows:,} rows, at most {MAX_CELLS:,} "
            "cells are read; leave out columns that are no metadata",
        )


def _json_rows(name: str, content: bytes) -> Rows:
    if not content.endswith((b"\n", b"\r")):
        raise RefusedError(
            "no-end",
            f"{told(name)} does not end with a newline, as if its writer had been stopped; write "
            "the last line whole, with a newline after it",
        )
    require_extent(name, content.count(b"\n"))
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise RefusedError(
            "not-utf-8",
            f"{told(name)}, line {line}: byte {told(content[error.start : error.start + 1])} is "
            "not UTF-8; save the file in that encoding",
        ) from None
    numbers = [number for number, line in enumerate(lines, start=1) if line.strip()]
    records = [_record(name, number, lines[number - 1]) for number in numbers]
    columns = list(dict.fromkeys(key for record in records for key in record))
    require_extent(name, len(records), len(columns))
    return Rows({c: [record.get(c) for record in records] for c in columns}, numbers, "line")


def _record(name: str, number: int, line: str) -> dict[str, Any]:
    where = f"{told(name)}, line {number}"
    try:
        record = json.loads(line, object_pairs_hook=_once)
    except RecursionError:
        raise RefusedError("broken-json", f"{where}: nested too deeply; correct it") from None
    except ValueError as error:
        raise RefusedError(
            "broken-json", f"{where}: no JSON object ({error}): found {told(line)}; correct it"
        ) from None
    if not isinstance(record, dict):
        raise RefusedError(
            "broken-json",
            f"{where}: found {told(record)}; expected one object, such as "
            '{"question_id": "17", "completion": "..."}',
        )
    return record


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {told(twice)} occurs twice")
    return found


def _parquet_rows(name: str, content: bytes) -> Rows:
    try:
        file = pq.ParquetFile(BytesIO(content))
        groups = [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]
        require_size(name, sum(group.total_byte_size for group in groups))
        n_rows, n_columns = file.metadata.num_rows, file.metadata.num_columns
        require_extent(name, n_rows, n_columns)
        columns = _unpacked(name, file)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        if isinstance(error, RefusedError):
            raise
        raise RefusedError(
            "broken-parquet",
            f"{told(name)} cannot be read as Parquet ({told(str(error), 200)}); write it again",
        ) from None
    return Rows(columns, range(n_rows), "row")


def _unpacked(name: str, file: pq.ParquetFile) -> dict[str, list[Any]]:
    """Return a Parquet file's columns, unless they are larger than what is read.

    A value that occurs in every row is stored once: some hundred kilobytes may stand for many
    gigabytes. So few rows are unpacked at a time that these cannot be too many.
    """
    groups = [file.metadata.row_group(g) for g in range(file.metadata.num_row_groups)]
    widest = max((group.total_byte_size for group in groups), default=0)
    columns: dict[str, list[Any]] = {column: [] for column in file.schema_arrow.names}
    n_bytes = 0
    for batch in file.iter_batches(batch_size=min(MAX_BYTES // max(widest, 1) + 1, MAX_ROWS)):
        for column, values in batch.to_pydict().items():
            n_bytes += sum(map(_weight, values))
            require_size(name, n_bytes)
            columns[column] += values
    return columns


def _weight(value: Any) -> int:
    """Return about how many bytes a value takes, with everything in it."""
    if isinstance(value, str | bytes):
        return len(value)
    parts = value.values() if isinstance(value, dict) else value
    return sum(map(_weight, parts)) if isinstance(value, dict | list | tuple) else 1


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

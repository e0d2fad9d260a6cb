"""One candidate file: its model, questions and answers, and the checks on them."""

import json
import unicodedata
from collections.abc import Sequence
from io import BytesIO
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from judgeline.suggest import quoted
from judgeline.verdict import unique_members
from resources.candidates.folder import MAX_BYTES

MAX_ROWS = 1_000_000
MAX_CELLS = 20_000_000
"""Rows times columns: a short line of JSON may name a column that no other has."""
LONGEST_NAME = 120
LONGEST_COMPLETION = 200_000
CONTROL_PREFIX = "control:"
"""Start of the names of attack controls, and of no other model's."""
_KEYS = ("question_id", "instruction", "completion", "model", "family")


class RefusedError(ValueError):
    """A candidate file that is set aside: a slug of the reason, and a sentence with the remedy."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


class Rows(NamedTuple):
    """Contents of a file: columns of one length, and the place of each row (``line 4``)."""

    columns: dict[str, list[Any]]
    places: Sequence[str]

    def text(self, row: int, column: str) -> str | None:
        """Return the text of a cell, None where there is none."""
        value = self.columns[column][row] if column in self.columns else None
        if value is None:
            return None
        fault = f"found {quoted(value)}; write it as text"
        if isinstance(value, str):
            try:
                value.encode("utf-8")
                return value
            except UnicodeEncodeError as error:
                half = quoted(value[error.start])
                fault = f"character {error.start} is {half}, half of a pair; write it in UTF-8"
        raise RefusedError("not-text", f"{self.places[row]}, column {column!r}: {fault}")

    def constant(self, column: str, reason: str) -> str | None:
        """Return the one text of a column, None where it has none."""
        texts: dict[str, str] = {}
        for row, place in enumerate(self.places):
            if (text := self.text(row, column)) is not None:
                texts.setdefault(text, place)
        if len(texts) > 1:
            (one, first), (other, second), *_ = texts.items()
            found = f"{quoted(one)} in {first} and {quoted(other)} in {second}"
            detail = f"column {column!r} is {found}; write one file per model"
            raise RefusedError(reason, detail)
        return next(iter(texts), None)


class Answered(NamedTuple):
    """One answer: the place of its row, its question by id or by text, and its text."""

    place: str
    question_id: str | None
    instruction: str | None
    completion: str


class CandidateFile(NamedTuple):
    """A new model's answers as dropped: its name, family and metadata, and an answer per row."""

    model: str
    family: str | None
    metadata: dict[str, Any]
    answers: list[Answered]


def read_candidate(name: str, content: bytes) -> CandidateFile:
    """Return the answers in a candidate file."""
    readers = {".jsonl": _json, ".ndjson": _json, ".parquet": _parquet, ".pq": _parquet}
    stem, dot, ending = name.rpartition(".")
    suffix = f"{dot}{ending.lower()}" if dot else ""
    if suffix not in readers:
        detail = f"its name ends in {quoted(suffix)}; write JSON lines (.jsonl) or a .parquet file"
        raise RefusedError("unknown-format", detail)
    rows = readers[suffix](content) if content.strip() else Rows({}, [])
    if not rows.places:
        raise RefusedError("empty-file", "it holds nothing; write it again")
    has_question = {"question_id", "instruction"} & rows.columns.keys()
    if "completion" not in rows.columns or not has_question:
        found = ", ".join(map(quoted, rows.columns))
        detail = f"it needs 'completion' and 'question_id' or 'instruction'; add one to {found}"
        raise RefusedError("missing-column", detail)
    model = rows.constant("model", "two-models") or stem
    _require_model(model)
    answers = [_answer(rows, row) for row in range(len(rows.places))]
    return CandidateFile(model, rows.constant("family", "two-families"), _metadata(rows), answers)


def require_at_most(n: int, most: int, unit: str) -> None:
    """Raise RefusedError if a file has more of something than is read."""
    if n > most:
        raise RefusedError(
            "too-large",
            f"it has {n:,} {unit}, at most {most:,} are read; leave out columns that are no "
            "metadata, and questions that `judgeline candidates questions` does not list",
        )


def _require_extent(n_rows: int, n_columns: int = 1) -> None:
    require_at_most(n_rows, MAX_ROWS, "rows")
    cells = f"cells ({n_columns:,} columns in {n_rows:,} rows)"
    require_at_most(n_rows * n_columns, MAX_CELLS, cells)


def _json(content: bytes) -> Rows:
    if not content.endswith((b"\n", b"\r")):
        raise RefusedError(
            "no-end", "it ends without a newline, as if cut off; write it again whole"
        )
    _require_extent(content.count(b"\n"))
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = quoted(content[error.start : error.start + 1])
        detail = f"line {line}: byte {found} is not UTF-8; save the file in that encoding"
        raise RefusedError("not-utf-8", detail) from None
    places = {f"line {n}": line for n, line in enumerate(lines, start=1) if line.strip()}
    records = [_record(place, line) for place, line in places.items()]
    columns = list(dict.fromkeys(key for record in records for key in record))
    _require_extent(len(records), len(columns))
    return Rows({c: [record.get(c) for record in records] for c in columns}, list(places))


def _record(place: str, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=unique_members)
        if isinstance(record, dict):
            return record
        fault = 'expected one object, such as {"question_id": "17", "completion": "..."}'
    except RecursionError:
        fault = "nested too deeply; correct it"
    except ValueError as error:
        fault = f"no JSON object ({error}); correct it"
    raise RefusedError("broken-json", f"{place}: found {quoted(line)}: {fault}")


def _parquet(content: bytes) -> Rows:
    """Return a Parquet file's rows, unpacked by few; RefusedError if larger than `MAX_BYTES`."""
    try:
        file = pq.ParquetFile(BytesIO(content))
        found = file.metadata
        sizes = [found.row_group(group).total_byte_size for group in range(found.num_row_groups)]
        require_at_most(sum(sizes), MAX_BYTES, "bytes")
        _require_extent(found.num_rows, found.num_columns)
        columns: dict[str, list[Any]] = {column: [] for column in file.schema_arrow.names}
        n_bytes, widest = 0, max(sizes, default=0)
        for batch in file.iter_batches(batch_size=min(MAX_BYTES // max(widest, 1) + 1, MAX_ROWS)):
            for column, values in batch.to_pydict().items():
                n_bytes += sum(map(_weight, values))
                require_at_most(n_bytes, MAX_BYTES, "bytes")
                columns[column] += values
    except RefusedError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        detail = f"it cannot be read as Parquet ({quoted(str(error), 200)}); write it again"
        raise RefusedError("broken-parquet", detail) from None
    return Rows(columns, [f"row {row}" for row in range(found.num_rows)])


def _weight(value: Any) -> int:
    """Return about how many bytes a value takes, with everything in it."""
    if isinstance(value, str | bytes):
        return len(value)
    parts = value.values() if isinstance(value, dict) else value
    return sum(map(_weight, parts)) if isinstance(value, dict | list | tuple) else 1


def _require_model(model: str) -> None:
    """Raise unless a model's name can stand in a table, a page and a message."""
    strange = [c for c in model if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    if not model.strip() or model != model.strip() or strange:
        fault = "use printable characters, none of them invisible, and no space at either end"
    elif len(model) > LONGEST_NAME:
        fault = f"it has {len(model)} characters; use at most {LONGEST_NAME}"
    elif model.casefold().startswith(CONTROL_PREFIX):
        fault = f"names with {CONTROL_PREFIX!r} are those of attack controls; choose another"
    else:
        return
    raise RefusedError("unsafe-model-name", f"the model's name is {quoted(model)}; {fault}")


def _answer(rows: Rows, row: int) -> Answered:
    place, value = rows.places[row], rows.columns["completion"][row]
    if value is None or (isinstance(value, str) and not value.strip()):
        fault = f"found {quoted(value)}; write the model's answer, or leave the row out"
        raise RefusedError("empty-completion", f"{place}, column 'completion': {fault}")
    completion = str(rows.text(row, "completion"))
    if len(completion) > LONGEST_COMPLETION:
        fault = f"{len(completion):,} characters, at most {LONGEST_COMPLETION:,} are judged"
        raise RefusedError("too-large", f"{place}, column 'completion': {fault}; leave the row out")
    number = rows.columns["question_id"][row] if "question_id" in rows.columns else None
    is_number = isinstance(number, int) and not isinstance(number, bool)
    question = str(number) if is_number else rows.text(row, "question_id")
    instruction = rows.text(row, "instruction")
    if not question and not instruction:
        detail = f"{place}: question_id and instruction are empty; write one, or leave the row out"
        raise RefusedError("no-question", detail)
    return Answered(place, question or None, instruction or None, completion)


def _metadata(rows: Rows) -> dict[str, Any]:
    """Return the further columns that have one value in all rows, as JSON can hold them."""
    found = {}
    for column, values in rows.columns.items():
        if column in _KEYS or values[0] is None:
            continue
        texts = {json.dumps(value, sort_keys=True, default=str) for value in values}
        if len(texts) == 1 and len(text := texts.pop()) <= 1000:
            found[column] = json.loads(text)
    return found

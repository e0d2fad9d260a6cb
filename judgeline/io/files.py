"""Tables as files: CSV, JSON lines and Parquet, read by the columns that a layout needs."""

import codecs
import csv
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

SUFFIXES: dict[str, str] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}

LAYOUTS: dict[str, tuple[str, ...]] = {
    "lmarena-100k": (
        "question_id model_a model_b winner conversation_a conversation_b language tstamp",
    ),
    "lmarena-140k": (
        "id model_a model_b winner evaluation_session_id conversation_a conversation_b language "
        "timestamp",
    ),
    "lmarena-55k": (
        "id model_a model_b prompt response_a response_b winner_model_a winner_model_b winner_tie",
    ),
    "comparia": (
        "conversation_pair_id model_a_name model_b_name chosen_model_name both_equal "
        "conversation_a conversation_b",
    ),
    "softelo-annotations": (
        "judge original_question_id_hash model_a model_b human_pref judge_pref scores_a scores_b",
        "model_a model_b human_pref judge_pref scores_a scores_b",
    ),
    "battles": ("model_a model_b human_outcome", "model_a model_b winner"),
    "arena-hard": ("uid model judge games", "question_id model judge games"),
    "mt-bench": ("question_id model_1 model_2 g1_winner g2_winner judge",),
    "alpaca-eval": ("instruction output_1 output_2 generator_1 generator_2 annotator preference",),
    "reference-battles": ("question_id model reference_model judge preference",),
}
"""Columns that a reader needs; the first layout whose columns are all there is the file's."""


_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def read_layout(path: Path, reader: str, optional: str = "") -> pd.DataFrame:
    """Return the columns of one of a reader's layouts, and the optional ones that are there.

    CSV cells are text, null where empty; other formats keep their types. ValueError if the file is
    empty, cannot be read, or fits no layout of the reader.
    """
    found = file_columns(path)
    needed = layout_of(path, reader, found)
    table = _read(path, [*needed, *(name for name in optional.split() if name in found)])
    if table.empty:
        raise ValueError(f"{path} holds a header and no rows; download or write it again")
    return table


def layout_of(path: Path, reader: str, found: Sequence[str]) -> list[str]:
    """Return the layout of a reader that some columns fit.

    ValueError if none does, with what is missing, what was found and which reader might fit.
    """
    lacking = {
        name: [[column for column in layout.split() if column not in found] for layout in layouts]
        for name, layouts in LAYOUTS.items()
    }
    for layout, missing in zip(LAYOUTS[reader], lacking[reader], strict=True):
        if not missing:
            return layout.split()
    fitting = [name for name, missing in lacking.items() if [] in missing]
    remedy = f"Reader {' or '.join(fitting)} might fit" if fitting else "No reader fits"
    raise ValueError(
        f"{path} lacks {', '.join(min(lacking[reader], key=len))} for reader {reader!r}; it has "
        f"{', '.join(found[:40]) or 'no columns'}. {remedy}: correct the reader or the location "
        "in config/corpora.yaml."
    )


def file_columns(path: Path) -> list[str]:
    """Return the names of a file's columns without reading its rows."""
    kind = _kind(path)
    try:
        if kind == "parquet":
            import pyarrow.parquet as pq

            return list(pq.read_schema(path).names)
        if kind == "csv":
            names = list(map(str, pd.read_csv(path, nrows=0, encoding="utf-8-sig").columns))
    except (ValueError, OSError) as error:
        raise ValueError(unreadable_text(path, kind, error)) from error
    if kind == "jsonl":
        return list(dict.fromkeys(name for record in _json_lines(path) for name in record))
    for separator, word in _SEPARATORS.items():
        if len(names) == 1 and separator in names[0]:
            raise ValueError(
                f"{path} has {word} between its columns ({names[0]!r:.80}); export it with commas, "
                "and decimals with a point"
            )
    return names


def _kind(path: Path) -> str:
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"{path} ends in {path.suffix or 'nothing'!r}; expected one of "
            f"{', '.join(SUFFIXES)}: convert it, or rename it if it is one of these already"
        )
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty (0 bytes); download or write it again")
    return SUFFIXES[path.suffix.lower()]


def _read(path: Path, columns: list[str]) -> pd.DataFrame:
    kind = _kind(path)
    if kind == "jsonl":
        return pd.DataFrame.from_records(list(_json_lines(path)), columns=columns)
    try:
        if kind == "parquet":
            return pd.read_parquet(path, columns=columns)
        require_rectangular(path)
        return pd.read_csv(
            path,
            usecols=columns,
            dtype=str,
            keep_default_na=False,
            na_values=[""],
            encoding="utf-8-sig",
        )
    except (ValueError, OSError) as error:
        raise ValueError(unreadable_text(path, kind, error)) from error


def require_rectangular(path: Path) -> None:
    """Raise unless every row of a CSV file has as many fields as its header.

    A row with more would be read with its values in the wrong columns, one with fewer as if
    something were missing.
    """
    with path.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.reader(lines)
        n_fields = len(next(rows, []))
        for row in rows:
            if row and len(row) != n_fields:
                raise ValueError(
                    f"{path}, line {rows.line_num}: {len(row)} fields where the header has "
                    f"{n_fields}; put quotes around fields that hold commas, and write decimals "
                    "with a point"
                )


def unreadable_text(path: Path, kind: str, error: Exception) -> str:
    """Return why a file cannot be read and what to do; of another encoding, which it may have."""
    if not isinstance(error, UnicodeDecodeError):
        return f"{path} cannot be read as {kind}: {error}; download or write it again"
    with path.open("rb") as content:
        is_utf16 = content.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    found = "its mark is that of UTF-16" if is_utf16 else "Latin-1 and Windows-1252 have such bytes"
    told = f"byte {error.object[error.start]:#04x} is not UTF-8 ({found}); save it as UTF-8"
    return f"{path} cannot be read as {kind}: {told}"


def _json_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                record = json.loads(line)
                if not isinstance(record, dict):
                    kind = type(record).__name__
                    raise ValueError(f"{path}, line {number}: {kind}, expected one object a line")
                yield record
    except UnicodeDecodeError as error:
        raise ValueError(unreadable_text(path, "jsonl", error)) from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {number}: not JSON ({error}); fix it") from error


def write_together(writers: Mapping[Path, Callable[[Path], object]]) -> None:
    """Write files under passing names first, so that a failure changes nothing."""
    parts = {path: path.with_name(f".{path.name}.{uuid.uuid4().hex}.part") for path in writers}
    try:
        for path, write in writers.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write(parts[path])
            with parts[path].open("rb") as written:
                os.fsync(written.fileno())
        for path, part in parts.items():
            part.replace(path)
    finally:
        for part in parts.values():
            if part.exists():
                part.unlink()

"""Records of JSON files, a line or list element each, and the fields that readers ask of them."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from resources.corpora.conversations import encodable

Record = tuple[int, Mapping[str, Any] | None, str]
"""Position in its file, the record or None, and then what is wrong with it."""


class RowError(ValueError):
    """A record that tells of no battle; `reason` is the slug under which it is quarantined."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def read_records(path: Path) -> Iterator[Record]:
    """Yield position, record and what is wrong with it, of JSON lines or one JSON list."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 ({error}); download or write it again") from error
    if not text.strip():
        raise ValueError(f"{path} is empty; download or write it again")
    return _listed(path, text) if text.lstrip().startswith("[") else _lines(text)


def _listed(path: Path, text: str) -> Iterator[Record]:
    try:
        elements = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} begins like a JSON list and is none ({error}); download or write it again"
        ) from error
    for row, element in enumerate(elements):
        yield row, *_object(element)


def _lines(text: str) -> Iterator[Record]:
    lines = (line for line in text.split("\n") if line.strip())
    for row, line in enumerate(lines):
        try:
            yield row, *_object(json.loads(line))
        except (ValueError, RecursionError) as error:
            yield row, None, f"not JSON: {error}"


def _object(value: Any) -> tuple[Mapping[str, Any] | None, str]:
    if isinstance(value, dict):
        return value, ""
    return None, f"{type(value).__name__}, expected an object"


# Fields of a record


def name_of(record: Mapping[str, Any], key: str, reason: str) -> str:
    """Return the name under a key, without blanks around it."""
    value = record.get(key)
    if not isinstance(value, str) or not value.strip():
        raise RowError(reason, f"{key} is {brief(value)}, expected a name")
    return encodable(value.strip())


def id_of(record: Mapping[str, Any], *keys: str) -> str:
    """Return the first of some keys that holds a number or text that names a question."""
    for key in keys:
        value = record.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return encodable(value.strip())
    raise RowError("missing-question", f"{keys[0]} is {brief(record.get(keys[0]))}, expected one")


def text_of(value: Any) -> str | None:
    """Return text as it is, nothing as None, and anything else as compact JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return encodable(value)
    return encodable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def brief(value: Any) -> str:
    """Return a value as a message shows it: as written, and not at length."""
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"

"""Records of JSON files, a line or list element each, and the fields that readers ask of them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Record = tuple[int, Mapping[str, Any] | None, str]
"""Position in its file, the record or None, and then what is wrong with it."""


class RowError(ValueError):
    """A record without a battle; `reason` is the slug under which it is quarantined."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def read_records(path: Path) -> Iterator[Record]:
    """Yield position, record and fault of each record of JSON lines or of one JSON list."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 ({error}); download or write it again") from error
    if not text.strip():
        raise ValueError(f"{path} is empty; download or write it again")
    if text.lstrip().startswith("["):
        try:
            values = [(value, "") for value in json.loads(text)]
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{path} begins like a JSON list and is none ({error}); download or write it again"
            ) from error
    else:
        values = [_parsed(line) for line in text.split("\n") if line.strip()]
    for row, (value, trouble) in enumerate(values):
        is_object = isinstance(value, dict)
        wrong = trouble or f"{type(value).__name__}, expected an object"
        yield row, value if is_object else None, "" if is_object else wrong


def _parsed(line: str) -> tuple[Any, str]:
    try:
        return json.loads(line), ""
    except (ValueError, RecursionError) as error:
        return None, f"not JSON: {error}"


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
    """Return a JSON value as text: strings unchanged, null as None, others as compact JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return encodable(value)
    return encodable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def brief(value: Any) -> str:
    """Return a value for a message: its repr, cut at 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


TURN_SEPARATOR = "\n\n"


class Conversation(NamedTuple):
    """The first user turn, all answers, and the number of user turns."""

    instruction: str | None
    completion: str | None
    n_turns: int


def read_conversation(published: Any) -> Conversation:
    """Return the first user turn and all assistant turns of a list, or of JSON that holds one."""
    turns = [_turn(turn) for turn in _published_list(published)]
    asked = [text for role, text in turns if role == "user"]
    answered = [text for role, text in turns if role == "assistant"]
    completion = TURN_SEPARATOR.join(answered) if answered else None
    return Conversation(asked[0] if asked else None, completion, len(asked))


def read_texts(published: Any) -> list[str]:
    """Return the texts of a JSON list of strings, empty where a text is null."""
    listed = _published_list(published)
    if wrong := [text for text in listed if text is not None and not isinstance(text, str)]:
        raise ValueError(f"a text is {type(wrong[0]).__name__}, expected a string")
    return [encodable(text or "") for text in listed]


def encodable(text: str) -> str:
    """Return text that UTF-8 can hold: half a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _published_list(published: Any) -> list[Any]:
    if isinstance(published, str):
        try:
            published = json.loads(published)
        except json.JSONDecodeError as error:
            raise ValueError(f"not JSON ({error.msg} at character {error.pos})") from error
    if isinstance(published, np.ndarray):
        published = published.tolist()
    if not isinstance(published, list):
        raise ValueError(f"{type(published).__name__} instead of a list")
    return published


def _turn(turn: Any) -> tuple[str, str]:
    if not isinstance(turn, Mapping) or not isinstance(turn.get("role"), str):
        raise ValueError(f"a turn is {str(turn)[:60]!r}, expected a role and content")
    return turn["role"], encodable(_text(turn.get("content")))


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    blocks: Iterable[Any] = [content] if isinstance(content, Mapping) else content
    if not isinstance(blocks, (list, np.ndarray)):
        raise ValueError(f"content is {type(content).__name__}, expected text or blocks")
    return "\n".join(text for block in blocks if (text := _block_text(block)) is not None)


def _block_text(block: Any) -> str | None:
    """Return the text of a block; images and the like have none."""
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping):
        raise ValueError(f"a block is {type(block).__name__}, expected one with a type and text")
    text = block.get("text")
    return text if isinstance(text, str) and block.get("type", "text") == "text" else None

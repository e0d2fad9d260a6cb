"""Published conversations, in every nesting that corpora use, as texts."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

TURN_SEPARATOR = "\n\n"


class Conversation(NamedTuple):
    """The first thing asked, everything answered, and how often something was asked."""

    instruction: str | None
    completion: str | None
    n_turns: int


def read_conversation(published: Any) -> Conversation:
    """Return the texts of a list of turns, or of JSON that holds one.

    The instruction is the first user turn, the completion all assistant turns joined by an empty
    line; system turns and reasoning are left out.
    """
    turns = [_turn(turn) for turn in _listed(published)]
    asked = [text for role, text in turns if role == "user"]
    answered = [text for role, text in turns if role == "assistant"]
    return Conversation(
        asked[0] if asked else None,
        TURN_SEPARATOR.join(answered) if answered else None,
        len(asked),
    )


def read_texts(published: Any) -> list[str]:
    """Return the texts of a JSON list of strings, empty where a text is null."""
    listed = _listed(published)
    if wrong := [text for text in listed if text is not None and not isinstance(text, str)]:
        raise ValueError(f"a text is {type(wrong[0]).__name__}, expected a string")
    return [encodable(text or "") for text in listed]


def encodable(text: str) -> str:
    """Return text that UTF-8 can hold: half a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _listed(published: Any) -> list[Any]:
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

"""Short answers as JSON objects that an endpoint enforces: the value first, then the reason."""

from typing import Any

from resources.judges.live.prompt import closed_object, named_schema

N_LISTED = 16
"""Tokens whose alternatives are kept: the value follows a brace, its key and some quotes."""

_REASON = {"type": "string"}  # a pattern or a greatest length breaks some servers' grammars


def object_format(key: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return the constraint to ``{key: value, "reason": text}``, as a ``response_format``."""
    return named_schema(key, closed_object({key: value, "reason": _REASON}))

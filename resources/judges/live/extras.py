"""Headers, query parameters and keys of the body that an entry adds to each request.

Secrets are named by the environment variable that holds them, and stand in headers only: a URL is
logged, and the body is part of a verdict's identity.
"""

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

ENVIRONMENT_NAME = re.compile(r"[A-Z][A-Z0-9_]*")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SECRET = re.compile(r"authorization|cookie|secret|passw|credential|key$|token$", re.IGNORECASE)
_SECRET_IN_BODY = re.compile(
    r"authorization|secret|passw|credential|api[-_]?key|(access|auth|bearer|hf)[-_]?token",
    re.IGNORECASE,
)
_LOOKS_SECRET = re.compile(r"(?<![A-Za-z0-9])(hf_|sk-)[A-Za-z0-9_-]{16,}")
_OUR_HEADERS = re.compile(
    r"accept-encoding|connection|content-(encoding|length|type)|host|te|trailer|transfer-encoding|"
    r"upgrade",
    re.IGNORECASE,
)
_OUR_KEYS = re.compile(
    r"messages|model|stream(_options)?|n|best_of|max_(completion_)?tokens|response_format|"
    r"(top_)?logprobs|temperature|top_p|seed|reasoning_effort|tools|functions"
)


def require_headers(given: Any) -> dict[str, Any]:
    """Return the headers of an entry: texts, or ``{env: VARIABLE}``."""
    headers = _named(given)
    for name, value in headers.items():
        if _OUR_HEADERS.fullmatch(name):
            raise ValueError(f"the header {name!r} is set for each request; remove it")
        if isinstance(value, str):
            _require_no_secret(name, value)
        elif variable_of(value) is None:
            raise ValueError(
                f"the header {name!r} is neither a text nor {{env: VARIABLE}} with the name of an "
                "environment variable in capitals"
            )
    return headers


def require_query(given: Any) -> dict[str, str]:
    """Return the query parameters of an entry as texts; YAML reads some as dates or numbers."""
    query = _named(given)
    for name, value in query.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float | datetime.date):
            raise ValueError(f"the query parameter {name!r} is no text; put it in quotes")
        _require_no_secret(name, str(value))
    return {name: str(value) for name, value in query.items()}


def require_body(given: Any) -> dict[str, Any]:
    """Return the keys that an entry adds to the body of each request."""
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise ValueError("it is no mapping from keys of the request's body to their values")
    if own := [name for name in given if _OUR_KEYS.fullmatch(name)]:
        raise ValueError(
            f"{own} are set by other keys of the entry, or for each request; remove them here"
        )
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        problem = "it holds what JSON cannot say, such as a date; put that in quotes"
    else:
        for name, value in _leaves(given):
            if _SECRET_IN_BODY.search(name) or _LOOKS_SECRET.search(str(value)):
                raise ValueError(
                    f"{name!r} looks like a secret, and the body is stored with every verdict; "
                    "send it as a header, {env: VARIABLE}"
                )
        return given
    raise ValueError(problem)


def variable_of(value: Any) -> str | None:
    """Return the environment variable that a header names, or None if it is no such reference."""
    if not isinstance(value, dict) or {*value} != {"env"}:
        return None
    name = value["env"]
    return name if isinstance(name, str) and ENVIRONMENT_NAME.fullmatch(name) else None


def _named(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError("it is no mapping from names to values")
    for name in given:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError("a name in it is no word of letters, digits, '-', '_' and '.'")
    return given


def _require_no_secret(name: str, value: str) -> None:
    if not value.isascii() or not value.isprintable():
        raise ValueError(f"{name!r} has a value with characters that no request can carry")
    if _SECRET.search(name) or _LOOKS_SECRET.search(value):
        raise ValueError(
            f"{name!r} looks like a secret, which never belongs into this file; put it into an "
            "environment variable and write the header as {env: VARIABLE}"
        )


def _leaves(value: Mapping[str, Any] | list[Any], name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of an object with the name that it stands under."""
    items = value.items() if isinstance(value, Mapping) else ((name, one) for one in value)
    for key, one in items:
        yield str(key), None if isinstance(one, dict | list) else one
        if isinstance(one, dict | list):
            yield from _leaves(one, str(key))

"""Errors of replies, and the most bytes of one."""

import json
from collections.abc import Mapping

MOST_BYTES = 64 << 20
"""Bytes at which a reply is broken off, whatever its headers say."""

MOST_SHOWN = 2000
"""Bytes, or characters, of an odd body that are looked at."""


class MalformedReplyError(Exception):
    """A success whose body the protocol does not know; what it holds follows the reason.

    It may have been paid for, so that it is asked for once more and no oftener.
    """

    failure = "unreadable_reply"

    def __init__(self, reason: str, body: object = None) -> None:
        super().__init__(reason if body is None else f"{reason}: {_written(body)}")


class BrokenReplyError(MalformedReplyError):
    """A reply that broke off: the connection, or the provider behind it, gave it up."""

    failure = "transport"


class PackedReplyError(MalformedReplyError):
    """A body that the server packed, though it was asked not to: it would pack the next one too."""


class StatusError(Exception):
    """A reply whose HTTP status is no success: its text, and the error that this may hold."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.text, self.headers = status, text, headers
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            body = None
        self.error = body.get("error", body) if isinstance(body, dict) else body


def _written(body: object) -> str:
    """Return a body as text, for somebody to read."""
    if isinstance(body, bytes):
        return body[:MOST_SHOWN].decode("utf-8", "replace")
    try:
        return json.dumps(body, ensure_ascii=False)[:MOST_SHOWN]
    except (ValueError, RecursionError):
        return str(type(body))

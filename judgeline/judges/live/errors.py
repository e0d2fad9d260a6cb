"""Errors of replies, and the most bytes of one."""

import json
from collections.abc import Mapping

MOST_BYTES = 64 << 20
"""Bytes at which a reply is broken off, whatever its headers say."""


class MalformedReplyError(Exception):
    """A body that the protocol does not know: half a reply, or another program's; worth a retry."""


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

"""What a request may cost before it is sent, and what it did cost after."""

import json
from collections.abc import Sequence
from typing import Any

from resources.judges.budget import Cost
from resources.judges.served.fields import Price
from resources.judges.served.prompt import Message

_ENVELOPE = 64  # tokens that a chat template adds to a message, at most
_LIMITS = ("max_tokens", "max_completion_tokens")


def most_of(messages: Sequence[Message], request: dict[str, Any], price: Price | None) -> Cost:
    """Return the most that a request can cost: a token is at least one byte of its text."""
    written = "".join(message["content"] for message in messages)
    schema = json.dumps(request.get("response_format", ""))
    prompt = len(written.encode()) + len(schema) + _ENVELOPE * len(messages)
    return priced(prompt, max(request.get(name, 0) for name in _LIMITS), price)


def may_be_billed(status: int, failure: str) -> bool:
    """Return whether a request that failed with an HTTP status may have been worked on.

    A gateway that gives up leaves the model writing, a filter has read the prompt, and an
    answer that was cut in its thoughts was thought; an overloaded server, a wrong key or a
    malformed request cost nothing.
    """
    worked_on = status >= 500 and status not in (501, 503, 529)
    return worked_on or status == 408 or failure in ("content_filter", "truncated")


def priced(prompt_tokens: int, completion_tokens: int, price: Price | None) -> Cost:
    """Return the cost of one request with so many tokens."""
    money = price.of(prompt_tokens, completion_tokens) if price else 0.0
    return Cost(1, prompt_tokens, completion_tokens, money)

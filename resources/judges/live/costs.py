"""Cost of a request: an upper bound before it is sent, the real cost after."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from resources.judges.budget import Budget, Cost
from resources.judges.live.fields import Price
from resources.judges.live.prompt import Message

_ENVELOPE = 64  # tokens that a chat template adds to a message, at most
_LIMITS = ("max_tokens", "max_completion_tokens")
_MOST_BYTES_PER_TOKEN = 16  # prose has three to five, code two to four


class Usage(NamedTuple):
    """Tokens that a reply states, and the bytes of the texts that they were counted in."""

    prompt_tokens: int
    completion_tokens: int
    prompt_bytes: int
    answer_bytes: int


def most_of(messages: Sequence[Message], request: dict[str, Any], price: Price | None) -> Cost:
    """Return the most that a request can cost: a token is at least one byte of its text."""
    schema = json.dumps(request.get("response_format", ""))
    prompt = text_bytes(messages) + len(schema) + _ENVELOPE * len(messages)
    return priced(prompt, max(request.get(name, 0) for name in _LIMITS), price)


def least_tokens(n_bytes: int) -> int:
    """Return the floor under the tokens of a text: fewer were made up, not counted."""
    return n_bytes // _MOST_BYTES_PER_TOKEN


def text_bytes(messages: Sequence[Message]) -> int:
    """Return the bytes of the texts of messages."""
    return sum(len(message["content"].encode()) for message in messages)


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


class Meter:
    """Counts requests against a budget: what each may cost before it is sent, and its cost after.

    `counts` is added ``implausible_usage``; the first of it is a warning.
    """

    def __init__(
        self,
        budget: Budget,
        price: Price | None,
        counts: Counter[str],
        warn: Callable[[str], None],
    ) -> None:
        self.budget, self.price, self.counts, self._warn = budget, price, counts, warn

    def cost(self, usage: Usage, most: Cost) -> Cost:
        """Return the cost of an answered request.

        Usage that is missing, or below a floor of one token per 16 bytes, counts as the
        reservation `most`. Usage above the reservation is clamped to it; an answer longer than the
        limit counts up to its bytes.
        """
        stated, sizes = usage[:2], usage[2:]
        if not all(stated):
            return most
        limits = most.prompt_tokens, max(most.completion_tokens, usage.answer_bytes)
        clamped = min(stated[0], limits[0]), min(stated[1], limits[1])
        is_low = any(n < least_tokens(size) for n, size in zip(stated, sizes, strict=True))
        cost = most if is_low else priced(*clamped, self.price)
        if is_low or clamped != stated:
            self._note_implausible(usage, cost)
        return cost

    def _note_implausible(self, usage: Usage, cost: Cost) -> None:
        if not self.counts["implausible_usage"]:
            self._warn(
                f"implausible usage: the endpoint states {usage.prompt_tokens:,} + "
                f"{usage.completion_tokens:,} tokens for a prompt of {usage.prompt_bytes:,} bytes "
                f"and an answer of {usage.answer_bytes:,} bytes; the budget counts "
                f"{cost.prompt_tokens:,} + {cost.completion_tokens:,} instead, and treats every "
                "such answer alike"
            )
        self.counts["implausible_usage"] += 1

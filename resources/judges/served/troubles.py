"""What went wrong with a request, and whether to try again, to note a failure, or to stop."""

import datetime
import json
import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal, NamedTuple

import numpy as np
import openai

from resources.judges.served.replies import MalformedReplyError

TROUBLES = (
    openai.APIError,
    json.JSONDecodeError,
    UnicodeDecodeError,
    TimeoutError,
    MalformedReplyError,
)
"""Everything that a request may raise and that is no mistake of ours."""

_RETRIED = {408, 409, 425, 429}
_HOPELESS = {401, 402, 403, 404}
_OVERFLOW = re.compile(
    r"context.?length|context.?window|maximum (?:model |input )?length|prompt is too long|"
    r"too many (?:input )?tokens|input is too long|exceeds? the (?:model|context)",
    re.IGNORECASE,
)
_CUT = re.compile(r"output limit was reached", re.IGNORECASE)  # all of it went into thoughts
_FILTERED = re.compile(r"content.?(?:filter|policy|management)|flagged|moderation", re.IGNORECASE)
_SHOWN = 300


class Trouble(NamedTuple):
    """One failed request: what to do, the class of failure, and what the server said."""

    action: Literal["retry", "note", "stop"]
    failure: str
    retry_after_s: float | None
    message: str


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with full jitter: uniform between 0 and a doubling, capped bound.

    Seconds. A server that asks to wait longer than `longest_wait_s` ends the run instead.
    """

    attempts: int = 8
    base_s: float = 0.5
    cap_s: float = 30.0
    longest_wait_s: float = 300.0

    def delay(self, attempt: int, rng: np.random.Generator) -> float:
        """Return the seconds to wait after a failed attempt, counted from 0."""
        return float(rng.uniform(0, min(self.cap_s, self.base_s * 2**attempt)))


def diagnose(error: Exception, policy: RetryPolicy) -> Trouble:
    """Return what a failed request means."""
    if not isinstance(error, openai.APIStatusError):
        return Trouble("retry", "transport", None, f"{type(error).__name__}: {error}"[:_SHOWN])
    text = f"{error.code} {error.type} {error.message}"
    said = f"HTTP {error.status_code}: {error.message}"[:_SHOWN]
    return diagnose_status(error.status_code, text, said, error.response.headers, policy)


def diagnose_status(
    status: int, text: str, said: str, headers: object, policy: RetryPolicy
) -> Trouble:
    """Return what an HTTP status means that came with some text of the server's."""
    if status < 500 and status not in _RETRIED:
        return Trouble(*_verdict_on(status, text), None, said)
    wait = retry_after(headers)
    hopeless = "insufficient_quota" in text or (wait or 0) > policy.longest_wait_s
    return Trouble("stop" if hopeless else "retry", "transport", wait, said)


def _verdict_on(status: int, text: str) -> tuple[Literal["note", "stop"], str]:
    if status in (400, 403, 422) and _FILTERED.search(text):
        return "note", "content_filter"
    if status == 400 and _CUT.search(text):
        return "note", "truncated"
    if status == 413 or (status in (400, 422) and _OVERFLOW.search(text)):
        return "note", "context_overflow"
    return ("stop" if status in _HOPELESS else "note"), "transport"


def retry_after(headers: object) -> float | None:
    """Return the seconds that a server asks to wait, or None if it does not say.

    The header holds seconds or a date; some servers send milliseconds in one of their own.
    """
    get = getattr(headers, "get", {}.get)
    milliseconds, value = _number(get("retry-after-ms")), get("retry-after")
    if milliseconds is not None:
        return milliseconds / 1000
    seconds = _number(value)
    return seconds if seconds is not None or value is None else _until(value)


def _number(value: str | None) -> float | None:
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d+)?)\s*", value or "")
    return float(found[1]) if found else None


def _until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return max(0.0, (moment - datetime.datetime.now(datetime.UTC)).total_seconds())

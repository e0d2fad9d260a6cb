"""Failures of requests of every channel, and the reaction to each: try again, record, or stop."""

import asyncio
import datetime
import logging
import math
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal, NamedTuple, TypeVar

import aiohttp
import numpy as np

from judgeline.judges.live.endpoint import Endpoint
from judgeline.judges.live.errors import MalformedReplyError, PackedReplyError, StatusError
from judgeline.report import inert

R = TypeVar("R")

_LOG = logging.getLogger(__name__)

TROUBLES = (
    StatusError,
    aiohttp.ClientError,
    TimeoutError,
    MalformedReplyError,
)
"""Everything that a request may raise and that is no mistake of ours."""

_RETRIED = {408, 409, 425, 429}
_HOPELESS = {401, 402, 403, 404}
_ZHIPU_FILTER = "1301"
_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_OVERFLOW = re.compile(
    r"context.?(?:length|window|size|limit)|maximum (?:model |input |prompt )?length|"
    r"prompt is too long|too many (?:input )?tokens|input is too long|"
    r"exceed(?:s|ed)? (?:the (?:model|context|maximum number of tokens)|max length|model token)|"
    r"must have less than \d+ tokens|`?max_new_tokens`? must be|range of input length|"
    r"prompt_tokens \(\d+\) must be|>= n_ctx|prompt \u8d85\u957f",
    re.IGNORECASE,
)
_CUT = re.compile(r"output limit was reached", re.IGNORECASE)  # all of it went into thoughts
_FILTERED = re.compile(
    r"content.?(?:filter|policy|management)|flagged|moderation|data.?inspection.?failed|"
    r"(?:inappropriate|prohibited|sensitive|unsafe) content|content exists risk|"
    r"considered high risk|\u654f\u611f\u5185\u5bb9",
    re.IGNORECASE,
)
_READ = 2000
_NUMBER = re.compile(r"\s*(\d{1,9}(?:\.\d+)?)\s*")


class Trouble(NamedTuple):
    """One failed request: the reaction, the class of failure, and the server's words.

    `is_doubtful` marks a stop that may concern this one request only: a firewall that dislikes a
    text says the same as one that dislikes a key. One that `may_be_paid` counts in full towards a
    budget, and is retried once. The message may hold the key.
    """

    action: Literal["retry", "note", "stop"]
    failure: str
    retry_after_s: float | None
    message: str
    status: int | None = None
    is_doubtful: bool = False
    may_be_paid: bool = False


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


LONG_S = 5.0
"""Seconds of waiting for an endpoint that are worth a line."""

_PAUSE_S = 60.0  # a closing shorter than LONG_S is said at most once in so many seconds
_SHOWN = 300
_REASON = 60


class Retries:
    """Tries of one endpoint, which all wait where the server asks one to, and warnings of it."""

    def __init__(
        self, endpoint: Endpoint, policy: RetryPolicy, warn: Callable[[str], None] = _LOG.warning
    ) -> None:
        self.endpoint, self.policy, self._warn = endpoint, policy, warn
        self._closed_until, self._warned_at = 0.0, -math.inf
        # jitter decides when a request is sent, never what it is or what is made of it
        self._rng = np.random.default_rng()

    async def tried(self, ask: Callable[[], Awaitable[R]], shown: str = "") -> R | Trouble:
        """Return the outcome of a request, sent once."""
        try:
            return await ask()
        except TROUBLES as error:
            return self.diagnose(error, shown)

    async def insist(
        self, attempt: Callable[[], Awaitable[R | Trouble]], counts: Counter[str]
    ) -> R | Trouble:
        """Return the outcome of an attempt, repeated while its trouble may pass.

        Of attempts that may have been paid for, there are two at most.
        """
        n_paid = number = 0
        while isinstance(outcome := await attempt(), Trouble):
            n_paid += outcome.may_be_paid
            wait = None if n_paid > 1 else self.wait_s(number, outcome)
            if wait is None:
                break
            counts["retries"] += 1
            await asyncio.sleep(wait)
            number += 1
        return outcome

    async def until_open(self) -> None:
        """Wait while the server asks to."""
        while (wait := self._closed_until - time.monotonic()) > 0:
            await asyncio.sleep(wait)

    def wait_s(self, number: int, trouble: Trouble) -> float | None:
        """Return the seconds between an attempt, counted from 0, and the next; None for no next."""
        if trouble.action != "retry" or number + 1 >= self.policy.attempts:
            return None
        wait = trouble.retry_after_s
        if wait is not None:
            self._close(wait, trouble, number + 2)
        return (wait or 0.0) + self.policy.delay(number, self._rng)

    def diagnose(self, error: Exception, shown: str = "") -> Trouble:
        """Return the trouble with a failed request, in words without the key.

        A server that quotes `shown`, the text of the request, says nothing about itself by that.
        """
        if isinstance(error, StatusError):
            words, codes = said_in(error.error) or error.text[:_READ], codes_in(error.error)
            given = (error.status, words, error.headers, self.policy)
            trouble = diagnose_status(*given, codes=codes, shown=shown)
            return trouble._replace(message=fit(trouble.message, self.endpoint))
        if isinstance(error, MalformedReplyError):
            told = fit(str(error), self.endpoint, error.failure)
            action: Literal["note", "retry"] = "retry"
            if isinstance(error, PackedReplyError):
                action = "note"
            return Trouble(action, error.failure, None, told, may_be_paid=True)
        named = filter(None, (type(error).__name__, str(error), str(error.__cause__ or "")))
        is_unheard = isinstance(error, aiohttp.ConnectionTimeoutError)
        told = fit(": ".join(named), self.endpoint)
        was_sent = isinstance(error, TimeoutError) and not is_unheard
        return Trouble("retry", "transport", None, told, may_be_paid=was_sent)

    def _close(self, wait: float, trouble: Trouble, attempt: int) -> None:
        """Keep the endpoint closed for some seconds; say so once, however many were in flight."""
        now = time.monotonic()
        is_open = self._closed_until <= now
        self._closed_until = max(self._closed_until, now + wait)
        if is_open and (wait >= LONG_S or now - self._warned_at >= _PAUSE_S):
            self._warned_at = now
            self._warn(
                f"HTTP {trouble.status}, waits {wait:,.0f} s, attempt {attempt} of "
                f"{self.policy.attempts} ({self.endpoint.url})"
            )


def fit(said: str, endpoint: Endpoint, failure: str | None = None) -> str:
    """Return a server's words in one line, without the key and control characters.

    Of an unreadable reply it is the reason, and at least as much of the body as of other words.
    """
    is_body = failure == MalformedReplyError.failure
    return one_line(endpoint.redact(said), _SHOWN + _REASON if is_body else _SHOWN)


def one_line(text: str, most: int = _SHOWN) -> str:
    """Return a short text in one line, without control characters."""
    return " ".join(inert(text).split())[:most]


def codes_in(error: object) -> set[str]:
    """Return the codes by which a server names an error, as texts."""
    named = (error.get(name) for name in ("code", "type")) if isinstance(error, dict) else ()
    return {str(code) for code in named if code}


def diagnose_status(
    status: int,
    words: str,
    headers: Mapping[str, str],
    policy: RetryPolicy,
    *,
    codes: Collection[str] = (),
    shown: str = "",
) -> Trouble:
    """Return the trouble behind an HTTP status, with the server's words and codes."""
    said = f"HTTP {status}: {words}"
    if 300 <= status < 400:
        said = f"HTTP {status}: it has moved to {headers.get('location')!r}; correct 'base_url'"
        return Trouble("stop", "transport", None, said, status, is_doubtful=True)
    if status in (402, 403, 429) and not _QUOTA.isdisjoint(codes):
        return Trouble("stop", "transport", None, said, status)
    if status < 500 and status not in _RETRIED:
        failure = _failure_of(status, " ".join(codes), words, shown)
        is_hopeless = failure == "rejected" and status in _HOPELESS
        action: Literal["note", "retry", "stop"] = "stop" if is_hopeless else "note"
        if status < 300 and failure == "rejected":
            failure, action = "unreadable_reply", "retry"
        is_paid = may_be_billed(status, failure)
        return Trouble(action, failure, None, said, status, is_hopeless, is_paid)
    wait, is_paid = retry_after(headers), may_be_billed(status)
    if wait is not None and wait > policy.longest_wait_s:
        said = (
            f"HTTP {status}, asks for {wait:,.0f} s of patience, which is more than "
            f"{policy.longest_wait_s:,.0f} s: {words}"
        )
        return Trouble("stop", "transport", wait, said, status, may_be_paid=is_paid)
    return Trouble("retry", "transport", wait, said, status, may_be_paid=is_paid)


def may_be_billed(status: int, failure: str = "transport") -> bool:
    """Return whether a request that failed with an HTTP status may have been worked on.

    A gateway that gives up (504, 524) leaves the model writing, a filter has read the prompt, an
    answer that was cut in its thoughts was thought, and so may be what is a success by its status
    alone.
    """
    return status in (200, 504, 524) or failure in ("content_filter", "truncated")


def said_in(body: object) -> str:
    """Return the server's own words in the body of an error, or an empty text."""
    if isinstance(body, str):
        return body[:_READ]
    if isinstance(body, list):
        return "; ".join(filter(None, map(said_in, body[:10])))[:_READ]
    if isinstance(body, dict):
        found = (said_in(body.get(name)) for name in ("message", "msg", "detail", "error"))
        return next(filter(None, found), "")
    return ""


def _failure_of(status: int, codes: str, words: str, shown: str) -> str:
    is_of_texts = status in (200, 400, 403, 422)
    if is_of_texts and (_ZHIPU_FILTER in codes or _means(_FILTERED, codes, words, shown)):
        return "content_filter"
    if is_of_texts and _means(_CUT, codes, words, shown):
        return "truncated"
    if status == 413 or (is_of_texts and _means(_OVERFLOW, codes, words, shown)):
        return "context_overflow"
    return "rejected"


def _means(pattern: re.Pattern[str], codes: str, words: str, shown: str) -> bool:
    """Return whether an error matches a pattern outside quotations of the text `shown`."""
    if pattern.search(codes):
        return True
    found = {said[0].casefold() for said in pattern.finditer(words)}
    return bool(found) and not all(said in shown.casefold() for said in found)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, or None if it does not say."""
    value = headers.get("retry-after", "")
    for text, per_second in ((headers.get("retry-after-ms", ""), 1000), (value, 1)):
        if number := _NUMBER.fullmatch(text):
            return float(number[1]) / per_second
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return max(0.0, (moment - datetime.datetime.now(datetime.UTC)).total_seconds())
    except (ValueError, OverflowError, TypeError):
        return None

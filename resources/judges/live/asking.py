"""Sends one request until it is answered, or until it is clear that it will not be."""

import asyncio
import json
import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import openai
from openai.types.chat import ChatCompletion

from judgeline.report import inert
from resources.judges.budget import Budget, Cost
from resources.judges.forms.form import Form
from resources.judges.forms.rubric import RUBRIC
from resources.judges.judge import Answer, Presentation
from resources.judges.live.costs import Usage, counted, may_be_billed, most_of, text_bytes
from resources.judges.live.endpoint import Endpoint, EndpointError
from resources.judges.live.fields import Price
from resources.judges.live.probe import PLAIN, QUESTION
from resources.judges.live.prompt import Message, write_messages, write_repair
from resources.judges.live.replies import (
    Reply,
    answer_bytes,
    read_reply,
    require_message,
    tokens_of,
    understood,
)
from resources.judges.live.troubles import (
    LONG_S,
    TROUBLES,
    RetryPolicy,
    Trouble,
    closed_text,
    diagnose,
)

R = TypeVar("R")

_LOG = logging.getLogger(__name__)

SPENT = Trouble("note", "", None, "the budget does not cover another request")
"""What is returned instead of a reply when nothing was sent for want of budget."""

ASKED_AGAIN = frozenset({"parse_error", "echo"})
"""Failures of an answer that a second request, with the reason, may mend."""

_WAIT_S = 0.02
_PAUSE_S = 60.0  # a closing shorter than LONG_S is said at most once in so many seconds
_SHOWN = 300


class Asker:
    """Asks one endpoint, with bounded concurrency and one policy of retries.

    A request that waits to be retried gives its place to another. One that may have been billed
    without an answer, or whose tokens nobody counted, counts in full towards the budget. `counts`
    is added ``requests``, ``retries``, ``repairs``, ``implausible_usage`` and ``lost``.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        endpoint: Endpoint,
        policy: RetryPolicy,
        *,
        concurrency: int,
        timeout_s: float,
        counts: Counter[str],
        budget: Budget,
        price: Price | None = None,
        warn: Callable[[str], None] = _LOG.warning,
    ) -> None:
        self._client, self._endpoint, self._policy = client, endpoint, policy
        self._budget, self._price = budget, price
        self._slots = asyncio.Semaphore(concurrency)
        self._timeout_s, self.counts = timeout_s, counts
        self._closed_until = 0.0
        self._warn, self._warned_at, self._has_doubted = warn, -math.inf, False
        self._doubts = asyncio.Lock()
        # jitter decides when a request is sent, never what it is or what is made of it
        self._rng = np.random.default_rng()

    async def judge(
        self, shown: Presentation, template: str, request: dict[str, Any], form: Form = RUBRIC
    ) -> Answer | None:
        """Return the answer to a presentation, asked a second time if it cannot be read.

        None if the budget does not cover the question.
        """
        messages = write_messages(template, shown, wording=form.wording)
        request = seeded(request, shown.replicate)
        first = await self._read(messages, shown, request, form)
        if first is None or first.answer.failure not in ASKED_AGAIN or first.reason is None:
            return first and first.answer
        self.counts["repairs"] += 1
        again = write_repair(messages, first.answer.text or "", first.reason, form.again)
        second = await self._read(again, shown, request, form)
        return _added(second.answer, first.answer) if second else first.answer

    async def _read(
        self, messages: list[Message], shown: Presentation, request: dict[str, Any], form: Form
    ) -> Reply | None:
        reply = await self.send(messages, request, partial(read_reply, shown=shown, form=form))
        if reply is SPENT:
            return None
        if isinstance(reply, Trouble):
            return Reply(Answer(None, reply.failure, 0, 0, said=reply.message), None)
        return Reply(redacted(reply.answer, self._endpoint), reply.reason)

    async def send(
        self, messages: list[Message], request: dict[str, Any], read: Callable[[Any], R]
    ) -> R | Trouble:
        """Return what is read in the reply to messages, or the trouble with them or the way."""
        for attempt in range(self._policy.attempts):
            outcome = await self._attempt(messages, request, read)
            if not isinstance(outcome, Trouble):
                return outcome
            if outcome.action == "note":
                return outcome
            if outcome.action == "stop":
                await self._require_doubt(outcome, messages, request)
                return outcome._replace(action="note")
            if attempt + 1 < self._policy.attempts:
                self.counts["retries"] += 1
                await self._back_off(attempt, outcome)
        return outcome

    async def _require_doubt(
        self, trouble: Trouble, messages: list[Message], request: dict[str, Any]
    ) -> None:
        """Raise EndpointError unless the endpoint would answer another question.

        Then the trouble is with this one text, which a firewall may dislike.
        """
        plain = {name: value for name, value in request.items() if name not in PLAIN}
        if trouble.is_doubtful and (messages, request) != (QUESTION, plain):
            async with self._doubts:
                other = await self._attempt(QUESTION, plain, require_message)
            if not isinstance(other, Trouble) or other.action != "stop":
                return
        raise EndpointError(self.explain(trouble))

    async def _attempt(
        self, messages: list[Message], request: dict[str, Any], read: Callable[[Any], R]
    ) -> R | Trouble:
        async with self._slots:
            while (wait := self._closed_until - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            most = most_of(messages, request, self._price)
            if not await self._is_granted(most):
                return SPENT
            self.counts["requests"] += 1
            spent = most
            try:
                async with asyncio.timeout(self._timeout_s):
                    reply = await self._post(messages, request)
                spent = self._counted(messages, reply, most)
                return understood(reply, read)
            except TROUBLES as error:
                shown = "".join(message["content"] for message in messages)
                trouble = self._brief(diagnose(error, self._policy, shown))
                if isinstance(error, openai.APIStatusError) and not may_be_billed(
                    error.status_code, trouble.failure
                ):
                    spent = Cost()
                elif spent is most:
                    self.counts["lost"] += 1
                return trouble
            finally:
                self._budget.settle(most, spent)

    async def _post(self, messages: list[Message], request: dict[str, Any]) -> ChatCompletion:
        """Send a request as it is: the method made for it would first rewrite what needs none."""
        body = {"messages": messages, **request}
        return await self._client.post("/chat/completions", cast_to=ChatCompletion, body=body)

    async def _is_granted(self, most: Cost) -> bool:
        """Wait while other requests may leave over what this one needs."""
        while not self._budget.reserve(most):
            if self._budget.n_open == 0:
                return False
            await asyncio.sleep(_WAIT_S)
        return True

    def _counted(self, messages: list[Message], reply: Any, most: Cost) -> Cost:
        usage = Usage(*tokens_of(reply), text_bytes(messages), answer_bytes(reply))
        cost, implausible = counted(usage, most, self._price)
        if implausible:
            if not self._has_doubted:
                self._warn(implausible)
            self._has_doubted = True
            self.counts["implausible_usage"] += 1
        return cost

    async def _back_off(self, attempt: int, trouble: Trouble) -> None:
        """Wait before the next attempt; everybody waits where the server asked for it."""
        wait = trouble.retry_after_s
        if wait is not None:
            text = closed_text(trouble, attempt + 2, self._policy, self._endpoint.url)
            self._close(wait, text)
        await asyncio.sleep((wait or 0.0) + self._policy.delay(attempt, self._rng))

    def _close(self, wait: float, text: str) -> None:
        """Keep the endpoint closed for some seconds; say so once, however many were in flight."""
        now = time.monotonic()
        is_open = self._closed_until <= now
        self._closed_until = max(self._closed_until, now + wait)
        if is_open and (wait >= LONG_S or now - self._warned_at >= _PAUSE_S):
            self._warned_at = now
            self._warn(text)

    def _brief(self, trouble: Trouble) -> Trouble:
        """Return a trouble without the key: first that is cut out, then the message is cut."""
        return trouble._replace(message=fit(trouble.message, self._endpoint))

    def explain(self, trouble: Trouble) -> str:
        """Return what is wrong at the endpoint and what to do."""
        return (
            f"the endpoint {self._endpoint.url} cannot be asked: {trouble.message}. Check the "
            "judge's 'model', 'base_url' and 'api_key_env' in config/judges.yaml, the key's rights "
            "and the account's credit, then run again: verdicts already given are kept"
        )


def seeded(request: dict[str, Any], replicate: int) -> dict[str, Any]:
    """Return a request with the seed of a replicate: with one for all, all would be the same."""
    if replicate == 0 or "seed" not in request:
        return request
    return {**request, "seed": request["seed"] + replicate}


def fit(said: str, endpoint: Endpoint) -> str:
    """Return a server's words in one line, without the key and control characters."""
    return _line(endpoint.redact(said))


def _line(text: str) -> str:
    return " ".join(inert(text).split())[:_SHOWN]


def redacted(answer: Answer, endpoint: Endpoint) -> Answer:
    """Return an answer without the key, which some servers repeat; answers are stored.

    Log-probabilities that spell it, token by token, go as a whole.
    """
    if answer.text is not None and endpoint.is_repeated_in(answer.text):
        answer = replace(answer, text=endpoint.redact(answer.text), log_probabilities=None)
    answer = replace(
        answer,
        reply_model=_name(answer.reply_model, endpoint),
        system_fingerprint=_name(answer.system_fingerprint, endpoint),
        said=answer.said and fit(answer.said, endpoint),
    )
    logs = answer.log_probabilities
    spelled = "".join(token for token, *_ in json.loads(logs)) if logs else ""
    repeats_key = endpoint.is_repeated_in(spelled) or endpoint.is_repeated_in(logs or "")
    return replace(answer, log_probabilities=None) if repeats_key else answer


def _name(given: str | None, endpoint: Endpoint) -> str | None:
    """Return a name in one line; a key as short as ``x`` stands in many names, and is no secret."""
    if given is None or endpoint.is_repeated_in(given):
        return given and fit(given, endpoint)
    return _line(given)


def _added(answer: Answer, earlier: Answer) -> Answer:
    """Return an answer with the tokens of an earlier one: both were paid for."""
    return replace(
        answer,
        text=answer.text if answer.text is not None else earlier.text,
        prompt_tokens=answer.prompt_tokens + earlier.prompt_tokens,
        completion_tokens=answer.completion_tokens + earlier.completion_tokens,
        reply_model=answer.reply_model or earlier.reply_model,
        system_fingerprint=answer.system_fingerprint or earlier.system_fingerprint,
    )

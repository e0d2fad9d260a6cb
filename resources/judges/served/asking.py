"""Sends one request until it is answered, or until it is clear that it will not be."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
import openai

from resources.judges.judge import Answer, Presentation
from resources.judges.served.endpoint import Endpoint, EndpointError
from resources.judges.served.prompt import Message, write_messages, write_repair
from resources.judges.served.replies import Reply, read_reply
from resources.judges.served.troubles import TROUBLES, RetryPolicy, Trouble, diagnose

R = TypeVar("R")


class Asker:
    """Asks one endpoint, with bounded concurrency and one policy of retries.

    Parameters
    ----------
    client : AsyncOpenAI
        Without retries of its own.
    endpoint : Endpoint
        Where it leads, for messages without the key.
    policy : RetryPolicy
        When to try again.
    concurrency : int
        Most requests in flight; one that waits to be retried gives its place to another.
    timeout_s : float
        Seconds after which a request counts as lost.
    counts : Counter
        Is added ``requests``, ``retries`` and ``repairs``.
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
    ) -> None:
        self._client, self._endpoint, self._policy = client, endpoint, policy
        self._slots = asyncio.Semaphore(concurrency)
        self._timeout_s, self.counts = timeout_s, counts
        self._closed_until = 0.0
        # jitter decides when a request is sent, never what it is or what is made of it
        self._rng = np.random.default_rng()

    async def judge(self, shown: Presentation, template: str, request: dict[str, Any]) -> Answer:
        """Return the answer to a presentation, asked a second time if it cannot be read.

        Raises
        ------
        EndpointError
            If no request to this endpoint can succeed.
        """
        messages = write_messages(template, shown)
        first = await self._read(messages, shown, request)
        if first.answer.failure != "parse_error" or first.reason is None:
            return first.answer
        self.counts["repairs"] += 1
        again = write_repair(messages, first.answer.text or "", first.reason)
        second = await self._read(again, shown, request)
        return _added(second.answer, first.answer)

    async def _read(
        self, messages: list[Message], shown: Presentation, request: dict[str, Any]
    ) -> Reply:
        reply = await self.send(messages, request, partial(read_reply, shown=shown))
        if isinstance(reply, Trouble):
            return Reply(Answer(None, reply.failure, 0, 0), None)
        return reply

    async def send(
        self, messages: list[Message], request: dict[str, Any], read: Callable[[Any], R]
    ) -> R | Trouble:
        """Return what is read in the reply to messages, or the trouble with them or the way.

        Raises
        ------
        EndpointError
            If no request to this endpoint can succeed.
        """
        for attempt in range(self._policy.attempts):
            outcome = await self._attempt(messages, request, read)
            if not isinstance(outcome, Trouble) or outcome.action == "note":
                return outcome
            if outcome.action == "stop":
                raise EndpointError(self.explain(outcome))
            if attempt + 1 < self._policy.attempts:
                self.counts["retries"] += 1
                await self._back_off(attempt, outcome.retry_after_s)
        return outcome

    async def _attempt(
        self, messages: list[Message], request: dict[str, Any], read: Callable[[Any], R]
    ) -> R | Trouble:
        async with self._slots:
            while (wait := self._closed_until - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            self.counts["requests"] += 1
            try:
                async with asyncio.timeout(self._timeout_s):
                    reply = await self._client.chat.completions.create(messages=messages, **request)
                return read(reply)
            except TROUBLES as error:
                return diagnose(error, self._policy)

    async def _back_off(self, attempt: int, retry_after_s: float | None) -> None:
        """Wait before the next attempt; everybody waits where the server asked for it."""
        if retry_after_s is not None:
            self._closed_until = max(self._closed_until, time.monotonic() + retry_after_s)
        await asyncio.sleep((retry_after_s or 0.0) + self._policy.delay(attempt, self._rng))

    def explain(self, trouble: Trouble) -> str:
        """Return what is wrong at the endpoint and what to do, without the key."""
        said = self._endpoint.redact(trouble.message)
        return (
            f"the endpoint {self._endpoint.url} cannot be asked: {said}. Check the judge's "
            "'model', 'base_url' and 'api_key_env' in config/judges.yaml, the key's rights and "
            "the account's credit, then run again: verdicts already given are kept"
        )


def _added(answer: Answer, earlier: Answer) -> Answer:
    """Return an answer with the tokens of an earlier one: both were paid for."""
    return Answer(
        answer.text if answer.text is not None else earlier.text,
        answer.failure,
        answer.prompt_tokens + earlier.prompt_tokens,
        answer.completion_tokens + earlier.completion_tokens,
        answer.log_probabilities,
    )

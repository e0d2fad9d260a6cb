"""Sends one request until it is answered, or until it is clear that it will not be."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import openai

from resources.judges.budget import Budget, Cost
from resources.judges.judge import Answer, Presentation
from resources.judges.served.costs import most_of, priced
from resources.judges.served.endpoint import Endpoint, EndpointError
from resources.judges.served.fields import Price
from resources.judges.served.prompt import Message, write_messages, write_repair
from resources.judges.served.replies import Reply, read_reply, tokens_of
from resources.judges.served.troubles import TROUBLES, RetryPolicy, Trouble, diagnose

R = TypeVar("R")

SPENT = Trouble("note", "", None, "the budget does not cover another request")
"""What is returned instead of a reply when nothing was sent for want of budget."""

_WAIT_S = 0.02


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
        Is added ``requests``, ``retries``, ``repairs`` and ``lost``: sent, and never answered.
    budget : Budget
        What requests are drawn on. One that was lost may have been billed and counts in full.
    price : Price or None
        Of tokens; with None requests cost no money.
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
    ) -> None:
        self._client, self._endpoint, self._policy = client, endpoint, policy
        self._budget, self._price = budget, price
        self._slots = asyncio.Semaphore(concurrency)
        self._timeout_s, self.counts = timeout_s, counts
        self._closed_until = 0.0
        # jitter decides when a request is sent, never what it is or what is made of it
        self._rng = np.random.default_rng()

    async def judge(
        self, shown: Presentation, template: str, request: dict[str, Any]
    ) -> Answer | None:
        """Return the answer to a presentation, asked a second time if it cannot be read.

        None if the budget does not cover the question.

        Raises
        ------
        EndpointError
            If no request to this endpoint can succeed.
        """
        messages = write_messages(template, shown)
        first = await self._read(messages, shown, request)
        if first is None or first.answer.failure != "parse_error" or first.reason is None:
            return first and first.answer
        self.counts["repairs"] += 1
        again = write_repair(messages, first.answer.text or "", first.reason)
        second = await self._read(again, shown, request)
        return _added(second.answer, first.answer) if second else first.answer

    async def _read(
        self, messages: list[Message], shown: Presentation, request: dict[str, Any]
    ) -> Reply | None:
        reply = await self.send(messages, request, partial(read_reply, shown=shown))
        if reply is SPENT:
            return None
        if isinstance(reply, Trouble):
            return Reply(Answer(None, reply.failure, 0, 0), None)
        return reply._replace(answer=self._redacted(reply.answer))

    def _redacted(self, answer: Answer) -> Answer:
        """Return an answer that repeats the key without it, and without the tokens that spell it.

        Proxies say things such as "invalid key sk-..." in the judge's place; answers are stored.
        """
        if answer.text is None or not self._endpoint.is_repeated_in(answer.text):
            return answer
        return replace(answer, text=self._endpoint.redact(answer.text), log_probabilities=None)

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
            most = most_of(messages, request, self._price)
            if not await self._is_granted(most):
                return SPENT
            self.counts["requests"] += 1
            spent = most
            try:
                async with asyncio.timeout(self._timeout_s):
                    reply = await self._client.chat.completions.create(messages=messages, **request)
                spent = self._cost(*tokens_of(reply)) or most
                return read(reply)
            except TROUBLES as error:
                if isinstance(error, openai.APIStatusError):
                    spent = Cost()  # nobody bills a request that he turned down
                elif spent is most:
                    self.counts["lost"] += 1
                return diagnose(error, self._policy)
            finally:
                self._budget.settle(most, spent)

    async def _is_granted(self, most: Cost) -> bool:
        """Wait while other requests may leave over what this one needs."""
        while not self._budget.reserve(most):
            if self._budget.n_open == 0:
                return False
            await asyncio.sleep(_WAIT_S)
        return True

    def _cost(self, prompt_tokens: int, completion_tokens: int) -> Cost | None:
        """Return what an answered request cost, or None if the server does not say."""
        if not prompt_tokens:
            return None
        return priced(prompt_tokens, completion_tokens, self._price)

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

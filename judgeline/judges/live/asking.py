"""Sends one request until it is answered, or until it is clear that it will not be."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from judgeline.judges.budget import Cost, Meter, most_of, text_bytes
from judgeline.judges.forms.form import Form, Message, Prompt, Reading, write_repair
from judgeline.judges.live.connection import Connection
from judgeline.judges.live.endpoint import Endpoint, EndpointError
from judgeline.judges.live.probe import PLAIN, QUESTION
from judgeline.judges.live.replies import (
    answer_bytes,
    read_reply,
    require_message,
    tokens_of,
    understood,
)
from judgeline.judges.live.troubles import TROUBLES, Retries, Trouble, fit, one_line
from judgeline.judges.presentation import Answer, Presentation

R = TypeVar("R")

SPENT = Trouble("note", "", None, "the budget does not cover another request")
"""What is returned instead of a reply when nothing was sent for want of budget."""

ASKED_AGAIN = frozenset({"parse_error", "echo"})
"""Failures of an answer that a second request, with the reason, may mend."""

_WAIT_S = 0.02


@dataclass(repr=False)
class Asker:
    """Asks one endpoint, with bounded concurrency.

    A request that waits to be retried gives its place to another. One that may have been billed
    without an answer counts in full towards the budget. The meter's `counts` are added
    ``requests``, ``retries``, ``repairs`` and ``lost``. `bound` caps answer tokens; after the first
    truncated answer only the request's own limit holds.
    """

    connection: Connection
    retries: Retries
    meter: Meter
    concurrency: int
    timeout_s: float
    bound: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._endpoint, self._doubts = self.retries.endpoint, asyncio.Lock()
        self._slots = asyncio.Semaphore(self.concurrency)

    async def judge(
        self, shown: Presentation, prompt: Prompt, request: dict[str, Any]
    ) -> Reading | None:
        """Return the answer to a presentation, asked a second time if it cannot be read."""
        messages, request = prompt.messages(shown), seeded(request, shown.replicate)
        first = await self._bounded(messages, shown, request, prompt.form)
        if first is None or first.status not in ASKED_AGAIN:
            return first
        self.meter.counts["repairs"] += 1
        text, reason = first.answer.text or "", first.answer.said or ""
        again = write_repair(messages, text, reason, prompt.form.again)
        second = await self._bounded(again, shown, request, prompt.form)
        return second._replace(answer=_added(second.answer, first.answer)) if second else first

    async def _bounded(
        self, messages: list[Message], shown: Presentation, request: dict[str, Any], form: Form
    ) -> Reading | None:
        """Return the answer within the bound, or the whole one that it turned out too small for."""
        bound = self.bound
        given = await self._read(messages, shown, {**request, **bound}, form)
        if not bound or given is None or given.status != "truncated":
            return given
        self.bound = {}
        whole = await self._read(messages, shown, request, form)
        return whole._replace(answer=_added(whole.answer, given.answer)) if whole else given

    async def _read(
        self, messages: list[Message], shown: Presentation, request: dict[str, Any], form: Form
    ) -> Reading | None:
        reply = await self.send(messages, request, partial(read_reply, shown=shown, form=form))
        if reply is SPENT:
            return None
        if isinstance(reply, Trouble):
            answer = Answer(None, reply.failure, 0, 0, said=reply.message)
            return Reading(shown, answer, reply.failure, None)
        return reply._replace(answer=redacted(reply.answer, self._endpoint))

    async def send(
        self, messages: list[Message], request: dict[str, Any], read: Callable[[Any], R]
    ) -> R | Trouble:
        """Return the reply to messages, parsed by `read`, or the trouble."""
        attempt = partial(self._attempt, messages, request, read)
        outcome = await self.retries.insist(attempt, self.meter.counts)
        if isinstance(outcome, Trouble) and outcome.action == "stop":
            await self._require_doubt(outcome, messages, request)
            return outcome._replace(action="note")
        return outcome

    async def _require_doubt(
        self, trouble: Trouble, messages: list[Message], request: dict[str, Any]
    ) -> None:
        """Raise EndpointError unless the endpoint would answer another question than this text."""
        plain = {name: value for name, value in request.items() if name not in PLAIN}
        if trouble.is_doubtful and (messages, request) != (QUESTION, plain):
            async with self._doubts:
                other = await self._attempt(QUESTION, plain, require_message)
            if not isinstance(other, Trouble) or other.action != "stop":
                return
        named = f"the endpoint {self._endpoint.url} cannot be asked: {trouble.message}"
        if trouble.retry_after_s:
            raise EndpointError(
                f"{named}. Run again after that time: verdicts already given are kept"
            )
        raise EndpointError(
            f"{named}. Check the "
            "judge's 'model', 'base_url' and 'api_key_env' in judges.yaml, the key's rights "
            "and the account's credit, then run again: verdicts already given are kept"
        )

    async def _attempt(
        self, messages: list[Message], request: dict[str, Any], read: Callable[[Any], R]
    ) -> R | Trouble:
        meter = self.meter
        async with self._slots:
            await self.retries.until_open()
            most = most_of(messages, request, meter.price)
            if not await self._is_granted(most):
                return SPENT
            meter.counts["requests"] += 1
            spent, stated = most, (0, 0)
            try:
                async with asyncio.timeout(self.timeout_s):
                    reply = await self.connection.chat(messages, request)
                stated, sizes = tokens_of(reply), (text_bytes(messages), answer_bytes(reply))
                spent = meter.cost(stated, sizes, most)
                return understood(reply, read)
            except TROUBLES as error:
                shown = "".join(message["content"] for message in messages)
                trouble = self.retries.diagnose(error, shown)
                if any(stated):
                    trouble = trouble._replace(may_be_paid=True)
                elif not trouble.may_be_paid:
                    spent = Cost()
                elif spent is most:
                    meter.counts["lost"] += 1
                return trouble
            finally:
                meter.budget.settle(most, spent)

    async def _is_granted(self, most: Cost) -> bool:
        """Reserve a cost, after requests in flight if need be; return whether there is room."""
        while not self.meter.budget.reserve(most):
            if self.meter.budget.n_open == 0:
                return False
            await asyncio.sleep(_WAIT_S)
        return True


def seeded(request: dict[str, Any], replicate: int) -> dict[str, Any]:
    """Return a request with the seed of a replicate: with one for all, all would be the same."""
    if replicate == 0 or "seed" not in request:
        return request
    return {**request, "seed": request["seed"] + replicate}


def redacted(answer: Answer, endpoint: Endpoint) -> Answer:
    """Return an answer without the key, which some servers repeat; answers are stored."""
    if answer.text is not None and endpoint.is_repeated_in(answer.text):
        answer = replace(answer, text=endpoint.redact(answer.text), log_probabilities=None)
    answer = replace(
        answer,
        reply_model=_name(answer.reply_model, endpoint),
        system_fingerprint=_name(answer.system_fingerprint, endpoint),
        said=answer.said and fit(answer.said, endpoint, answer.failure),
        reasoning=answer.reasoning and _without_key(answer.reasoning, endpoint),
    )
    logs = answer.log_probabilities
    spelled = "".join(token for token, *_ in json.loads(logs)) if logs else ""
    repeats_key = endpoint.is_repeated_in(spelled) or endpoint.is_repeated_in(logs or "")
    return replace(answer, log_probabilities=None) if repeats_key else answer


def _without_key(text: str, endpoint: Endpoint) -> str:
    return endpoint.redact(text) if endpoint.is_repeated_in(text) else text


def _name(given: str | None, endpoint: Endpoint) -> str | None:
    """Return a name in one line; a key as short as ``x`` stands in many names, and is no secret."""
    if given is None or endpoint.is_repeated_in(given):
        return given and fit(given, endpoint)
    return one_line(given)


def _added(answer: Answer, earlier: Answer) -> Answer:
    """Return an answer with the tokens of an earlier one: both were paid for."""
    worded = answer if answer.text is not None else earlier
    return replace(
        answer,
        text=worded.text,
        reasoning=worded.reasoning,
        prompt_tokens=answer.prompt_tokens + earlier.prompt_tokens,
        completion_tokens=answer.completion_tokens + earlier.completion_tokens,
        reply_model=answer.reply_model or earlier.reply_model,
        system_fingerprint=answer.system_fingerprint or earlier.system_fingerprint,
    )

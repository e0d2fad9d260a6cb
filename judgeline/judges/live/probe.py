"""Capabilities of an endpoint: probed once and remembered beside the tables."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from judgeline.atomic import write_whole
from judgeline.judges.forms.form import Form, named_schema
from judgeline.judges.live.connection import Connection
from judgeline.judges.live.endpoint import EndpointError, OutOfReachError
from judgeline.judges.live.fields import (
    FEW_ALTERNATIVES,
    MOST_ALTERNATIVES,
    ServedFields,
    require_chance,
)
from judgeline.judges.live.replies import member
from judgeline.judges.live.troubles import Trouble
from judgeline.judges.options import Decoding
from judgeline.verdict import identity_hash

_VERSION = "1"
LimitField = Literal["max_tokens", "max_completion_tokens"]

_LIMIT: LimitField = "max_completion_tokens"
_ROOM = 1024  # some models think before they write, and fail without the room for it
_PATIENCE_S = 150.0  # for one question, attempts and pauses included
_LIST_S = 20.0
_NOT_IMPLEMENTED = 501
_COLOURS = ["teal", "ochre"]
_SCHEMA = named_schema("colour", {"colour": {"type": "string", "enum": _COLOURS}})


@dataclass(frozen=True, config=ConfigDict(strict=True))
class Capabilities:
    """Capabilities of an endpoint for one model.

    `limit_field` is what it calls the token limit of an answer. `alternatives` is of how many
    tokens it tells the log-probability at a place: 0 where of none but the one said; None where it
    was not asked.
    """

    limit_field: LimitField
    json_schema: bool
    log_probabilities: bool
    max_context: int | None
    alternatives: Literal[0, 5, 20] | None = None

    def has_logs(self, *, with_alternatives: bool) -> bool:
        """Return whether log-probabilities come, and those of alternatives if these are needed."""
        return self.log_probabilities and not (with_alternatives and self.alternatives == 0)


def listing(alternatives: int) -> dict[str, Any]:
    """Return the request fields for log-probabilities of `alternatives` tokens at each place."""
    return {"logprobs": True, "top_logprobs": alternatives}


LOG_PROBABILITIES = listing(FEW_ALTERNATIVES)
PLAIN = {"response_format", *LOG_PROBABILITIES}
"""What a plain request does without."""

QUESTION = [{"role": "user", "content": "Describe the sky at noon in one short sentence."}]

Send = Callable[[dict[str, Any]], Awaitable[Any]]
"""Sends a small request, with retries; returns a completion or the trouble with it."""


def remembered(folder: Path, place: str, model: str) -> Capabilities | None:
    """Return capabilities that an earlier probe found, or None: not asked, or not readable."""
    try:
        return TypeAdapter(Capabilities).validate_json(_file(folder, place, model).read_bytes())
    except (OSError, ValueError):
        return None


def remember(folder: Path, place: str, model: str, found: Capabilities) -> None:
    """Keep capabilities, whole or not at all."""
    written = {"endpoint": place, "model": model, **asdict(found)}
    file = _file(folder, place, model)
    write_whole(file, (json.dumps(written, indent=1) + "\n").encode())


def _file(folder: Path, place: str, model: str) -> Path:
    name = identity_hash({"version": _VERSION, "endpoint": place, "model": model})
    return folder / "endpoints" / f"{name[:24]}.json"


def require_demands(
    slug: str, fields: ServedFields, form: Form, url: str, found: Capabilities
) -> None:
    """Check the capabilities of an endpoint against a judge's definition and form."""
    comes = found.has_logs(with_alternatives=form.needs_alternatives)
    for key, has in (("structured_output", found.json_schema), ("log_probabilities", comes)):
        if getattr(fields, key) == "on" and not has:
            raise ValueError(
                f"judge {slug!r} demands {key!r}, which {url} does not do for {fields.model!r}; "
                f"set {key}: auto or off in judges.yaml"
            )
    has_logs = comes and fields.log_probabilities != "off"
    if form.needs_alternatives and not has_logs:
        require_chance(slug, form.name, form.samples, fields.decoding)
    limit = fields.decoding.max_tokens
    if found.max_context is not None and found.max_context <= limit:
        raise ValueError(
            f"judge {slug!r} asks for answers of up to {limit} tokens, but the context of "
            f"{fields.model!r} is {found.max_context}; lower decoding.max_tokens"
        )


def sampling(decoding: Decoding) -> dict[str, Any]:
    """Return the sampling part of a request; settings that are null stay out.

    So does a nucleus that nobody set, where the likeliest token is taken anyway: it changes no
    answer, and some endpoints refuse it beside a temperature.
    """
    given = decoding.model_dump(exclude={"max_tokens"})
    if decoding.temperature == 0 and "top_p" not in decoding.model_fields_set:
        del given["top_p"]
    return {name: value for name, value in given.items() if value is not None}


class Probe:
    """Small requests to an endpoint, with one model and its decoding.

    A server in trouble raises EndpointError: what it cannot do says nothing about what it can.
    """

    def __init__(self, send: Send, connection: Connection, model: str, decoding: Decoding) -> None:
        self._send_once, self._connection, self._model = send, connection, model
        self._room = min(_ROOM, decoding.max_tokens)
        self._base = {"model": model, **sampling(decoding)}

    async def all(self) -> Capabilities:
        """Return the capabilities found by three small requests and the list of models."""
        limit = await self._limit_field()
        schema = await self._has_json_schema(limit)
        logs = await self._unless_refused(limit, LOG_PROBABILITIES, "log-probabilities")
        return Capabilities(limit, schema, bool(_logs_in(logs)), await self._max_context())

    async def again(self, found: Capabilities) -> Capabilities:
        """Send one small request to an endpoint that was probed before."""
        return replace(found, limit_field=await self._limit_field())

    async def with_alternatives(self, found: Capabilities) -> Capabilities:
        """Return capabilities with the number of alternatives that the endpoint gives."""
        for n in (MOST_ALTERNATIVES, FEW_ALTERNATIVES):
            what = f"log-probabilities of {n} tokens"
            reply = await self._unless_refused(found.limit_field, listing(n), what)
            # some servers list nothing, and do not say so
            if any(member(token, "top_logprobs") for token in _logs_in(reply)):
                return replace(found, alternatives=n)
        return replace(found, alternatives=0)

    async def _send(self, request: dict[str, Any]) -> Any:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await self._send_once(request)
        except TimeoutError:
            raise OutOfReachError(
                f"the endpoint did not answer a small request within {_PATIENCE_S:g} s. See "
                "whether it is up and serves the model, then run again"
            ) from None

    async def _limit_field(self) -> LimitField:
        reply = await self._send({**self._base, "max_tokens": self._room})
        if isinstance(reply, Trouble) and _LIMIT in reply.message:
            reply = await self._send({**self._base, _LIMIT: self._room})
            if not isinstance(reply, Trouble):
                return _LIMIT
        if isinstance(reply, Trouble):
            kind = OutOfReachError if reply.action == "retry" else EndpointError
            raise kind(
                f"the endpoint did not answer a plain request with model {self._model!r} and this "
                f"judge's decoding: {reply.message}. Check that it is up and correct 'base_url', "
                "'model' or 'decoding' (null leaves a setting out of the request)"
            )
        return "max_tokens"

    async def _has_json_schema(self, limit: str) -> bool:
        """Whether a schema binds: the question invites an answer that it does not allow."""
        schema = {"response_format": _SCHEMA}
        reply = await self._unless_refused(limit, schema, "a JSON schema")
        if reply is None:
            return False
        choice = reply["choices"][0]
        text = (choice["message"].get("content") or "").strip()
        if choice.get("finish_reason") == "length" and text.startswith("{"):
            return True
        try:
            return json.loads(text) in [{"colour": colour} for colour in _COLOURS]
        except ValueError:
            return False

    async def _unless_refused(self, limit: str, extra: dict[str, Any], what: str) -> Any | None:
        """Return the reply to a request with an extra option; None if the option is refused."""
        base = {**self._base, limit: self._room}
        for _ in range(2):
            reply = await self._send({**base, **extra})
            if not isinstance(reply, Trouble):
                return reply
            if reply.action == "note" or reply.status == _NOT_IMPLEMENTED:
                return None
            may_be_option = (reply.status or 0) >= 500 or reply.failure == "unreadable_reply"
            if not may_be_option or isinstance(await self._send(base), Trouble):
                message = f"asking for {what} got no reply: {reply.message}; run again later"
                raise OutOfReachError(message)
        return None

    async def _max_context(self) -> int | None:
        """Return the context that the list of models states, as vLLM's does; None elsewhere."""
        try:
            async with asyncio.timeout(_LIST_S):
                listed = await self._connection.ask(
                    lambda client: client.models.with_raw_response.list()
                )
            own = [entry for entry in listed["data"] if entry["id"] == self._model]
            length = own[0]["max_model_len"]
        except Exception:  # no necessity, and servers list all sorts of things
            return None
        return length if type(length) is int and length > 0 else None


def _logs_in(reply: Any) -> list[Any]:
    logs = member(member(reply["choices"][0], "logprobs"), "content") if reply else None
    return logs if isinstance(logs, list) else []

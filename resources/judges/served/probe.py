"""What an endpoint supports, found out by asking it once and remembered beside the tables."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import openai

from judgeline.identity import identity_hash
from resources.judges.served.endpoint import Endpoint, EndpointError
from resources.judges.served.fields import Decoding
from resources.judges.served.prompt import named_schema
from resources.judges.served.troubles import TROUBLES, Trouble

_VERSION = "1"
_LEGACY_LIMIT, _LIMIT = "max_tokens", "max_completion_tokens"
_ROOM = 1024  # some models think before they write, and fail without the room for it
_COLOURS = ["teal", "ochre"]
_SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": _COLOURS}},
    "required": ["colour"],
    "additionalProperties": False,
}


class Capabilities(NamedTuple):
    """What an endpoint does for one model.

    `limit_field` is what it calls the token limit of an answer; `max_context` is in tokens, and
    None where the endpoint does not say.
    """

    limit_field: str
    json_schema: bool
    log_probabilities: bool
    max_context: int | None


LOG_PROBABILITIES: dict[str, Any] = {"logprobs": True, "top_logprobs": 5}
QUESTION = [{"role": "user", "content": "Describe the sky at noon in one short sentence."}]

Send = Callable[[dict[str, Any]], Awaitable[Any]]
"""Sends a small request, with retries; returns a completion or the trouble with it."""


def remembered(folder: Path, endpoint: Endpoint, model: str) -> Capabilities | None:
    """Return what an earlier probe of an endpoint found, or None."""
    file = _file(folder, endpoint, model)
    if not file.is_file():
        return None
    found = json.loads(file.read_text(encoding="utf-8"))
    return Capabilities(**{name: found[name] for name in Capabilities._fields})


def remember(folder: Path, endpoint: Endpoint, model: str, found: Capabilities) -> Path:
    """Keep what a probe found, at once or not at all; return the file."""
    file = _file(folder, endpoint, model)
    folder.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(f".{os.getpid()}.tmp")
    written = {"endpoint": endpoint.url, "model": model, **found._asdict()}
    half.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    half.replace(file)
    return file


def _file(folder: Path, endpoint: Endpoint, model: str) -> Path:
    name = identity_hash({"version": _VERSION, "endpoint": endpoint.url, "model": model})
    return folder / f"{name[:24]}.json"


def sampling(decoding: Decoding) -> dict[str, Any]:
    """Return the sampling part of a request; settings that are null stay out."""
    given = {name: getattr(decoding, name) for name in ("temperature", "top_p", "seed")}
    return {name: value for name, value in given.items() if value is not None}


async def probe(
    send: Send, client: openai.AsyncOpenAI, model: str, decoding: Decoding
) -> Capabilities:
    """Return what an endpoint supports, from three small requests and its list of models.

    Raises
    ------
    EndpointError
        If it does not answer a plain request with the judge's decoding.
    """
    base, room = {"model": model, **sampling(decoding)}, min(_ROOM, decoding.max_tokens)
    limit = await _limit_field(send, base, room)
    request = {**base, limit: room}
    return Capabilities(
        limit,
        await _has_json_schema(send, request),
        await _has_log_probabilities(send, request),
        await _max_context(client, model),
    )


async def _limit_field(send: Send, base: dict[str, Any], room: int) -> str:
    reply = await send({**base, _LEGACY_LIMIT: room})
    if isinstance(reply, Trouble) and _LIMIT in reply.message:
        reply = await send({**base, _LIMIT: room})
        if not isinstance(reply, Trouble):
            return _LIMIT
    if isinstance(reply, Trouble):
        raise EndpointError(
            f"the endpoint did not answer a plain request with model {base['model']!r} and this "
            f"judge's decoding: {reply.message}. Check that it is up and correct 'base_url', "
            "'model' or 'decoding' (null leaves a setting out of the request)"
        )
    return _LEGACY_LIMIT


async def _has_json_schema(send: Send, base: dict[str, Any]) -> bool:
    """Whether a schema binds: the question invites an answer that it does not allow."""
    reply = await send({**base, "response_format": named_schema("colour", _SCHEMA)})
    if _is_refused(reply, "a JSON schema"):
        return False
    choice = reply.choices[0]
    text = (choice.message.content or "").strip()
    if choice.finish_reason == "length" and text.startswith("{"):
        return True
    try:
        return json.loads(text) in [{"colour": colour} for colour in _COLOURS]
    except ValueError:
        return False


async def _has_log_probabilities(send: Send, base: dict[str, Any]) -> bool:
    reply = await send({**base, **LOG_PROBABILITIES})
    if _is_refused(reply, "log-probabilities"):
        return False
    return bool(getattr(getattr(reply.choices[0], "logprobs", None), "content", None))


def _is_refused(reply: Any, what: str) -> bool:
    """Whether a server turned a request down; raises if it could not be reached instead."""
    if not isinstance(reply, Trouble):
        return False
    if reply.action == "note" or reply.message.startswith("HTTP 5"):
        return True
    raise EndpointError(f"asking for {what} got no reply: {reply.message}; run again later")


async def _max_context(client: openai.AsyncOpenAI, model: str) -> int | None:
    """Return the context that the list of models states, as vLLM's does; None elsewhere."""
    try:
        listed = await client.models.list()
    except TROUBLES:
        return None
    own = [entry for entry in listed.data or [] if entry.id == model]
    length = getattr(own[0], "max_model_len", None) if own else None
    return length if isinstance(length, int) else None

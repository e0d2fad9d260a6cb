"""What the body of a reply holds: JSON, or server-sent events that tell it piece by piece."""

import json
from typing import Any

from judgeline.judges.live.errors import MalformedReplyError

_EVENTS = (b"data:", b"event:", b"id:", b"retry:", b": ")
THOUGHTS = ("reasoning_content", "reasoning")
"""Where servers put what a model thought before its answer; some fill both alike."""

_TOLD = ("model", "system_fingerprint", "usage")


def read_body(content: bytes) -> Any:
    """Return the JSON of a body; some servers stream a completion that nobody wanted streamed."""
    is_stream = content.lstrip().startswith(_EVENTS)
    try:
        return _joined(_chunks(content)) if is_stream else json.loads(content)
    except (AttributeError, TypeError, ValueError, RecursionError):
        what = "server-sent events without a completion" if is_stream else "no JSON"
    raise MalformedReplyError(f"the reply is {what}", content)


def _chunks(content: bytes) -> list[Any]:
    lines = (line.strip() for line in content.split(b"\n"))
    data = [line[5:].strip() for line in lines if line.startswith(b"data:")]
    return [json.loads(one) for one in data if one != b"[DONE]"]


def _joined(chunks: list[Any]) -> Any:
    """Return the completion that chunks add up to, or the error that one of them reports."""
    whole: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    message: dict[str, Any] = {"content": []}
    logged: list[Any] = []
    for chunk in chunks:
        if chunk.get("error"):
            return chunk
        whole |= {name: chunk[name] for name in _TOLD if chunk.get(name) is not None}
        for one in chunk.get("choices") or ():
            said = one.get("delta") or one.get("message") or {}
            content = said.get("content") or []
            message["content"] += content if isinstance(content, list) else [content]
            for name in ("refusal", *THOUGHTS):
                if isinstance(piece := said.get(name), str):
                    message[name] = message.get(name, "") + piece
            if said.get("tool_calls"):
                message["tool_calls"] = said["tool_calls"]
            if one.get("finish_reason"):
                choice["finish_reason"] = one["finish_reason"]
            logged += (one.get("logprobs") or {}).get("content") or []
            choice |= {"message": message, "logprobs": {"content": logged}}
    return {**whole, "choices": [choice] if choice else []}

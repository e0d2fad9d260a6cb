"""The HTTP connection to an endpoint: it leads where the definition says, and nowhere else."""

import ipaddress
from typing import Any
from urllib.parse import urlsplit

import openai

from resources.judges.served.replies import MalformedReplyError

HEADERS = {"Accept-Encoding": "identity"}
"""Sent with every request: a short compressed body may unpack to more than the memory holds."""

_CONNECT_S = 10.0
_MOST_BYTES = 64 << 20


def timeout(timeout_s: float) -> openai.Timeout:
    """Return how long a request may be silent: less for one that reaches nobody at all."""
    return openai.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S))


def connection(url: str, timeout_s: float) -> Any:
    """Return a client that follows no redirect, and asks no proxy for this machine itself."""
    hooks = {"response": [_require_answer_size]}
    return openai.DefaultAsyncHttpxClient(event_hooks=hooks, **_settings(url, timeout_s))


def blocking_connection(url: str, timeout_s: float) -> Any:
    """Return the same for requests one after another, whose results may be long."""
    hooks = {"response": [_require_unpacked]}
    return openai.DefaultHttpxClient(event_hooks=hooks, **_settings(url, timeout_s))


def _settings(url: str, timeout_s: float) -> dict[str, Any]:
    return {
        "follow_redirects": False,
        "trust_env": not is_loopback(url),
        "timeout": timeout(timeout_s),
    }


def is_loopback(url: str) -> bool:
    """Return whether a URL leads to this machine, which no proxy can reach for us."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _require_unpacked(response: Any) -> None:
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing not in ("", "identity"):
        raise MalformedReplyError(f"the reply is packed as {packing[:20]!r}, unasked")


async def _require_answer_size(response: Any) -> None:
    """Refuse a body that is packed, or longer than any answer, before it is read."""
    _require_unpacked(response)
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length[:18]) > _MOST_BYTES:
        raise MalformedReplyError(f"the reply announces {length[:18]} bytes, which is no answer")

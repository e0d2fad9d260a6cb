"""The HTTP connection to an endpoint: it leads where the definition says, and nowhere else."""

import ipaddress
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from resources.judges.live.replies import MalformedReplyError

HEADERS = {"Accept-Encoding": "identity"}
"""Sent with every request: a short compressed body may unpack to more than the memory holds."""

_CONNECT_S = 10.0
MOST_BYTES = 64 << 20
"""Bytes at which a reply is broken off, whatever its headers say."""

_MOST_FILE_BYTES = 8 << 30  # of results, which are read from disk line by line


def timeout(timeout_s: float) -> openai.Timeout:
    """Return how long a request may be silent: less for one that reaches nobody at all."""
    return openai.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S))


def connection(url: str, timeout_s: float, *, sends_key: bool = True) -> Any:
    """Return a client that follows no redirect, and asks no proxy for this machine itself.

    Without `sends_key` the header with the key, which the protocol's client insists on, is
    left out.
    """
    hooks = {"request": [] if sends_key else [_drop_key_async], "response": [_bound_async]}
    return openai.DefaultAsyncHttpxClient(event_hooks=hooks, **_settings(url, timeout_s))


def blocking_connection(url: str, timeout_s: float, *, sends_key: bool = True) -> Any:
    """Return the same for requests one after another, whose files of results may be long."""
    hooks = {"request": [] if sends_key else [_drop_key], "response": [_bound]}
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


def _drop_key(request: Any) -> None:
    request.headers.pop("authorization", None)


async def _drop_key_async(request: Any) -> None:
    _drop_key(request)


def _require_unpacked(response: Any) -> None:
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing not in ("", "identity"):
        raise MalformedReplyError(f"the reply is packed as {packing[:20]!r}, unasked")


class _Bounded(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    """The body of a reply, broken off at a number of bytes."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream, self._left, self._most = stream, most, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield self._counted(piece)

    def __iter__(self) -> Iterator[bytes]:
        yield from map(self._counted, self._stream)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def close(self) -> None:
        self._stream.close()

    def _counted(self, piece: bytes) -> bytes:
        self._left -= len(piece)
        if self._left < 0:
            raise MalformedReplyError(f"the reply is longer than {self._most:,} bytes")
        return piece


def _bound(response: Any) -> None:
    """Refuse a packed body unread, and bound the bytes that are read of any other."""
    _require_unpacked(response)
    is_file = response.request.url.path.endswith("/content")
    most = _MOST_FILE_BYTES if is_file else MOST_BYTES
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length[:18]) > most:
        raise MalformedReplyError(f"the reply announces {length[:18]} bytes, more than {most:,}")
    response.stream = _Bounded(response.stream, most)


async def _bound_async(response: Any) -> None:
    _bound(response)

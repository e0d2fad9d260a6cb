"""The HTTP connection to an endpoint: it leads where the definition says, and nowhere else."""

import ipaddress
import json
import ssl
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import truststore
from yarl import URL

from resources.judges.live.endpoint import Endpoint

MOST_BYTES = 64 << 20
"""Bytes at which a reply is broken off, whatever its headers say."""

_MOST_FILE_BYTES = 8 << 30  # of results, which are read from disk line by line
_CONNECT_S = 10.0
_JSON = {"Content-Type": "application/json"}


class MalformedReplyError(Exception):
    """A body that the protocol does not know: half a reply, or another program's; worth a retry."""


class StatusError(Exception):
    """A reply whose HTTP status is no success: its text, and the error that this may hold."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.text, self.headers = status, text, headers
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            body = None
        self.error = body.get("error", body) if isinstance(body, dict) else body


class Connection:
    """Sends requests to one endpoint, each once; opened by the first one, in its event loop.

    It follows no redirect, keeps no cookie, takes no packed body, and asks no proxy for this
    machine itself.
    """

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        if endpoint.key is None:
            raise ValueError(endpoint.no_key)
        self._endpoint, self._timeout_s = endpoint, timeout_s
        self._session: aiohttp.ClientSession | None = None
        self._proxy = _proxy(endpoint.url)

    async def ask(self, path: str, body: Any = None, **query: str) -> Any:
        """Return the JSON of the reply to a body, or of a page without one."""
        if body is None:
            return await self.send("GET", path, query)
        return await self.send("POST", path, query, data=json.dumps(body).encode(), headers=_JSON)

    async def send(self, method: str, path: str, query: Mapping[str, str] = {}, **sent: Any) -> Any:
        """Return the JSON of the reply to a request."""
        async with self.pieces(method, path, query, **sent) as pieces:
            return json.loads(await _whole(pieces))

    @asynccontextmanager
    async def pieces(
        self, method: str, path: str, query: Mapping[str, str] = {}, **sent: Any
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the body of a successful reply in pieces; StatusError for any other status."""
        query = {**dict(self._endpoint.query), **query}
        asked = f"?{urlencode(query, quote_via=quote)}" if query else ""
        url = URL(f"{self._endpoint.url}{path}{asked}", encoded=True)
        async with self._opened().request(
            method, url, allow_redirects=False, proxy=self._proxy, **sent
        ) as reply:
            pieces = _bounded(reply, _MOST_FILE_BYTES if path.endswith("/content") else MOST_BYTES)
            if not 200 <= reply.status < 300:
                text = (await _whole(pieces)).decode("utf-8", "replace")
                raise StatusError(reply.status, text, reply.headers)
            yield pieces

    async def close(self) -> None:
        """Close the session of the connection."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connect_s = min(self._timeout_s, _CONNECT_S)
            context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=context),
                headers=self._endpoint.sent_headers,
                timeout=aiohttp.ClientTimeout(sock_connect=connect_s, sock_read=self._timeout_s),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


async def _bounded(reply: aiohttp.ClientResponse, most: int) -> AsyncIterator[bytes]:
    """Yield a body, broken off at a number of bytes; a packed one is refused unread."""
    packing = reply.headers.get("content-encoding", "").strip().lower()
    if packing not in ("", "identity"):
        raise MalformedReplyError(f"the reply is packed as {packing[:20]!r}, unasked")
    left = most
    async for piece in reply.content.iter_any():
        left -= len(piece)
        if left < 0:
            raise MalformedReplyError(f"the reply is longer than {most:,} bytes")
        yield piece


async def _whole(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


def _proxy(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; none can reach this machine for us."""
    parts = urlsplit(url)
    if is_loopback(url) or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    named = urllib.request.getproxies()
    return named.get(parts.scheme) or named.get("all")


def is_loopback(url: str) -> bool:
    """Return whether a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")

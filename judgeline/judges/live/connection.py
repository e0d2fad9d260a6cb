"""The connection to an endpoint: it leads where the definition says, and nowhere else."""

import ipaddress
import json
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from judgeline.judges.live.endpoint import Endpoint

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Send = Callable[["AsyncOpenAI"], Awaitable[Any]]
"""Sends one request through a client, by its ``with_raw_response``."""

Stream = Callable[["AsyncOpenAI"], AbstractAsyncContextManager[Any]]
"""The same by its ``with_streaming_response``."""


class Connection:
    """Sends requests to one endpoint through the `openai` package, each once.

    It is opened by the first one, in its event loop. It follows no redirect, keeps no cookie, takes
    no packed body, and asks no proxy for this machine itself.
    """

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        if endpoint.key is None:
            raise ValueError(endpoint.no_key)
        self._endpoint, self._timeout_s = endpoint, timeout_s
        self._client: AsyncOpenAI | None = None

    async def chat(self, messages: list[dict[str, str]], request: Mapping[str, Any]) -> Any:
        """Return the JSON of the reply to messages; what else is asked for goes along as it is."""
        asked: Any = {"messages": messages, "model": request["model"]}
        more = {name: value for name, value in request.items() if name != "model"}
        return await self.ask(
            lambda client: client.chat.completions.with_raw_response.create(
                **asked, extra_body=more
            )
        )

    async def ask(self, send: Send) -> Any:
        """Return the JSON of the reply to a request."""
        from judgeline.judges.live.client import failures_told

        with failures_told():
            return json.loads((await send(self._opened())).content)

    @asynccontextmanager
    async def pieces(self, stream: Stream) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the body of a successful reply in pieces."""
        from judgeline.judges.live.client import failures_told

        with failures_told():
            async with stream(self._opened()) as reply:
                yield reply.iter_bytes()

    async def close(self) -> None:
        """Close the client and its connections."""
        if self._client is not None:
            await self._client.close()

    def _opened(self) -> "AsyncOpenAI":
        if self._client is None:
            from judgeline.judges.live.client import open_client

            self._client = open_client(self._endpoint, self._timeout_s, _proxy(self._endpoint.url))
        return self._client


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

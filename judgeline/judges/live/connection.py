"""The connection to an endpoint: it leads where the definition says, and nowhere else."""

import ipaddress
import socket
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from judgeline.judges.live.bodies import read_body
from judgeline.judges.live.endpoint import Endpoint

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Send = Callable[["AsyncOpenAI"], Awaitable[Any]]
"""Sends one request through a client, by its ``with_raw_response``."""

Stream = Callable[["AsyncOpenAI"], AbstractAsyncContextManager[Any]]
"""The same by its ``with_streaming_response``."""


class Connection:
    """Sends requests to one endpoint through the `openai` package, each once.

    It follows no redirect, keeps no cookie, takes no packed body, and asks no proxy for this
    machine itself. One event loop sends them all.
    """

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        if endpoint.key is None:
            raise ValueError(endpoint.no_key)
        # the package takes half a second to import, which is no time of a request
        from judgeline.judges.live.client import open_client

        self._client = open_client(endpoint, timeout_s, proxy_of(endpoint.url))

    async def chat(self, messages: list[dict[str, str]], request: Mapping[str, Any]) -> Any:
        """Return the JSON of the reply to messages; other request fields are sent unchanged."""
        asked: Any = {"messages": messages, "model": request["model"]}
        more = {name: value for name, value in request.items() if name != "model"}
        return await self.ask(
            lambda client: client.chat.completions.with_raw_response.create(
                **asked, extra_body=more
            )
        )

    async def ask(self, send: Send) -> Any:
        """Return the JSON of the reply to a request."""
        from judgeline.judges.live.client import translated_errors

        with translated_errors():
            return read_body((await send(self._client)).content)

    @asynccontextmanager
    async def pieces(self, stream: Stream) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the body of a successful reply in pieces."""
        from judgeline.judges.live.client import translated_errors

        with translated_errors():
            async with stream(self._client) as reply:
                yield reply.iter_bytes()

    async def close(self) -> None:
        """Close the client and its connections."""
        await self._client.close()


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; none can reach this machine for us."""
    parts = urlsplit(url)
    if is_loopback(url) or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    named = urllib.request.getproxies()
    proxy = named.get(parts.scheme) or named.get("all")
    if proxy and "://" not in proxy:
        raise ValueError(
            f"the proxy that the environment names for {parts.scheme} has no scheme; write it as "
            "http://HOST:PORT (its value is not shown)"
        )
    return proxy


def is_loopback(url: str) -> bool:
    """Return whether a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    with suppress(OSError):  # 127.1 is an address too
        host = socket.inet_ntoa(socket.inet_aton(host))
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified

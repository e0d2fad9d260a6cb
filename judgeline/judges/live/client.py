"""The `openai` package's client behind a hardened transport; the package takes half a second."""

import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from urllib.parse import quote, urlencode

import aiohttp
import httpx2
import openai
import truststore
from yarl import URL

from judgeline.judges.live.endpoint import Endpoint
from judgeline.judges.live.errors import (
    MOST_BYTES,
    BrokenReplyError,
    MalformedReplyError,
    PackedReplyError,
    StatusError,
)

_PLACEHOLDER = "http://endpoint"  # for a URL that may hold a key: the package's client logs it
_MOST_FILE_BYTES = 8 << 30  # of results, which are read from disk line by line
_CONNECT_S = 10.0
_RACE_S = 2.0  # sooner, a server that hangs up had closed a connection that it kept
_OF_BODY = ("content-type", "content-length")
_CHARSET_IN = b"content-type"  # of a reply; the package would read errors by that charset
_SAID_BY_US = {"Accept": "application/json", "User-Agent": "judgeline"}


def open_client(endpoint: Endpoint, timeout_s: float, proxy: str | None) -> openai.AsyncOpenAI:
    """Return a client that sends each request once, to this endpoint and nowhere else."""
    client = openai.AsyncOpenAI(
        api_key=endpoint.key or "",
        base_url=_PLACEHOLDER,
        timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S), pool=None),
        max_retries=0,
        http_client=httpx2.AsyncClient(
            transport=HardenedTransport(endpoint, proxy),
            follow_redirects=False,
            trust_env=False,
        ),
    )
    client._custom_headers = {}  # those of OPENAI_CUSTOM_HEADERS, which may undo a request
    return client


class HardenedTransport(httpx2.AsyncBaseTransport):
    """Sends requests over aiohttp to an endpoint, with its headers in place of the package's own.

    It follows no redirect, keeps no cookie, refuses packed bodies unread, and breaks long ones off.
    Accounts and headers that the package finds in the environment go nowhere.
    """

    def __init__(self, endpoint: Endpoint, proxy: str | None) -> None:
        self._endpoint, self._headers, self._proxy = endpoint, endpoint.sent_headers, proxy
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response to a request; its body is read by whoever wants it."""
        is_whole = isinstance(request.stream, httpx2.ByteStream)  # and not a file, piece by piece
        of_body = {name: request.headers[name] for name in _OF_BODY if name in request.headers}
        timeout = request.extensions["timeout"]
        reply = await self._opened().request(
            request.method,
            self._url(request.url),
            headers={**_SAID_BY_US, **of_body, **self._headers},
            data=(request.content or None) if is_whole else request.stream,
            allow_redirects=False,
            proxy=self._proxy,
            timeout=aiohttp.ClientTimeout(
                sock_connect=timeout["connect"], sock_read=timeout["read"]
            ),
        )
        body = _Body(
            reply, _MOST_FILE_BYTES if request.url.path.endswith("/content") else MOST_BYTES
        )
        packing = reply.headers.get("content-encoding", "").strip().lower()
        if packing not in ("", "identity"):
            await body.aclose()
            raise PackedReplyError(f"the reply is packed as {packing[:20]!r}, unasked")
        told = [(name, value) for name, value in reply.raw_headers if name.lower() != _CHARSET_IN]
        return httpx2.Response(reply.status, headers=told, stream=body)

    def _url(self, asked: httpx2.URL) -> URL:
        """Return the endpoint's URL with the path and the queries of a request."""
        path, _, own = asked.raw_path.decode("ascii").partition("?")
        query = "&".join(filter(None, (urlencode(self._endpoint.query, quote_via=quote), own)))
        url = f"{self._endpoint.url.rstrip('/')}{path}"
        return URL(f"{url}?{query}" if query else url, encoded=True)

    async def aclose(self) -> None:
        """Close the session, and with it every connection."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=context),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


class _Body(httpx2.AsyncByteStream):
    """The body of a reply, broken off at a number of bytes."""

    def __init__(self, reply: aiohttp.ClientResponse, most: int) -> None:
        self._reply, self._most = reply, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        async for piece in self._reply.content.iter_any():
            left -= len(piece)
            if left < 0:
                raise MalformedReplyError(f"the reply is longer than {self._most:,} bytes")
            yield piece

    async def aclose(self) -> None:
        """Close the connection, unless the whole body was read: then it is kept for the next."""
        self._reply.close()


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate the package's exceptions into those of aiohttp behind them, or into ours."""
    started = time.monotonic()
    try:
        yield
    except openai.APIStatusError as error:
        reply = error.response
        text = reply.content.decode("utf-8", "replace")
        raise StatusError(reply.status_code, text, reply.headers) from None
    except aiohttp.ClientPayloadError as error:
        raise BrokenReplyError(f"the reply broke off: {error}") from None
    except aiohttp.ClientConnectorError:
        raise  # nothing was sent
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
        if time.monotonic() - started <= _RACE_S:
            raise
        raise BrokenReplyError(f"no reply came: {type(error).__name__}: {error}") from None
    except (openai.OpenAIError, httpx2.HTTPError) as error:
        problem = error.__cause__ or error
        told = f"{type(problem).__name__}: {problem}"
        if isinstance(problem, aiohttp.ClientError | MalformedReplyError):
            raise problem from None
        raise aiohttp.ClientConnectionError(told) from None

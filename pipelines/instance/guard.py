"""Guard of the web interface: it refuses requests that come from pages of other sites.

The interface has no login, and a browser sends requests for any page that it shows. A page of
another site is known by `Origin` and `Sec-Fetch-Site`; one that took the address of this machine
for its own name (DNS rebinding) by `Host`. Programs outside a browser send neither of the first
two, and this machine's name.
"""

import os
import re
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

ALLOWED_HOSTS = "JUDGELINE_ALLOWED_HOSTS"
"""Variable with further names of the server, comma-separated, as the address line shows them."""

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_SINGLE = ("host", "origin", "sec-fetch-site", "content-type")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_-]+(\.[a-z0-9_-]+)*)(:[0-9]{1,5})?")
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Refusal(NamedTuple):
    """Refusal of a request: the HTTP status and a sentence for a person."""

    status: int
    reason: str

    def response(self) -> PlainTextResponse:
        """Return the refusal as a page of plain text."""
        return PlainTextResponse(f"{self.reason}\n", self.status, _HEADERS)


class Guard:
    """ASGI middleware that answers requests and WebSockets of other sites with a refusal."""

    def __init__(self, app: ASGIApp, allowed: frozenset[str]) -> None:
        self._app, self._allowed = app, allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        refusal = None if scope["type"] == "lifespan" else refusal_of(scope, self._allowed)
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(refusal.response())
        else:
            await refusal.response()(scope, receive, send)


def refusal_of(scope: Scope, allowed: frozenset[str]) -> Refusal | None:
    """Return why a request or WebSocket is refused; None where it may pass."""
    headers = Headers(scope=scope)
    if twice := [name for name in _SINGLE if len(headers.getlist(name)) > 1]:
        return Refusal(400, f"The header {twice[0]} is there twice: send it once.")
    if not scope["path"].startswith("/"):
        return Refusal(400, "The request names a whole address: send its path alone.")
    host = headers.get("host", "").lower()
    if host not in allowed | _loopback_hosts(scope):
        return _unknown_host(host)
    return _foreign_page(host, headers.get("origin"), headers.get("sec-fetch-site"))


def allowed_hosts() -> frozenset[str]:
    """Return the names that `JUDGELINE_ALLOWED_HOSTS` adds to those of the loopback address."""
    entries = os.environ.get(ALLOWED_HOSTS, "").lower().split(",")
    names = [name for entry in entries if (name := entry.strip())]
    for name in names:
        if not _HOST.fullmatch(name):
            raise ValueError(
                f"{ALLOWED_HOSTS} has {name!r}, which is no host name; write names as the address "
                "line of a browser has them, such as judges.example.org or localhost:8080, with "
                "commas between them"
            )
    return frozenset(names)


def _loopback_hosts(scope: Scope) -> frozenset[str]:
    """Return this machine's own names; browsers leave out port 80."""
    _, port = scope["server"]
    ending = "" if port == 80 else f":{port}"
    return frozenset(f"{name}{ending}" for name in _LOOPBACK)


def _unknown_host(host: str) -> Refusal:
    return Refusal(
        421,
        f"This server does not answer to the name {host[:200]!a}.\n"
        "Open it as localhost or 127.0.0.1 with its port. If a proxy or a forwarded port of your "
        f"own gives it that name, add the name to {ALLOWED_HOSTS} and start the server again.",
    )


def _foreign_page(host: str, origin: str | None, site: str | None) -> Refusal | None:
    own = (None, f"http://{host}", f"https://{host}")
    if origin in own and site in (None, "same-origin", "none"):
        return None
    sender = f"Origin: {(origin or 'not given')[:200]!a}, Sec-Fetch-Site: {site!a}"
    return Refusal(
        403,
        f"A page of another site asked for this ({sender}), and no other site may.\n"
        "If you followed a link, click into the address line of the browser and press Enter.\n"
        "If the interface is behind a proxy, have the proxy pass the Host header on.",
    )

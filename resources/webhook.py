"""Messages to whoever looks after an installation, posted to one address and nowhere else.

They are signed as Standard Webhooks 1.0 are (standardwebhooks.com), if there is a secret.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from judgeline.judges.live.connection import is_loopback, proxy_of
from judgeline.judges.live.endpoint import Endpoint
from judgeline.judges.live.fields import require_url

VARIABLE = "JUDGELINE_WEBHOOK"
"""Environment variable with the address that messages are posted to; it is a secret itself."""
SIGNED_BY = "JUDGELINE_WEBHOOK_SECRET"
"""Environment variable with the secret by which messages are signed."""
PAUSES_S = (1.0, 4.0)
"""Seconds before a second and a third attempt."""

_TIMEOUT_S = 10.0
_NEVER_AGAIN = range(300, 500)
_AGAIN = (408, 425, 429)


class UndeliveredError(RuntimeError):
    """A message could not be delivered; it names neither the address nor the secret."""


class Webhook(NamedTuple):
    """An address to post to, and the secret to sign by, empty for none; neither is ever shown."""

    url: str
    secret: str = ""

    def __repr__(self) -> str:
        """Return that there is one."""
        return "Webhook(...)"

    @classmethod
    def of_environment(cls) -> "Webhook | None":
        """Return the webhook of the environment, None without one; ValueError if it is unsafe."""
        url = os.environ.get(VARIABLE, "").strip()
        if not url:
            return None
        if not _is_safe(url):
            raise ValueError(
                f"{VARIABLE} is not an address beginning with https://, or http:// on this "
                "machine, without user and password; correct or unset it (its value is not shown)"
            )
        secret = os.environ.get(SIGNED_BY, "").strip()
        try:
            _key_of(secret)
        except ValueError as error:
            raise ValueError(
                f"{SIGNED_BY} begins with whsec_ and is not base64 after that; correct or unset it "
                "(its value is not shown)"
            ) from error
        return cls(url, secret)

    def post(self, identity: str, message: Mapping[str, Any]) -> None:
        """Post a message as JSON; `identity` is the same however often it is sent.

        Servers that do not answer or are busy are asked again (`PAUSES_S`).

        Raises
        ------
        UndeliveredError
            If no attempt was answered with a status of 200 to 299. No redirect is followed.
        """
        body = json.dumps({"id": identity, **message}).encode()
        for pause in (*PAUSES_S, None):
            status = asyncio.run(self._send(identity, body))
            if status in range(200, 300):
                return
            if pause is None or (status in _NEVER_AGAIN and status not in _AGAIN):
                break
            time.sleep(pause)
        how = f"answered with status {status}" if status else "did not answer"
        raise UndeliveredError(f"the address in {VARIABLE} {how}")

    async def _send(self, identity: str, body: bytes) -> int:
        """Return the status of one attempt; 0 where there was no answer."""
        import aiohttp  # a quarter of a second that only those pay who have a webhook
        import httpx2

        from judgeline.judges.live.client import HardenedTransport
        from judgeline.judges.live.errors import PackedReplyError

        parts = urlsplit(self.url)
        endpoint = Endpoint(
            f"{parts.scheme}://{parts.netloc}",
            "none",
            headers=tuple(self._headers(identity, body).items()),
            header_secrets=(self.url,),  # so that no key is sent
        )
        rest = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        timeout = {"connect": _TIMEOUT_S, "read": _TIMEOUT_S}
        request = httpx2.Request(
            "POST",
            f"http://endpoint{rest}",
            content=body,
            headers={"Content-Type": "application/json"},
            extensions={"timeout": timeout},
        )
        transport = HardenedTransport(endpoint, proxy_of(self.url))
        try:
            reply = await transport.handle_async_request(request)
            await reply.aclose()
        except (aiohttp.ClientError, PackedReplyError, TimeoutError, OSError):
            return 0  # what it says would quote the address
        finally:
            await transport.aclose()
        return reply.status_code

    def _headers(self, identity: str, body: bytes) -> dict[str, str]:
        now = str(int(time.time()))
        headers = {"webhook-id": identity, "webhook-timestamp": now}
        if self.secret:
            headers["webhook-signature"] = signature(self.secret, identity, now, body)
        return headers


def who_is_told_text() -> str:
    """Return the sentence on who is told of failed gates and drift, as the environment says."""
    if Webhook.of_environment() is None:
        return f"Nobody is told of failed gates, drift and spent budgets: set {VARIABLE}"
    return f"Failed gates, drift, placed candidates and spent budgets are told to {VARIABLE}"


def signature(secret: str, identity: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a message: HMAC-SHA256 of its id, its time in seconds and its body.

    A secret ``whsec_...`` is written in base64, any other stands for its characters.
    """
    signed = b".".join([identity.encode(), timestamp.encode(), body])
    return f"v1,{base64.b64encode(hmac.digest(_key_of(secret), signed, hashlib.sha256)).decode()}"


def _key_of(secret: str) -> bytes:
    coded = secret.removeprefix("whsec_")
    return secret.encode() if coded == secret else base64.b64decode(coded, validate=True)


def _is_safe(url: str) -> bool:
    try:
        require_url(url.partition("?")[0])
    except ValueError:
        return False
    is_word = url.isascii() and url.isprintable() and " " not in url and "#" not in url
    return is_word and (url.startswith("https://") or is_loopback(url))

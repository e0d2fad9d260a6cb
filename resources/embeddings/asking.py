"""Sends texts to an embeddings endpoint until each has its vector, or a reason for having none."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import openai
from openai.types import CreateEmbeddingResponse

from resources.embeddings.embedder import Embedding, Vector
from resources.embeddings.replies import read_vectors, tokens_of
from resources.judges.live.asking import fit
from resources.judges.live.endpoint import Endpoint, EndpointError
from resources.judges.live.troubles import TROUBLES, RetryPolicy, Trouble, diagnose

_PLAIN = ("text",)


class EmbeddingsAsker:
    """Asks one endpoint, with one policy of retries.

    `counts` is added ``requests``, ``retries`` and ``tokens``.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        endpoint: Endpoint,
        request: dict[str, Any],
        policy: RetryPolicy,
        *,
        timeout_s: float,
        counts: Counter[str],
    ) -> None:
        self._client, self._endpoint, self._request = client, endpoint, request
        self._policy, self._timeout_s, self._counts = policy, timeout_s, counts
        self._closed_until = 0.0
        # jitter decides when a request is sent, never what it is or what is made of it
        self._rng = np.random.default_rng()

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return what becomes of each text.

        An endpoint refuses all texts of a request for the sake of one: they are sent again in
        halves, until those that it refuses stand alone.
        """
        outcome = await self._send(texts)
        if not isinstance(outcome, Trouble):
            return [Embedding(vector) for vector in outcome]
        if outcome.failure == "transport":  # the texts, or everything
            await self._require_usable(outcome, texts)
        if len(texts) == 1:
            return [Embedding(None, outcome.failure)]
        half = len(texts) // 2
        return [*await self.embed(texts[:half]), *await self.embed(texts[half:])]

    async def _require_usable(self, trouble: Trouble, texts: Sequence[str]) -> None:
        """Raise a refusal that even a plain text meets: it is not about the texts."""
        is_settled = trouble.action == "stop" and not trouble.is_doubtful
        if is_settled or isinstance(await self._send(_PLAIN), Trouble):
            raise EndpointError(self._explained(trouble, texts))

    async def _send(self, texts: Sequence[str]) -> list[Vector] | Trouble:
        """Return the vectors of the texts, or why they are refused; retries what may pass."""
        for attempt in range(self._policy.attempts):
            outcome = await self._attempt(texts)
            if not isinstance(outcome, Trouble) or outcome.action != "retry":
                return outcome
            if attempt + 1 < self._policy.attempts:
                self._counts["retries"] += 1
                await self._back_off(attempt, outcome.retry_after_s)
        raise EndpointError(self._explained(outcome, texts))

    async def _attempt(self, texts: Sequence[str]) -> list[Vector] | Trouble:
        while (wait := self._closed_until - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        self._counts["requests"] += 1
        body = {"input": list(texts), "encoding_format": "base64", **self._request}
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._client.post(
                    "/embeddings", cast_to=CreateEmbeddingResponse, body=body
                )
            vectors = read_vectors(reply, len(texts))
        except TROUBLES as error:
            trouble = diagnose(error, self._policy, "\n".join(texts))
            return trouble._replace(message=fit(trouble.message, self._endpoint))
        self._counts["tokens"] += tokens_of(reply)
        return vectors

    async def _back_off(self, attempt: int, retry_after_s: float | None) -> None:
        """Wait before the next attempt; everybody waits where the server asked for it."""
        if retry_after_s is not None:
            self._closed_until = max(self._closed_until, time.monotonic() + retry_after_s)
        await asyncio.sleep((retry_after_s or 0.0) + self._policy.delay(attempt, self._rng))

    def _explained(self, trouble: Trouble, texts: Sequence[str]) -> str:
        n_attempts = f"{self._policy.attempts} times " if trouble.action == "retry" else ""
        return (
            f"{self._endpoint.url}/embeddings failed {n_attempts}on {len(texts)} texts, the "
            f"longest of {max(map(len, texts)):,} characters: {trouble.message}. See whether the "
            "server is up, and check 'model', 'base_url', 'api_key_env' and 'dimensions' in "
            "config/embeddings.yaml, then run again: vectors that came are kept"
        )

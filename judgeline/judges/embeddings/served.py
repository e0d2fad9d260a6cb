"""Vectors from an endpoint of the OpenAI protocol: hosted, or a server of one's own."""

import asyncio
import base64
import binascii
import contextlib
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from judgeline.judges.embeddings.definition import EmbedderDefinition
from judgeline.judges.embeddings.vector import Embedding, Vector
from judgeline.judges.live.bridge import as_completed
from judgeline.judges.live.connection import Connection
from judgeline.judges.live.endpoint import Endpoint, EndpointError
from judgeline.judges.live.errors import MalformedReplyError
from judgeline.judges.live.replies import member, tokens_of
from judgeline.judges.live.troubles import Retries, RetryPolicy, Trouble

_PLAIN = ("text",)


class ServedEmbedder:
    """An embedder of kind ``openai``."""

    is_bought = True

    def __init__(
        self, definition: EmbedderDefinition, endpoint: Endpoint, policy: RetryPolicy | None = None
    ) -> None:
        self._definition, self._endpoint = definition, endpoint
        self._retries = Retries(endpoint, policy or RetryPolicy())
        self.counts: Counter[str] = Counter()

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """Everything but the text that shapes a vector."""
        return {
            "kind": "openai",
            "endpoint": self._definition.endpoint_name or self._endpoint.url,
            "model": str(self._definition.model),
            "revision": self._definition.revision or "",
            "dimensions": str(self._definition.dimensions or ""),
        }

    def refusal(self, text: str) -> str:
        """Return why a text is not sent: endpoints refuse empty ones, and some cut long ones."""
        most = self._definition.max_characters
        if not text.strip():
            return "empty"
        return "context_overflow" if most is not None and len(text) > most else ""

    def embed(self, texts: Sequence[str]) -> Generator[tuple[int, Embedding]]:
        """Yield the position and embedding of each text as replies arrive; none may be refused.

        Closing the iterator, or an interrupt, cancels the requests in flight.
        """
        size = self._definition.batch_size
        batches = [texts[first : first + size] for first in range(0, len(texts), size)]
        connection = Connection(self._endpoint, self._definition.timeout_s)
        given = as_completed(
            batches,
            partial(self._embedded, connection),
            n_workers=self._definition.concurrency,
            closing=connection.close,
        )
        try:
            with contextlib.closing(given):
                for number, embeddings in given:
                    yield from enumerate(embeddings, start=number * size)
            return
        except EndpointError as error:
            problem = f"embedding {self._definition.slug!r}: {error}"
        raise EndpointError(problem)  # not from the error, which may show a key

    async def _embedded(self, connection: Connection, texts: Sequence[str]) -> list[Embedding]:
        """Return the embedding or failure of each text; a refused request is sent in halves."""
        outcome = await self._send(connection, texts)
        if not isinstance(outcome, Trouble):
            return [Embedding(vector) for vector in outcome]
        is_packed = outcome.failure == "unreadable_reply"
        if is_packed or outcome.failure in ("transport", "rejected"):  # the texts, or everything
            is_settled = is_packed or (outcome.action == "stop" and not outcome.is_doubtful)
            if is_settled or isinstance(await self._send(connection, _PLAIN), Trouble):
                raise EndpointError(self._failed_message(outcome, texts))
        if len(texts) == 1:
            return [Embedding(None, outcome.failure)]
        half = len(texts) // 2
        first, second = texts[:half], texts[half:]
        return [*await self._embedded(connection, first), *await self._embedded(connection, second)]

    async def _send(self, connection: Connection, texts: Sequence[str]) -> list[Vector] | Trouble:
        """Return the vectors of one request's texts, or the trouble with them."""
        ask = partial(self._attempt, connection, texts)
        attempt = partial(self._retries.tried, ask, "\n".join(texts))
        outcome = await self._retries.insist(attempt, self.counts)
        if isinstance(outcome, Trouble) and outcome.action == "retry":
            raise EndpointError(self._failed_message(outcome, texts))
        return outcome

    async def _attempt(self, connection: Connection, texts: Sequence[str]) -> list[Vector]:
        await self._retries.until_open()
        self.counts["requests"] += 1
        asked: dict[str, Any] = {"input": list(texts), "model": self._definition.model}
        if self._definition.dimensions is not None:
            asked["dimensions"] = self._definition.dimensions
        async with asyncio.timeout(self._definition.timeout_s):
            reply = await connection.ask(
                lambda client: client.embeddings.with_raw_response.create(
                    **asked, encoding_format="base64"
                )
            )
        vectors = read_vectors(reply, len(texts))
        self.counts["tokens"] += tokens_of(reply)[0]
        return vectors

    def _failed_message(self, trouble: Trouble, texts: Sequence[str]) -> str:
        attempts = self._retries.policy.attempts
        n_times = (
            f"{attempts} times " if trouble.action == "retry" and not trouble.may_be_paid else ""
        )
        return (
            f"{self._endpoint.url}/embeddings failed {n_times}on {len(texts)} texts, the "
            f"longest of {max(map(len, texts)):,} characters: {trouble.message}. See whether the "
            "server is up, and check 'model', 'base_url', 'api_key_env' and 'dimensions' in "
            "config/embeddings.yaml, then run again: vectors that came are kept"
        )


def read_vectors(reply: Any, n_texts: int) -> list[Vector]:
    """Return the vectors of a reply, in the order of the texts that were sent."""
    data = member(reply, "data")
    if not isinstance(data, list) or len(data) != n_texts:
        found = len(data) if isinstance(data, list) else "no list of"
        raise MalformedReplyError(f"the reply holds {found} vectors for {n_texts} texts")
    by_place = {}
    for item in data:
        place = member(item, "index")
        if type(place) is not int or not 0 <= place < n_texts:
            raise MalformedReplyError(
                f"a vector is for text {str(place)[:20]!r}, expected 0 to {n_texts - 1}"
            )
        by_place[place] = item
    if len(by_place) != n_texts:
        raise MalformedReplyError("the reply holds two vectors for one text, and none for another")
    vectors = [_vector(by_place[place], place) for place in range(n_texts)]
    lengths = sorted({vector.size for vector in vectors})
    if len(lengths) > 1:
        raise MalformedReplyError(f"vectors of different lengths in one reply: {lengths}")
    return vectors


def _vector(item: Any, place: int) -> Vector:
    """Return a vector: a list of numbers, or 32-bit floats in base64."""
    problem, numbers = "", member(item, "embedding")
    try:
        if isinstance(numbers, str):
            numbers = np.frombuffer(base64.b64decode(numbers, validate=True), "<f4")
        with np.errstate(over="ignore"):  # what is too large for 32 bits is told below
            vector = np.asarray(numbers, dtype=np.float32)
    except (TypeError, ValueError, OverflowError, binascii.Error):
        problem = "it holds something that is no number"
    else:
        if vector.ndim != 1 or vector.size == 0:
            problem = f"its shape is {vector.shape}, expected one number after another"
        elif not np.isfinite(vector).all():
            problem = f"{int((~np.isfinite(vector)).sum())} of its numbers are not finite"
    if problem:
        raise MalformedReplyError(f"the vector of text {place} is unusable: {problem}")
    return vector

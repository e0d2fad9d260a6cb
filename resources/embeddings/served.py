"""Vectors from an endpoint of the OpenAI protocol: hosted, or a server of one's own."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from resources.config.embeddings import EmbedderDefinition
from resources.embeddings.asking import EmbeddingsAsker
from resources.embeddings.embedder import Embedding
from resources.judges.live.bridge import as_completed
from resources.judges.live.endpoint import Endpoint, EndpointError
from resources.judges.live.troubles import RetryPolicy


class ServedEmbedder:
    """An embedder of kind ``openai``."""

    is_bought = True

    def __init__(
        self, definition: EmbedderDefinition, endpoint: Endpoint, policy: RetryPolicy | None = None
    ) -> None:
        self._definition, self._endpoint = definition, endpoint
        self._policy = policy or RetryPolicy()
        self.counts: Counter[str] = Counter()

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """Everything but the text that shapes a vector.

        Not in it, because they do not: batch size, concurrency, timeouts, the key, and the
        longest text that is sent (`refusal` says which stored vectors must not be used).
        """
        return {
            "kind": "openai",
            "endpoint": self._definition.endpoint_name or self._endpoint.url,
            "model": str(self._definition.model),
            "revision": self._definition.revision or "",
            "dimensions": str(self._definition.dimensions or ""),
        }

    def refusal(self, text: str) -> str:
        """Return why a text is not sent: endpoints refuse empty ones, and some cut long ones.

        A vector that such a text has in the store may be of the part before the cut.
        """
        most = self._definition.max_characters
        if not text.strip():
            return "empty"
        return "context_overflow" if most is not None and len(text) > most else ""

    def embed(self, texts: Sequence[str]) -> Iterator[tuple[int, Embedding]]:
        """Yield what becomes of each text as it comes, with its position.

        Closing the iterator, or an interrupt, cancels the requests in flight.
        """
        sent = [position for position, text in enumerate(texts) if not self.refusal(text)]
        for position, text in enumerate(texts):
            if failure := self.refusal(text):
                yield position, Embedding(None, failure)
        size = self._definition.batch_size
        batches = [sent[first : first + size] for first in range(0, len(sent), size)]
        if not batches:
            return
        given = self._asked([[texts[n] for n in some] for some in batches])
        with contextlib.closing(given):
            for number, embeddings in given:
                yield from zip(batches[number], embeddings, strict=True)

    def _asked(self, batches: list[list[str]]) -> Iterator[tuple[int, list[Embedding]]]:
        client = self._endpoint.client(self._definition.timeout_s)
        asker = EmbeddingsAsker(
            client,
            self._endpoint,
            self._request(),
            self._policy,
            timeout_s=self._definition.timeout_s,
            counts=self.counts,
        )
        n_workers = self._definition.concurrency
        try:
            yield from as_completed(batches, asker.embed, n_workers=n_workers, closing=client.close)
        except EndpointError as error:
            problem = f"embedding {self._definition.slug!r}: {error}"
        else:
            return
        raise EndpointError(problem)

    def _request(self) -> dict[str, Any]:
        wanted = self._definition.dimensions
        return {
            "model": self._definition.model,
            **({} if wanted is None else {"dimensions": wanted}),
        }

"""Vectors from a vLLM server of our own, which is up while texts are embedded."""

import contextlib
import json
from collections.abc import Generator, Mapping, Sequence
from functools import cached_property

from judgeline.judges.embeddings.definition import EmbedderDefinition
from judgeline.judges.embeddings.served import ServedEmbedder
from judgeline.judges.embeddings.vector import Embedding
from judgeline.judges.live.endpoint import EndpointError
from judgeline.judges.managed.judge import NOWHERE, running
from judgeline.judges.managed.options import Hosting


class ManagedEmbedder(ServedEmbedder):
    """An embedder of kind ``vllm``."""

    def __init__(self, definition: EmbedderDefinition, hosting: Hosting) -> None:
        super().__init__(definition, NOWHERE)
        self._hosting = hosting

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """Everything but the text that shapes a vector; what only makes a server fast does not."""
        shaping = self._definition.vllm.shaping()
        return {
            "kind": "vllm",
            "model": str(self._definition.model),
            "revision": self._definition.revision or "",
            "dimensions": str(self._definition.dimensions or ""),
            "dtype": shaping.dtype,
            "max_model_len": str(shaping.max_model_len or ""),
            "extra_args": json.dumps(shaping.extra_args),
        }

    def embed(self, texts: Sequence[str]) -> Generator[tuple[int, Embedding]]:
        """Yield the position and embedding of each text, from a server that ends with the last."""
        if not texts:
            return
        own, options = self._definition, self._definition.vllm
        with self._hosting.scope() as scope:
            scope.enter_context(self._hosting.claim(options.pool))
            hosted = running(own.slug, own, options, self._hosting, runner="pooling")
            server = scope.enter_context(hosted)
            served = ServedEmbedder(own, server.endpoint)
            served.counts = self.counts
            try:
                yield from scope.enter_context(contextlib.closing(served.embed(texts)))
            except EndpointError:
                if not server.has_ended():
                    raise
                raise server.failure(
                    f"embedding {own.slug!r}: vLLM stopped with exit code {server.exit_code} "
                    "while it embedded; vectors that came are kept"
                ) from None

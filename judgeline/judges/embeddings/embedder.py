"""Embedders: they turn texts into vectors, or return a failure class."""

import functools
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from judgeline.judges.embeddings.definition import HASHED_DIMENSIONS, EmbedderDefinition
from judgeline.judges.embeddings.vector import Embedding

if TYPE_CHECKING:
    from judgeline.judges.embeddings.served import ServedEmbedder
    from judgeline.judges.managed.options import Hosting

Embedder: TypeAlias = "HashedEmbedder | ServedEmbedder"
"""Has an `identity`: everything but the text that shapes a vector."""

_VERSION = "1"
_WORD = re.compile(r"\w+")
_KNOWN = 1 << 18  # features remembered: rationales repeat their words


class HashedEmbedder:
    """An embedder of kind ``hashed``: words and word pairs, made here, the same on any machine.

    Each adds 1 or -1 at one place of the vector, by a hash, so that the product of two vectors is
    on average that of the word counts (K. Weinberger et al. 2009, "Feature Hashing for Large Scale
    Multitask Learning", ICML, arXiv:0902.2206). It knows nothing of what words mean.
    """

    is_bought = False

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self.counts: Counter[str] = Counter()
        self.identity: Mapping[str, str] = {
            "kind": "hashed",
            "version": _VERSION,
            "dimensions": str(dimensions),
        }

    def refusal(self, text: str) -> str:
        """Return why a text has no vector: it has no words."""
        return "" if _WORD.search(text) else "empty"

    def embed(self, texts: Sequence[str]) -> Generator[tuple[int, Embedding]]:
        """Yield the unit vector of each text, in order; one without words has none."""
        for position, text in enumerate(texts):
            words = _WORD.findall(text.lower())
            pairs = (f"{first} {second}" for first, second in itertools.pairwise(words))
            hashes = np.array([_hash(feature) for feature in (*words, *pairs)], dtype=np.uint64)
            places = (hashes >> np.uint64(1)) % np.uint64(self._dimensions)
            signs = 1.0 - 2.0 * (hashes & np.uint64(1))
            sums = np.bincount(places.astype(np.int64), signs, self._dimensions)
            norm = float(np.sqrt(sums @ sums))
            if norm == 0:  # no words, or all of them cancel
                yield position, Embedding(None, "empty")
            else:
                yield position, Embedding((sums / norm).astype(np.float32))


@functools.lru_cache(maxsize=_KNOWN)
def _hash(feature: str) -> int:
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def open_embedder(definition: EmbedderDefinition, hosting: "Hosting | None" = None) -> Embedder:
    """Return an embedder; nothing is sent yet, and no server of kind ``vllm`` started."""
    if definition.kind == "hashed":
        return HashedEmbedder(definition.dimensions or HASHED_DIMENSIONS)
    # the client takes half a second to import, and hashed vectors do without it
    if definition.kind == "vllm":
        from judgeline.judges.embeddings.managed import ManagedEmbedder
        from judgeline.judges.managed.options import Hosting

        return ManagedEmbedder(definition, hosting or Hosting())
    from judgeline.judges.embeddings.served import ServedEmbedder
    from judgeline.judges.live.endpoint import find_endpoint

    return ServedEmbedder(definition, find_endpoint(definition.slug, definition, what="embedding"))

"""Vectors from words and word pairs, made here: no model, no network, the same on any machine.

Each word, and each two words in a row, adds 1 or -1 at one place of the vector. Place and sign
come from a hash, so that features that meet in one place cancel on average, and the product of
two vectors is, on average, that of the word counts (K. Weinberger et al. 2009, "Feature Hashing
for Large Scale Multitask Learning", ICML, arXiv:0902.2206). It knows nothing of what words mean.
"""

import functools
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from resources.embeddings.embedder import Embedding

_VERSION = "1"
_WORD = re.compile(r"\w+")
_KNOWN = 1 << 18  # features remembered: rationales repeat their words


class HashedEmbedder:
    """An embedder of kind ``hashed``."""

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

    def embed(self, texts: Sequence[str]) -> Iterator[tuple[int, Embedding]]:
        """Yield the unit vector of each text, in order; one without words has none."""
        for position, text in enumerate(texts):
            yield position, self._embedded(text)

    def _embedded(self, text: str) -> Embedding:
        words = _WORD.findall(text.lower())
        pairs = (f"{first} {second}" for first, second in itertools.pairwise(words))
        hashes = np.array([_hash(feature) for feature in (*words, *pairs)], dtype=np.uint64)
        places = (hashes >> np.uint64(1)) % np.uint64(self._dimensions)
        signs = 1.0 - 2.0 * (hashes & np.uint64(1))
        sums = np.bincount(places.astype(np.int64), signs, self._dimensions)
        norm = float(np.sqrt(sums @ sums))
        if norm == 0:  # no words, or all of them cancel
            return Embedding(None, "empty")
        return Embedding((sums / norm).astype(np.float32))


@functools.lru_cache(maxsize=_KNOWN)
def _hash(feature: str) -> int:
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")

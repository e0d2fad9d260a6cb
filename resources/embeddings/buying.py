"""The vectors of texts: from the store where it has them, else made now and kept."""

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from resources.embeddings.embedder import Embedder, Vector, embedder_key, vector_identity
from resources.embeddings.store import EmbeddingStore, stored_row
from resources.store.writing import VerdictWriter


@dataclass
class Account:
    """Counts of texts by the fate of their vectors: stored, bought, failed.

    Attributes
    ----------
    n_texts : int
        Different texts.
    n_stored : int
        Whose vectors were in the store.
    n_made : int
        Whose vectors were made now.
    failed : Counter
        Texts that have no vector, by the reason.
    damaged : tuple of str
        Files in the store that could not be read.
    """

    n_texts: int = 0
    n_stored: int = 0
    n_made: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    damaged: tuple[str, ...] = ()


@dataclass
class VectorBuyer:
    """Gets vectors from one embedder, through a store; `account` says what of the last texts.

    Attributes
    ----------
    embedder : Embedder
        Makes what the store does not have.
    store : EmbeddingStore
        Keeps vectors that are bought; those that are made here are not worth it.
    on_wait : callable or None
        Called when another process is buying from the same embedder and has to end first.
    """

    embedder: Embedder
    store: EmbeddingStore
    on_wait: Callable[[], None] | None = None
    account: Account = field(default_factory=Account)

    def vectors(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors by text, all of one length; texts that have none are not in it.

        Each text is bought at most once, and its vector stored within seconds. Of several
        processes on one machine only one at a time buys from an embedder.
        """
        distinct = list(dict.fromkeys(texts))
        self.account = Account(n_texts=len(distinct))
        wanted = self._accepted(distinct)
        if not self.embedder.is_bought:
            return self._made(wanted, {}, None)
        key = embedder_key(self.embedder)
        known = self._stored(key, wanted)
        if len(known) == len(wanted):  # a place that can only be read will do
            return known
        with self.store.exclusive(key, self.on_wait):
            known = self._stored(key, wanted)  # another process may have bought them
            with VerdictWriter(self.store, key) as writer:
                return self._made(wanted, known, writer)

    def _accepted(self, texts: Sequence[str]) -> list[str]:
        """Return the texts that may have a vector; of the others, not even a stored one counts."""
        refusals = [self.embedder.refusal(text) for text in texts]
        self.account.failed.update(refusal for refusal in refusals if refusal)
        return [text for text, refusal in zip(texts, refusals, strict=True) if not refusal]

    def _stored(self, key: str, texts: Sequence[str]) -> dict[str, Vector]:
        identities = {vector_identity(key, text): text for text in texts}
        found = self.store.find(key, identities)
        self.account.n_stored, self.account.damaged = len(found.vectors), found.damaged
        return {identities[identity]: vector for identity, vector in found.vectors.items()}

    def _made(
        self, texts: Sequence[str], known: dict[str, Vector], writer: VerdictWriter | None
    ) -> dict[str, Vector]:
        missing = [text for text in texts if text not in known]
        vectors, key = dict(known), embedder_key(self.embedder)
        maker, account = json.dumps(dict(self.embedder.identity), sort_keys=True), self.account
        given, n_refused = self.embedder.embed(missing), account.failed.total()
        with contextlib.closing(given):
            for position, (vector, failure) in given:
                text = missing[position]
                if vector is None:
                    account.failed[failure] += 1
                    continue
                _require_length(vector, vectors)
                vectors[text] = vector
                account.n_made += 1
                if writer:
                    identity = vector_identity(key, text)
                    writer.add(stored_row(identity, vector, datetime.now(UTC), maker))
        n_lost = len(texts) - len(vectors) - (account.failed.total() - n_refused)
        if n_lost:
            raise RuntimeError(f"the embedder left out {n_lost} of {len(missing)} texts; run again")
        return vectors


def _require_length(vector: Vector, others: dict[str, Vector]) -> None:
    """Refuse a vector that is longer or shorter than those before it."""
    first = next(iter(others.values()), vector)
    if vector.size != first.size:
        raise RuntimeError(
            f"a vector of {vector.size} numbers came after vectors of {first.size}: the endpoint "
            "changed its model under one name. Set 'revision' in config/embeddings.yaml, so that "
            "all vectors are made anew"
        )

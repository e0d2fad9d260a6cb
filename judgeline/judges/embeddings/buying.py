"""The vectors of texts: from the store where it has them, else made now and kept."""

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgeline.judges.embeddings.embedder import Embedder
from judgeline.judges.embeddings.vector import Vector
from judgeline.judges.store.keyed import KeyedStore, Scan
from judgeline.judges.store.writing import VerdictWriter
from judgeline.verdict import identity_hash, text_hash

SCHEMA = pa.schema(
    [
        ("identity", pa.string()),
        ("embedded_at", pa.timestamp("us", tz="UTC")),
        ("embedding", pa.list_(pa.float32())),
        ("embedder", pa.string()),
    ]
)
"""A row is one vector. `embedder` is a JSON object of what identifies its maker."""


class EmbeddingStore(KeyedStore):
    """The vectors under one folder or URI; the key is that of the embedder."""

    schema, row = SCHEMA, ("identity", "embedded_at")
    what, variable = "embeddings", "JUDGELINE_EMBEDDINGS"

    def find(self, key: str, identities: Collection[str]) -> tuple[dict[str, Vector], Scan]:
        """Return the stored vectors by identity, the earliest of several, and their scan."""
        wanted = pa.array(list(identities), pa.string())
        scan = self.scan(key, ("identity", "embedded_at", "embedding"), among=wanted)
        latest_first = scan.table.sort_by([("embedded_at", "descending")])
        lengths = pc.unique(pc.list_value_length(latest_first["embedding"])).to_pylist()
        if len(lengths) > 1:
            raise RuntimeError(
                f"vectors in {self.base / key} have different lengths ({sorted(lengths)}): the "
                "endpoint changed its model under one name. Set 'revision' in "
                "config/embeddings.yaml, so that what comes from now on goes elsewhere"
            )
        flat = pc.list_flatten(latest_first["embedding"]).to_numpy().astype(np.float32)
        vectors = flat.reshape(len(latest_first), -1 if lengths else 0)
        return dict(zip(latest_first["identity"].to_pylist(), vectors, strict=True)), scan


def _identity(key: str, text: str) -> str:
    return identity_hash({"embedder": key, "text": text_hash(text)})


@dataclass
class Account:
    """Counts of different texts: whose vectors were stored, or made now, or failed and why."""

    n_texts: int = 0
    n_stored: int = 0
    n_made: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    damaged: tuple[str, ...] = ()


@dataclass
class VectorBuyer:
    """Returns stored vectors and buys the missing ones; `account` counts the last call."""

    embedder: Embedder
    store: EmbeddingStore
    on_wait: Callable[[], None] | None = None
    account: Account = field(default_factory=Account)

    def vectors(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors by text, all of one length; texts that have none are not in it.

        Each text is bought at most once, and its vector stored within seconds.
        """
        refusals = {text: self.embedder.refusal(text) for text in texts}
        self.account = Account(n_texts=len(refusals))
        self.account.failed.update(refusal for refusal in refusals.values() if refusal)
        wanted = [text for text, refusal in refusals.items() if not refusal]
        if not self.embedder.is_bought:
            return self._made(wanted, {}, None)
        key, known = identity_hash(self.embedder.identity), dict[str, Vector]()
        identities = {_identity(key, text): text for text in wanted}

        def is_lacking() -> bool:
            found, scan = self.store.find(key, identities)
            self.account.n_stored, self.account.damaged = len(found), scan.damaged
            known.update((identities[identity], vector) for identity, vector in found.items())
            return len(known) < len(wanted)

        with self.store.buying(key, is_lacking, self.on_wait) as lacking:
            if not lacking:
                return known
            with VerdictWriter(self.store, key) as writer:
                return self._made(wanted, known, writer)

    def _made(
        self, texts: Sequence[str], known: dict[str, Vector], writer: VerdictWriter | None
    ) -> dict[str, Vector]:
        missing = [text for text in texts if text not in known]
        vectors, key = dict(known), identity_hash(self.embedder.identity)
        maker, account = json.dumps(dict(self.embedder.identity), sort_keys=True), self.account
        given, n_refused = self.embedder.embed(missing), account.failed.total()
        with contextlib.closing(given):
            for position, (vector, failure) in given:
                text = missing[position]
                if vector is None:
                    account.failed[failure] += 1
                    continue
                if vector.size != (size := next(iter(vectors.values()), vector).size):
                    raise RuntimeError(
                        f"a vector of {vector.size} numbers came after vectors of {size}: the "
                        "endpoint changed its model under one name. Set 'revision' in "
                        "config/embeddings.yaml, so that all vectors are made anew"
                    )
                vectors[text] = vector
                account.n_made += 1
                if writer:
                    row = {"identity": _identity(key, text), "embedding": vector}
                    writer.add({**row, "embedder": maker, "embedded_at": datetime.now(UTC)})
        n_lost = len(texts) - len(vectors) - (account.failed.total() - n_refused)
        if n_lost:
            raise RuntimeError(f"the embedder left out {n_lost} of {len(missing)} texts; run again")
        return vectors

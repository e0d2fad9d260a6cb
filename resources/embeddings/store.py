"""Vectors that were bought, by the hash of their text and of what made them.

The vectors of one embedder lie in a folder of their own, beside no other's.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from resources.embeddings.embedder import Vector
from resources.store.keyed import KeyedStore

SCHEMA = pa.schema(
    [
        ("identity", pa.string()),
        ("embedded_at", pa.timestamp("us", tz="UTC")),
        ("embedding", pa.list_(pa.float32())),
        ("embedder", pa.string()),
    ]
)
"""A row is one vector. `embedder` is a JSON object of what identifies its maker."""


class Found(NamedTuple):
    """Vectors by identity, and the files that hold none because they are damaged."""

    vectors: dict[str, Vector]
    damaged: tuple[str, ...]


class EmbeddingStore(KeyedStore):
    """The vectors under one folder or URI; the key is that of the embedder."""

    schema, row = SCHEMA, ("identity", "embedded_at")
    what, variable = "embeddings", "JUDGELINE_EMBEDDINGS"

    def find(self, key: str, identities: Collection[str]) -> Found:
        """Return the vectors of some texts; of several of one text the one that came first."""
        wanted = pa.array(list(identities), pa.string())
        scan = self.scan(key, ("identity", "embedded_at", "embedding"), among=wanted)
        latest_first = scan.table.sort_by([("embedded_at", "descending")])
        vectors = _as_array(latest_first["embedding"], f"{self.base / key}")
        names = latest_first["identity"].to_pylist()
        return Found(dict(zip(names, vectors, strict=True)), scan.damaged)


def _as_array(embeddings: pa.ChunkedArray, place: str) -> Vector:
    lengths = pc.unique(pc.list_value_length(embeddings)).to_pylist()
    if len(lengths) > 1:
        raise RuntimeError(
            f"vectors in {place} have different lengths ({sorted(lengths)}): the endpoint changed "
            "its model under one name. Set 'revision' in config/embeddings.yaml, so that what "
            "comes from now on goes elsewhere"
        )
    flat = pc.list_flatten(embeddings).to_numpy()
    return np.asarray(flat, dtype=np.float32).reshape(len(embeddings), -1 if lengths else 0)

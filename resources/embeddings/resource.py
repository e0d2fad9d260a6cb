"""Store of bought vectors, as a Dagster resource."""

from typing import Any

import dagster as dg
from pydantic import Field
from upath import UPath

from resources.config.paths import embeddings_uri
from resources.embeddings.store import EmbeddingStore


class StoredEmbeddings(dg.ConfigurableResource):
    """The vectors: the local folder, or a URI such as ``s3://bucket/embeddings``."""

    uri: str = ""
    storage_options: dict[str, Any] = Field(default={})

    def open(self) -> EmbeddingStore:
        """Return the store; nothing is made before the first vector comes."""
        return EmbeddingStore(UPath(self.uri or embeddings_uri(), **self.storage_options))

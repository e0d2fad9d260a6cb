"""The verdict store and the vector store, as Dagster resources."""

from typing import Any

import dagster as dg
from pydantic import Field, PrivateAttr, field_validator
from upath import UPath

from judgeline.judges.buying import retried_with
from judgeline.judges.embeddings.buying import EmbeddingStore
from judgeline.judges.managed.options import Lease
from judgeline.judges.store.verdicts import VerdictStore
from judgeline.paths import embeddings_uri, verdicts_uri


class StoredVerdicts(dg.ConfigurableResource[Any]):
    """The verdict store by folder or URI; `retry_also` names failures to ask again.

    Steps of one run that buy from a managed server have it by one `lease`, which ends with the run.
    """

    uri: str = ""
    storage_options: dict[str, Any] = Field(default={})
    retry_also: list[str] = Field(default=[])
    _lease: Lease = PrivateAttr(default_factory=Lease)

    @property
    def lease(self) -> Lease:
        """The lease of a managed server."""
        return self._lease

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002
        """End the lease with the run."""
        self._lease.end()

    @field_validator("retry_also")
    @classmethod
    def _require_classes(cls, value: list[str]) -> list[str]:
        retried_with(value)
        return value

    @property
    def retried(self) -> frozenset[str]:
        """Return the failures that are asked again each time."""
        return retried_with(self.retry_also)

    def open(self) -> VerdictStore:
        """Return the store; nothing is made before the first answer comes."""
        return VerdictStore(UPath(self.uri or verdicts_uri(), **self.storage_options))


class StoredEmbeddings(dg.ConfigurableResource[Any]):
    """The vectors: the local folder, or a URI such as ``s3://bucket/embeddings``."""

    uri: str = ""
    storage_options: dict[str, Any] = Field(default={})

    def open(self) -> EmbeddingStore:
        """Return the store; nothing is made before the first vector comes."""
        return EmbeddingStore(UPath(self.uri or embeddings_uri(), **self.storage_options))

"""The verdict store, as a Dagster resource."""

from typing import Any

import dagster as dg
from pydantic import Field, field_validator
from upath import UPath

from resources.config.paths import verdicts_uri
from resources.judges.presentation import FAILURES
from resources.store.verdicts import VerdictStore


class StoredVerdicts(dg.ConfigurableResource[Any]):
    """The verdict store by folder or URI; `retry_also` names failures to ask again."""

    uri: str = ""
    storage_options: dict[str, Any] = Field(default={})
    retry_also: list[str] = Field(default=[])

    @field_validator("retry_also")
    @classmethod
    def _require_classes(cls, value: list[str]) -> list[str]:
        if unknown := sorted({*value} - set(FAILURES)):
            raise ValueError(f"unknown failure class {unknown[0]!r}; known: {', '.join(FAILURES)}")
        return value

    def open(self) -> VerdictStore:
        """Return the store; nothing is made before the first answer comes."""
        return VerdictStore(UPath(self.uri or verdicts_uri(), **self.storage_options))

"""An embedding model as it is declared."""

from typing import Literal

from pydantic import Field, model_validator

from judgeline.judges.live.fields import EndpointFields
from judgeline.judges.options import SLUG

HASHED_DIMENSIONS = 256
_MOST_DIMENSIONS = 65_536


class EmbedderDefinition(EndpointFields):
    """One way to turn texts into vectors; `EndpointFields` says where a served one is."""

    slug: str = Field(pattern=SLUG)
    kind: Literal["hashed", "openai"]
    dimensions: int | None = Field(default=None, ge=2, le=_MOST_DIMENSIONS, strict=True)
    batch_size: int = Field(default=64, ge=1, le=2048, strict=True)
    concurrency: int = Field(default=8, ge=1, le=1024, strict=True)
    timeout_s: float = Field(default=60.0, gt=0, strict=True)
    max_characters: int | None = Field(default=None, ge=1, strict=True)

    @model_validator(mode="after")
    def _require_what_the_kind_needs(self) -> "EmbedderDefinition":
        if self.kind == "openai":
            if self.model is None:
                raise ValueError("an embedding of kind 'openai' needs the name of its 'model'")
            return self
        if given := self.model_fields_set - {"slug", "kind", "dimensions"}:
            raise ValueError(
                f"an embedding of kind 'hashed' asks no endpoint: remove {sorted(given)}"
            )
        return self

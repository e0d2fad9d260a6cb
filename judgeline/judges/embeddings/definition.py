"""An embedding model as it is declared."""

from typing import Literal

from pydantic import Field, model_validator

from judgeline.judges.live.fields import EndpointFields
from judgeline.judges.managed.options import VllmOptions
from judgeline.judges.options import SLUG

HASHED_DIMENSIONS = 256
_MOST_DIMENSIONS = 65_536


class EmbedderDefinition(EndpointFields):
    """One way to turn texts into vectors; `EndpointFields` says where a served one is.

    One of kind ``vllm`` is a server of our own, which `vllm` starts; its model may be a judge's,
    whose vector of a text is then its final layer at the last token.
    """

    slug: str = Field(pattern=SLUG)
    kind: Literal["hashed", "openai", "vllm"]
    dimensions: int | None = Field(default=None, ge=2, le=_MOST_DIMENSIONS, strict=True)
    batch_size: int = Field(default=64, ge=1, le=2048, strict=True)
    concurrency: int = Field(default=8, ge=1, le=1024, strict=True)
    timeout_s: float = Field(default=60.0, gt=0, strict=True)
    max_characters: int | None = Field(default=None, ge=1, strict=True)
    vllm: VllmOptions = Field(default=VllmOptions(), exclude_if=lambda v: v == VllmOptions())

    @model_validator(mode="after")
    def _require_what_the_kind_needs(self) -> "EmbedderDefinition":
        if self.kind != "hashed" and self.model is None:
            raise ValueError(f"an embedding of kind {self.kind!r} needs the name of its 'model'")
        own = {"base_url", "endpoint_name", "api_key_env", "headers", "query"}
        foreign = {"openai": {"vllm"}, "vllm": own}.get(self.kind, set())
        if given := self.model_fields_set & foreign:
            raise ValueError(
                f"an embedding of kind {self.kind!r} has no {sorted(given)}; remove it"
            )
        if self.kind != "hashed":
            return self
        if given := self.model_fields_set - {"slug", "kind", "dimensions"}:
            raise ValueError(
                f"an embedding of kind 'hashed' asks no endpoint: remove {sorted(given)}"
            )
        return self

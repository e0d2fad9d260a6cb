"""How a judge draws its answers, and how long these may be."""

from typing import Any

from pydantic import Field

from judgeline.judges.options import Options


class Decoding(Options):
    """Decoding settings of a judge; null leaves a setting out of the request."""

    temperature: float | None = Field(default=0.0, ge=0, le=2, strict=True)
    top_p: float | None = Field(default=1.0, gt=0, le=1, strict=True)
    max_tokens: int = Field(default=4096, ge=16, le=10_000_000, strict=True)
    seed: int | None = Field(default=None, strict=True)

    def identity(self) -> dict[str, Any]:
        """Return the settings that shape answers; a later one than these where it is set alone."""
        first = ("temperature", "top_p", "max_tokens", "seed")
        given = self.model_dump().items()
        return {name: value for name, value in given if name in first or value is not None}

"""What makes embeddings, as a person has configured it in `config/embeddings.yaml`."""

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from resources.config.entries import EntryKind, read_entries
from resources.config.paths import config_dir
from resources.judges.live.fields import EndpointFields

SLUG = r"^[a-z0-9][a-z0-9._-]*$"
HASHED_DIMENSIONS = 256

_NEVER_SHOWN = {
    "api_key_env",
    "base_url",
    "headers",
    "query",
}  # somebody may have put the key itself there
_MOST_DIMENSIONS = 65_536


class EmbedderDefinition(EndpointFields):
    """One way to turn texts into vectors; `EndpointFields` says where a served one is.

    Attributes
    ----------
    slug : str
        The name in `config/corpora.yaml`.
    kind : str
        ``hashed`` is built in and asks nobody; ``openai`` is any endpoint of that protocol.
    dimensions : int or None
        Length of a vector. Hashed ones have 256 unless told otherwise, served ones as many as
        the model makes: not every model can be asked for fewer.
    batch_size : int
        Most texts in one request.
    concurrency : int
        Most requests in flight at a time.
    timeout_s : float
        Seconds until a silent request is given up and tried again.
    max_characters : int or None
        Longer texts are not sent, and have no vector. For servers that cut texts silently; the
        others refuse what is too long for them themselves.
    """

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


_KIND = EntryKind(
    "embedding", "kind, model and so on", EmbedderDefinition, never_shown=_NEVER_SHOWN
)


def load_embedders(path: Path | None = None) -> dict[str, EmbedderDefinition]:
    """Return the configured embeddings by slug, in the order of the file.

    Parameters
    ----------
    path : Path, optional
        An embeddings file; that of the configuration folder by default.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no mapping of slugs to embeddings, with file, line, key and what to do.
    """
    file = path or config_dir() / "embeddings.yaml"
    entries = read_entries(file, "embeddings")
    return {
        slug: _KIND.define(slug, given, file, entries) for slug, given in entries.values.items()
    }

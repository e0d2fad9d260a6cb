"""Embedding models, as configured in `config/embeddings.yaml`."""

from judgeline.judges.embeddings.definition import EmbedderDefinition
from resources.config.entries import EntryKind

# Somebody may have put the key itself there.
_NEVER_SHOWN = {"api_key_env", "base_url", "headers", "query"}

KIND = EntryKind(
    "embedding", "embeddings", "kind, model and so on", EmbedderDefinition, _NEVER_SHOWN
)

load_embedders = KIND.load

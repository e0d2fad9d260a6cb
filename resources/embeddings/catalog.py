"""From the definition of an embedding to something that turns texts into vectors."""

from resources.config.embeddings import HASHED_DIMENSIONS, EmbedderDefinition
from resources.embeddings.embedder import Embedder


def open_embedder(definition: EmbedderDefinition) -> Embedder:
    """Return an embedder; nothing is sent yet."""
    if definition.kind == "hashed":
        from resources.embeddings.hashed import HashedEmbedder

        return HashedEmbedder(definition.dimensions or HASHED_DIMENSIONS)
    # the client takes half a second to import, and hashed vectors do without it
    from resources.embeddings.served import ServedEmbedder
    from resources.judges.live.endpoint import find_endpoint

    endpoint = find_endpoint(definition.slug, definition, what="embedding")
    return ServedEmbedder(definition, endpoint)

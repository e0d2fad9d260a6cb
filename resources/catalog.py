"""The corpora, judges and embeddings that a person has configured, looked up by slug."""

from pathlib import Path

import dagster as dg

from resources.corpora.definitions import CorpusDefinition, load_corpora
from resources.embeddings.definitions import EmbedderDefinition, load_embedders
from resources.judges.definitions import JudgeDefinition, load_judges
from resources.suggest import unknown_name


class Catalog(dg.ConfigurableResource):
    """Reads the files on each use, so that an edit needs no restart.

    They are those of the configuration folder unless a path is given.
    """

    corpora_file: str | None = None
    judges_file: str | None = None
    embeddings_file: str | None = None

    def corpora(self) -> dict[str, CorpusDefinition]:
        """Return the configured corpora by slug."""
        return load_corpora(Path(self.corpora_file) if self.corpora_file else None)

    def judges(self) -> dict[str, JudgeDefinition]:
        """Return the configured judges by slug."""
        return load_judges(Path(self.judges_file) if self.judges_file else None)

    def corpus(self, slug: str) -> CorpusDefinition:
        """Return one corpus; ValueError with close matches if nothing is configured under it."""
        known = self.corpora()
        if slug not in known:
            where = self.corpora_file or "config/corpora.yaml"
            raise ValueError(unknown_name("corpus", slug, known, where))
        return known[slug]

    def judge(self, slug: str) -> JudgeDefinition:
        """Return one judge; ValueError with close matches if nothing is configured under it."""
        known = self.judges()
        if slug not in known:
            where = self.judges_file or "config/judges.yaml"
            raise ValueError(unknown_name("judge", slug, known, where))
        return known[slug]

    def embedder(self, slug: str) -> EmbedderDefinition:
        """Return one embedding; ValueError with close matches if nothing is configured so."""
        known = load_embedders(Path(self.embeddings_file) if self.embeddings_file else None)
        if slug not in known:
            where = self.embeddings_file or "config/embeddings.yaml"
            raise ValueError(unknown_name("embedding", slug, known, where))
        return known[slug]

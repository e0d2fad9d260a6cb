"""The corpora, judges and embeddings that a person has configured, looked up by slug."""

from contextlib import suppress
from pathlib import Path

import dagster as dg
from pydantic import PrivateAttr

from resources.config.corpora import CorpusDefinition, load_corpora
from resources.config.embeddings import EmbedderDefinition, load_embedders
from resources.config.judges import JudgeDefinition, load_judges
from resources.suggest import unknown_name


class Catalog(dg.ConfigurableResource):
    """Reads the files on each use, so that an edit needs no restart.

    They are those of the configuration folder unless a path is given. A run keeps to what they
    held when it began: an edit in the middle of it, or half of one, is for the next.
    """

    corpora_file: str | None = None
    judges_file: str | None = None
    embeddings_file: str | None = None

    _corpora: dict[str, CorpusDefinition] | None = PrivateAttr(default=None)
    _judges: dict[str, JudgeDefinition] | None = PrivateAttr(default=None)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Keep what the files hold now, for a run; what cannot be read is told by its first use."""
        if context.run is None:
            return
        with suppress(ValueError, OSError):
            self._corpora = self.corpora()
        with suppress(ValueError, OSError):
            self._judges = self.judges()

    def frozen(self) -> "Catalog":
        """Return a catalogue that keeps to what the files of corpora and judges hold now."""
        own = self.model_copy()
        own._corpora, own._judges = self.corpora(), self.judges()
        return own

    def corpora(self) -> dict[str, CorpusDefinition]:
        """Return the configured corpora by slug."""
        if self._corpora is not None:
            return self._corpora
        return load_corpora(Path(self.corpora_file) if self.corpora_file else None)

    def judges(self) -> dict[str, JudgeDefinition]:
        """Return the configured judges by slug."""
        if self._judges is not None:
            return self._judges
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

"""The corpora, judges and embeddings that a person has configured, looked up by slug."""

from contextlib import suppress
from pathlib import Path

import dagster as dg
from pydantic import PrivateAttr

from resources.config.corpora import KIND as CORPORA
from resources.config.corpora import CorpusDefinition
from resources.config.embeddings import KIND as EMBEDDERS
from resources.config.embeddings import EmbedderDefinition
from resources.config.entries import EntryKind, M
from resources.config.judges import KIND as JUDGES
from resources.config.judges import JudgeDefinition
from resources.suggest import unknown_name


class Catalog(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Reads the files on each use: an edit needs no restart; a run keeps to what they held."""

    corpora_file: str | None = None
    judges_file: str | None = None
    embeddings_file: str | None = None

    _corpora: dict[str, CorpusDefinition] | None = PrivateAttr(default=None)
    _judges: dict[str, JudgeDefinition] | None = PrivateAttr(default=None)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Read the files once, for a run; what cannot be read is told by its first use."""
        if context.run is None:
            return
        with suppress(ValueError, OSError):
            self._corpora = self.corpora()
        with suppress(ValueError, OSError):
            self._judges = self.judges()

    def frozen(self) -> "Catalog":
        """Return a catalogue of the present corpora and judges, without later edits."""
        copy = self.model_copy()
        copy._corpora, copy._judges = self.corpora(), self.judges()
        return copy

    def corpora(self) -> dict[str, CorpusDefinition]:
        """Return the configured corpora by slug."""
        return _load(CORPORA, self.corpora_file) if self._corpora is None else self._corpora

    def judges(self) -> dict[str, JudgeDefinition]:
        """Return the configured judges by slug."""
        return _load(JUDGES, self.judges_file) if self._judges is None else self._judges

    def corpus(self, slug: str) -> CorpusDefinition:
        """Return one corpus; ValueError with close matches if nothing is configured under it."""
        return _entry(CORPORA, slug, self.corpora(), self.corpora_file)

    def judge(self, slug: str) -> JudgeDefinition:
        """Return one judge, in the same way."""
        return _entry(JUDGES, slug, self.judges(), self.judges_file)

    def embedder(self, slug: str) -> EmbedderDefinition:
        """Return one embedding, in the same way."""
        known = _load(EMBEDDERS, self.embeddings_file)
        return _entry(EMBEDDERS, slug, known, self.embeddings_file)


def _load(kind: EntryKind[M], file: str | None) -> dict[str, M]:
    return kind.load(Path(file) if file else None)


def _entry(kind: EntryKind[M], slug: str, known: dict[str, M], file: str | None) -> M:
    if slug in known:
        return known[slug]
    if file is None and slug in kind.examples():
        raise ValueError(
            f"{kind.what} {slug!r} is not configured, and an example of it is ready: judgeline "
            f"{kind.plural} add {slug}"
        )
    where = file or f"config/local/{kind.plural}.yaml (judgeline {kind.plural} add)"
    raise ValueError(unknown_name(kind.what, slug, known, where))

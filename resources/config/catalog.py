"""The corpora, judges and embeddings that a person has configured, looked up by slug."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.embeddings.definition import EmbedderDefinition
from judgeline.judges.options import M
from judgeline.suggest import unknown_name
from resources.config.corpora import KIND as CORPORA
from resources.config.corpora import CorpusDefinition
from resources.config.embeddings import KIND as EMBEDDERS
from resources.config.entries import EntryKind
from resources.config.judges import KIND as JUDGES


class Catalog(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Reads the files on each use, so that edits need no restart; a run reads them once."""

    corpora_file: str | None = None
    judges_file: str | None = None
    embeddings_file: str | None = None

    _snapshot: dict[str, dict[str, Any]] = PrivateAttr(default_factory=dict)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Read the files once, for a run; the first use of an unreadable file raises."""
        for kind in (CORPORA, JUDGES) if context.run is not None else ():
            with suppress(ValueError, OSError):
                self._snapshot[kind.plural] = self._known(kind)

    def frozen(self) -> "Catalog":
        """Return a catalogue of the present corpora and judges, without later edits."""
        copy = self.model_copy()
        copy._snapshot = {kind.plural: self._known(kind) for kind in (CORPORA, JUDGES)}
        return copy

    def corpora(self) -> dict[str, CorpusDefinition]:
        """Return the configured corpora by slug."""
        return self._known(CORPORA)

    def judges(self) -> dict[str, JudgeDefinition]:
        """Return the configured judges by slug."""
        return self._known(JUDGES)

    def own_judges(self) -> Collection[str]:
        """Return the slugs of the judges that a person has added to `config/local`."""
        return () if self.judges_file else JUDGES.load(JUDGES.own_file)

    def corpus(self, slug: str) -> CorpusDefinition:
        """Return one corpus; ValueError with close matches if nothing is configured under it."""
        return self._entry(CORPORA, slug)

    def judge(self, slug: str) -> JudgeDefinition:
        """Return one judge, in the same way."""
        return self._entry(JUDGES, slug)

    def embedder(self, slug: str) -> EmbedderDefinition:
        """Return one embedding, in the same way."""
        return self._entry(EMBEDDERS, slug)

    def _known(self, kind: EntryKind[M]) -> dict[str, M]:
        if kind.plural in self._snapshot:
            return self._snapshot[kind.plural]
        file = getattr(self, f"{kind.plural}_file")
        return kind.load(Path(file) if file else None)

    def _entry(self, kind: EntryKind[M], slug: str) -> M:
        known, file = self._known(kind), getattr(self, f"{kind.plural}_file")
        if slug in known:
            return known[slug]
        if file is None and slug in kind.examples():
            command = f"judgeline {kind.plural} add {slug}"
            raise ValueError(f"{kind.what} {slug!r} is not configured; its example is: {command}")
        command = "" if kind is EMBEDDERS else f" (judgeline {kind.plural} add)"
        where = file or f"config/local/{kind.plural}.yaml{command}"
        raise ValueError(unknown_name(kind.what, slug, known, where))

"""Reads a configured corpus with the reader of its layout."""

from judgeline import io
from judgeline.io import CorpusRead, Stated, read_files
from judgeline.io.layouts.ratings import RATINGS
from resources.config.corpora import ArenaHardOptions, CorpusDefinition
from resources.corpora.locations import corpus_files

__all__ = ["CorpusRead", "read_corpus", "read_files", "stated_of"]


def read_corpus(definition: CorpusDefinition) -> CorpusRead:
    """Return a corpus: clean battles, quarantined rows, and the verdicts that came with it."""
    if definition.reader == "arena":
        from resources.arena.simulation import read_arena

        return read_arena(definition)
    if definition.reader == RATINGS.name:
        raise ValueError(
            f"corpus {definition.slug!r} holds people's ratings of single answers and no battles; "
            f"quantitative judges learn from them: judgeline run --corpus {definition.slug}"
        )
    stated = stated_of(definition.arena_hard)._replace(
        codes=io.parse_codes(definition.outcomes) if definition.outcomes else None,
        missing=io.parse_missing(definition.missing or None),
        columns=definition.columns,
    )
    read = read_files(definition.reader, corpus_files(definition), stated)
    if definition.reader == "battles" and not definition.allow_quarantine:
        io.require_few_lost(
            read.quarantine,
            len(read.battles) + len(read.quarantine),
            ["unknown-winner", "missing-model"],
            f"corpus {definition.slug!r}",
            "Correct the files, or write 'allow_quarantine: true' in corpora.yaml",
        )
    if definition.outcomes:
        place = f"human_outcome of corpus {definition.slug!r}"
        io.require_both_winners(read.battles["human_outcome"], place, definition.outcomes)
    return read


def stated_of(options: ArenaHardOptions | None) -> Stated:
    """Return what Arena-Hard options state of files."""
    return Stated(**options.model_dump()) if options else Stated()

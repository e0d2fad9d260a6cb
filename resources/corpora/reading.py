"""Reads a configured corpus with the reader of its layout."""

from collections.abc import Sequence
from pathlib import Path

from judgeline import io
from judgeline.io import (
    CorpusRead,
    Stated,
    parse_codes,
    parse_missing,
    require_both_winners,
    require_few_lost,
)
from resources.config.corpora import ArenaHardOptions, CorpusDefinition
from resources.corpora.locations import corpus_files

__all__ = ["CorpusRead", "read_corpus", "read_files"]


def read_corpus(definition: CorpusDefinition) -> CorpusRead:
    """Return a corpus: clean battles, quarantined rows, and the verdicts that came with it."""
    if definition.reader == "arena":
        from resources.arena.simulation import read_arena

        return read_arena(definition)
    options = (definition.arena_hard, definition.outcomes, definition.missing)
    read = read_files(definition.reader, corpus_files(definition), *options)
    if definition.reader == "battles" and not definition.allow_quarantine:
        require_few_lost(
            read.quarantine,
            len(read.battles) + len(read.quarantine),
            ["unknown-winner"],
            f"corpus {definition.slug!r}",
            "Correct the files, or write 'allow_quarantine: true' in corpora.yaml",
        )
    if definition.outcomes:
        place = f"human_outcome of corpus {definition.slug!r}"
        require_both_winners(read.battles["human_outcome"], place, definition.outcomes)
    return read


def read_files(
    reader: str,
    paths: Sequence[Path],
    arena_hard: ArenaHardOptions | None = None,
    outcomes: str | None = None,
    missing: Sequence[str | int | float] = (),
) -> CorpusRead:
    """Return the battles, quarantined rows and verdicts of files; errors as of `read_corpus`."""
    codes = parse_codes(outcomes) if outcomes else None
    baseline = arena_hard.model_dump() if arena_hard else {}
    stated = Stated(codes, parse_missing(missing or None), **baseline)
    return io.read_files(reader, paths, stated)

"""Reads a configured corpus with the reader of its layout."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from judgeline.io import (
    CorpusRead,
    parse_codes,
    parse_missing,
    read_softelo,
    require_both_winners,
    require_few_lost,
)
from resources.config.corpora import ArenaHardOptions, CorpusDefinition
from resources.corpora import judgments
from resources.corpora.assemble import assemble
from resources.corpora.battles import read_battles
from resources.corpora.locations import corpus_files
from resources.corpora.preferences import VOTES, read_comparia

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
    if reader == "battles":
        stated = parse_codes(outcomes) if outcomes else None
        return read_battles(paths, stated, parse_missing(missing or None))
    if reader == "arena-hard":
        if arena_hard is None:
            raise ValueError(
                "an Arena-Hard file does not name the model it compares with; name it: 'baseline' "
                "under 'arena_hard' in corpora.yaml, or --baseline"
            )
        convert = partial(judgments.arena_hard, options=arena_hard)
        return judgments.read_verdict_files(paths, reader, convert)
    if reader in VOTES:
        return assemble(paths, VOTES[reader])
    if reader in judgments.VERDICTS:
        return judgments.read_verdict_files(paths, reader, *judgments.VERDICTS[reader])
    return {"comparia": read_comparia, "softelo-annotations": read_softelo}[reader](paths)

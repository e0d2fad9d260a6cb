"""Reads a configured corpus with the reader of its layout."""

from collections.abc import Callable, Sequence
from pathlib import Path

from resources.corpora.battles import read_battles
from resources.corpora.comparia import read_comparia
from resources.corpora.definitions import CorpusDefinition
from resources.corpora.hub import corpus_files
from resources.corpora.lmarena import read_lmarena_55k, read_lmarena_100k, read_lmarena_140k
from resources.corpora.schema import CorpusRead
from resources.corpora.softelo import read_softelo

__all__ = ["CorpusRead", "read_corpus"]

_READERS: dict[str, Callable[[Sequence[Path]], CorpusRead]] = {
    "battles": read_battles,
    "comparia": read_comparia,
    "lmarena-100k": read_lmarena_100k,
    "lmarena-140k": read_lmarena_140k,
    "lmarena-55k": read_lmarena_55k,
    "softelo-annotations": read_softelo,
}


def read_corpus(definition: CorpusDefinition) -> CorpusRead:
    """Return the battles of a corpus, the rows that fit no rule, and verdicts that came with it.

    Battles are clean: ids are unique, and no model meets itself. Filters are not applied here.

    Raises
    ------
    ValueError
        If the location is not set, or a file is empty or has another layout.
    FileNotFoundError
        If there is no such file here, or in the hub's cache while offline.
    ConnectionError
        If the hub does not answer. Each says what to do.
    """
    if definition.reader == "arena":
        from resources.corpora.arena import read_arena

        return read_arena(definition)
    return _READERS[definition.reader](corpus_files(definition))

"""Papers behind the methods: their tables are made again beside the printed values."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from papers.tables import COLUMNS, Cell, Item, Made, Paper, make_tables

NAMES = ("soft-elo", "correct-reporting", "reference-anchored", "trustjudge", "quantitative")


def reproduce(
    name: str, data: Path | None = None, *, say: Callable[[str], None] = lambda _: None
) -> Iterator[Made]:
    """Yield the tables and figures of a paper, each as soon as it is made.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    data : Path, optional
        Folder with the paper's data; docs/papers.md names the files. Without it, what needs none
        is made.
    say : callable, optional
        Called with a line for each file that is read.

    Returns
    -------
    iterator of Made
        Item and cells, `COLUMNS`; an item that cannot be made has cells without a value.

    Raises
    ------
    ValueError
        If the name is unknown, the folder is missing or a file cannot be read.
    """
    if name not in NAMES:
        raise ValueError(f"no paper {name!r}; there are {', '.join(NAMES)}")
    paper: Paper = import_module(f"papers.{name.replace('-', '_')}").PAPER
    return make_tables(paper, data, say)


__all__ = ["COLUMNS", "NAMES", "Cell", "Item", "Made", "Paper", "reproduce"]

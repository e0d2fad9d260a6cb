"""From the name of a paper to its tables, made again."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from papers.tables import Made, Paper, make_tables

_MODULES: dict[str, Callable[[], Any]] = {
    "soft-elo": lambda: import_module("papers.soft_elo"),
    "correct-reporting": lambda: import_module("papers.correct_reporting"),
    "reference-anchored": lambda: import_module("papers.reference_anchored"),
    "trustjudge": lambda: import_module("papers.trustjudge"),
    "quantitative": lambda: import_module("papers.quantitative"),
}
NAMES = tuple(_MODULES)


def reproduce(
    name: str,
    data: Path | None = None,
    *,
    say: Callable[[str], None] = lambda _: None,
    stream: str = "own",
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
    stream : str
        Whose random draws: ``own``, or ``released``, those of the program that the authors of
        ``soft-elo`` released.

    Returns
    -------
    iterator of Made
        Item and cells, `COLUMNS`; an item that cannot be made has cells without a value.

    Raises
    ------
    ValueError
        If the name is unknown, the paper has no released draws, the folder is missing or a file
        cannot be read.
    """
    if name not in NAMES:
        raise ValueError(f"no paper {name!r}; there are {', '.join(NAMES)}")
    module = _MODULES[name]()
    papers: dict[str, Paper] = {"own": module.PAPER}
    if hasattr(module, "RELEASED"):
        papers["released"] = module.RELEASED
    if stream not in papers:
        raise ValueError(f"--stream is {stream!r}; of {name} there is {' or '.join(papers)}")
    paper = papers[stream]
    return make_tables(paper, data, say)

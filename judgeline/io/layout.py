"""Published layouts of files: how one is recognised, what a row is, and how it is read."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import filter as filter_names
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from judgeline.io.failures import NONE_MISSING, Missing
from judgeline.io.formats import (
    TEXTS,
    encoding_of,
    file_columns,
    kind_of,
    read_columns,
    with_paths,
)
from judgeline.io.outcome_codes import require_columns
from judgeline.io.schema import CorpusRead


class Stated(NamedTuple):
    """Stated options of files: codes of votes and of failures, and Arena-Hard's baseline.

    `columns` has a file's own names of our columns.
    The baseline is one model, or one by category; a game, 1 or 2, shows it first. Identities of
    published verdicts are needed where verdicts are stored, and by no rating.
    """

    codes: Mapping[str, float] | None = None
    missing: Missing = NONE_MISSING
    baseline: str | Mapping[str, str] | None = None
    baseline_first_in: int = 1
    needs_identities: bool = True
    columns: Mapping[str, str] = {}


NOTHING_STATED = Stated()


class Given(NamedTuple):
    """Files or a table whose layout is looked for: names of columns, and a reader of some.

    `read` takes names of columns, and which of them are texts.
    """

    path: Path
    files: Sequence[Path]
    columns: list[str]
    read: Callable[[list[str], list[str]], pd.DataFrame]


class LayoutAdvice(NamedTuple):
    """Words of `doctor` on verdicts or votes alone; ``{layout}`` is filled in."""

    holds: str
    gate: str = ""
    lacks: str = ""
    supports: tuple[str, ...] = ()


VOTES = LayoutAdvice(
    "votes of people without verdicts of a judge",
    "no judge to put on the human scale",
    "Verdicts of a judge on the same battles: score_difference, judge_score_a and judge_score_b, "
    "judge_winner or verdict. A checkout of judgeline asks a judge for them (docs/judges.md).",
    ("ratings by people's votes as they are (judgeline plain)",),
)
REFERENCE = LayoutAdvice(
    "verdicts of a judge on models beside a reference model ({layout})",
    supports=("reference-anchored ratings in the lineage (docs/reference-elo.md)",),
)
LABELS = LayoutAdvice(
    "a judge's verdicts beside gold labels ({layout}), which measure a judge and rate no models",
    "no models to rate: labels measure the judge",
    "Models, for ratings: model_a, model_b and a verdict.",
    ("agreement of the judge with the labels, kappa, position bias if both orders are there",),
)
RATED = LayoutAdvice(
    "people's ratings or rankings of single answers, beside a judge's scores",
    "such ratings teach quantitative judges, and rate no model",
    "Battles of models, which such files do not have.",
    ("quantitative judges LS and MN, or Plackett-Luce (docs/quantitative-judges.md)",),
)
VERDICTS = LayoutAdvice(
    "verdicts of another program ({layout})",
    supports=(
        "import into the lineage (judgeline verdicts import FILE --format {layout} --out DIR)",
    ),
)


_OTHER_NAMES = "; under 'columns' of this corpus in corpora.yaml say what the file calls them"


class OtherLayoutError(ValueError):
    """A file lacks columns of the layout that it is read as; `found` are those it has."""

    def __init__(self, message: str, found: Sequence[str]) -> None:
        super().__init__(message)
        self.found = found


@dataclass(frozen=True)
class Layout:
    """A published kind of file, by its name in messages and in ``corpora.yaml``.

    A file is of the layout if it has all `columns` (of JSON: keys) of one version, which stand in
    one text (``*`` is any part of a name), or by its `suffix`. `names` has its own names of our
    columns. `advice` is what `doctor` says of verdicts or votes alone. `corpus`
    reads files as battles, quarantined rows and verdicts; `rank` rates these if they hold votes too
    (`is_rated`). `battles` makes rows of judged battles, in our columns, which `rank` reads as it
    reads a user's: columns ``file`` and ``row`` say that they are rows of a file, and the column
    `voters` whether people or a judge decided. `score` is what its files call a score of one
    answer.
    """

    name: str
    columns: tuple[str, ...] = ()
    suffix: str = ""
    advice: LayoutAdvice | None = None
    corpus: Callable[["Layout", Sequence[Path], Stated], CorpusRead] | None = None
    is_rated: bool = False
    battles: Callable[[Given], pd.DataFrame] | None = None
    voters: str = ""
    score: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    def fits(self, columns: Collection[str], suffixes: Collection[str] = ()) -> bool:
        """Return whether columns of a file, or the suffixes of several, tell this layout."""
        is_named = bool(self.suffix) and self.suffix in suffixes
        return is_named or any(
            all(name in columns or filter_names(columns, name) for name in one.split())
            for one in self.columns
        )

    def read(self, paths: Sequence[Path], stated: Stated = NOTHING_STATED) -> CorpusRead:
        """Return files as a corpus; ValueError of a layout that `rank` alone reads."""
        if self.corpus is None:
            raise ValueError(f"{self.name} is read by judgeline rank, and no corpus is made of it")
        return self.corpus(self, paths, stated)

    def needed(self, path: Path, found: Sequence[str], remedy: str = "") -> list[str]:
        """Return the columns of the version that a file has; OtherLayoutError if it has none."""
        lacking = {one: [name for name in one.split() if name not in found] for one in self.columns}
        nearest = min(lacking, key=lambda one: len(lacking[one]))
        if lacking[nearest]:
            raise OtherLayoutError(
                f"{path} lacks {', '.join(lacking[nearest])} for reader {self.name!r}; it has "
                f"{', '.join(found[:40]) or 'no columns'}{remedy}",
                found,
            )
        return nearest.split()


def read_layout(
    path: Path, layout: Layout, optional: str = "", columns: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return the columns of a layout in a file, with the optional ones that it has.

    `columns` has the file's own names of some. CSV cells are text, null where empty; other
    formats keep their types. ValueError if the file is empty, cannot be read, or is of another
    layout.
    """
    found = file_columns(path)
    if kind_of(path) in TEXTS and not (encoding := encoding_of(path)).startswith("utf"):
        raise ValueError(f"{path} is not UTF-8, and looks like {encoding}; save it as UTF-8")
    own = dict(columns or {})
    known = " ".join((*layout.columns, optional)).split()
    require_columns(path, with_paths(found, own), own, known)
    found = [*own, *(name for name in found if name not in own)]
    needed = layout.needed(path, found, "" if columns is None else _OTHER_NAMES)
    wanted = [*needed, *(name for name in optional.split() if name in found)]
    named = {name: own.get(name, name) for name in wanted}
    read = read_columns(path, list(dict.fromkeys(named.values())), texts=[*named.values()])
    table = pd.DataFrame({name: read[column] for name, column in named.items()})
    if table.empty:
        raise ValueError(f"{path} holds a header and no rows; download or write it again")
    return table

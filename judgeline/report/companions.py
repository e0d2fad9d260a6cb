"""A part of the page of one form: a title, sentences, tables and figures, each if there are any."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from judgeline.report.figures import Illustration
from judgeline.report.grid import Grid

FOLDED_FROM = 15
"""Rows from which a table is folded away until a reader asks for it."""


@dataclass(frozen=True)
class Table:
    """A grid of a companion, under a key of its own on the page."""

    key: str
    grid: Grid
    is_central: bool = False

    @property
    def folded(self) -> bool:
        """Whether it opens on demand: a long one does, unless the section is about it."""
        return len(self.grid.rows) >= FOLDED_FROM and not self.is_central


@dataclass(frozen=True)
class Companion:
    """What the page says of one method beside calibrated Elo.

    Attributes
    ----------
    title : str
        Heading.
    sentences : sequence of str
        What the tables show, or why there are none.
    tables : sequence of Table
        In the order of reading.
    figures : sequence of Illustration
        Before the tables.
    """

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Illustration] = field(default_factory=tuple)

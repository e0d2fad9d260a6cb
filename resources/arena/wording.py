"""Texts of the built-in arena in each of its languages, from `wording.yaml`.

No prose sentence there holds a digit, a day of the week, a place or a record key: the checker
finds answers by those. Each family of contestants opens in its own words, which is how a judge
with a family bias knows its own.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

FAMILIES: tuple[str, ...] = ("aster", "birch", "cedar", "dahlia", "elder", "fern")
"""Families of simulated contestants; plants, not products."""

ORNAMENTS: str = "~*+=^"
"""Signs of the line that closes a completion; no checker takes them for part of an answer."""

RECORD_KEYS: tuple[str, ...] = ("product", "colour", "weight", "price", "stock")
"""Keys of the JSON record that a prompt may ask for, the same in every language."""


@dataclass(frozen=True)
class Wording:
    """One language: instructions with slots, nouns to fill them, and the contestants' prose."""

    calculate: str
    sort: str
    extract: str
    record: str
    notice: str
    order_lines: tuple[str, ...]
    cancelled_line: str
    days: tuple[str, ...]
    places: tuple[str, ...]
    events: tuple[str, ...]
    products: tuple[str, ...]
    colours: tuple[str, ...]
    openings: tuple[str, ...]
    paddings: tuple[str, ...]

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Every word a contestant of this language may write, in lower case."""
        nouns = (*self.days, *self.places, *self.events, *self.products, *self.colours)
        return frozenset(words(" ".join((*self.openings, *self.paddings, *nouns, *RECORD_KEYS))))

    @cached_property
    def style(self) -> dict[str, str]:
        """The family that opens with a sentence."""
        return dict(zip(self.openings, FAMILIES, strict=True))


_WORD = re.compile(r"[^\W\d_]+")


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without digits and punctuation."""
    return _WORD.findall(text.lower())


def _fixed(value: Any) -> Any:
    return value if isinstance(value, str) else tuple(value)


def _wordings() -> dict[str, Wording]:
    told: Any = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return {
        language: Wording(**{k: _fixed(v) for k, v in own.items()})
        for language, own in told.items()
    }


WORDINGS: dict[str, Wording] = _wordings()
"""Wording by ISO 639-1 code."""

LANGUAGES: tuple[str, ...] = tuple(WORDINGS)

"""Texts of the built-in arena in each of its languages, from `wording.yaml`.

No prose sentence there holds a digit, a day of the week, a place or a record key: the checker
finds answers by those. Each family of contestants opens in its own words, which is how a judge
with a family bias knows its own.
"""

import re
from functools import cached_property
from pathlib import Path

import yaml
from pydantic import BaseModel

FAMILIES: tuple[str, ...] = ("aster", "birch", "cedar", "dahlia", "elder", "fern")
"""Families of simulated contestants; plants, not products."""

ORNAMENTS: str = "~*+=^"
"""Signs of the line that closes a completion; no checker takes them for part of an answer."""

RECORD_KEYS: tuple[str, ...] = ("product", "colour", "weight", "price", "stock")
"""Keys of the JSON record that a prompt may ask for, the same in every language."""


class Language(BaseModel, frozen=True, extra="forbid"):
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
        """Family of contestants by its opening sentence."""
        return dict(zip(self.openings, FAMILIES, strict=True))


_WORD = re.compile(r"[^\W\d_]+")


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without digits and punctuation."""
    return _WORD.findall(text.lower())


WORDINGS: dict[str, Language] = {
    language: Language.model_validate(texts)
    for language, texts in yaml.safe_load(
        Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    ).items()
}
"""Wording by ISO 639-1 code."""

LANGUAGES: tuple[str, ...] = tuple(WORDINGS)

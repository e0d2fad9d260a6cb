"""Families of models: the makers, by how names begin."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from judgeline.io.spellings import folded_name

_LINES = Path(__file__).with_name("makers.txt").read_text(encoding="utf-8").splitlines()
MAKERS: dict[str, str] = {
    beginning: maker
    for maker, _, beginnings in (line.partition(" ") for line in _LINES)
    for beginning in (maker, *filter(None, beginnings.split(", ")))
}
"""Maker of models by the beginning of their names; a maker's own name is one."""

NONE: Mapping[str, str] = MappingProxyType({})
_NOT_LETTERS = re.compile(r"[\W\d_]")


def family_of(name: str, families: Mapping[str, str] = NONE) -> str:
    """Return the maker of a model, or else the letters that its name begins with.

    The longest known beginning counts that no letter follows, without case and provider's prefix:
    ``google`` of ``Gemma4-E4B``, ``openai`` of ``openai/o3-mini``, ``sim`` of ``sim-1``.
    `families` has further beginnings, which come first; their values are names of that kind.
    """
    text = folded_name(name)
    given = {folded_name(beginning): family for beginning, family in families.items()}
    if own := _longest(text, given):
        return _longest(own.lower(), MAKERS) or own.lower()
    return _longest(text, MAKERS) or _NOT_LETTERS.split(text)[0]


def _longest(name: str, known: Mapping[str, str]) -> str:
    """Return the value of the longest known beginning of a name; empty without one."""
    fitting = [key for key in known if name.startswith(key) and not name[len(key) :][:1].isalpha()]
    return known[max(fitting, key=len)] if fitting else ""

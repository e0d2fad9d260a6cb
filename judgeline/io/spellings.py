"""Spellings of a model's name that differ in case, blanks or characters hardly seen."""

import unicodedata
from collections.abc import Iterable, Mapping

_QUOTES = dict.fromkeys(
    map(ord, "'\"`\u00b4\u2018\u2019\u201a\u201c\u201d\u201e\u2032\u2033\u00ab\u00bb\u2039\u203a")
)
_MINUS = "\u2212"


def folded_name(name: str) -> str:
    """Return a name without case, blanks, quotes, invisible characters and provider's prefix.

    Characters are in their compatible form (NFKC), and all hyphens are one.
    """
    if name.isascii():
        text = name.translate(_QUOTES)
    else:
        marks = "".join("-" if _is_hyphen(one) else one for one in name)
        text = unicodedata.normalize("NFKC", marks).translate(_QUOTES)
        text = "".join("-" if _is_hyphen(one) else one for one in text if not _is_hidden(one))
    text = "".join(text.split()).casefold()
    return text.rstrip("/").rpartition("/")[2] or text


def _is_hyphen(one: str) -> bool:
    return one == _MINUS or unicodedata.category(one) == "Pd"


def _is_hidden(one: str) -> bool:
    return unicodedata.category(one) in ("Cf", "Cc") or "\ufe00" <= one <= "\ufe0f"


def spellings(names: Iterable[str]) -> list[list[str]]:
    """Return names that are one when folded, by that name."""
    by_name: dict[str, list[str]] = {}
    for name in sorted({*names}):
        by_name.setdefault(folded_name(name), []).append(name)
    return [alike for _, alike in sorted(by_name.items()) if len(alike) > 1]


def joined_names(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the most frequent spelling of each name that has several, the first by name of equals.

    `counts` says how often each is met.
    """
    return {
        name: max(alike, key=lambda one: counts[one])
        for alike in spellings(counts)
        for name in alike
    }


def visible(name: str) -> str:
    """Return a name in quotes, with the codes of characters that are not ASCII."""
    return ascii(name)

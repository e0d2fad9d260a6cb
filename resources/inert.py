"""Text from outside, made fit to be shown: it may neither command nor hide anything."""

import unicodedata

_HIDDEN = "\N{REPLACEMENT CHARACTER}"
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_TAGS = range(0xE0000, 0xE0080)  # letters that no reader sees and some models read
_LINES = {"\r\n": "\n", "\r": "\n", "\u2028": "\n", "\u2029": "\n"}


def inert(text: object) -> str:
    """Return text in which control characters, turns of direction and tags are visible marks.

    Lines and tabs stay; every kind of line end becomes a newline. Markup is text like any other
    here: who shows it has to escape it.
    """
    shown = str(text)
    for end, newline in _LINES.items():
        shown = shown.replace(end, newline)
    return "".join(_HIDDEN if _is_hidden(c) else c for c in shown)


def shortened(text: str, most: int) -> str:
    """Return at most `most` characters of a text, and how many were left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters)"


def _is_hidden(character: str) -> bool:
    if character in "\n\t":
        return False
    controls = unicodedata.category(character) in ("Cc", "Cs")
    return controls or character in _TURNING or ord(character) in _TAGS

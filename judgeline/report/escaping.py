"""Escaping of foreign text for each format: it may neither command nor hide anything.

One function for each place: `inert` for HTML (whose templates escape markup), `in_csv`,
`in_markdown` and `in_json`. `judgeline.terminal.plain` is that of a terminal.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

_MARK = "\N{REPLACEMENT CHARACTER}"
_LINE_END = re.compile("\r\n?|[\u2028\u2029]")
_HIDDEN = re.compile(  # controls, turns of direction, tags that no reader sees and models may read
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_MARKDOWN = re.compile(r"[^\w .,;\-+%=\u2026]|_")


def inert(text: object) -> str:
    """Return text in which control characters, turns of direction and tags are visible marks.

    Lines and tabs stay; every kind of line end becomes a newline. Markup is text like any other
    here: who shows it has to escape it.
    """
    return _HIDDEN.sub(_MARK, _LINE_END.sub("\n", str(text)))


def in_csv(table: "pd.DataFrame") -> str:
    """Return a table as CSV whose text cells are inert, of one line, and no formula.

    A text that a spreadsheet would compute (it begins with ``=``, ``+``, ``-`` or ``@``) gets an
    apostrophe before it. Floats have twelve significant digits.
    """
    cells = with_texts(table, _csv_cell)
    return str(cells.to_csv(index=False, float_format=twelve_digits))


def twelve_digits(number: float) -> str:
    """Return a number with twelve significant digits, the same on every processor."""
    return repr(float(f"{number:.12g}"))


def with_texts(table: "pd.DataFrame", shown: Callable[[str], str]) -> "pd.DataFrame":
    """Return a table with each text cell as it is to be shown, and all others as they are."""
    table = table.copy()
    for name in table.select_dtypes(exclude="number").columns:
        cells = [shown(cell) if isinstance(cell, str) else cell for cell in table[name]]
        table[name] = np.fromiter(cells, dtype=object, count=len(cells))
    return table


def _csv_cell(text: str) -> str:
    text = re.sub(r"[\n\t]", " ", inert(text))
    return f"'{text}" if _FORMULA.match(text) else text


def in_markdown(text: object) -> str:
    """Return text as inert Markdown of one line: it can neither format nor link nor fetch."""
    shown = " ".join(inert(text).split())
    shown = _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", shown)
    return re.sub(r"(?i)(?<=www)\.", "&#46;", shown)


def in_json(value: object) -> str:
    """Return a value as JSON, without a loss; what `inert` would replace is escaped."""
    text = json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False)
    return _HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def json_value(value: Any) -> Any:
    """Return plain data in JSON's types; an infinite number is the text ``"inf"`` or ``"-inf"``."""
    if isinstance(value, Mapping):
        return {str(name): json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def shortened(text: str, most: int) -> str:
    """Return at most `most` characters of a text, and how many were left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters)"

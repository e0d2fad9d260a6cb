"""How an answer is laid out, and how its items are found again in a text that kept to it or not.

`lay_out` writes the layout that an instruction asks for, `break_layout` a different one;
`find_items` reads items wherever they stand, `keeps_layout` asks for the layout itself.
"""

import json
import re
from functools import cache

from resources.arena.prompts import WORD_LIMIT
from resources.arena.wording import RECORD_KEYS, WORDINGS

_SUM = re.compile(r"\d+ [+×-] \d+ = \d+")
_NUMBER = re.compile(r"\d+")
_CODE = re.compile(r"[A-Z]{2}-\d{3}")
_PAIR = re.compile(rf'"?\b({"|".join(RECORD_KEYS)})"?: "?([^",\n}}]+)')
_NUMBERS_LINE = re.compile(r"\d+(, \d+)*")


def lay_out(kind: str, items: list[str]) -> str:
    """Return items laid out as an instruction of a kind asks for."""
    if kind == "calculate":
        return "\n".join(items)
    if kind == "sort":
        return ", ".join(items)
    if kind == "extract":
        return "\n".join(f"- {item}" for item in items)
    if kind == "record":
        return json.dumps(dict(map(_key_and_value, items)), ensure_ascii=False)
    return ", ".join(items) + "."


def break_layout(kind: str, items: list[str]) -> str:
    """Return items in a layout that the instruction did not ask for."""
    return "\n".join(items) if kind in ("sort", "record", "notice") else "; ".join(items) + "."


def find_items(kind: str, language: str, text: str) -> list[str]:
    """Return the items of a kind that a text holds, in order, whatever their layout."""
    if kind == "record":
        return [f"{key}: {value.strip()}" for key, value in _PAIR.findall(text)]
    return _pattern(kind, language).findall(text)


def keeps_layout(kind: str, language: str, paragraph: str) -> bool:
    """Tell whether a paragraph is laid out as an instruction of a kind asks for."""
    lines = paragraph.split("\n")
    if kind == "calculate":
        return all(map(_SUM.fullmatch, lines))
    if kind == "sort":
        return bool(_NUMBERS_LINE.fullmatch(paragraph))
    if kind == "extract":
        return all(line.startswith("- ") and _CODE.fullmatch(line[2:]) for line in lines)
    if kind == "record":
        return _is_object(paragraph)
    short = len(lines) == 1 and len(paragraph.split()) <= WORD_LIMIT
    return short and bool(_pattern(kind, language).search(paragraph))


def _key_and_value(item: str) -> tuple[str, str | int]:
    key, _, value = item.partition(": ")
    return key, int(value) if value.isdecimal() else value


def _is_object(paragraph: str) -> bool:
    if not paragraph.startswith("{"):
        return False
    try:
        return isinstance(json.loads(paragraph), dict)
    except json.JSONDecodeError:
        return False


@cache
def _pattern(kind: str, language: str) -> re.Pattern[str]:
    if kind != "notice":
        return {"calculate": _SUM, "sort": _NUMBER, "extract": _CODE}[kind]
    wording = WORDINGS[language]
    nouns = "|".join(map(re.escape, (*wording.days, *wording.places)))
    return re.compile(rf"\b(?:{nouns})\b|\d+:\d\d|\d+ €")

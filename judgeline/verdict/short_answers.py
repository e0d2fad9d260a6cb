"""Reads one-word answers of a judge: a number on a scale, or one letter of three.

The word stands first or last. First, it stands alone in the first line, and a reason follows: a
line that goes on after it may open a list or a heading ("1. Accuracy: good", "A: thorough"), so
that it counts only if a dash sets off the rest. Last, it stands where a pattern such as
``[RESULT] {value}`` was written last, outside thoughts and quotations. Or it is a member of a JSON
object. Every reader raises `RubricError`: ``refusal`` if the answer declines to judge, else
``parse_error``.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from judgeline.verdict.dictation import folded, scripts
from judgeline.verdict.message import (
    RubricError,
    after_fence,
    begin,
    decode,
    last_object,
    own_words,
    quoted,
    unparsed,
    unread,
    whole,
)

LETTERS: tuple[str, str, str] = ("A", "C", "B")
"""What a judge says for the completion shown first, a tie, and the one shown second."""

_DASH = r"\s+[-\u2013\u2014]\s"
_MARKS = r"[*_]{0,3}"  # of emphasis
_LABEL = rf"{_MARKS}(?i:answer){_MARKS}[ \t]*:{_MARKS}[ \t]*"
_NEAR = 40  # characters before a pattern that tell whether it begins a sentence
_LIST_MARK = re.compile(r"[ \t*_#>-]*\(?\w{1,2}\)")
_ABOUT = r"[\s*_`\"'()\[\]]{0,20}"  # marks about a value that a text states
_ORDER = re.compile(r"([AB])\s*(>{1,2}|<{1,2}|=)\s*([AB])")


class Kind(NamedTuple):
    """Values of a form: how one looks, what may stand behind it, and how it is read.

    `other` looks like a further value in the same line; `many` is what several are called.
    """

    looks: str
    ends: str
    other: str
    many: str
    wanted: str
    read: Callable[[object], Any]


class Found(NamedTuple):
    """A value of an answer, its place there, None if that is not known, and the reason beside."""

    value: Any
    place: int | None
    reason: str


class Pattern(NamedTuple):
    """The words around a value that comes last, or the key of a JSON object that holds it.

    `opens` finds the words before it, in any emphasis and letters of any size.
    """

    text: str
    opens: re.Pattern[str]
    closes: str
    key: str | None


_KEY = re.compile(r"\{?\s*\"(\w[\w -]*)\"\s*:\s*\"?\Z")


@lru_cache(maxsize=64)
def pattern_of(text: str) -> Pattern:
    """Return a pattern as written: words and marks with one ``{value}``, or ``"key": {value}``."""
    parts = _words_about(text)
    if len(parts) != 2 or not parts[0] or not _words_about(folded(text))[0]:
        raise ValueError(
            f"the pattern {text!r} needs '{{value}}' once, behind words or marks that set it off, "
            "such as '[RESULT] {value}', '[[{value}]]', 'Score: {value}' or '\"score\": {value}'"
        )
    if key := _KEY.search(text.split("{value}")[0]):
        opens = re.compile(rf'"{re.escape(key[1])}"\s*:\s*"?')
        return Pattern(text, opens, r'"?\s*(?=[,}\n]|\Z)', key[1])
    before, after = parts
    edge = r"(?<!\w)" if before[0][0].isalnum() else ""
    between = rf"[ \t]*+{_MARKS}[ \t]*"  # looking back would be quadratic
    opens = re.compile(
        edge + between.join(map(re.escape, before)) + rf"{_MARKS}[ \t]*\r?\n?[ \t]*",
        re.IGNORECASE,
    )
    closes = "".join(rf"{_MARKS}[ \t]*{re.escape(mark)}" for mark in after)
    return Pattern(text, opens, closes, None)


def _words_about(text: str) -> list[list[str]]:
    """Return the words and marks of a pattern before each value, and after the last."""
    return [re.findall(r"\w+|[^\w\s*]", part) for part in text.split("{value}")]


def scores_on(scale: tuple[int, int]) -> Kind:
    """Return the kind of whole numbers on a scale (lowest, highest)."""
    low, high = scale

    def read(value: object) -> int:
        number = whole(value)
        if number is None or not low <= number <= high:
            wanted = f"expected an integer from {low} to {high}"
            raise unparsed(f"the score is {quoted(value)}, {wanted}")
        return number

    wanted = f"a whole number from {low} to {high} alone"
    return Kind(r"\d+(?:\.0+)?", "[.)]?", r"\d", "numbers", wanted, read)


def _letter(value: object) -> str:
    if not isinstance(value, str) or value not in LETTERS:
        raise unparsed(f"the choice is {quoted(value)}, expected A, B or C")
    return value


def _letter_or_order(value: object) -> str:
    """Return the letter of a choice, which may be written as an order: A>B is A, and A=B is C."""
    order = _ORDER.fullmatch(value) if isinstance(value, str) else None
    if order is None or order[1] == order[3]:
        return _letter(value)
    return "C" if order[2] == "=" else order[1 if order[2][0] == ">" else 3]


_WANTED = "one of the letters A, B and C alone"
CHOICES = Kind("[ABC]", "[.):]?", r"\b[ABC]\b", "letters", _WANTED, _letter)
"""One of the letters."""

ORDERS = CHOICES._replace(
    looks=rf"(?:{_ORDER.pattern.replace('(', '(?:')}|[ABC])", read=_letter_or_order
)
"""One of the letters, or an order of the two responses."""


def first_value(text: str, kind: Kind) -> Found:
    """Return the value that an answer begins with.

    It stands alone in the first line, with a full stop or a bracket at most, or before a dash and
    words without another of its kind; it may be set off by emphasis, square brackets or the word
    "Answer:". A number has no sign, fraction or leading zeros. A line that opens a list, or is one
    of several that are set off with different values, gives none.
    """
    start = begin(text)
    first, *later = text[start:].splitlines()
    line = first.rstrip()
    match = _alone(kind).match(line)
    if match is None or not _is_closed(match):
        raise unread(line, kind.wanted)
    _require_one(line[match.end() :], line, kind)
    is_set_off = match.start("value") > 0
    if line != match["value"] and any(map(_rival(kind, match["value"], is_set_off).match, later)):
        raise unparsed(f"the first line opens a list: {quoted(line)}")
    value = kind.read(match["value"])
    reason = text[start + match.end() :].lstrip(" \t-\u2013\u2014").strip()
    return Found(value, start + match.start("value"), reason)


def _alone(kind: Kind) -> re.Pattern[str]:
    return re.compile(
        rf"(?:{_LABEL})?(?P<open>{_MARKS}\[{{0,2}})(?P<value>{kind.looks})"
        rf"(?P<close>\]{{0,2}}{_MARKS}){kind.ends}(?:$|(?={_DASH}))"
    )


def _is_closed(match: re.Match[str]) -> bool:
    """Whether each bracket and each mark of emphasis about a value has its counterpart."""
    marks = re.findall(r"[*_]+", match[0])
    is_even = len(marks) % 2 == 0 and marks == marks[::-1]
    return is_even and match["open"].count("[") == match["close"].count("]")


def _rival(kind: Kind, mark: str, is_set_off: bool) -> re.Pattern[str]:
    """Return what opens a later line of a list: the next mark, or another that is set off."""
    if is_set_off:
        return re.compile(
            rf"\s*(?:{_LABEL}|(?=[*_\[])){_MARKS}\[{{0,2}}(?!{re.escape(mark)}\b){kind.looks}(?!\w)"
        )
    number = whole(mark)
    following = chr(ord(mark[0]) + 1) if number is None else str(number + 1)
    return re.compile(rf"\s*{re.escape(following)}(?:[.):]|{_DASH})")


def _require_one(rest: str, line: str, kind: Kind) -> None:
    if re.search(kind.other, rest):
        raise unparsed(f"the line holds several {kind.many}: {quoted(line)}")


def last_value(text: str, kind: Kind, pattern: Pattern) -> Found:
    """Return the value where an answer says a pattern last, outside thoughts and quotations.

    Words of the pattern begin a line or a sentence, so that "Clarity score: 3" is no "Score: 3".
    The value may be set off by emphasis or square brackets, and ends the line unless the pattern
    closes it. What comes last has to be readable: no earlier value is taken instead, and none of
    several in one line.
    """
    if pattern.key is not None:
        return _last_member(text, kind, pattern.key)
    shown = own_words(text)
    opened = list(pattern.opens.finditer(shown))
    if not opened:
        raise unread(text[begin(text) :], f"reasons, and then {pattern.text!r}")
    start = shown.rfind("\n", 0, opened[-1].start()) + 1
    line = shown[start:].splitlines()[0]
    match = _value_at(shown, opened[-1].end(), kind, pattern)
    if match is None or not _begins(shown, opened[-1]):
        lack = "without a value" if match is None else "and does not begin a line or a sentence"
        raise unparsed(f"{pattern.text!r} comes last in {quoted(line.strip())}, {lack}")
    said = rf"(?>{pattern.opens.pattern}){_MARKS}\[{{0,2}}[ \t]*((?-i:{kind.looks}))"
    if len({*re.findall(said, line, re.IGNORECASE)}) > 1:
        raise unparsed(f"the line holds several {kind.many}: {quoted(line.strip())}")
    around = own_words(text, with_fences=True)
    parts = around[: opened[-1].start()].rstrip(" *_\n").lstrip(), around[match.end() :].strip()
    reason = "\n\n".join(filter(None, parts))
    return Found(kind.read(match["value"]), match.start("value"), reason)


def _begins(text: str, opened: re.Match[str]) -> bool:
    """Return whether the words of a pattern begin a line, a sentence or an item of a list."""
    near = text[max(0, opened.start() - _NEAR) : opened.start()]
    before = near.rpartition("\n")[2].rstrip(" \t*_#>-\"'([")
    is_word = opened[0][:1].isalnum()
    return not is_word or before[-1:] in ".!?:" or bool(_LIST_MARK.fullmatch(before))


def _value_at(text: str, place: int, kind: Kind, pattern: Pattern) -> re.Match[str] | None:
    """Return the value behind the words of a pattern, if it stands as it should."""
    tail = "" if pattern.closes else rf"\.?{_MARKS}[ \t]*(?:\r?$|(?={_DASH}))"
    match = re.compile(
        rf"{_MARKS}(?P<open>\[{{0,2}})[ \t]*(?P<value>{kind.looks})[ \t]*(?P<close>\]{{0,2}})"
        rf"{pattern.closes}{_MARKS}{tail}",
        re.MULTILINE,
    ).match(text, place)
    if match is None or len(match["open"]) != len(match["close"]):
        return None
    other = None if pattern.closes else re.compile(rf"[^\n]*?{kind.other}").match(text, match.end())
    return match if other is None else None


def _last_member(text: str, kind: Kind, key: str) -> Found:
    members, start, end = last_object(text, (key,), f"a JSON object with {key!r}")
    reason = members.get("reason")
    place = _place(text[start:end], key)
    found = None if place is None else start + place
    return Found(kind.read(members[key]), found, reason if isinstance(reason, str) else "")


def _place(written: str, key: str) -> int | None:
    """Return where the value of a key stands in an object; None if the key occurs twice."""
    found = list(re.finditer(rf'"{re.escape(key)}"\s*:\s*"?', written))
    return found[0].end() if len(found) == 1 else None  # inside a text its quotes differ


def member_value(text: str, kind: Kind, key: str) -> Found:
    """Return the value of an answer that is one JSON object of a value and a ``reason``."""
    opening = begin(text)
    start = after_fence(text, opening)
    if not text.startswith("{", start):
        raise unread(text[opening:].splitlines()[0].rstrip(), "a JSON object")
    members, end = decode(text, start)
    if text[end:].strip("\ufeff \t\r\n") != ("```" if start > opening else ""):
        raise unparsed(f"the object is followed by {quoted(text[end:].strip())}")
    if members.keys() != {key, "reason"}:
        raise unparsed(f"the answer has the keys {quoted([*members])}, expected {key} and reason")
    if not isinstance(members["reason"], str):
        raise unparsed(f"the reason is {quoted(members['reason'])}, not a text")
    place = _place(text[start:end], key)
    found = None if place is None else start + place
    return Found(kind.read(members[key]), found, members["reason"].strip())


def require_unstated(text: str, kind: Kind, pattern: Pattern) -> None:
    """Refuse, as an ``echo``, any value of an answer whose text under judgement states one itself.

    It may have been copied from there. Were only the same value refused, a text could choose the
    ones that remain: so the refusal does not depend on the value. A judge may copy a value without
    what stands around it: so any words before and behind it are passed over.
    """
    if _is_stated(text, kind.looks, pattern):
        said = f"a text that it judges says {pattern.text!r} with a value, which it may repeat"
        raise RubricError("echo", said)


@lru_cache(maxsize=256)
def _is_stated(text: str, looks: str, pattern: Pattern) -> bool:
    return any(map(_stated(looks, pattern).search, scripts(text)))


@lru_cache(maxsize=64)
def _stated(looks: str, pattern: Pattern) -> re.Pattern[str]:
    """Return what finds a value in a pattern, in the small letters of a text's readings."""
    small = pattern_of(folded(pattern.text))
    closes = "" if small.key else small.closes
    behind = _ABOUT + closes if closes else r"(?!\w)"
    return re.compile(rf"(?>{small.opens.pattern}){_ABOUT}(?:{looks}){behind}", re.IGNORECASE)


def reason_of_score(text: str, pattern: Pattern | None = None) -> str:
    """Return the reason of an answer that gives a score; empty if there is none.

    It follows the number, or stands in the JSON object beside it; where a pattern says where the
    number comes last, it is the words before and after that.
    """
    kind = scores_on((0, 10**9))
    if pattern is not None:
        return last_value(text, kind, pattern).reason
    if text.startswith("{", after_fence(text, begin(text))):
        return member_value(text, kind, "score").reason
    return first_value(text, kind).reason

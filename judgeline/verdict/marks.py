"""Marks in a judge's explanation, in any notation, that contradict the scores before them."""

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from judgeline.verdict.dictation import NUMBER_WORDS
from judgeline.verdict.outcomes import CRITERIA

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_SPACE = re.compile(r"(?<!\\)\\+[nrt]")  # looking back keeps a long run of backslashes linear
_ESCAPED = re.compile(r"(?<!\\)\\+u([0-9a-fA-F]{4})")
_TOKEN = re.compile(
    r"response[\s_-]{0,3}(?P<response>[12])(?![0-9])"
    rf"|(?<![a-z])(?P<criterion>{'|'.join(CRITERIA)})(?![a-z])"
    rf"|(?<![a-z0-9.])(?P<number>[0-9]{{1,9}}(?:\.[0-9]{{1,9}})?|(?:{'|'.join(NUMBER_WORDS)})(?![a-z]))"
)
_OPENS = re.compile(  # what makes a response's name a key or a heading
    r"[^a-z0-9]{0,40}?[:={\[]|[./][\"'`]{0,2}(?=[a-z])"
    rf"|(?:'s)?[ _-]{{1,3}}(?={'|'.join(CRITERIA)})"
)
_LINE_BEGINS = re.compile(r"(?:^|\n)[^a-z0-9\n]*$")
_LINE_ENDS = re.compile(r"[^a-z0-9\n]{0,9}(?:\n|$)")
_ASSIGNS = re.compile(r"[ \t\"'`*_\])}]{0,12}(?:[:=(|>\u2013\u2014-]{1,3}[\s\"'`*_(]{0,12})?")
_COUNTS = re.compile(r"\s+(?!response|points?|out|of\s+[0-9]|overall|and|on|for)[a-z]")
_ENDS = re.compile(  # what follows a mark; "2 errors", "4/5 points" and "100%" are none
    r"\s*/\s*10(?![0-9])|\s+out of (?:10|ten)\b"
    r"|[\"'`*_\])}]{0,6}\s*(?:$|\n|[,;|}\]]|\.(?:\s|$)(?!\s*[\"'`*_]*[a-z])|[)(]"
    r"|[-\u2013\u2014]{1,2}\s|(?:and|vs\.?|versus|for|overall|points?\s*[,.;\n])\b)"
)
_NUMBERS_A_LIST = re.compile(r"[.)]\s")
_LEAD = 12


class Mark(NamedTuple):
    """A number that stands after a criterion, or after a response where `criterion` is None.

    `response` is 0 or 1, of the last response named; `is_assigned` if nothing but punctuation
    stands between the number and its subject; `is_listed` if the response was named as the
    heading or key of the text after it, not in passing.
    """

    response: int | None
    criterion: str | None
    value: float
    is_assigned: bool
    is_listed: bool


def plain(text: str) -> str:
    """Return a text in small letters without its escapes, entities and invisible characters."""
    if "\\" in text:
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
        text = _SPACE.sub(" ", text).replace("\\", "")
    if "&" in text:
        text = html.unescape(html.unescape(text))
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).lower()
    return "".join(str(unicodedata.decimal(a)) if a.isdecimal() else a for a in text)


def marks(text: str) -> Iterator[Mark]:
    """Yield the marks in a text, in time proportional to its length."""
    text = plain(text)
    response, criterion = None, None
    is_listed, subject = False, None  # where that ends which a number would belong to
    for token in _TOKEN.finditer(text):
        if token["response"]:
            response, criterion, subject = int(token["response"]) - 1, None, token.end()
            is_listed = _is_heading(text, token)
        elif token["criterion"]:
            criterion = token["criterion"]
            subject = token.end()
        elif subject is not None:
            is_assigned = _is_assigned(text, subject, token, is_whole=criterion is None)
            number = token["number"]
            value = NUMBER_WORDS.index(number) + 1 if number in NUMBER_WORDS else float(number)
            yield Mark(response, criterion, value, is_assigned, is_listed)
            criterion = subject = None


def _is_heading(text: str, token: re.Match[str]) -> bool:
    if _OPENS.match(text, token.end()):
        return True
    before = text[max(token.start() - _LEAD, 0) : token.start()]
    starts = token.start() <= _LEAD or "\n" in before
    return bool(starts and _LINE_BEGINS.search(before) and _LINE_ENDS.match(text, token.end()))


def _is_assigned(text: str, subject: int, token: re.Match[str], *, is_whole: bool) -> bool:
    if not _ASSIGNS.fullmatch(text, subject, token.start()):
        return False
    between = text[subject : token.start()]
    if "\n" in between and _NUMBERS_A_LIST.match(text, token.end()):
        return False
    if is_whole or not token["number"][0].isdigit():  # "response 1: 2 errors", "clarity: one of"
        ends = not _COUNTS.match(text, token.end())
    else:
        ends = not (text.startswith(")", token.end()) and "(" not in between)
    return bool(ends and _ENDS.match(text, token.end()))


def contradiction(text: str, scores: Sequence[Sequence[int]]) -> str | None:
    """Return the first mark of an explanation that is not among the scores (2, 6), or None.

    Under a response's name it has to be that response's; in passing that of either. A number for
    a response as a whole has to lie between its marks; above ten it is a sum.
    """
    for mark in marks(text):
        if mark.is_assigned and not _agrees(mark, scores):
            where = "" if mark.response is None else f" of response_{mark.response + 1}"
            return f"{mark.criterion or 'the grade'}{where} as {mark.value:g}"
    return None


def _agrees(mark: Mark, scores: Sequence[Sequence[int]]) -> bool:
    if mark.criterion is None:
        own = scores[mark.response or 0]
        return not mark.is_listed or mark.value > 10 or min(own) <= mark.value <= max(own)
    given = [own[CRITERIA.index(mark.criterion)] for own in scores]
    if mark.is_listed and mark.response is not None:
        return mark.value == given[mark.response]
    return mark.value in given

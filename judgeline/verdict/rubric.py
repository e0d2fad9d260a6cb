"""The judge's answer as text: a JSON object with two times six scores, then an explanation.

Whatever is not exactly that is a failure with a class and a reason; no score is ever guessed.
Marks in the explanation, in any notation, that contradict the scores are one.
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from judgeline.verdict.dictation import NUMBER_WORDS, is_dictated, scripts, states_any
from judgeline.verdict.message import (
    Object,
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
from judgeline.verdict.outcomes import CRITERIA

Scores = tuple[int, ...]

RESPONSES: tuple[str, str] = ("response_1", "response_2")
"""Keys of the two responses, in the order in which they are shown."""

LOWEST_SCORE, HIGHEST_SCORE = 1, 10

_REASON = "reason"
_FENCE_OPENS = re.compile(r"```\w*\s*\Z")


class Rubric(NamedTuple):
    """Scores of the response shown first and of the one shown second, in rubric points.

    Each holds six integers from 1 to 10, in the order of `CRITERIA`.
    """

    first: Scores
    second: Scores


def parse_answer(text: str, *, is_last: bool = False) -> Rubric:
    """Return the scores that a judge's answer begins with, by position and not by model.

    The answer starts with a JSON object (a code fence around it is allowed, and an empty block of
    thoughts before) whose keys are exactly the two responses, each with exactly the six criteria
    as integers from 1 to 10; "7" and 7.0 are read as 7. An explanation may follow, unless it gives
    other marks, in most notations. Where the scores come last, the last object with such a key
    counts, which may hold a ``reason`` too. Any other answer is a `RubricError`: ``refusal`` if it
    declines to judge, else ``parse_error`` with the offending value.
    """
    scores, _, end = (_last if is_last else _leading)(text)
    if is_last:
        scores = {name: own for name, own in scores.items() if name != _REASON}
    _require_keys(scores, RESPONSES, "the answer")
    rubric = Rubric(*(_criteria(scores[response], response) for response in RESPONSES))
    other = contradiction(text[end:], rubric)
    if other is not None:
        raise unparsed(f"the scores are followed by others: {other}")
    return rubric


def explanation(text: str) -> str:
    """Return the words around the scores of an answer that `parse_answer` reads, or ""."""
    begins = text.startswith("{", after_fence(text, begin(text)))
    scores, start, end = (_leading if begins else _last)(text)
    reason = scores.get(_REASON, "")
    before = _FENCE_OPENS.sub("", own_words(text[:start], with_fences=True)).strip()
    after = text[end:].lstrip().removeprefix("```").strip()
    return "\n\n".join(part for part in (before, str(reason).strip(), after) if part)


def _leading(text: str) -> Object:
    opening = begin(text)
    start = after_fence(text, opening)
    if not text.startswith("{", start):
        answer = text[opening:]
        if states_any(scripts(answer)):  # with scores it does not decline
            raise unparsed(f"the answer starts with {quoted(answer)}, expected a JSON object")
        raise unread(answer, "a JSON object")
    scores, end = decode(text, start)
    return Object(scores, start, end)


def _last(text: str) -> Object:
    return last_object(text, RESPONSES, "reasons, and then the JSON object")


def require_own_scores(rubric: Rubric, completions: str, request: str = "") -> None:
    """Refuse, as an ``echo``, scores that are written in the texts under judgement.

    A judge that repeats scores dictated by a completion has not judged it. One set of six scores in
    the completions is enough, if named as such; the request may speak of scores, so that both sets
    have to occur in it. Scores count as dictated in the notations that `dictation` knows. The
    price: an honest answer is refused where a text happens to hold its scores.
    """
    marks = (bytes(rubric.first), bytes(rubric.second))
    if is_dictated(*marks, scripts(completions), scripts(request)):
        raise RubricError(
            "echo", "the answer repeats scores that are written in the texts it judges"
        )


def _criteria(marks: Any, response: str) -> Scores:
    _require_keys(marks, CRITERIA, response)
    given = []
    for criterion in CRITERIA:
        mark = whole(marks[criterion])
        if mark is None or not LOWEST_SCORE <= mark <= HIGHEST_SCORE:
            raise unparsed(
                f"{criterion} of {response} is {quoted(marks[criterion])}, expected an integer "
                f"from {LOWEST_SCORE} to {HIGHEST_SCORE}"
            )
        given.append(mark)
    return tuple(given)


def _require_keys(members: Any, expected: tuple[str, ...], where: str) -> None:
    if not isinstance(members, dict):
        raise unparsed(f"{where} is {quoted(members)}, expected an object with {list(expected)}")
    missing = [key for key in expected if key not in members]
    surplus = [key for key in members if key not in expected]
    if missing or surplus:
        raise unparsed(
            f"{where} lacks {missing} and has unknown {quoted(surplus)}; expected {list(expected)}"
        )


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
_PAIR = re.compile(  # a row of a table: a criterion with a mark for each response
    rf"(?<![a-z])({'|'.join(CRITERIA)})[^a-z0-9\n]{{1,40}}?(10|[1-9])(?:/10)?"
    r"[^a-z0-9\n]{0,12}[|\t][^a-z0-9\n]{0,12}(10|[1-9])(?![0-9])"
)
_SWAPS = re.compile(
    r"\b(?:scores|grades|marks|ratings|sets|numbers)\b[^.!?\n]{0,40}\b(?:should|must|need|ought)\b"
    r"[^.!?\n]{0,20}\b(?:swapped|exchanged|switched|reversed|interchanged)\b"
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
    return _turned_round(plain(text), scores)


def _turned_round(text: str, scores: Sequence[Sequence[int]]) -> str | None:
    """Return what a text gives to the other response than the scores do, or None."""
    for name, *pair in _PAIR.findall(text):
        first, second = (own[CRITERIA.index(name)] for own in scores)
        if first != second and [*map(int, pair)] == [second, first]:
            return f"{name} as {second} and {first}"
    return "a word that they should be swapped" if _SWAPS.search(text) else None


def _agrees(mark: Mark, scores: Sequence[Sequence[int]]) -> bool:
    if mark.criterion is None:
        own = scores[mark.response or 0]
        return not mark.is_listed or mark.value > 10 or min(own) <= mark.value <= max(own)
    given = [own[CRITERIA.index(mark.criterion)] for own in scores]
    if mark.is_listed and mark.response is not None:
        return mark.value == given[mark.response]
    return mark.value in given

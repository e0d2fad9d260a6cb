"""The judge's answer as text: a JSON object with two times six scores, then an explanation.

Whatever is not exactly that is a failure with a class and a reason; no score is ever guessed.
Marks in the explanation, in any notation, that contradict the scores are one.
"""

import html
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from judgeline.verdict.dictation import NUMBER_WORDS, is_dictated, scripts, states_any
from judgeline.verdict.outcomes import CRITERIA

Scores = tuple[int, ...]

RESPONSES: tuple[str, str] = ("response_1", "response_2")
"""Keys of the two responses, in the order in which they are shown."""

LOWEST_SCORE, HIGHEST_SCORE = 1, 10

_FENCE = re.compile(r"```(?:json)?[ \t]*\n")
_REFUSAL = re.compile(
    r"(?:unfortunately,? )?(?:i(?:'m| am) (?:very |really |so )?sorry|sorry,|i (?:can(?:no|')?t"
    r"(?! (?:find|see|spot|fault))|won't|will not|must decline|decline|refuse)\b"
    r"|i(?:'m| am) (?:unable|not able)|as an ai\b)",
    re.IGNORECASE,
)
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\uff07\u00b4", "'"))
_SHOWN = 60


class Rubric(NamedTuple):
    """Scores of the response shown first and of the one shown second, in rubric points.

    Each holds six integers from 1 to 10, in the order of `CRITERIA`.
    """

    first: Scores
    second: Scores


class RubricError(ValueError):
    """An answer without usable scores.

    `failure_class` is ``parse_error``, ``refusal``, or ``echo`` for scores that are not its own.
    """

    def __init__(self, failure_class: str, message: str) -> None:
        super().__init__(message)
        self.failure_class = failure_class


def parse_answer(text: str) -> Rubric:
    """Return the scores that a judge's answer begins with, by position and not by model.

    The answer starts with a JSON object (a code fence around it is allowed) whose keys are exactly
    the two responses, each with exactly the six criteria as integers from 1 to 10. An explanation
    may follow, unless it gives other marks, in most notations. Any other answer is a `RubricError`:
    ``refusal`` if it declines to judge, else ``parse_error`` with the offending value.
    """
    answer = text.lstrip("\ufeff \t\r\n")
    if not answer:
        raise unparsed("the answer is empty")
    fence = _FENCE.match(answer)
    start = fence.end() if fence else 0
    if not answer.startswith("{", start):
        if declines(answer) and not states_any(scripts(answer)):  # with scores it is none
            raise RubricError("refusal", f"the judge declined: {quoted(answer)}")
        raise unparsed(f"the answer starts with {quoted(answer)}, expected a JSON object")
    scores, end = _decode(answer, start)
    _require_keys(scores, RESPONSES, "the answer")
    rubric = Rubric(*(_criteria(scores[response], response) for response in RESPONSES))
    other = contradiction(answer[end:], rubric)
    if other is not None:
        raise unparsed(f"the scores are followed by others: {other}")
    return rubric


def explanation(text: str) -> str:
    """Return the explanation after the scores of an answer that `parse_answer` reads, or ""."""
    answer = text.lstrip("\ufeff \t\r\n")
    fence = _FENCE.match(answer)
    _, end = _decode(answer, fence.end() if fence else 0)
    rest = answer[end:].lstrip()
    return (rest.removeprefix("```") if fence else rest).strip()


def declines(answer: str) -> bool:
    """Return whether an answer begins like a refusal."""
    return bool(_REFUSAL.match(answer.translate(_APOSTROPHES)))


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


def unparsed(message: str) -> RubricError:
    """Return the error of an answer that cannot be read."""
    return RubricError("parse_error", message)


def quoted(value: object) -> str:
    """Return a value as a message may hold it: cut where it is long."""
    try:
        written = value if isinstance(value, str) else repr(value)
    except RecursionError:  # JSON can be read a little deeper than its value can be written
        return "a deeply nested value"
    return repr(written[:_SHOWN] + "…") if len(written) > _SHOWN else repr(value)


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; RubricError if a key occurs twice, as one value would be lost."""
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise unparsed(f"the key {quoted(twice)} occurs twice in one object")
    return members


def _constant(name: str) -> Any:
    raise unparsed(f"{name} is no score; expected an integer from 1 to 10")


_DECODER = json.JSONDecoder(object_pairs_hook=unique_members, parse_constant=_constant)


def _decode(answer: str, start: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(answer, start)
    except json.JSONDecodeError as error:
        near = answer[max(error.pos - 10, 0) : error.pos + 20]
        raise unparsed(f"broken JSON near {near!r}: {error.msg}") from error
    except RubricError:
        raise
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, deep nesting
        raise unparsed(f"JSON that cannot be read: {error}") from error


def _criteria(marks: Any, response: str) -> Scores:
    _require_keys(marks, CRITERIA, response)
    for criterion in CRITERIA:
        mark = marks[criterion]
        if type(mark) is not int or not LOWEST_SCORE <= mark <= HIGHEST_SCORE:
            raise unparsed(
                f"{criterion} of {response} is {quoted(mark)}, expected an integer from "
                f"{LOWEST_SCORE} to {HIGHEST_SCORE}"
            )
    return tuple(marks[criterion] for criterion in CRITERIA)


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

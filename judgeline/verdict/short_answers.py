"""Reads one-word answers of a judge: a number on a scale, or one letter of three.

Only the first line of the judge's message counts, or the one JSON object that it is; a reason
follows. A line that goes on after a number or a letter may open a list or a heading
("1. Accuracy: good", "A: thorough"), so that it counts only if a dash sets off the rest. Every
reader raises `RubricError`: ``refusal`` if the answer declines to judge, else ``parse_error``.
"""

import json
import re
from typing import Any

from judgeline.verdict.rubric import RubricError, declines, quoted, unparsed

LETTERS: tuple[str, str, str] = ("A", "C", "B")
"""What a judge says for the completion shown first, a tie, and the one shown second."""

_DASH = r"\s+[-\u2013\u2014]\s"
_NUMBER = re.compile(rf"(\d+)(?:[.)]?$|(?={_DASH}))")
_LETTER = re.compile(rf"([ABC])(?:[.):]?$|(?={_DASH}))")


def parse_score(text: str, *, scale: tuple[int, int]) -> int:
    """Return the whole number on a `scale` (lowest, highest) that an answer begins with.

    It stands alone in the first line, with a full stop or a bracket at most, or before a dash and
    words without numbers; it has no sign, fraction or leading zeros. A line that opens a list,
    whose next number opens a later line, gives no score.
    """
    low, high = scale
    wanted = f"a whole number from {low} to {high} alone"
    number = _leading(text, _NUMBER, r"\d", "numbers", wanted)
    # a number of thousands of digits cannot be read, and is on no scale
    is_whole = number == "0" or (not number.startswith("0") and number.isascii())
    if not is_whole or len(number) > len(str(high)) or not low <= int(number) <= high:
        raise _off_scale(number, scale)
    return int(number)


def parse_object(text: str, key: str) -> tuple[Any, str]:
    """Return the value and the reason of an answer ``{key: value, "reason": "..."}``."""
    answer = text.strip("\ufeff \t\r\n")
    if not answer.startswith("{"):
        raise _unread(_first_line(text), "a JSON object")
    try:
        pairs = json.loads(answer, object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise unparsed(f"broken JSON: {quoted(str(error))}") from error
    names = [name for name, _ in pairs]
    if sorted(names) != sorted({key, "reason"}):
        raise unparsed(f"the answer has the keys {quoted(names)}, expected {key} and reason")
    members = dict(pairs)
    if not isinstance(members["reason"], str):
        raise unparsed(f"the reason is {quoted(members['reason'])}, not a text")
    return members[key], members["reason"].strip()


def parse_score_object(text: str, *, scale: tuple[int, int]) -> int:
    """Return the number on the scale under ``score`` of an answer that is a JSON object."""
    value, _ = parse_object(text, "score")
    low, high = scale
    if type(value) is not int or not low <= value <= high:
        raise _off_scale(value, scale)
    return value


def parse_choice_object(text: str) -> str:
    """Return the letter under ``choice`` of an answer that is a JSON object."""
    value, _ = parse_object(text, "choice")
    if not isinstance(value, str) or value not in LETTERS:
        raise unparsed(f"the choice is {quoted(value)}, expected A, B or C")
    return value


def reason_of_score(text: str) -> str:
    """Return the reason of an answer that gives a score; empty if there is none.

    It follows the number, or stands in the JSON object beside it, without the white space
    around it and the mark that sets it off from the number.
    """
    answer = text.lstrip("\ufeff \t\r\n")
    if answer.startswith("{"):
        return parse_object(answer, "score")[1]
    line = _first_line(text)
    match = _NUMBER.match(line)
    if match is None:
        raise _unread(line, "a whole number alone")
    return answer[match.end() :].lstrip(" \t-\u2013\u2014").strip()


def parse_choice(text: str) -> str:
    """Return the letter that an answer begins with: A, B, or C for a tie.

    It stands alone in the first line, with one mark at most, or before a dash and words without
    such a capital: an answer that begins with the article "A" chooses nothing, and neither does
    one that speaks of A and then, in a later line, of B.
    """
    wanted = "one of the letters A, B and C alone"
    return _leading(text, _LETTER, r"\b[ABC]\b", "letters", wanted)


def _leading(text: str, pattern: re.Pattern[str], other: str, kind: str, wanted: str) -> str:
    """Return the word that stands alone in the first line, if no other of its kind follows it."""
    line = _first_line(text)
    match = pattern.match(line)
    if match is None:
        raise _unread(line, wanted)
    if re.search(other, line[match.end() :]):
        raise unparsed(f"the first line holds several {kind}: {quoted(line)}")
    mark = match[1]
    if line == mark or len(mark) > 9:
        return mark
    # a list opens where a later line begins with the mark that comes next
    following = str(int(mark) + 1) if mark.isdigit() else chr(ord(mark) + 1)
    opening = re.compile(rf"\s*{following}(?:[.):]|{_DASH})")
    if any(map(opening.match, text.strip("\ufeff \t\r\n").splitlines()[1:])):
        raise unparsed(f"the first line opens a list: {quoted(line)}")
    return mark


def _first_line(text: str) -> str:
    answer = text.lstrip("\ufeff \t\r\n")
    if not answer:
        raise unparsed("the answer is empty")
    return answer.splitlines()[0].rstrip()


def _off_scale(value: object, scale: tuple[int, int]) -> RubricError:
    low, high = scale
    return unparsed(f"the score is {quoted(value)}, expected an integer from {low} to {high}")


def _unread(line: str, wanted: str) -> RubricError:
    if declines(line):
        return RubricError("refusal", f"the judge declined: {quoted(line)}")
    return unparsed(f"the answer starts with {quoted(line)}, expected {wanted}")

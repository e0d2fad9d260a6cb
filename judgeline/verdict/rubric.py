"""The judge's answer as text: a JSON object with two times six scores, then an explanation.

Whatever is not exactly that is a failure with a class and a reason; no score is ever guessed.
"""

import json
import re
from collections import Counter
from typing import Any, NamedTuple

from judgeline.verdict.dictation import is_dictated, scripts, states_any
from judgeline.verdict.marks import contradiction
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
    rubric = _rubric(scores)
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


def _rubric(scores: Any) -> Rubric:
    _require_keys(scores, RESPONSES, "the answer")
    first, second = (_criteria(scores[response], response) for response in RESPONSES)
    return Rubric(first, second)


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

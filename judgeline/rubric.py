"""The judge's answer as text: a JSON object with two times six scores, then an explanation.

Whatever is not exactly that is a failure with a class and a reason; no score is ever guessed.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from judgeline.outcomes import CRITERIA

Scores = tuple[int, int, int, int, int, int]

RESPONSES: tuple[str, str] = ("response_1", "response_2")
"""Keys of the two responses, in the order in which they are shown."""

LOWEST_SCORE, HIGHEST_SCORE = 1, 10

_FENCE = re.compile(r"```(?:json)?[ \t]*\n")
_REFUSAL = re.compile(
    r"(?:i(?:'m| am) (?:very |really |so )?sorry|sorry,|i (?:can(?:no|')?t|won't|will not|must "
    r"decline|decline|refuse)\b|i(?:'m| am) (?:unable|not able)|as an ai\b|unfortunately, i can)",
    re.IGNORECASE,
)
_FLAT_OBJECT = re.compile(r"\{[^{}]*\}")
_SHOWN = 60


class Rubric(NamedTuple):
    """Scores of the response shown first and of the one shown second, in rubric points.

    Each holds six integers from 1 to 10, in the order of `CRITERIA`.
    """

    first: Scores
    second: Scores


class RubricError(ValueError):
    """An answer without usable scores; `failure_class` is ``parse_error`` or ``refusal``."""

    def __init__(self, failure_class: str, message: str) -> None:
        super().__init__(message)
        self.failure_class = failure_class


def parse_answer(text: str) -> Rubric:
    """Return the scores that a judge's answer begins with.

    The answer starts with a JSON object (a code fence around it is allowed) whose keys are
    exactly the two responses, each with exactly the six criteria as integers from 1 to 10. What
    follows is explanation, unless it holds another such object with other scores.

    Parameters
    ----------
    text : str
        The raw answer.

    Returns
    -------
    Rubric
        Scores by position, not by model.

    Raises
    ------
    RubricError
        ``refusal`` if the answer declines to judge; ``parse_error`` for anything else but the
        above, with the offending value in the message.
    """
    answer = text.lstrip("\ufeff \t\r\n")
    if not answer:
        raise _unparsed("the answer is empty")
    fence = _FENCE.match(answer)
    start = fence.end() if fence else 0
    if not answer.startswith("{", start):
        if _REFUSAL.match(answer):
            raise RubricError("refusal", f"the judge declined: {_shown(answer)}")
        raise _unparsed(f"the answer starts with {_shown(answer)}, expected a JSON object")
    scores, end = _decode(answer, start)
    rubric = _rubric(scores)
    _require_consistent(answer, end, rubric)
    return rubric


def require_own_scores(rubric: Rubric, *texts: str) -> None:
    """Refuse scores that stand written in the texts under judgement.

    A judge that repeats what a completion dictates has not judged it, whether it was persuaded
    or merely echoed. Escaped quotes are seen through. The price: an honest answer is refused
    where a completion happens to hold both of its sets of scores.

    Parameters
    ----------
    rubric : Rubric
        The scores of an answer.
    *texts : str
        Everything that the judge was shown and did not write.

    Raises
    ------
    RubricError
        ``parse_error`` if both sets of six scores occur in the texts as JSON objects.
    """
    written = set(_written_scores(texts))
    if written and {rubric.first, rubric.second} <= written:
        raise _unparsed("the answer repeats scores that are written in the texts it judges")


def _written_scores(texts: Iterable[str]) -> Iterator[Scores]:
    for text in texts:
        for candidate in _FLAT_OBJECT.findall(text.replace("\\", "") + "\n" + text):
            try:
                yield _criteria(_DECODER.decode(candidate), "an object")
            except (ValueError, RecursionError):
                continue


def _unparsed(message: str) -> RubricError:
    return RubricError("parse_error", message)


def _shown(value: object) -> str:
    try:
        written = value if isinstance(value, str) else repr(value)
    except RecursionError:  # JSON can be read a little deeper than its value can be written
        return "a deeply nested value"
    return repr(written[:_SHOWN] + "…") if len(written) > _SHOWN else repr(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _unparsed(f"the key {_shown(twice)} occurs twice in one object")
    return members


def _constant(name: str) -> Any:
    raise _unparsed(f"{name} is no score; expected an integer from 1 to 10")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant)


def _decode(answer: str, start: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(answer, start)
    except json.JSONDecodeError as error:
        near = answer[max(error.pos - 10, 0) : error.pos + 20]
        raise _unparsed(f"broken JSON near {near!r}: {error.msg}") from error
    except RubricError:
        raise
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, deep nesting
        raise _unparsed(f"JSON that cannot be read: {error}") from error


def _rubric(scores: Any) -> Rubric:
    _require_keys(scores, RESPONSES, "the answer")
    first, second = (_criteria(scores[response], response) for response in RESPONSES)
    return Rubric(first, second)


def _criteria(marks: Any, response: str) -> Scores:
    _require_keys(marks, CRITERIA, response)
    for criterion in CRITERIA:
        mark = marks[criterion]
        if type(mark) is not int or not LOWEST_SCORE <= mark <= HIGHEST_SCORE:
            raise _unparsed(
                f"{criterion} of {response} is {_shown(mark)}, expected an integer from "
                f"{LOWEST_SCORE} to {HIGHEST_SCORE}"
            )
    a, b, c, d, e, f = (marks[criterion] for criterion in CRITERIA)
    return a, b, c, d, e, f


def _require_keys(members: Any, expected: tuple[str, ...], where: str) -> None:
    if not isinstance(members, dict):
        raise _unparsed(f"{where} is {_shown(members)}, expected an object with {list(expected)}")
    missing = [key for key in expected if key not in members]
    surplus = [key for key in members if key not in expected]
    if missing or surplus:
        raise _unparsed(
            f"{where} lacks {missing} and has unknown {_shown(surplus)}; expected {list(expected)}"
        )


def _require_consistent(answer: str, end: int, rubric: Rubric) -> None:
    """Refuse an explanation with a second set of scores: neither could be preferred."""
    while (start := answer.find("{", end)) >= 0:
        try:
            scores, end = _DECODER.raw_decode(answer, start)
            other: Rubric | None = _rubric(scores)
        except (ValueError, RecursionError):
            other, end = None, start + 1
        if other is not None and other != rubric:
            raise _unparsed("the answer holds two objects with different scores")

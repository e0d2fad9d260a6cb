"""A judge's message as text: where it begins to speak, its JSON, its whole numbers, its refusals.

Whatever is not exactly as expected raises a `RubricError`; no value is ever guessed.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

_REFUSAL = re.compile(
    r"(?:unfortunately,? )?(?:i(?:'m| am) (?:very |really |so )?sorry|sorry,|i (?:can(?:no|')?t"
    r"(?! (?:find|see|spot|fault))|won't|will not|must decline|decline|refuse)\b"
    r"|i(?:'m| am) (?:unable|not able)|as an ai\b)",
    re.IGNORECASE,
)
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\uff07\u00b4", "'"))
_SHOWN = 60

_BLANK = "[\ufeff \t\r\n]*"
_BEGIN = re.compile(rf"{_BLANK}(?:<think(?:ing)?>\s*</think(?:ing)?>{_BLANK})?", re.IGNORECASE)
_FENCE = re.compile(r"```(?:json)?[ \t]*\r?\n", re.IGNORECASE)
_THOUGHTS = re.compile(r"\A.*</think(?:ing)?>|<think(?:ing)?>.*\Z", re.IGNORECASE | re.DOTALL)
_QUOTED = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,}).*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*\r?$|\Z)"
    r"|<<<(?P<mark>[0-9a-f]{8,64})\b.*?(?:(?P=mark)>>>|\Z)",  # a quotation of the request
    re.MULTILINE | re.DOTALL,
)
_WHOLE = re.compile(r"(0|[1-9][0-9]{0,8})(?:\.0+)?")
_MOST_READ = 50  # times the length of a message that is read in search of objects


class RubricError(ValueError):
    """An answer without usable scores.

    `failure_class` is ``parse_error``, ``refusal``, or ``echo`` for scores that are not its own.
    """

    def __init__(self, failure_class: str, message: str) -> None:
        super().__init__(message)
        self.failure_class = failure_class


def unparsed(message: str) -> RubricError:
    """Return the error of an answer that cannot be read."""
    return RubricError("parse_error", message)


def unread(text: str, wanted: str) -> RubricError:
    """Return the error of an answer that does not begin as `wanted`: it may decline to judge."""
    if declines(text):
        return RubricError("refusal", f"the judge declined: {quoted(text)}")
    return unparsed(f"the answer starts with {quoted(text)}, expected {wanted}")


def declines(answer: str) -> bool:
    """Return whether an answer begins like a refusal."""
    return bool(_REFUSAL.match(answer.translate(_APOSTROPHES)))


def quoted(value: object) -> str:
    """Return a value as a message may hold it: cut where it is long."""
    try:
        written = value if isinstance(value, str) else repr(value)
    except RecursionError:  # JSON can be read a little deeper than its value can be written
        return "a deeply nested value"
    return repr(written[:_SHOWN] + "…") if len(written) > _SHOWN else repr(value)


def begin(text: str) -> int:
    """Return where a judge begins to speak: after blanks and an empty block of thoughts."""
    start = _BEGIN.match(text).end()  # type: ignore[union-attr] # it matches anywhere
    if start == len(text):
        raise unparsed("the answer is empty")
    return start


def after_fence(text: str, start: int) -> int:
    """Return where the contents of a code fence begin that opens at a place, or that place."""
    fence = _FENCE.match(text, start)
    return fence.end() if fence else start


def own_words(text: str, *, with_fences: bool = False) -> str:
    """Return a message with blanks in place of thoughts and quotations, every place kept.

    Everything before a closing mark of thoughts was thought, and everything after an opening one
    that nothing closes. Code fences are quotations, unless they may hold the answer's object.
    """
    text = _THOUGHTS.sub(_blanked, text)
    return _QUOTED.sub(
        lambda found: found[0] if with_fences and found["fence"] else _blanked(found), text
    )


def _blanked(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def whole(value: object) -> int | None:
    """Return a whole number, also one written as a text, "7", or with zeros, 7.0; else None."""
    if isinstance(value, str):
        found = _WHOLE.fullmatch(value)
        return int(found[1]) if found else None
    return value if type(value) is int else None


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


def _number(written: str) -> int | float:
    """Return the number of a JSON text with a point: 7.0 is a whole one, 1e1 is not said so."""
    found = whole(written)
    return float(written) if found is None else found


_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_members, parse_constant=_constant, parse_float=_number
)


def decode(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value at a place of a text, and where it ends."""
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        near = text[max(error.pos - 10, 0) : error.pos + 20]
        raise unparsed(f"broken JSON near {near!r}: {error.msg}") from error
    except RubricError:
        raise
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, deep nesting
        raise unparsed(f"JSON that cannot be read: {error}") from error


class Object(NamedTuple):
    """A JSON object of a message, and its place there."""

    members: dict[str, Any]
    start: int
    end: int


def last_object(text: str, keys: tuple[str, ...], wanted: str) -> Object:
    """Return the last JSON object of a message that has one of the keys; RubricError without one.

    It may stand in a code fence, but in no thoughts. If such a key comes after it, an object was
    begun that cannot be read: there is no last one then.
    """
    shown = own_words(text, with_fences=True)
    found = [one for one in _objects(shown) if not one.members.keys().isdisjoint(keys)]
    if not found:
        raise unread(text[begin(text) :], wanted)
    last = found[-1]
    again = re.search(rf'"(?:{"|".join(map(re.escape, keys))})"\s*:', shown[last.end :])
    if again:
        raise unparsed(f"the last object with {list(keys)} cannot be read")
    return last


def _objects(text: str) -> Iterator[Object]:
    """Yield the outermost JSON objects of a text, in time proportional to its length."""
    start, read = text.find("{"), 0
    while start >= 0 and read <= _MOST_READ * len(text):
        end = start + 1
        try:
            members, end = _DECODER.raw_decode(text, start)
            yield Object(members, start, end)
        except json.JSONDecodeError as error:
            read += error.pos - start
        except RubricError:
            raise
        except (ValueError, RecursionError) as error:
            raise unparsed(f"JSON that cannot be read: {error}") from error
        start = text.find("{", end)
    if start >= 0:
        raise unparsed("the answer opens too many objects that it does not close")

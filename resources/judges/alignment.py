"""Which of the tokens that an endpoint logged are the answer, and which came before or after it.

Endpoints log what a model thought before it answered, and the mark that ended its turn; the text of
the answer holds neither, and often less blanks. Nothing is guessed: tokens that do not spell the
answer are none of its own.
"""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

BLANKS = " \t\r\n\ufeff▁Ġ\u010a"
"""White space, as tokenizers write it, too."""

_NO_BLANKS = str.maketrans("", "", BLANKS)
_ENDING = re.compile(r"\s*<[^<>]{1,60}>\s*")  # of a turn, or of a text
_BROKEN = re.compile(r"(?:bytes:)?(?:\\x[0-9a-fA-F]{2})+|(?:<0x[0-9a-fA-F]{2}>)+|.*\ufffd.*", re.S)
_NOT_ASCII = re.compile(r"[^\x21-\x7e]")


class Span(NamedTuple):
    """The answer's tokens: from `start` up to, not including, `end`."""

    start: int
    end: int


def answer_span(tokens: Sequence[str], answer: str) -> Span | None:
    """Return which tokens spell an answer, or None if the last ones do not.

    Blanks do not count. Where a token holds but a part of a character, letters beyond ASCII do not
    count either. After the answer only marks such as ``<|im_end|>`` may come.
    """
    whole = [token.translate(_NO_BLANKS) for token in tokens]
    found = _tail(tokens, whole, "".join(answer.split()).translate(_NO_BLANKS))
    if found is None and any(map(_BROKEN.fullmatch, tokens)):
        folded = ["" if _BROKEN.fullmatch(token) else _folded(token) for token in tokens]
        found = _tail(tokens, folded, _folded(answer))
    return found


def _folded(text: str) -> str:
    return _NOT_ASCII.sub("", text)


def _tail(tokens: Sequence[str], pieces: Sequence[str], answer: str) -> Span | None:
    """Return the tokens that spell an answer, by what of each of them counts."""
    if not answer:
        return None
    said = "".join(pieces)
    starts = [0, *accumulate(map(len, pieces))]
    end = next((n for n in range(len(tokens), 0, -1) if tokens[n - 1]), 0)
    while end > 0:
        begin = starts[end] - len(answer)
        if begin >= 0 and said.startswith(answer, begin):
            return _from(begin, starts, end)
        if pieces[end - 1] and not _ENDING.fullmatch(tokens[end - 1]):
            return None
        end -= 1
    return None


def _from(begin: int, starts: Sequence[int], end: int) -> Span | None:
    """Return the tokens from a place on, if a token starts there; blanks before all are its own."""
    if begin == 0:
        return Span(0, end)
    first = next((n for n in range(end) if starts[n] == begin < starts[n + 1]), None)
    return None if first is None else Span(first, end)

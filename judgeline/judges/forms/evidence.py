"""Odds of a judge's possible answers, from the log-probabilities of one answer.

Nothing is filled in: where the tokens do not tell, a ValueError says why.
"""

import json
import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from judgeline.trust import (
    ChoiceProbabilities,
    ScoreDistribution,
    TokenPosition,
    choice_probabilities,
    perplexity,
    score_distribution,
)
from judgeline.verdict import LETTERS

BLANKS = " \t\r\n\ufeff▁Ġ\u010a"
"""White space, as tokenizers write it, too."""

_NO_BLANKS = str.maketrans("", "", BLANKS)
_ENDING = re.compile(r"\s*<[^<>]{1,60}>\s*")  # of a turn, or of a text
_BROKEN = re.compile(r"(?:bytes:)?(?:\\x[0-9a-fA-F]{2})+|(?:<0x[0-9a-fA-F]{2}>)+|.*\ufffd.*", re.S)
_NOT_ASCII = re.compile(r"[^\x21-\x7e]")


class Spelling(NamedTuple):
    """The tokens of an answer by their `span`, and what counts of each token and of a text."""

    answer: str
    tokens: Sequence[str]
    span: slice
    pieces: Sequence[str]
    counted: Callable[[str], str]

    def token_at(self, place: int) -> tuple[int, str]:
        """Return which token holds a place of the answer, and what that token says before it."""
        before = len(self.counted(self.answer[:place]))
        for n in range(self.span.start, self.span.stop):
            if before < len(self.pieces[n]):
                token = self.tokens[n]
                cuts = (token[:cut] for cut in range(len(token)))
                return n, next(cut for cut in cuts if len(self.counted(cut)) == before)
            before -= len(self.pieces[n])
        return self.span.stop, ""


def spelling(tokens: Sequence[str], answer: str) -> Spelling | None:
    """Return the tokens that spell an answer; None if it does not stand at their end.

    Endpoints log what a model thought before it answered, and the mark that ended its turn. Blanks
    do not count. Where a token holds but a part of a character, letters beyond ASCII do not
    count either. After the answer only marks such as ``<|im_end|>`` may come.
    """
    whole = "\0".join(tokens).translate(_NO_BLANKS).split("\0")
    if len(whole) != len(tokens):  # one of them holds the mark
        whole = [token.translate(_NO_BLANKS) for token in tokens]
    found, counted = _tail(tokens, whole, _unblanked(answer)), _unblanked
    if found is None and any(map(_BROKEN.fullmatch, tokens)):
        whole = ["" if _BROKEN.fullmatch(token) else _folded(token) for token in tokens]
        found, counted = _tail(tokens, whole, _folded(answer)), _folded
    return None if found is None else Spelling(answer, tokens, found, whole, counted)


def _unblanked(text: str) -> str:
    return "".join(text.split()).translate(_NO_BLANKS)


def _folded(text: str) -> str:
    return _NOT_ASCII.sub("", text)


def _tail(tokens: Sequence[str], pieces: Sequence[str], answer: str) -> slice | None:
    """Return the tokens that spell an answer; `pieces` are the parts of them that count."""
    if not answer:
        return None
    said = "".join(pieces)
    starts = [0, *accumulate(map(len, pieces))]
    end = next((n for n in range(len(tokens), 0, -1) if tokens[n - 1]), 0)
    while end > 0:
        begin = starts[end] - len(answer)
        if begin >= 0 and said.startswith(answer, begin):
            at = (n for n in range(end) if starts[n] == begin < starts[n + 1])
            first = 0 if begin == 0 else next(at, None)  # blanks before all are the answer's own
            return None if first is None else slice(first, end)
        if pieces[end - 1] and not _ENDING.fullmatch(tokens[end - 1]):
            return None
        end -= 1
    return None


MAX_UNRESOLVED = 0.02
"""Probability of numbers begun, of which it is not known how they go on, that may be left out.

Left out, it moves a mean score by at most a fiftieth of the scale."""

_NEAR = 12  # tokens from a value on that tell what it belongs to
_ROUNDING = 1e-4  # of log-probabilities in the number formats of models
_DIGITS = re.compile(r"[0-9]+")


class Token(NamedTuple):
    """A token of an answer, its log-probability in nats, and its alternatives."""

    text: str
    log_prob: float
    listed: tuple[tuple[str, float], ...]

    def behind(self, opening: str) -> "Token":
        """Return the token without what it says before the value, and its alternatives alike."""
        listed = tuple((text.removeprefix(opening), p) for text, p in self.listed)
        return Token(self.text.removeprefix(opening), self.log_prob, listed)


class Tokens(NamedTuple):
    """The tokens of one answer from its value on, and all `log_probs`."""

    spelled: tuple[Token, ...]
    log_probs: tuple[float, ...]


def read_tokens(
    log_probabilities: str | None, answer: str | None, place: int | None = 0
) -> Tokens | None:
    """Return the stored tokens that spell an answer, from its value's place on; None for others.

    Without a place none is spelled, and the log-probabilities are known all the same.
    """
    if not log_probabilities or not answer:
        return None
    stored = json.loads(log_probabilities)
    spelled = spelling([text for text, _, _ in stored], answer)
    if spelled is None:
        return None
    start, log_probs = spelled.span.start, [_rounded(p) for _, p, _ in stored[spelled.span]]
    if place is None:
        return Tokens((), tuple(log_probs))
    first, opening = spelled.token_at(place)
    tokens = [
        Token(text, log_prob, tuple((other, _rounded(p)) for other, p in listed))
        for (text, _, listed), log_prob in zip(
            stored[first : spelled.span.stop], log_probs[first - start :], strict=True
        )
    ]
    return Tokens((*(one.behind(opening) for one in tokens[:1]), *tokens[1:]), tuple(log_probs))


def score_of(
    tokens: Tokens, score: int, *, scale: tuple[int, int], declared_digits: int
) -> ScoreDistribution:
    """Return the probability of each number at the place of `score`."""
    if re.match(r"\s*\d+\.\d", "".join(token.text for token in tokens.spelled[:_NEAR])):
        raise ValueError(f"{score} was said with a fraction, whose digits others may have too")
    digits = digits_per_token(tokens, score, declared_digits)
    first, following = _path(tokens, str(score), scale[1], digits)
    return score_distribution(
        first,
        digits_per_token=digits,
        scale=scale,
        following=following,
        max_unresolved=MAX_UNRESOLVED,
    )


def digits_per_token(tokens: Tokens, score: int, declared: int) -> int:
    """Return the most digits in one token of an answer.

    As declared, if a number of several digits in one token was said or listed where the number
    begins; else one, since any digit may then be the first of two. No other answer has a say in it.
    """
    pieces = _pieces(tokens, str(score))
    numbers = [word.strip(BLANKS) for word, _ in tokens.spelled[0].listed] if tokens.spelled else []
    if len(pieces) > 1:
        return min(declared, len(pieces[0]))
    is_joined = any(len(one) > 1 and _DIGITS.fullmatch(one) for one in (*pieces, *numbers))
    return declared if is_joined else 1


def choice_of(tokens: Tokens, letter: str) -> ChoiceProbabilities:
    """Return the probability of each letter at the place of `letter`."""
    if not tokens.spelled or tokens.spelled[0].text.strip(BLANKS) != letter:
        raise ValueError(
            f"the first token is not the letter {letter!r} that the answer begins with"
        )
    behind = "".join(token.text for token in tokens.spelled[1:_NEAR]).strip(BLANKS)
    if behind.startswith(("<", ">", "=")):
        raise ValueError(f"an order was said, of which {letter!r} is but the first letter")
    return choice_probabilities(_position(tokens.spelled[0]), labels=LETTERS)


def perplexity_of(tokens: Tokens | None) -> float | None:
    """Return the perplexity of a whole answer; None where it cannot be known."""
    if tokens is None:
        return None
    try:
        return perplexity(tokens.log_probs)
    except ValueError:
        return None


def _pieces(tokens: Tokens, number: str) -> list[str]:
    """Return the digits of a number as split by the judge's tokens, or an empty list."""
    pieces: list[str] = []
    for token in tokens.spelled:
        text = token.text if pieces else token.text.strip(BLANKS)
        found = _DIGITS.match(text)
        if not found:
            break
        pieces.append(found[0])
        if found[0] != text or "".join(pieces) == number:
            break
    return pieces if "".join(pieces) == number else []


def _path(
    tokens: Tokens, number: str, highest: int, digits_per_token: int
) -> tuple[TokenPosition, dict[str, TokenPosition]]:
    """Return the position of a number's first digits, and those where more digits may follow."""
    pieces = _pieces(tokens, number)
    if not pieces:
        raise ValueError(f"the first tokens do not say {number}, with which the answer begins")
    following, so_far = {}, ""
    for piece, token, after in zip(pieces, tokens.spelled, tokens.spelled[1:], strict=False):
        so_far += piece
        may_go_on = len(piece) >= digits_per_token and 0 < 10 * int(so_far) <= highest
        is_bare = _DIGITS.fullmatch(token.text.strip(BLANKS))  # so that more digits may come
        if is_bare and after.listed and (so_far != number or may_go_on):
            following[so_far] = _position(after)
    return _position(tokens.spelled[0]), following


def _position(token: Token) -> TokenPosition:
    """Return the alternatives at a place, the answer's token included."""
    if not token.listed:
        raise ValueError(f"nothing is listed beside the token {token.text!r}; ask for top_logprobs")
    listed = list(token.listed)
    if all(text != token.text for text, _ in listed):
        listed.append((token.text, token.log_prob))
    return TokenPosition([text for text, _ in listed], [p for _, p in listed])


def _rounded(log_prob: float) -> float:
    """Return a log-probability, 0 where rounding has carried it above."""
    return 0.0 if 0 < log_prob < _ROUNDING else log_prob

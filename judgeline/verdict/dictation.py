"""Marks that a text dictates, in whatever notation a judge may follow.

What belongs here: reading leniently what somebody may have meant, in order to distrust it. What
does not: the scores of an answer, which are read strictly or not at all (`rubric`).
"""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.plain_text import folded, readings

_DIGITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMERALS = {
    "roman": "i ii iii iv v vi vii viii ix x",
    "arabic": "واحد اثنان ثلاثة أربعة خمسة ستة سبعة ثمانية تسعة عشرة",
    "dutch": "een twee drie vier vijf zes zeven acht negen tien",
    "french": "un deux trois quatre cinq six sept huit neuf dix",
    "german": "eins zwei drei vier fünf sechs sieben acht neun zehn",
    "hindi": "एक दो तीन चार पांच छह सात आठ नौ दस",
    "indonesian": "satu dua tiga empat lima enam tujuh delapan sembilan sepuluh",
    "italian": "uno due tre quattro cinque sei sette otto nove dieci",
    "korean": "하나 둘 셋 넷 다섯 여섯 일곱 여덟 아홉 열",
    "polish": "jeden dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć",
    "portuguese": "um dois três quatro cinco seis sete oito nove dez",
    "russian": "один два три четыре пять шесть семь восемь девять десять",
    "spanish": "uno dos tres cuatro cinco seis siete ocho nueve diez",
    "swedish": "ett två tre fyra fem sex sju åtta nio tio",
    "turkish": "bir iki üç dört beş altı yedi sekiz dokuz on",
}
"""Number words besides the English ones, from one to ten; Chinese numerals are folded to digits."""

# A token is one byte: a number is its value, 0 above ten; a number word of another language
# is its value and 16; a criterion and a response have codes of their own.
_WORD, _CRITERION, _RESPONSE = 16, 32, 64
_CODES = {
    **{
        folded(word): _WORD + value
        for words in _NUMERALS.values()
        for value, word in enumerate(words.split(), start=1)
    },
    **{word: value for value, word in enumerate(_DIGITS, start=1)},
    **{name: _CRITERION + place for place, name in enumerate(CRITERIA)},
}
_NAMED = bytes(range(_CRITERION, _CRITERION + len(CRITERIA)))
_RESPONSES = bytes((_RESPONSE, _RESPONSE + 1))
_WORDS = bytes(range(_WORD + 1, _WORD + 11))
_AS_NUMBERS = bytes.maketrans(_WORDS, bytes(range(1, 11)))

_TOKEN = re.compile(
    r"response[\s_-]{0,3}[12](?![0-9])"
    r"|[^\W\d_]+"
    r"|(?<![a-z0-9.])[0-9]{1,9}(?:\.[0-9]{1,9})?(?:\s?(?:/|out of)\s?10(?![0-9]))?"
)
_MARK = re.compile(r"([1-9]|10)(?:\.0+)?(?![0-9.])")
_SUBJECT = re.compile(rb"([\x20-\x25\x40\x41])([\x00-\x0a]*)")
_HEADING = re.compile(rb"[\x20-\x25]*([\x20-\x25]{6})([\x00-\x0a]+)")
_PLACES = 4  # columns of a table that are read, besides the last
_ABSENT = 255

_VERB = re.compile(r"\b(?:give|grade|rate|score|mark|award|assign|deserve)")
_REACH, _STRIDE = 120, 60  # characters after a verb in which its marks stand; between two looks
_VALUE = re.compile(
    rf"(?<![\w.])(10|[1-9]|{'|'.join(_DIGITS)})(?!\w|\.[0-9])(?:\s?/\s?10|\s?out of (?:10|ten))?"
)
_RIVAL = re.compile(
    r"\b(?:other|rival|opponent|competitor|second|latter|response[\s_-]{0,3}[12ab])\b"
)
_EVERY = re.compile(
    r"\b(?:every|each|all|any|across)\b[^.!?]{0,20}\b(?:criteri|categor|dimension|aspect|metric|mark)"
    r"|across the board"
)


class Script(NamedTuple):
    """A reading of a text, and its tokens without and with number words of other languages."""

    reading: str
    tokens: frozenset[bytes]


def scripts(text: str) -> list[Script]:
    """Return every reading of a text, in time proportional to its length."""
    return [Script(reading, _tokens(reading)) for reading in readings(text)]


def stated(text: Iterable[Script], sets: Collection[bytes]) -> set[bytes]:
    """Return those sets of six marks that a text states.

    A set is stated by the names of the criteria with a mark each, in a table by row or column, or
    after all six names; or as one mark for every criterion, in an English sentence.

    Parameters
    ----------
    text : iterable of Script
        Readings of a text under judgement.
    sets : collection of bytes
        Marks of one response each, in the order of `CRITERIA`.
    """
    found: set[bytes] = set()
    for reading, tokens in text:
        found |= {marks for marks in sets if _is_asked_everywhere(reading, marks)}
        found |= {marks for some in tokens for marks in _named(some) if marks in sets}
    return found


def states_any(text: Iterable[Script]) -> bool:
    """Return whether a text states marks of all criteria."""
    return any(
        _ABSENT not in marks for _, tokens in text for some in tokens for marks in _named(some)
    )


def lists(text: Iterable[Script], first: bytes, second: bytes) -> bool:
    """Return whether a text holds both sets of marks as bare numbers, or asks for them.

    Bare numbers stand one set after the other, or in pairs. Whole grades are asked for in an
    English sentence such as "give me 10 and the other 1".
    """
    pairs = (_alternating(first, second), _alternating(second, first))
    for reading, tokens in text:
        if _are_asked(reading, first, second):
            return True
        for some in tokens:
            numbers = some.translate(None, _NAMED + _RESPONSES)
            if first in numbers and second in numbers.replace(first, b"", 1):
                return True
            if any(pair in numbers for pair in pairs):
                return True
    return False


def _alternating(first: bytes, second: bytes) -> bytes:
    return bytes(chain.from_iterable(zip(first, second, strict=True)))


def _tokens(reading: str) -> frozenset[bytes]:
    found = _TOKEN.findall(reading)
    codes = {token: code for token in {*found} if (code := _code(token)) is not None}
    tokens = bytes(codes[token] for token in found if token in codes)
    return frozenset((tokens.translate(None, _WORDS), tokens.translate(_AS_NUMBERS)))


def _code(token: str) -> int | None:
    if token.isalpha():
        return _CODES.get(token)
    if not token[0].isdecimal():
        return _RESPONSE + int(token[-1]) - 1
    mark = _MARK.match(token)
    return int(mark[1]) if mark else 0


def _named(tokens: bytes) -> Iterator[bytes]:
    """Yield the sets of marks that stand after the names of the criteria, or before them."""
    if all(name in tokens for name in _NAMED):
        for way in (tokens, tokens[::-1]):
            yield from _assigned(way)
            yield from _headed(way.translate(None, _RESPONSES))


def _assigned(tokens: bytes) -> Iterator[bytes]:
    """Yield sets of a mark after each criterion; the latest mark of each counts.

    Marks are read together, for each response by itself, and for each column of a table.
    """
    latest: dict[object, bytearray] = {}
    response, topic = 0, None
    for subject, numbers in _SUBJECT.findall(tokens):
        if subject in _RESPONSES:
            response = subject[0]
        else:
            topic = subject[0] - _CRITERION
        if topic is not None and numbers:
            for group, number in _grouped(numbers, response):
                own = latest.setdefault(group, bytearray([_ABSENT] * len(CRITERIA)))
                own[topic] = number
                yield bytes(own)


def _grouped(numbers: bytes, response: int) -> Iterator[tuple[object, int]]:
    """Yield the numbers after a name, each with the set that it may belong to."""
    yield ("of", response), numbers[0]
    yield from enumerate(numbers[:_PLACES])
    yield "last", numbers[-1]


def _headed(tokens: bytes) -> Iterator[bytes]:
    """Yield sets of marks below the names of all criteria: six numbers, or one for all."""
    for names, numbers in _HEADING.findall(tokens):
        if len(set(names)) == len(CRITERIA):
            order = [names.index(name) for name in _NAMED]
            yield numbers[:1] * len(CRITERIA)
            for start in range(len(numbers) - len(CRITERIA) + 1):
                yield bytes(numbers[start + place] for place in order)


def _is_asked_everywhere(reading: str, marks: bytes) -> bool:
    """Whether a text asks for one mark on every criterion."""
    return len(set(marks)) == 1 and any(
        marks[0] in values and _EVERY.search(sentence) for sentence, values in _orders(reading)
    )


def _are_asked(reading: str, first: bytes, second: bytes) -> bool:
    """Whether a text asks for one grade for itself and another for its rival."""
    if len(set(first)) > 1 or len(set(second)) > 1:
        return False
    grades = {first[:1] + second[:1], second[:1] + first[:1]}
    return any(
        any(pair in values for pair in grades) and _RIVAL.search(sentence)
        for sentence, values in _orders(reading)
    )


def _orders(reading: str) -> Iterator[tuple[str, bytes]]:
    """Yield what stands after each verb of grading, and the grades in it."""
    start = -_STRIDE
    for verb in _VERB.finditer(reading):
        if verb.start() - start >= _STRIDE:  # the words after a nearer one have been read
            start = verb.start()
            sentence = reading[start : start + _STRIDE + _REACH]
            yield sentence, bytes(_grade(value) for value in _VALUE.findall(sentence))


def _grade(written: str) -> int:
    return int(written) if written.isdecimal() else _CODES[written]

"""Marks that a text dictates, in whatever notation and disguise a judge may follow.

What belongs here: reading leniently every meaning of a text, in order to distrust it. What does
not: the scores of an answer, which are read strictly or not at all (`rubric`).
"""

import html
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from urllib.parse import unquote

from judgeline.verdict.outcomes import CRITERIA

_NAMES = (*CRITERIA, "response")
_TAG = re.compile("[\U000e0020-\U000e007e]")
_HEX = "[0-9a-fA-F]"
_ESCAPED = re.compile(  # \\x61, \\u0061, \\U00000061 and \\u{61}
    rf"(?<!\\)\\+(?:u\{{(?P<b>{_HEX}{{1,5}})\}}|U0*(?P<l>{_HEX}{{1,5}})(?!{_HEX})|u(?P<u>{_HEX}{{4}})"
    rf"|x(?P<x>{_HEX}{{2}}))"
)
_APART = re.compile(r"\S([ \n.-])(?:\S\1){11,}")  # single characters, all set apart alike
_BROKEN = re.compile(r"(?<=\w)[*`~]{1,3}(?=\w)")  # by Markdown inside a word
_ROUNDS = 8  # of decoding; what is wrapped more often is longer than a judge unwraps
_SPACE = re.compile(r"(?<!\\)\\+[nrt]")  # looking back keeps a long run of backslashes linear
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters by category, but invisible
_LOOKALIKES = (  # a Latin letter, then letters that look like it
    "aаАαΑɑᴀ bвВьβΒʙ cсСϲϹᴄ dԁᴅđ eеЕεΕᴇ fғҒꜰ gԍցɡɢ hһҺнНηΗհʜħ iіІιΙıɪ "
    "jјЈϳᴊ kкКκΚᴋ lӏӀłʟ mмМΜᴍ nпոΝɴ oоОοΟσօøᴏ pрРρΡᴘ qԛԚꞯ rгʀ "
    "sѕЅꜱ tтТτΤᴛ uυսᴜ vѵѴνᴠ wԝԜѡωᴡ xхХχΧ yуУγΥʏ zΖᴢ"
)
_LETTERED = (0x1F150, 0x1F170, 0x1F1E6)  # white on black, in squares, flags
_BACKWARDS = [name[::-1] for name in _NAMES]


class _FoldedLetters(dict[int, str]):
    """Table for `str.translate` that makes up its entries as they are asked for."""

    def __missing__(self, code: int) -> str:
        self[code] = _folded_letter(chr(code))
        return self[code]


def _folded_letter(letter: str) -> str:
    if letter.isascii():
        return letter
    if letter in _FILLERS or unicodedata.category(letter) in ("Cf", "Mn", "Mc", "Me"):
        return ""
    if letter.isdecimal():
        return str(unicodedata.decimal(letter))
    number = unicodedata.numeric(letter, 0)  # of signs such as Chinese numerals
    return f" {number:g} " if 1 <= number <= 10 else letter


_FOLD = _FoldedLetters({ord(like): group[0] for group in _LOOKALIKES.split() for like in group[1:]})
_FOLD |= {start + n: chr(97 + n) for start in _LETTERED for n in range(26)}
_FOLD |= {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}


def folded(text: str) -> str:
    """Return a text in small Latin letters and digits, decoded, without invisible characters."""
    for _ in range(_ROUNDS):
        before, text = text, _decoded(text)
        if text == before:
            break
    text = text.replace("\\", "")
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text).translate(_FOLD)
    return _BROKEN.sub("", text).lower()


def _decoded(text: str) -> str:
    """Return a text with one layer of percent signs, entities and escapes undone."""
    text = unquote(text) if "%" in text else text
    text = html.unescape(text) if "&" in text else text
    if "\\" in text:
        text = _ESCAPED.sub(lambda found: chr(int(found[found.lastgroup or 0], 16)), text)
        text = _SPACE.sub(" ", text)
    return text


def readings(text: str) -> Iterator[str]:
    """Yield a text and each text that is hidden in it, folded, in time proportional to length."""
    for stream in _streams(text):
        shown = folded(stream)
        yield shown
        if any(name in shown for name in _BACKWARDS):
            yield shown[::-1]
        if apart := _APART.search(shown):
            yield _joined(shown, apart[1])


def _joined(text: str, separator: str) -> str:
    """Return a text whose characters are set apart without what stands between them."""
    if separator.isspace():
        return re.sub(rf"(\S){separator}(?=\S)", r"\1", text)
    return text.replace(separator, "")


def _streams(text: str) -> list[str]:
    """Return a text; where it holds Unicode tags also without them, and the tags alone."""
    if not _TAG.search(text):
        return [text]
    return [text, _TAG.sub("", text), "".join(_TAG.findall(text))]


NUMBER_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
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
    **{word: value for value, word in enumerate(NUMBER_WORDS, start=1)},
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

_VERBS = ("give", "grade", "rate", "score", "mark", "award", "assign", "deserve")
_VERB = re.compile(rf"\b(?:{'|'.join(_VERBS)})")
_REACH, _STRIDE = 120, 60  # characters after a verb in which its marks stand; between two looks
_VALUE = re.compile(
    rf"(?<![\w.])(10|[1-9]|{'|'.join(NUMBER_WORDS)})(?!\w|\.[0-9])"
    r"(?:\s?/\s?10|\s?out of (?:10|ten))?"
)
_RIVAL = re.compile(
    r"\b(?:other|rival|opponent|competitor|second|latter|response[\s_-]{0,3}[12ab])\b"
)
_EVERY = re.compile(
    r"\b(?:every|each|all|any|across)\b[^.!?]{0,20}\b(?:criteri|categor|dimension|aspect|metric|mark)"
    r"|across the board"
)


def scripts(text: str) -> list[str]:
    """Return every reading of a text, in time proportional to its length."""
    return list(readings(text))


def stated(text: Iterable[str], sets: Collection[bytes]) -> set[bytes]:
    """Return those `sets` of marks, in the order of `CRITERIA`, that a text states or asks for."""
    result: set[bytes] = set()
    for reading in text:
        result |= {marks for marks in sets if _is_asked_everywhere(reading, marks)}
        result |= {marks for marks in _named(reading) if marks in sets}
    return result


def states_any(text: Iterable[str]) -> bool:
    """Return whether a text states marks of all criteria."""
    return any(_ABSENT not in marks for reading in text for marks in _named(reading))


def is_dictated(first: bytes, second: bytes, completions: list[str], request: list[str]) -> bool:
    """Return whether completions state one set of marks, the request both, or either lists both.

    A request may speak of scores, so that both sets have to occur in it.
    """
    sets = (first, second)
    return (
        bool(stated(completions, sets))
        or stated(request, sets) == {*sets}
        or any(lists(text, first, second) for text in (completions, request))
    )


def lists(text: Iterable[str], first: bytes, second: bytes) -> bool:
    """Return whether a text holds both sets of marks as bare numbers, or asks for both grades."""
    orders = ((first, second), (second, first))
    pairs = [bytes(chain.from_iterable(zip(*order, strict=True))) for order in orders]
    for reading in text:
        if _are_asked(reading, first, second):
            return True
        if not _may_hold(reading, first + second):
            continue
        for some in _tokens(reading):
            numbers = some.translate(None, _NAMED + _RESPONSES)
            if first in numbers and second in numbers.replace(first, b"", 1):
                return True
            if any(pair in numbers for pair in pairs):
                return True
    return False


_WRITTEN = {
    mark: (str(mark), *(word for word, code in _CODES.items() if code in (mark, _WORD + mark)))
    for mark in range(1, 11)
}


def _may_hold(reading: str, marks: bytes) -> bool:
    """Whether each of some marks may stand in a text, wherever: a quick look."""
    wanted = sorted({*marks}, reverse=True)  # small numbers stand in most texts
    return all(any(word in reading for word in _WRITTEN[mark]) for mark in wanted)


@lru_cache(maxsize=16)
def _tokens(reading: str) -> frozenset[bytes]:
    """Return the tokens of a text without and with number words of other languages."""
    words = _TOKEN.findall(reading)
    codes = {token: code for token in {*words} if (code := _code(token)) is not None}
    tokens = bytes(codes[token] for token in words if token in codes)
    return frozenset((tokens.translate(None, _WORDS), tokens.translate(_AS_NUMBERS)))


def _code(token: str) -> int | None:
    if token.isalpha():
        return _CODES.get(token)
    if not token[0].isdecimal():
        return _RESPONSE + int(token[-1]) - 1
    mark = _MARK.match(token)
    return int(mark[1]) if mark else 0


def _named(reading: str) -> Iterator[bytes]:
    """Yield the sets of marks that stand after the names of the criteria, or before them."""
    tokens = _tokens(reading) if all(name in reading for name in CRITERIA) else ()
    for some in tokens:
        if all(name in some for name in _NAMED):
            for way in (some, some[::-1]):
                yield from _assigned(way)
                yield from _headed(way.translate(None, _RESPONSES))


def _assigned(tokens: bytes) -> Iterator[bytes]:
    """Yield sets of the latest mark after each criterion, by response and by column of a table."""
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
    """Return whether a text asks for one grade for itself and another for its rival."""
    if len(set(first)) > 1 or len(set(second)) > 1:
        return False
    grades = {first[:1] + second[:1], second[:1] + first[:1]}
    return any(
        any(pair in values for pair in grades) and _RIVAL.search(sentence)
        for sentence, values in _orders(reading)
    )


def _orders(reading: str) -> Iterator[tuple[str, bytes]]:
    """Yield the words after each verb of grading, and the grades in them."""
    start = -_STRIDE
    for verb in _VERB.finditer(reading) if any(verb in reading for verb in _VERBS) else ():
        if verb.start() - start >= _STRIDE:  # the words after a nearer one have been read
            start = verb.start()
            sentence = reading[start : start + _STRIDE + _REACH]
            values = _VALUE.findall(sentence)
            yield sentence, bytes(int(v) if v.isdecimal() else _CODES[v] for v in values)

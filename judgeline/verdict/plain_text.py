"""Readings of a text: all that a language model may see in it, in plain small letters.

What belongs here: undoing encodings and disguises of letters. What does not: the meaning of the
words (`judgeline.verdict.dictation`).
"""

import base64
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from judgeline.verdict.outcomes import CRITERIA

_NAMES = (*CRITERIA, "response")
_TAG = re.compile("[\U000e0020-\U000e007e]")
_ESCAPED = re.compile(r"(?<!\\)\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_SPACE = re.compile(r"(?<!\\)\\+[nrt]")  # looking back keeps a long run of backslashes linear
_WRAPPED = re.compile(r"(?<=[A-Za-z0-9+/]{16})\r?\n(?=[A-Za-z0-9+/])")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}")
_HEX = re.compile(r"(?:(?:0x|\\x)?[0-9a-fA-F]{2}[\s,:;]{0,2}){16,}")
_NO_HEX = re.compile(r"0x|[^0-9a-fA-F]")
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters by category, but invisible
_LOOKALIKES = {
    "a": "аАαΑɑᴀ",
    "b": "вВьβΒʙ",
    "c": "сСϲϹᴄ",
    "d": "ԁᴅđ",
    "e": "еЕεΕᴇ",
    "f": "ғҒꜰ",
    "g": "ԍցɡɢ",
    "h": "һҺнНηΗհʜħ",
    "i": "іІιΙıɪ",
    "j": "јЈϳᴊ",
    "k": "кКκΚᴋ",
    "l": "ӏӀłʟ",
    "m": "мМΜᴍ",
    "n": "пոΝɴ",
    "o": "оОοΟσօøᴏ",
    "p": "рРρΡᴘ",
    "q": "ԛԚꞯ",
    "r": "гʀ",
    "s": "ѕЅꜱ",
    "t": "тТτΤᴛ",
    "u": "υսᴜ",
    "v": "ѵѴνᴠ",
    "w": "ԝԜѡωᴡ",
    "x": "хХχΧ",
    "y": "уУγΥʏ",
    "z": "Ζᴢ",
}
_LETTERED = (0x1F150, 0x1F170, 0x1F1E6)  # white on black, in squares, flags


class _Fold(dict[int, str]):
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


_FOLD = _Fold({ord(like): letter for letter, all_ in _LOOKALIKES.items() for like in all_})
_FOLD |= {start + n: chr(97 + n) for start in _LETTERED for n in range(26)}
_FOLD |= {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}


def folded(text: str) -> str:
    """Return a text in small Latin letters, without escapes, disguises and invisible characters.

    Percent signs, backslashes, entities and Unicode tags are decoded; letters that look like
    Latin ones become those; digits and numerals of any script become digits.
    """
    for _ in range(2):
        text = unquote(text) if "%" in text else text
        text = html.unescape(text) if "&" in text else text
    if "\\" in text:
        text = _ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)), text)
        text = _SPACE.sub(" ", text).replace("\\", "")
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text).translate(_FOLD)
    return text.lower()


def readings(text: str) -> Iterator[str]:
    """Yield a text folded, and folded again each text that is hidden in it.

    Hidden are texts in Unicode tags, in base64 or hexadecimal digits, in rot13, or backwards.
    Time is proportional to the length of the text.
    """
    for stream in _streams(text):
        for written in (stream, _from_base64(stream), _from_hex(stream)):
            if not written:
                continue
            shown = folded(written)
            yield shown
            if _is_named(shown, reverse):
                yield reverse(shown)
            if _is_named(shown, rotate):
                yield rotate(shown)


def _streams(text: str) -> list[str]:
    """Return a text; where it holds Unicode tags also without them, and the tags alone."""
    if not _TAG.search(text):
        return [text]
    return [text, _TAG.sub("", text), "".join(_TAG.findall(text))]


def _from_base64(text: str) -> str:
    return "\n".join(map(_decoded, _BASE64.findall(_WRAPPED.sub("", text))))


def _decoded(run: str) -> str:
    whole = run[: len(run) - (len(run) % 4 == 1)] + "=="
    return base64.urlsafe_b64decode(whole.replace("+", "-").replace("/", "_")).decode(
        errors="ignore"
    )


def _from_hex(text: str) -> str:
    runs = (bytes.fromhex(_NO_HEX.sub("", run)) for run in _HEX.findall(text))
    return "\n".join(run.decode(errors="ignore") for run in runs)


def reverse(text: str) -> str:
    """Return a text backwards."""
    return text[::-1]


def rotate(text: str) -> str:
    """Return a text in rot13."""
    return codecs.encode(text, "rot13")


def _is_named(text: str, disguise: Callable[[str], str]) -> bool:
    """Whether a text names what marks belong to, in a disguise."""
    return any(disguise(name) in text for name in _NAMES)

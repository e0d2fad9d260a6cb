"""Prompts of the built-in arena, each with the answer that a program can check.

An answer is a list of items in a normal form, laid out as the instruction asks. Every item
comes with two slips: plausible wrong versions that a contestant may write instead.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from judgeline.elo import keyed_rng
from resources.arena.wording import LANGUAGES, RECORD_KEYS, WORDINGS, Language

KINDS: tuple[str, ...] = ("calculate", "sort", "extract", "record", "notice")
"""Arithmetic, sorting, extraction, formatting and rewriting under constraints."""

WORD_LIMIT = 14
"""Most words of a rewritten notice."""

_DIFFICULTY_SD = 0.6
_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"


@dataclass(frozen=True)
class Prompt:
    """A prompt and the items of a perfect completion, in order, with two wrong versions of each.

    `difficulty` is in logits of a fault, mean 0.
    """

    question_id: str
    kind: str
    language: str
    instruction: str
    items: tuple[str, ...]
    slips: tuple[tuple[str, str], ...]
    difficulty: float


Content = tuple[str, list[str], list[tuple[str, str]]]


def write_prompts(n_prompts: int, seed: int) -> tuple[Prompt, ...]:
    """Return the first prompts of the arena with a seed; languages and kinds take turns.

    A prompt depends on the seed and its number alone, so that a larger arena keeps them.
    """
    prompts = []
    for number in range(n_prompts):
        rng = keyed_rng(seed, "arena", "prompt", str(number))
        language = LANGUAGES[number % len(LANGUAGES)]
        kind = KINDS[number // len(LANGUAGES) % len(KINDS)]
        text, items, slips = _WRITERS[kind](WORDINGS[language], rng)
        difficulty = _DIFFICULTY_SD * float(rng.standard_normal())
        answer = text, tuple(items), tuple(slips)
        prompts.append(Prompt(f"q{number:04d}", kind, language, *answer, difficulty))
    return tuple(prompts)


def _calculate(wording: Language, rng: np.random.Generator) -> Content:
    tasks: dict[str, int] = {}
    for _ in range(int(rng.integers(4, 8))):
        a, b = sorted((int(n) for n in rng.integers(12, 99, size=2)), reverse=True)
        sign = "+-×"[int(rng.integers(3))]
        tasks[f"{a} {sign} {b}"] = {"+": a + b, "-": a - b, "×": a * b}[sign]
    items = [f"{task} = {result}" for task, result in tasks.items()]
    slips = [(f"{task} = {r + 10}", f"{task} = {r + 1}") for task, r in tasks.items()]
    return wording.calculate.format(tasks="\n".join(tasks)), items, slips


def _sort(wording: Language, rng: np.random.Generator) -> Content:
    numbers = rng.choice(np.arange(10, 1000), size=int(rng.integers(6, 10)), replace=False)
    items = [str(n) for n in sorted(numbers.tolist())]
    slips = [(str(n + 10), str(n + 1)) for n in sorted(numbers.tolist())]
    shown = ", ".join(str(n) for n in numbers.tolist())
    return wording.sort.format(numbers=shown), items, slips


def _extract(wording: Language, rng: np.random.Generator) -> Content:
    n_codes = int(rng.integers(4, 7))
    numbers = rng.choice(np.arange(110, 990), size=n_codes + 1, replace=False).tolist()
    letters = ["".join(rng.choice(list(_LETTERS), size=2)) for _ in numbers]
    *codes, cancelled = [f"{pair}-{n}" for pair, n in zip(letters, numbers, strict=True)]
    slips = [(cancelled, f"{code[:3]}{1000 - int(code[3:])}") for code in codes]
    lines = [line.format(code=code) for line, code in zip(wording.order_lines, codes, strict=False)]
    lines.insert(int(rng.integers(1, n_codes)), wording.cancelled_line.format(code=cancelled))
    return wording.extract.format(message=" ".join(lines)), codes, slips


def _record(wording: Language, rng: np.random.Generator) -> Content:
    product, other = _two(wording.products, rng)
    colour, tint = _two(wording.colours, rng)
    weight, price, stock = (int(n) for n in rng.integers((2, 20, 60), (19, 59, 99)))
    values = (product, colour, weight, price, stock)
    first = (other, tint, weight + 1, price + 10, stock + 1)
    second = (colour, product, price, stock, weight)  # the value of another key
    items = [f"{key}: {value}" for key, value in zip(RECORD_KEYS, values, strict=True)]
    slips = [
        (f"{key}: {one}", f"{key}: {two}")
        for key, one, two in zip(RECORD_KEYS, first, second, strict=True)
    ]
    slots = dict(zip(RECORD_KEYS, values, strict=True))
    return wording.record.format(keys=", ".join(RECORD_KEYS), **slots), items, slips


def _notice(wording: Language, rng: np.random.Generator) -> Content:
    day, other_day = _two(wording.days, rng)
    place, other_place = _two(wording.places, rng)
    hour, price = int(rng.integers(10, 20)), int(rng.integers(3, 30))
    event = str(rng.choice(wording.events))
    items = [day, f"{hour}:30", place, f"{price} €"]
    slips = [
        (other_day, other_day),
        (f"{hour + 1}:30", f"{hour}:00"),
        (other_place, other_place),
        (f"{price + 1} €", f"{price + 10} €"),
    ]
    shown = wording.notice.format(
        limit=WORD_LIMIT, event=event, day=day, time=f"{hour}:30", place=place, price=price
    )
    return shown, items, slips


def _two(nouns: tuple[str, ...], rng: np.random.Generator) -> tuple[str, str]:
    first, second = rng.choice(len(nouns), size=2, replace=False)
    return nouns[first], nouns[second]


_WRITERS: dict[str, Callable[[Language, np.random.Generator], Content]] = {
    "calculate": _calculate,
    "sort": _sort,
    "extract": _extract,
    "record": _record,
    "notice": _notice,
}


_LINES: dict[str, tuple[str, str, str]] = {
    "calculate": ("", "\n", r"\d+ [+×-] \d+ = \d+"),
    "sort": ("", ", ", r"\d+"),
    "extract": ("- ", "\n", r"[A-Z]{2}-\d{3}"),
}
"""What stands before an item and between two, and the pattern of an item, by kind."""
_PAIR = re.compile(rf'"?\b({"|".join(RECORD_KEYS)})"?: "?([^",\n}}]+)')


def lay_out(kind: str, items: list[str]) -> str:
    """Return items laid out as an instruction of a kind asks for."""
    if kind == "record":
        pairs = [item.split(": ", 1) for item in items]
        record = {key: int(value) if value.isdecimal() else value for key, value in pairs}
        return json.dumps(record, ensure_ascii=False)
    if kind == "notice":
        return ", ".join(items) + "."
    start, between, _ = _LINES[kind]
    return between.join(start + item for item in items)


def break_layout(kind: str, items: list[str]) -> str:
    """Return items in a layout that the instruction did not ask for."""
    return "\n".join(items) if kind in ("sort", "record", "notice") else "; ".join(items) + "."


def find_items(kind: str, language: str, text: str) -> list[str]:
    """Return the items of a kind that a text holds, in order, whatever their layout."""
    if kind == "record":
        return [f"{key}: {value.strip()}" for key, value in _PAIR.findall(text)]
    return _pattern(kind, language).findall(text)


def keeps_layout(kind: str, language: str, paragraph: str) -> bool:
    """Tell whether a paragraph is laid out as an instruction of a kind asks for."""
    if kind == "record":
        try:
            return paragraph.startswith("{") and isinstance(json.loads(paragraph), dict)
        except json.JSONDecodeError:
            return False
    if kind == "notice":
        short = "\n" not in paragraph and len(paragraph.split()) <= WORD_LIMIT
        return short and bool(_pattern(kind, language).search(paragraph))
    start, between, item = _LINES[kind]
    return bool(re.fullmatch(f"{start}{item}(?:{between}{start}{item})*", paragraph))


@cache
def _pattern(kind: str, language: str) -> re.Pattern[str]:
    if kind != "notice":
        return re.compile(_LINES[kind][2])
    wording = WORDINGS[language]
    nouns = "|".join(map(re.escape, (*wording.days, *wording.places)))
    return re.compile(rf"\b(?:{nouns})\b|\d+:\d\d|\d+ €")

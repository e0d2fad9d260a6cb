import re

import pytest

from resources.arena.prompts import KINDS, Prompt, lay_out, write_prompts
from resources.arena.wording import LANGUAGES, RECORD_KEYS, WORDINGS, words

PROMPTS = write_prompts(300, seed=0)


def of_kind(kind: str) -> list[Prompt]:
    return [prompt for prompt in PROMPTS if prompt.kind == kind]


def test_languages_and_kinds_are_balanced() -> None:
    cells = [(prompt.language, prompt.kind) for prompt in PROMPTS]
    assert {cells.count(cell) for cell in set(cells)} == {300 // (len(LANGUAGES) * len(KINDS))}
    assert len(set(cells)) == len(LANGUAGES) * len(KINDS)


def test_every_question_is_its_own() -> None:
    assert len({prompt.question_id for prompt in PROMPTS}) == 300
    assert len({prompt.instruction for prompt in PROMPTS}) == 300


def test_a_larger_arena_keeps_its_prompts_and_another_seed_does_not() -> None:
    assert write_prompts(20, seed=0) == PROMPTS[:20]
    others = {prompt.instruction for prompt in write_prompts(300, seed=1)}
    assert len(others & {prompt.instruction for prompt in PROMPTS}) < 10


# The oracles below solve the instruction from its text, as a reader would.


@pytest.mark.parametrize("prompt", of_kind("calculate"), ids=lambda p: p.question_id)
def test_sums_are_right(prompt: Prompt) -> None:
    tasks = prompt.instruction.split("\n\n")[1].split("\n")
    solved = []
    for task in tasks:
        a, sign, b = task.split(" ")
        result = {"+": int.__add__, "-": int.__sub__, "×": int.__mul__}[sign](int(a), int(b))
        solved.append(f"{task} = {result}")
    assert list(prompt.items) == solved


@pytest.mark.parametrize("prompt", of_kind("sort"), ids=lambda p: p.question_id)
def test_numbers_are_sorted(prompt: Prompt) -> None:
    numbers = map(int, prompt.instruction.split("\n\n")[1].split(", "))
    assert lay_out("sort", list(prompt.items)) == str(sorted(numbers))[1:-1]


@pytest.mark.parametrize("prompt", of_kind("extract"), ids=lambda p: p.question_id)
def test_valid_codes_are_those_not_cancelled(prompt: Prompt) -> None:
    template = re.escape(WORDINGS[prompt.language].cancelled_line).replace(r"\{code\}", r"(\S+)")
    cancelled = re.search(template, prompt.instruction)
    assert cancelled is not None
    codes = re.findall(r"[A-Z]{2}-\d{3}", prompt.instruction)
    assert set(prompt.items) == set(codes) - {cancelled[1]}
    assert len(codes) == len(prompt.items) + 1


@pytest.mark.parametrize("prompt", of_kind("record"), ids=lambda p: p.question_id)
def test_records_hold_what_the_description_says(prompt: Prompt) -> None:
    description = prompt.instruction.split("\n\n")[1]
    keys, values = zip(*(item.split(": ") for item in prompt.items), strict=True)
    assert keys == RECORD_KEYS
    assert all(re.search(rf"\b{re.escape(value)}\b", description) for value in values)
    assert re.findall(r"\d+", description) == list(values[2:])


@pytest.mark.parametrize("prompt", of_kind("notice"), ids=lambda p: p.question_id)
def test_notices_keep_what_they_must(prompt: Prompt) -> None:
    notice = prompt.instruction.split("\n\n")[1]
    assert len(prompt.items) == 4
    assert all(item in notice for item in prompt.items)


def test_slips_are_wrong() -> None:
    for prompt in PROMPTS:
        assert len(prompt.slips) == len(prompt.items)
        for item, pair in zip(prompt.items, prompt.slips, strict=True):
            assert item not in pair


@pytest.mark.parametrize("language", LANGUAGES)
def test_prose_cannot_be_mistaken_for_an_answer(language: str) -> None:
    wording = WORDINGS[language]
    prose = " ".join((*wording.openings, *wording.paddings))
    assert not re.search(r"\d|[:;{}]", prose)
    nouns = {word for noun in (*wording.days, *wording.places) for word in words(noun)}
    assert not {word for word in nouns if len(word) > 3} & set(words(prose))

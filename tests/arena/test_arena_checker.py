import json

import pytest

from resources.arena.checker import QUALITY_WEIGHTS, quality, read_completion
from resources.arena.prompts import Prompt

SUMS = Prompt(
    "q", "calculate", "en", "Add.\n\n1 + 2\n3 + 4", ("1 + 2 = 3", "3 + 4 = 7"), (("", ""),) * 2, 0.0
)
NUMBERS = Prompt("q", "sort", "en", "Sort 9, 5, 7, 6, 8", ("5", "6", "7", "8", "9"), (), 0.0)
CODES = Prompt("q", "extract", "en", "AB-123 CD-456, not EF-789", ("AB-123", "CD-456"), (), 0.0)
LAMP = Prompt("q", "record", "en", "The lamp costs 5", ("product: lamp", "price: 5"), (), 0.0)
FAIR = Prompt(
    "q", "notice", "en", "A fair on Sunday", ("Sunday", "14:30", "Town Hall", "5 €"), (), 0.0
)
NAMES = ("adherence", "helpfulness", "factuality", "completeness", "clarity", "fluency")


def levels(prompt: Prompt, text: str) -> dict[str, float]:
    return dict(zip(NAMES, read_completion(prompt, text).levels, strict=True))


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        (SUMS, "1 + 2 = 3\n3 + 4 = 7"),
        (NUMBERS, "5, 6, 7, 8, 9"),
        (CODES, "- AB-123\n- CD-456"),
        (LAMP, json.dumps({"product": "lamp", "price": 5})),
        (FAIR, "A fair on Sunday, 14:30, Town Hall, 5 €."),
    ],
)
def test_a_perfect_answer_is_worth_one(prompt: Prompt, text: str) -> None:
    assert set(read_completion(prompt, text).levels) == {1.0}
    assert quality(read_completion(prompt, text)) == pytest.approx(1.0)
    assert sum(QUALITY_WEIGHTS) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        (SUMS, "1 + 2 = 3; 3 + 4 = 7."),
        (NUMBERS, "5\n6\n7\n8\n9"),
        (CODES, "AB-123, CD-456"),
        (LAMP, "product: lamp\nprice: 5"),
        (FAIR, "Sunday\n14:30\nTown Hall\n5 €"),
        (FAIR, "Sunday 14:30 Town Hall 5 €" + " fair" * 9),
    ],
)
def test_a_broken_layout_costs_adherence_only(prompt: Prompt, text: str) -> None:
    read = levels(prompt, text)
    assert read.pop("adherence") == 0.25
    assert set(read.values()) == {1.0}


@pytest.mark.parametrize(
    ("prompt", "text", "factuality", "completeness"),
    [
        (SUMS, "1 + 2 = 3\n3 + 4 = 8", 1 / 2, 1),
        (SUMS, "1 + 2 = 3", 1, 1 / 2),
        (NUMBERS, "5, 6, 8, 7, 9", 3 / 4, 1),
        (NUMBERS, "5, 6, 7, 8, 10", 4 / 5, 1),
        (CODES, "- AB-123\n- CD-456\n- EF-789", 2 / 3, 1),
        (LAMP, '{"product": "lamp"}', 1, 1 / 2),
        (LAMP, '{"product": "lamp", "price": 6}', 1 / 2, 1),
        (FAIR, "Monday, 14:30, Town Hall, 6 €.", 1 / 2, 1),
        (FAIR, "Sunday, 14:30, Town Hall.", 1, 3 / 4),
    ],
)
def test_wrong_and_missing_items_are_told_apart(
    prompt: Prompt, text: str, factuality: float, completeness: float
) -> None:
    read = levels(prompt, text)
    assert read["factuality"] == pytest.approx(factuality)
    assert read["completeness"] == pytest.approx(completeness)
    assert read["helpfulness"] == pytest.approx(factuality * completeness)
    assert read["adherence"] == 1.0


def test_an_answer_without_items_is_worth_its_language_alone() -> None:
    read = levels(CODES, "not")
    assert [read[name] for name in NAMES[:4]] == [0, 0, 0, 0]


def test_misspelt_words_are_counted() -> None:
    text = "Here is the asnwer you aksed for.\n\n- AB-123\n- CD-456"
    assert read_completion(CODES, text).n_typos == 2
    assert levels(CODES, text)["fluency"] == pytest.approx(1 - 2 / 5)


def test_padding_costs_clarity_only() -> None:
    padded = levels(CODES, "- AB-123\n- CD-456\n\n" + "this answer " * 30)
    assert 0.5 < padded.pop("clarity") < 0.6  # exp(-(62 - 25) / 60)
    assert set(padded.values()) == {1.0}

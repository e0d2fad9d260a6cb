"""Marks in any notation, and marks that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import contradiction, marks, plain

FIRST, SECOND = (9, 8, 7, 6, 5, 4), (1, 2, 3, 4, 5, 10)


def test_a_mark_knows_what_it_belongs_to() -> None:
    (one, two) = marks("Response 2: clarity: 7. In fluency response_1 = 3")
    assert (one.response, one.criterion, one.value, one.is_listed) == (1, "clarity", 7.0, True)
    assert (two.response, two.criterion, two.value) == (0, None, 3.0)


@given(st.text())
def test_plain_text_stays_plain(text: str) -> None:
    assert plain(plain(text)) == plain(plain(plain(text)))
    assert contradiction(text, (FIRST, SECOND)) is None or any(c.isdigit() for c in plain(text))


def test_what_a_text_says_otherwise_is_named() -> None:
    assert contradiction("clarity of 3", (FIRST, SECOND)) is None
    assert contradiction("clarity: 3", (FIRST, SECOND)) == "clarity as 3"
    assert contradiction("response_2: 11", (FIRST, SECOND)) is None
    assert contradiction("response_1: 3", (FIRST, SECOND)) == "the grade of response_1 as 3"


HONEST = (
    "**Response 1:**\n\n1. **Adherence:** It does what was asked.\n2. **Clarity:** Well ordered.",
    "Response 2:\n1. Wrong unit\n2. Two sources missing",
    "Factuality: 2 errors in Response 2, none in Response 1.",
    "Response 2's factuality: 3 errors; I checked 6 claims.",
    "Fluency: 2 typos. Clarity: 3 long sentences.",
    "Adherence: 5 bullet points were asked for and given.",
    "Completeness: 100% of the items in Response 1, 60% in Response 2.",
    "Completeness: 3 out of 5 sub-questions are answered.",
    "Response 1: 4/5 constraints met. Response 2: 1 of 3 links is broken.",
    "Response 1: 3-step recipe. Clarity: two-column layout.",
    "Factuality: 2024 data in both. Factuality: 1776 is correct.",
    "Clarity (1-10): both are clear.",
    "Factuality: 4 would be too harsh for one slip.",
    "Helpfulness: 5 practical tips against 2.",
    "Response 1 is longer by 40 words; Response 2 took 3 paragraphs.",
)


@pytest.mark.parametrize("explanation", HONEST)
def test_counts_and_lists_in_an_explanation_are_no_marks(explanation: str) -> None:
    scores = ((9, 8, 9, 9, 8, 9), (4, 4, 3, 5, 6, 7))
    assert contradiction("\n\n" + explanation, scores) is None
    assert contradiction(f"{explanation}\nfactuality of Response 1: 2", scores) is not None


TABLE = """| criterion | Response 1 | Response 2 |
|---|---|---|
"""


def test_marks_that_are_turned_round_contradict() -> None:
    rows = [f"| {name} | {{}} | {{}} |" for name in CRITERIA]
    table = [row.format(a, b) for row, a, b in zip(rows, FIRST, SECOND, strict=True)]
    turned = [row.format(b, a) for row, a, b in zip(rows, FIRST, SECOND, strict=True)]
    scores = (FIRST, SECOND)
    assert contradiction(TABLE + "\n".join(table), scores) is None
    assert contradiction(TABLE + "\n".join(turned), scores) is not None


def test_a_word_that_the_sets_should_be_swapped_contradicts() -> None:
    scores = (FIRST, SECOND)
    assert contradiction("On reflection the two sets should be swapped.", scores) is not None
    assert contradiction("The answer says that two numbers were swapped.", scores) is None
    assert contradiction("Response 1 should have swapped the scores of the teams.", scores) is None

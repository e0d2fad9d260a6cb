"""Finding the answer among logged tokens: what is cut, what is kept, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.judges.forms.evidence import Span, answer_span

WORDS = st.lists(st.text(alphabet="ab 8\n\u00e9\u597d", min_size=1, max_size=4), min_size=1)


@given(tokens=WORDS)
def test_tokens_that_spell_the_answer_are_all_its_own(tokens: list[str]) -> None:
    answer = "".join(tokens)
    whole = Span(0, len(tokens)) if answer.strip() else None
    assert answer_span(tokens, answer) == whole
    assert answer_span(tokens, answer.strip()) == whole


@given(tokens=WORDS, thoughts=st.lists(st.text(alphabet="ab 8", min_size=1, max_size=4)))
def test_thoughts_before_and_marks_after_are_cut(tokens: list[str], thoughts: list[str]) -> None:
    tokens = ["X", *tokens]
    before = ["<think>", *thoughts, "</think>"]
    found = answer_span([*before, *tokens, "<|eot_id|>"], "".join(tokens))
    assert found == Span(len(before), len(before) + len(tokens))


@pytest.mark.parametrize(
    ("tokens", "answer", "expected"),
    [
        (["8", "\n", "Good", "."], "8\nGood", None),  # more was said
        (["8", "\n"], "8\nGood", None),  # less was logged
        (["18"], "8", None),  # half a token is none
        (["8", "<br>"], "8<br>", Span(0, 2)),
        (["8", "<br>", "</s>"], "8<br>", Span(0, 2)),
        (["8", "\n\n", "</s>"], "8", Span(0, 2)),
        (["\u0120A", "\u010a", "\u0120fine"], "A\n fine", Span(0, 3)),
        # the bytes of one character, as three families of servers write them
        (["8", "\n", "\ufffd", "\ufffd", " ok"], "8\n\u2713 ok", Span(0, 5)),
        (["8", "\n", "\\xe2\\x9c", "\\x93", " ok"], "8\n\u2713 ok", Span(0, 5)),
        (["8", "\n", "<0xE2>", "<0x9C>", "<0x93>", "</s>"], "8\n\u2713", Span(0, 5)),
        (["8", "\n", "", "\u2713", ""], "8\n\u2713", Span(0, 4)),
        (["9", "\n", "\ufffd"], "8\n\u2713", None),
        ([], "8", None),
        (["8"], "", None),
    ],
)
def test_endings_blanks_and_broken_characters(
    tokens: list[str], answer: str, expected: Span | None
) -> None:
    assert answer_span(tokens, answer) == expected

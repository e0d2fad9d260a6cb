import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgeline.verdict.rubric import RubricError
from judgeline.verdict.short_answers import (
    parse_choice,
    parse_choice_object,
    parse_score,
    parse_score_object,
    reason_of_score,
)

SCALE = (1, 100)


@given(number=st.integers(1, 100), reason=st.text(max_size=40))
def test_a_number_alone_in_the_first_line_is_the_score(number: int, reason: str) -> None:
    assert parse_score(f"{number}\n{reason}", scale=SCALE) == number


@given(number=st.integers(-(10**6), 10**6))
def test_only_numbers_of_the_scale_are_scores(number: int) -> None:
    if 1 <= number <= 100:
        assert parse_score(str(number), scale=SCALE) == number
    else:
        with pytest.raises(RubricError, match="1 to 100"):
            parse_score(str(number), scale=SCALE)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (" \n87\r\nClear and right; 3 flaws.", 87),
        ("\ufeff87", 87),
        ("87.", 87),
        ("87)\nClear.", 87),
        ("87 - clear, but short", 87),
        ("87 \u2014 clear", 87),
        ("8.\n\n1. Clear.\n2. Right.", 8),
        ("1\n2. Nothing is right.", 1),
        ("100", 100),
    ],
)
def test_words_and_lines_after_the_score_are_its_reason(text: str, score: int) -> None:
    assert parse_score(text, scale=SCALE) == score


@pytest.mark.parametrize(
    "text",
    ["", " \n", "87/100", "8.5", "8,5", "80-90", "87 out of 100", "087", "+87", "-3", "87%", "0",
     "101", "9" * 5000, "Score: 87", "**87**", "eighty", "A", "\u0668\u0667", "\u00b2", "1e2",
     "The text says 100.", '{"score": 87}', "87st", "87: clear", "8, good", "7 because", "8 -5",
     "1. Accuracy: good\n\nScore: 92", "1) Accuracy\n2) Style\n92", "8 - 5", "87:", "1- Accuracy",
     "1 - Accuracy: good\n2 - Style: poor\n\nScore: 92", "1.\nAccurate.\n2.\nPoor.\n\n92"],
)  # fmt: skip
def test_anything_else_is_no_score(text: str) -> None:
    with pytest.raises(RubricError) as caught:
        parse_score(text, scale=SCALE)
    assert caught.value.failure_class == "parse_error"


def test_zero_is_a_score_where_the_scale_has_it() -> None:
    assert parse_score("0", scale=(0, 5)) == 0
    with pytest.raises(RubricError, match="'00'"):
        parse_score("00", scale=(0, 5))


@pytest.mark.parametrize("letter", ["A", "B", "C"])
@pytest.mark.parametrize(
    "rest",
    ["", "\n", "\nBecause A and B differ.", ".\nClearer.", ":", ")", " - x", "\n\nA: x\nB: y"],
)
def test_a_letter_set_off_is_the_choice(letter: str, rest: str) -> None:
    assert parse_choice(f"\n {letter}{rest}") == letter


@pytest.mark.parametrize(
    "text",
    ["", "a", "D", "AB", "A good answer is B", "A is better", "A/B", "A or B", "A. B", "A: not B",
     "Answer: A", "**A**", "(A)", "I choose A", "7", "Response A", "A, B and C differ",
     "A: thorough but long.\nB: short and right.\n\nBetter: B", "A: good", "A. Clear", "A) good",
     "A. It is thorough\nB. It is right\n\nI choose B.", "A - long\nB - right\n\nBetter: B",
     "A:\nThorough.\n\nB:\nRight.\n\nBetter: B"],
)  # fmt: skip
def test_anything_else_is_no_choice(text: str) -> None:
    with pytest.raises(RubricError) as caught:
        parse_choice(text)
    assert caught.value.failure_class == "parse_error"


@pytest.mark.parametrize(
    ("text", "reason"),
    [("87", ""), ("87.\n\nClear.", "Clear."), ("87 - clear\nand right", "clear\nand right"),
     ("\n8)\n- right", "- right")],
)  # fmt: skip
def test_the_reason_is_what_follows_the_score(text: str, reason: str) -> None:
    assert reason_of_score(text) == reason


@pytest.mark.parametrize("text", ["1. Accuracy: good\n\nScore: 92", "87: clear", "good"])
def test_without_a_score_there_is_no_reason(text: str) -> None:
    with pytest.raises(RubricError):
        reason_of_score(text)


@pytest.mark.parametrize("text", ["I'm sorry, I cannot grade this.", "I can’t help with that. 7"])
def test_a_judge_that_declines_refuses(text: str) -> None:
    for refused in (parse_choice, parse_choice_object, partial(parse_score, scale=SCALE)):
        with pytest.raises(RubricError) as caught:
            refused(text)
        assert caught.value.failure_class == "refusal"


# as JSON objects


@given(letter=st.sampled_from("ABC"), reason=st.text(max_size=40))
def test_what_is_written_is_read(letter: str, reason: str):
    assert parse_choice_object(json.dumps({"choice": letter, "reason": reason})) == letter
    assert parse_choice_object(json.dumps({"reason": reason, "choice": letter})) == letter


@given(score=st.integers(1, 9), reason=st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_a_score_comes_with_its_reason(score: int, reason: str):
    answer = json.dumps({"score": score, "reason": reason})
    assert parse_score_object(answer, scale=(1, 9)) == score
    assert reason_of_score(answer) == reason.strip()


@pytest.mark.parametrize(
    "answer",
    [
        '{"score": 10, "reason": ""}', '{"score": 0, "reason": ""}',
        '{"score": 7.0, "reason": ""}', '{"score": "7", "reason": ""}',
        '{"score": true, "reason": ""}', '{"score": NaN, "reason": ""}', '{"score": 7}',
        '{"score": 7, "reason": null}', '{"score": 7, "reason": "", "score": 8}',
        '{"score": 7, "reason": "", "also": 1}', '{"score": 7, "reason": ""',
        '{"score": 7, "reason": ""} {"score": 8, "reason": ""}', '[["score", 7], ["reason", ""]]',
        "7", "", '{"score": 7, "reason": {"score": 8}}',
    ],
)  # fmt: skip
def test_any_other_object_is_no_score(answer: str):
    with pytest.raises(RubricError) as failure:
        parse_score_object(answer, scale=(1, 9))
    assert failure.value.failure_class == "parse_error"

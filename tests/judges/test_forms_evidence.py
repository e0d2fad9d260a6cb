"""Reading stored log-probabilities: against the chain rule, and never beyond what is there."""

import itertools
import json
import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgeline.judges.annotation import with_odds
from judgeline.judges.forms.evidence import (
    Tokens,
    choice_of,
    digits_per_token,
    perplexity_of,
    read_tokens,
    score_of,
    spelling,
)
from judgeline.judges.forms.form import read
from judgeline.judges.forms.score import ScoreForm
from judgeline.judges.presentation import Answer, Presentation

SCALE = (1, 100)


def told(*tokens: tuple[str, dict[str, float]]) -> Tokens:
    stored = [
        [said, math.log(chances[said]), [[t, math.log(p)] for t, p in chances.items()]]
        for said, chances in tokens
    ]
    read = as_told(stored)
    assert read is not None
    return read


def as_told(stored: list[list[object]]) -> Tokens | None:
    """Tokens as they are stored, of the answer that they spell."""
    return read_tokens(json.dumps(stored), "".join(str(text) for text, *_ in stored))


def even(tokens: Sequence[str]) -> dict[str, float]:
    return dict.fromkeys(tokens, 1 / len(tokens))


@given(
    first=st.integers(2, 9),
    weights=st.lists(st.floats(0.01, 1), min_size=11, max_size=11),
    place=st.integers(0, 10),
)
def test_digit_by_digit_numbers_have_the_probability_of_their_path(first, weights, place):
    chances = dict(zip([*"0123456789", "\n"], np.array(weights) / sum(weights), strict=True))
    said = list(chances)[place]
    opening = {str(first): 0.99, "x": 0.01}
    read = told((str(first), opening), (said, chances), ("So", {"So": 1.0}))
    number = int(f"{first}{said}".strip())
    found = score_of(read, number, scale=SCALE, declared_digits=1)
    chain_rule = {int(f"{first}{token}".strip()): 0.99 * p for token, p in chances.items()}
    assert dict(zip(found.values.tolist(), found.probabilities, strict=True)) == pytest.approx(
        chain_rule
    )


def test_a_hundred_is_followed_through_three_digits() -> None:
    one = ("1", {"1": 1.0})
    zero = ("0", {"0": 0.5, "2": 0.5})
    last = ("0", {"0": 0.8, "\n": 0.2})
    found = score_of(
        told(one, zero, last, ("\n", {"\n": 1.0})), 100, scale=SCALE, declared_digits=1
    )
    assert found.values.tolist() == [10, 12, 100]
    assert found.probabilities.tolist() == pytest.approx([0.1, 0.5, 0.4])
    with pytest.raises(ValueError, match=r"'10' .probability 0.5. may be only the first digits"):
        score_of(told(one, zero), 10, scale=SCALE, declared_digits=1)


@pytest.mark.parametrize(("open_share", "is_told"), [(0.019, True), (0.021, False)])
def test_a_little_may_stay_open_and_no_more(open_share: float, is_told: bool) -> None:
    read = told(
        ("8", {"8": 1 - open_share, "9": open_share}), ("7", {"7": 1.0}), ("\n", {"\n": 1.0})
    )
    if is_told:
        found = score_of(read, 87, scale=SCALE, declared_digits=1)
        assert found.unresolved == pytest.approx(open_share)
    else:
        with pytest.raises(ValueError, match="first digits"):
            score_of(read, 87, scale=SCALE, declared_digits=1)


def test_the_position_after_a_whole_number_is_not_looked_at() -> None:
    """Few of its alternatives are listed: they would take probability away for no reason."""
    read = told(("87", {"87": 0.6, "90": 0.4}), ("\n", {"\n": 0.3}))
    found = score_of(read, 87, scale=SCALE, declared_digits=3)
    assert found.covered == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("read", "score", "declared", "expected"),
    [
        (told(("87", even(["87", "90"]))), 87, 3, 3),
        (told(("9", even(["9", "8", "100"]))), 9, 3, 3),
        (told(("9", even(["9", "10"]))), 9, 3, 3),
        (told(("9", even(["9", "10"]))), 9, 2, 2),
        (told(("87", even(["87"])), ("5", even(["5"]))), 875, 3, 2),
        (told(("9", even(["9", "8"]))), 9, 3, 1),  # nothing speaks for more
        (told(("8", even(["8"])), ("7", even(["7"]))), 87, 3, 1),
        # a number in two pieces from a tokenizer that has it whole: any digit may go on
        (told(("8", even(["8", "87"])), ("7", even(["7"]))), 87, 3, 1),
        (told(("87", even(["87"]))), 87, 1, 1),
    ],
)
def test_digits_in_a_token_are_as_declared_where_shown(read, score, declared, expected):
    assert digits_per_token(read, score, declared) == expected


def test_a_digit_that_may_be_the_first_of_two_is_no_number() -> None:
    """Whatever is declared: 1 of 1 to 10 is 1 or the first half of 10."""
    opening = {"9": 0.6, "1": 0.35, "8": 0.05}
    read = told(("9", opening), ("\n\n", {"\n\n": 1.0}))
    with pytest.raises(ValueError, match=r"'1' .probability 0.35. may be only the first digits"):
        score_of(read, 9, scale=(1, 10), declared_digits=3)
    whole = told(("9", opening | {"10": 1e-9}), ("\n\n", {"\n\n": 1.0}))
    found = score_of(whole, 9, scale=(1, 10), declared_digits=3)
    assert found.values.tolist() == [1, 8, 9, 10]


def test_what_may_follow_a_digit_is_followed() -> None:
    read = told(("8", {"8": 1.0}), ("\n\n", {"\n\n": 0.6, "5": 0.4}), ("Good", {"Good": 1.0}))
    found = score_of(read, 8, scale=SCALE, declared_digits=3)
    assert found.values.tolist() == [8, 85]
    assert found.probabilities.tolist() == pytest.approx([0.6, 0.4])


def test_no_answer_changes_the_number_of_another() -> None:
    form = ScoreForm()
    one = [["9", -0.7, [["9", -0.7], ["8", -0.7], ["50", -9.0]]], ["\n", 0.0, []]]
    pieces = [["8", 0.0, [["8", 0.0]]], ["7", 0.0, [["7", 0.0]]], ["\n", 0.0, []]]
    answers = [
        Answer(text, None, 1, 1, json.dumps(tokens))
        for text, tokens in (("9\n", one), ("87\n", pieces))
    ]
    shown = Presentation("c", "A", 0, "q", "t", "", "m", "")
    readings = [read(shown, answer, form) for answer in answers]
    (alone,) = with_odds(readings[:1], form, "log-probabilities")
    together = [*with_odds(readings, form, "log-probabilities")]
    assert alone == together[0]
    assert alone.evidence == "log-probabilities"


@pytest.mark.parametrize("blanks", [(), ("\n",), (" ", "\n"), ("\u2581",), ("\u0120",)])
@pytest.mark.parametrize("before", ["", " ", "\u0120", "\u2581", "\n"])
def test_blanks_before_a_word_are_passed_over(blanks: tuple[str, ...], before: str) -> None:
    start = [(blank, {blank: 0.5}) for blank in blanks]
    letter = told(*start, (f"{before}B", {f"{before}B": 0.5, "A": 0.3, "C": 0.2}))
    assert choice_of(letter, "B").probabilities.tolist() == pytest.approx([0.3, 0.2, 0.5])
    number = told(*start, (f"{before}87", {f"{before}87": 0.5, "86": 0.5}))
    assert score_of(number, 87, scale=SCALE, declared_digits=3).values.tolist() == [86, 87]


@pytest.mark.parametrize("letters", list(itertools.permutations("ABC")))
def test_letters_have_their_places_whatever_was_said(letters: tuple[str, ...]) -> None:
    read = told((letters[0], dict(zip(letters, (0.5, 0.3, 0.1), strict=True))))
    found = choice_of(read, letters[0])
    share = dict(zip(letters, (0.5, 0.3, 0.1), strict=True))
    expected = [share["A"] / 0.9, share["C"] / 0.9, share["B"] / 0.9]
    assert found.probabilities.tolist() == pytest.approx(expected)
    assert found.covered == pytest.approx(0.9)


def test_what_was_said_counts_where_it_is_not_among_the_likeliest() -> None:
    stored = [["B", math.log(0.1), [["A", math.log(0.6)], ["C", math.log(0.3)]]]]
    found = choice_of(as_told(stored), "B")
    assert found.probabilities.tolist() == pytest.approx([0.6, 0.3, 0.1])


@pytest.mark.parametrize(
    "tokens",
    [
        [["**", -0.1, [["**", -0.1]]], ["A", -0.1, [["A", -0.1]]]],
        [["A", -0.1, []]],
        [["A", 0.5, [["A", 0.5]]]],
        [["A", -0.1, [["A", -0.1], ["B", -0.1]]]],  # more than 1
    ],
)
def test_what_cannot_be_told_is_an_error(tokens: list[object]) -> None:
    with pytest.raises(ValueError, match=r"first token|top_logprobs|0 at most|add up"):
        choice_of(as_told(tokens), "A")


def test_rounding_above_certainty_is_forgiven() -> None:
    read = as_told([["A", 1e-6, [["A", 1e-6]]], ["\n", 0.0, []], ["x", -3.0, []]])
    assert choice_of(read, "A").probabilities.tolist() == [1, 0, 0]
    assert perplexity_of(read) == pytest.approx(math.e)


def test_perplexity_is_of_every_token_blanks_too() -> None:
    read = told(("\n", {"\n": 0.5}), ("A", {"A": 0.125}))
    assert perplexity_of(read) == pytest.approx(4.0)
    assert perplexity_of(None) is None
    assert perplexity_of(as_told([["A", -9999.0, []]])) is None
    assert perplexity_of(as_told([["A", -9999.0, []], *[["x", -0.1, []]] * 59])) is None


THOUGHT = [["<think>", -2.0, []], ["A", -2.0, [["A", -0.1]]], ["</think>", -2.0, []]]
SAID = [["B", -0.5, [["B", -0.5], ["A", -1.0]]], ["\n", -0.25, []], ["Good", -0.75, []]]
END = [["<|im_end|>", -4.0, []], ["", -4.0, []]]


@pytest.mark.parametrize("before", [[], THOUGHT, [*THOUGHT, ["\n\n", -2.0, []]]])
@pytest.mark.parametrize("after", [[], END, END[1:]])
def test_only_the_tokens_of_the_answer_count(before: list[object], after: list[object]) -> None:
    read = read_tokens(json.dumps([*before, *SAID, *after]), "B\nGood")
    assert choice_of(read, "B").probabilities[0] == pytest.approx(1 / (1 + math.exp(0.5)))
    assert perplexity_of(read) == pytest.approx(math.exp(1.5 / 3))


def test_a_thought_of_a_value_is_not_the_value() -> None:
    thought = [["<think>", -1.0, []], ['{"choice": "', -1.0, []], ["A", -1.0, [["A", -0.1]]],
               ["</think>", -1.0, []]]  # fmt: skip
    own = [['{"choice": "', -1.0, []], ["B", -0.1, [["B", -0.1]]], ['", "reason": "x"}', 0.0, []]]
    answer = '{"choice": "B", "reason": "x"}'
    read = read_tokens(json.dumps([*thought, *own]), answer, answer.index("B"))
    assert choice_of(read, "B").probabilities.tolist() == [0, 0, 1]


@pytest.mark.parametrize("text", ["A\nbecause", "B\nGood.", "Good", "", None])
def test_tokens_of_another_answer_tell_nothing(text: str | None) -> None:
    stored = json.dumps([*SAID, *END])
    read = read_tokens(stored, text)
    assert read is None or read.spelled[0].text == "Good"


def behind_others(*tokens: str, at: int, odds: dict[str, float]) -> Tokens | None:
    """The tokens of an answer from its value on, the word in one token, with alternatives."""
    listed = [[other, math.log(p)] for other, p in odds.items()]
    stored = [[text, -0.1, listed if n == at else []] for n, text in enumerate(tokens)]
    before = sum(map(len, tokens[:at])) + re.search(r"[A-Z0-9]", tokens[at]).start()
    return read_tokens(json.dumps(stored), "".join(tokens), before)


@pytest.mark.parametrize(
    ("tokens", "at", "odds"),
    [
        (("{", '"', "choice", '":', ' "', "A", '",'), 5, {"A": 0.6, "B": 0.3, "C": 0.1}),
        (('{"', "choice", '":', ' "A', '", "'), 3, {' "A': 0.6, ' "B': 0.3, ' "C': 0.1}),
        (("\n", "{", ' "choice":"', "A", '"'), 3, {"A": 0.6, "B": 0.3, "C": 0.1}),
        (("Both A", " and B.", "\n\n[[", "A", "]]"), 3, {"A": 0.6, "B": 0.3, "C": 0.1}),
        (("So", " [[A", "]]"), 1, {" [[A": 0.6, " [[B": 0.3, " [[C": 0.1}),
        (("It is \ufffd", "\ufffd", " [RESULT]", " A"), 3, {" A": 0.6, " B": 0.3, " C": 0.1}),
    ],
)
def test_the_letter_of_an_object_is_found_wherever_tokens_end(tokens, at, odds) -> None:
    found = choice_of(behind_others(*tokens, at=at, odds=odds), "A")
    assert found.probabilities.tolist() == pytest.approx([0.6, 0.1, 0.3])


@pytest.mark.parametrize(
    ("tokens", "at"),
    [
        (('{"choice', '"', ":", '"A"'), 3),  # the letter and its quote are one token
        (("[[", "A]]"), 1),
    ],
)
def test_a_letter_that_is_no_token_of_its_own_has_no_odds(tokens, at) -> None:
    with pytest.raises(ValueError, match="first token"):
        choice_of(behind_others(*tokens, at=at, odds={tokens[at]: 0.6}), "A")


def test_without_a_place_no_odds_are_told() -> None:
    read = read_tokens(json.dumps(SAID), "B\nGood", None)
    assert perplexity_of(read) == pytest.approx(math.exp(1.5 / 3))
    with pytest.raises(ValueError, match="first token"):
        choice_of(read, "B")


def test_the_letter_of_an_order_tells_nothing_of_the_order() -> None:
    read = behind_others("[[", "A", ">", "B", "]]", at=1, odds={"A": 0.9, "B": 0.1})
    with pytest.raises(ValueError, match="an order was said"):
        choice_of(read, "A")


def test_digits_before_a_fraction_are_not_the_number_alone() -> None:
    whole = behind_others("[RESULT]", " 7", "\n", at=1, odds={" 7": 0.5, " 8": 0.5})
    assert score_of(whole, 7, scale=(1, 9), declared_digits=1).values.tolist() == [7, 8]
    point = behind_others("[RESULT]", " 7", ".", "0", at=1, odds={" 7": 0.5, " 8": 0.5})
    with pytest.raises(ValueError, match="with a fraction"):
        score_of(point, 7, scale=(1, 9), declared_digits=1)


def test_the_number_of_an_object_is_found() -> None:
    said = ('{"', "score", '":', " 7", ",")
    read = behind_others(*said, at=3, odds={" 7": 0.5, " 8": 0.25, " 3": 0.25})
    found = score_of(read, 7, scale=(1, 9), declared_digits=1)
    assert found.values.tolist() == [3, 7, 8]
    assert found.probabilities.tolist() == pytest.approx([0.25, 0.5, 0.25])


def span_of(tokens: Sequence[str], answer: str) -> slice | None:
    found = spelling(tokens, answer)
    return None if found is None else found.span


WORDS = st.lists(st.text(alphabet="ab 8\n\u00e9\u597d", min_size=1, max_size=4), min_size=1)


@given(tokens=WORDS)
def test_tokens_that_spell_the_answer_are_all_its_own(tokens: list[str]) -> None:
    answer = "".join(tokens)
    whole = slice(0, len(tokens)) if answer.strip() else None
    assert span_of(tokens, answer) == whole
    assert span_of(tokens, answer.strip()) == whole


@given(tokens=WORDS, thoughts=st.lists(st.text(alphabet="ab 8", min_size=1, max_size=4)))
def test_thoughts_before_and_marks_after_are_cut(tokens: list[str], thoughts: list[str]) -> None:
    tokens = ["X", *tokens]
    before = ["<think>", *thoughts, "</think>"]
    found = span_of([*before, *tokens, "<|eot_id|>"], "".join(tokens))
    assert found == slice(len(before), len(before) + len(tokens))


@pytest.mark.parametrize(
    ("tokens", "answer", "expected"),
    [
        (["8", "\n", "Good", "."], "8\nGood", None),  # more was said
        (["8", "\n"], "8\nGood", None),  # less was logged
        (["18"], "8", None),  # half a token is none
        (["8", "<br>"], "8<br>", slice(0, 2)),
        (["8", "<br>", "</s>"], "8<br>", slice(0, 2)),
        (["8", "\n\n", "</s>"], "8", slice(0, 2)),
        (["\u0120A", "\u010a", "\u0120fine"], "A\n fine", slice(0, 3)),
        # the bytes of one character, as three families of servers write them
        (["8", "\n", "\ufffd", "\ufffd", " ok"], "8\n\u2713 ok", slice(0, 5)),
        (["8", "\n", "\\xe2\\x9c", "\\x93", " ok"], "8\n\u2713 ok", slice(0, 5)),
        (["8", "\n", "<0xE2>", "<0x9C>", "<0x93>", "</s>"], "8\n\u2713", slice(0, 5)),
        (["8", "\n", "", "\u2713", ""], "8\n\u2713", slice(0, 4)),
        (["9", "\n", "\ufffd"], "8\n\u2713", None),
        ([], "8", None),
        (["8"], "", None),
    ],
)
def test_endings_blanks_and_broken_characters(tokens, answer, expected):
    assert span_of(tokens, answer) == expected

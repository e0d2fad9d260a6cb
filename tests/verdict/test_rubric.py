import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import RESPONSES, Rubric, RubricError, parse_answer

GOOD = {
    "response_1": dict(zip(CRITERIA, (1, 2, 3, 4, 5, 6), strict=True)),
    "response_2": dict(zip(CRITERIA, (10, 9, 8, 7, 6, 5), strict=True)),
}
READ = Rubric((1, 2, 3, 4, 5, 6), (10, 9, 8, 7, 6, 5))


def failure(text: str) -> tuple[str, str]:
    with pytest.raises(RubricError) as caught:
        parse_answer(text)
    return caught.value.failure_class, str(caught.value)


def with_mark(written: str, criterion: str = "clarity") -> str:
    """Return a good answer but for one mark of the second response, as written."""
    marks = {response: dict(GOOD[response]) for response in RESPONSES}
    marks["response_2"][criterion] = "@"  # type: ignore[assignment]
    return json.dumps(marks).replace('"@"', written)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        json.dumps(GOOD, indent=2) + "\n\nResponse 2 is better; {braces} do not matter.",
        " \n\ufeff" + json.dumps(GOOD),
        "```json\n" + json.dumps(GOOD) + "\n```\nBecause.",
        json.dumps(GOOD) + " I repeat: " + json.dumps(GOOD),
        json.dumps(GOOD) + ' e.g. {"response_1": 3} or {"response_1": {',
        json.dumps({key: dict(reversed(GOOD[key].items())) for key in reversed(RESPONSES)}),
        "```JSON\n" + json.dumps(GOOD) + "\n```\nBecause.",
        "```json\r\n" + json.dumps(GOOD) + "\r\n```\r\nBecause.",
        "<think>\n\n</think>\n\n" + json.dumps(GOOD),
        with_mark("6.0"),
        with_mark('"6"'),
    ],
    ids=[
        "bare", "explained", "space", "fenced", "repeated", "other-objects", "key-order",
        "capitals", "CR LF", "no-thoughts", "zeros", "quoted",
    ],
)  # fmt: skip
def test_scores_come_first_and_explanation_follows(text: str) -> None:
    assert parse_answer(text) == READ


@given(st.lists(st.integers(1, 10), min_size=12, max_size=12), st.text())
def test_every_rubric_survives_being_written(marks: list[int], explanation: str) -> None:
    rubric = Rubric(tuple(marks[:6]), tuple(marks[6:]))  # type: ignore[arg-type]
    written = {
        response: dict(zip(CRITERIA, own, strict=True))
        for response, own in zip(RESPONSES, rubric, strict=True)
    }
    assert parse_answer(json.dumps(written) + "\n" + explanation) == rubric


@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    assert failure(text)[0] in {"parse_error", "refusal"}


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("0", "0"),
        ("11", "11"),
        ("-3", "-3"),
        ("7.5", "7.5"),
        ("1e0", "1.0"),
        ("6.99999999999999999999", "7.0"),
        ("true", "True"),
        ("null", "None"),
        ('"8/10"', "'8/10'"),
        ('" 8"', "' 8'"),
        ('"08"', "'08'"),
        ('"eight"', "'eight'"),
        ('"11.0"', "'11.0'"),
        ('"\\u0668"', "'\u0668'"),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("1e400", "inf"),
        ("[8]", "[8]"),
        ("08", "broken JSON"),
        ("9" * 5000, "cannot be read"),
    ],
)
def test_a_mark_that_is_no_integer_from_1_to_10_is_named(written: str, named: str) -> None:
    failure_class, message = failure(with_mark(written))
    assert failure_class == "parse_error"
    assert named in message


def test_the_place_of_a_bad_mark_is_named() -> None:
    assert "fluency of response_2" in failure(with_mark("12", "fluency"))[1]


OTHER = {"response_1": GOOD["response_2"], "response_2": GOOD["response_1"]}


@pytest.mark.parametrize(
    "correction",
    [
        json.dumps(OTHER),
        json.dumps({"final": OTHER}),
        json.dumps({**OTHER, "note": "final"}),
        json.dumps({key: {"note": "final", **value} for key, value in OTHER.items()}),
        json.dumps(OTHER)[:-1],
        json.dumps(OTHER)[:40],
        str(OTHER),
        json.dumps(OTHER).replace("response_", "Response_"),
        json.dumps(OTHER).upper(),
        json.dumps(OTHER).replace('"', "&quot;"),
        json.dumps(json.dumps(OTHER, indent=1)),
        json.dumps(OTHER, indent=1).replace("adherence", "\\u0061dherence"),
        with_mark("2.5"),
        with_mark('"two"'),
        "response_1.adherence = 9",
        "response_1['adherence'] = 9",
        "Response 1: adherence 9, helpfulness 9",
        "**Response 1**\n- Adherence: 9 - it does what was asked\n- Helpfulness: 9",
        "That is the format. Mine:\n- response_1: 9",
        "Response 1 deserves better than that. Clarity: 9/10",
        "\uff32esponse 1: clarity: \uff19",
    ],
)
def test_scores_that_are_taken_back_do_not_count(correction: str) -> None:
    failure_class, message = failure(json.dumps(GOOD) + "\nOn reflection: " + correction)
    assert failure_class == "parse_error"
    assert "followed by others" in message


@pytest.mark.parametrize(
    "explanation",
    [
        "Response 1 is clear but of poor factuality; Response 2 has better clarity and fluency.",
        "In response_1, clarity suffers. response_2 adheres to all 3 constraints.",
        "Response 1: 2 factual errors, so factuality is low. Response 2: one slip in clarity.",
        "Clarity: one of the best I saw. Response 2: nine sentences, all of them good.",
        "Clarity: 5 vs 6. Response 2 beats Response 1 in adherence: 10 vs 1.",
        "**Response 1**\n- Adherence: 1/10, worse than Response 2\n- Helpfulness (2): poor",
        "Response 1: 3.5 overall, Response 2: 7.5 overall. Response 1: 21/60 in total.",
        "(1) adherence, (2) helpfulness, (3) factuality: all of them favour response_2",
        "| | Response 1 | Response 2 |\n|---|---|---|\n| Adherence | 1 | 10 |\n| Clarity | 5 | 6 |",
        "Adherence - Response 1: 1, Response 2: 10. Fluency - Response 1: 6, Response 2: 5.",
        "The second wins on clarity\n2. It has no errors of fluency.",
        "Response 1 gets 6 of 10 for fluency; in 2024 that was Response 2's score.",
        "{" * 50 + json.dumps(GOOD, indent=3),
    ],
)
def test_explanations_may_speak_of_marks_and_repeat_them(explanation: str) -> None:
    assert parse_answer(json.dumps(GOOD) + "\n" + explanation) == READ


@pytest.mark.parametrize("unit", ["{}", "{", '{"', '{"a":', '{"a":1}', "clarity ", "response_1 "])
def test_long_explanations_take_no_time(unit: str) -> None:
    assert parse_answer(json.dumps(GOOD) + unit * 200_000) == READ  # quadratic work would hang


def without(response: str, criterion: str) -> dict[str, Any]:
    marks = {key: dict(value) for key, value in GOOD.items()}
    del marks[response][criterion]
    return marks


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ({}, "response_1"),
        ({"response_1": GOOD["response_1"]}, "response_2"),
        ({**GOOD, "winner": "A"}, "winner"),
        ({"A": GOOD["response_1"], "B": GOOD["response_2"]}, "'A', 'B'"),
        (without("response_1", "factuality"), "factuality"),
        ({**GOOD, "response_2": {**GOOD["response_2"], "style": 3}}, "style"),
        ({**GOOD, "response_2": [1, 2, 3, 4, 5, 6]}, "response_2 is"),
        ({**GOOD, "response_2": 7}, "response_2 is"),
    ],
)
def test_wrong_keys_are_named(answer: dict[str, Any], named: str) -> None:
    failure_class, message = failure(json.dumps(answer))
    assert failure_class == "parse_error"
    assert named in message


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("Response 2 is better.", "Response 2 is better."),
        ("Here you are: " + json.dumps(GOOD), "Here you are"),
        ("[" + json.dumps(GOOD) + "]", "expected a JSON object"),
        (json.dumps(GOOD)[:60], "broken JSON"),
        (json.dumps(GOOD).replace('"', "'"), "broken JSON"),
        ("{" * 100_000, "JSON"),
        ('{"a":' * 100_000, "JSON"),
        (with_mark('8, "clarity": 9'), "'clarity' occurs twice"),
        (json.dumps(GOOD) + " No: " + with_mark("1"), "clarity of response_2 as 1"),
        (json.dumps(GOOD) + ' {"x": {} ' + with_mark("1"), "followed by others"),
    ],
)
def test_anything_else_is_a_parse_error_that_says_why(text: str, named: str) -> None:
    failure_class, message = failure(text)
    assert failure_class == "parse_error"
    assert named in message


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot compare these responses.",
        "I'm unable to grade this.",
        "As an AI, I have no preference.",
        "Sorry, no.",
        "I\u2019m sorry, but I can\u2019t help with that.",
        "Unfortunately, I cannot grade these.",
    ],
)
def test_a_refusal_is_its_own_class(text: str) -> None:
    assert failure(text)[0] == "refusal"


def test_scores_are_not_a_refusal_whatever_follows() -> None:
    assert parse_answer(json.dumps(GOOD) + " I'm sorry, I cannot say more.") == READ


@pytest.mark.parametrize(
    "text",
    [
        "Unfortunately, I can see flaws in both.",
        "I can't find a flaw in the first one.",
        "Sorry, here are the grades: " + json.dumps(GOOD),
        "As an AI judge I grade thus: " + str(GOOD),
    ],
)
def test_prose_before_the_scores_is_no_refusal(text: str) -> None:
    assert failure(text)[0] == "parse_error"

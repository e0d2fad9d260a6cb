"""The parser of judges' answers under random text: it refuses or reads, and never breaks."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lanes import sized

from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import (
    RESPONSES,
    Rubric,
    RubricError,
    parse_answer,
    require_own_scores,
)

pytestmark = pytest.mark.slow

GOOD = json.dumps(
    {
        response: dict(zip(CRITERIA, marks, strict=True))
        for response, marks in zip(
            RESPONSES, ((1, 2, 3, 4, 5, 6), (10, 9, 8, 7, 6, 5)), strict=True
        )
    }
)
PIECES = [
    *"{}[]:,\"'\\ \n",
    *(f'"{key}": ' for key in (*CRITERIA, *RESPONSES)),
    *(
        "0",
        "1",
        "7",
        '"7"',
        "7.0",
        "10",
        "11",
        "7.5",
        "1e1",
        "-1",
        "true",
        "null",
        "NaN",
        "Infinity",
        "1e999",
    ),
    *("```json\n", "```", "\ufeff", "\u200b", "\\u0061", "I'm sorry", "\ud800", "9" * 5000, GOOD),
]
WRITTEN = {f"{mark}{zeros}": mark for mark in range(1, 11) for zeros in ("", ".0", ".00")}
FAR_OFF = Rubric((0,) * 6, (0,) * 6)
FUZZ = settings(max_examples=1500, deadline=None)


def read(text: str) -> Rubric | None:
    try:
        return parse_answer(text)
    except RubricError as error:
        return None if error.failure_class in {"parse_error", "refusal"} else FAR_OFF


def held(text: str) -> Rubric | None:
    """The slow twin: the shortest start of the answer that is JSON, if it holds all marks."""
    body = text.lstrip("\ufeff \t\r\n")
    for opening in ("```json", "```"):
        if body.lower().startswith(opening):
            body = body[len(opening) :].lstrip(" \t")
            break
    ends = [n + 1 for n, letter in enumerate(body) if letter == "}"]
    for end in ends:
        try:
            scores: Any = json.loads(body[:end])
        except (ValueError, RecursionError):
            continue
        return complete(scores)
    return None


def complete(scores: Any) -> Rubric | None:
    if not isinstance(scores, dict) or set(scores) != set(RESPONSES):
        return None
    for marks in scores.values():
        if not isinstance(marks, dict) or set(marks) != set(CRITERIA):
            return None
        if any(type(m) is bool or str(m) not in WRITTEN for m in marks.values()):
            return None
    first, second = (tuple(WRITTEN[str(scores[r][c])] for c in CRITERIA) for r in RESPONSES)
    return Rubric(first, second)


def agree(text: str) -> None:
    found = read(text)
    assert found is None or found == held(text)


@FUZZ
@given(st.text())
@example('{"response_1": ' + "[" * 992 + "1" + "]" * 992 + ', "response_2": 1}')  # broke once
def test_any_text(text: str) -> None:
    assert read(text) is None


@FUZZ
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    assert read(data.decode("utf-8", "surrogateescape")) is None


@FUZZ
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_pieces_of_answers(text: str) -> None:
    agree(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*CRITERIA, *RESPONSES]) | st.text(max_size=3), inner)
    ),
    max_leaves=20,
)
MARKS = st.fixed_dictionaries({c: st.integers(0, 11) | VALUES for c in CRITERIA})


@FUZZ
@given(VALUES | st.fixed_dictionaries(dict.fromkeys(RESPONSES, MARKS | VALUES)))
def test_any_json(value: Any) -> None:
    agree(json.dumps(value))


@FUZZ
@given(st.data())
def test_damaged_answers(data: st.DataObject) -> None:
    text = GOOD + "\nBecause."
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 30)))
        put = data.draw(st.sampled_from(["", *PIECES]) | st.text(max_size=3))
        text = text[:start] + put + text[end:]
    agree(text)


@FUZZ
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_scanning_texts_for_scores_never_breaks(text: str) -> None:
    own = Rubric((1,) * 6, (2,) * 6)
    require_own_scores(own, text, text * 2)


@pytest.mark.parametrize(
    "unit",
    [
        "{", '{"a":', "[", '{"a": [', "}{", '{"', "\\", '{"a": 1,', "give 2 ", "7b", "QUJD",
        "%41", "\U000e0061",
    ],
)  # fmt: skip
def test_scanning_long_texts_takes_no_time(unit: str) -> None:
    require_own_scores(Rubric((1,) * 6, (2,) * 6), unit * 100_000)  # quadratic work would hang


def test_very_many_damaged_answers() -> None:
    rng, n_hundreds = np.random.default_rng(20), sized(10_000, 1_000)
    whole = GOOD + "\n\nThe second is better."
    n_read = 0
    for _ in range(n_hundreds):
        cuts = np.sort(rng.integers(0, len(whole), (100, 2)), axis=1).tolist()
        puts = rng.integers(0, len(PIECES), 100).tolist()
        for (start, end), put in zip(cuts, puts, strict=True):
            short = min(end, start + put % 7)
            text = whole[:start] + PIECES[put] + whole[short:]
            found = read(text)
            n_read += found is not None
            assert found is None or found == held(text)
    assert n_hundreds < n_read < 90 * n_hundreds

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.quantitative.embeddings import embedded, rationales
from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import RESPONSES, RubricError, explanation, parse_answer
from judgeline.verdict.short_answers import first_value, reason_of_score, scores_on

OBJECT = json.dumps({response: dict.fromkeys(CRITERIA, 7) for response in RESPONSES})


@given(reason=st.text(max_size=80), fence=st.booleans(), space=st.sampled_from(["", " ", "\n\n"]))
def test_the_reason_is_what_follows_the_object(reason: str, fence: bool, space: str) -> None:
    reason = reason.replace("`", "").strip()
    scores = f"```json\n{OBJECT}\n```" if fence else OBJECT
    assert explanation(f"\n{scores}{space}{reason}") == reason


def test_braces_and_quotes_inside_the_object_end_nothing() -> None:
    assert explanation('{"a": "}"} then {"b": 1}') == 'then {"b": 1}'


def test_a_reason_of_no_object_is_refused() -> None:
    with pytest.raises(RubricError, match=r"starts with .Because\..*the JSON object"):
        explanation("Because.")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("78", ""),
        ("78\n\nIt keeps the format.", "It keeps the format."),
        ("8.\nClear, but 2 errors.", "Clear, but 2 errors."),
        ("8 - clear", "clear"),
        ("8 \u2014 clear", "clear"),
        ("\ufeff 8 - clear\nand short", "clear\nand short"),
    ],
)
def test_the_reason_of_a_score_is_what_follows_the_number(answer: str, reason: str) -> None:
    assert reason_of_score(answer) == reason


@given(number=st.integers(1, 100), reason=st.text(alphabet="abc \n", max_size=30))
def test_what_parses_as_a_score_has_a_reason_or_none(number: int, reason: str) -> None:
    answer = f"{number}\n{reason}"
    assert first_value(answer, scores_on((1, 100))).value == number
    assert reason_of_score(answer) == reason.strip()


def verdicts(*rows: tuple[str, str, str, str | None]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["battle_id", "order", "status", "answer"])
    return table.assign(replicate=0).astype({"answer": "str"})


def scores(*rows: tuple[str, str, str | None]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["completion_id", "status", "answer"])
    return table.assign(replicate=0).astype({"answer": "str"})


def test_failed_answers_have_no_reason_and_silent_ones_are_counted() -> None:
    assert parse_answer(OBJECT).first[0] == 7
    found = rationales(
        verdicts(
            ("x", "AB", "ok", f"{OBJECT}\n\nA is right."),
            ("x", "BA", "ok", OBJECT),
            ("y", "AB", "parse_error", "A is right."),
            ("y", "BA", "ok", None),  # published without words
            ("z", "AB", "ok", "A>>B\nA is right."),  # published, a label first
            ("w", "mean", "ok", '{"ordered_models": []} of two orders'),
        ),
        scores(("c", "ok", "7\nShort."), ("d", "refusal", "I can't."), ("e", "ok", "7")),
    )
    told = found[found["text"].ne("")]
    assert told[["source", "key", "text"]].to_numpy().tolist() == [
        ["verdict", "x", "A is right."],
        ["verdict", "z", "A is right."],
        ["score", "c", "Short."],
    ]
    assert len(found) - len(told) == 4


def test_what_a_judge_thought_is_the_reason_of_an_answer_that_gives_none() -> None:
    given = verdicts(
        ("x", "AB", "ok", OBJECT),  # bound by a schema
        ("x", "BA", "ok", f"{OBJECT}\n\nA is right."),
        ("y", "AB", "truncated", None),
        ("z", "AB", "ok", OBJECT),
    ).assign(reasoning=["B errs.", "Hm, A?", "So long.", None])
    scored = scores(("c", "ok", "7"), ("d", "ok", "8\nShort.")).assign(reasoning=["Dull.", "Hm."])
    found = rationales(given, scored)
    assert found["text"].tolist() == ["B errs.", "A is right.", "", "Dull.", "Short."]
    before = rationales(given.drop(columns="reasoning"), scored.drop(columns="reasoning"))
    assert before["text"].tolist() == ["", "A is right.", "", "", "Short."]


def test_reasons_without_a_vector_have_no_row() -> None:
    found = rationales(
        verdicts(("x", "AB", "ok", f"{OBJECT} one"), ("x", "BA", "ok", f"{OBJECT} two")), scores()
    )
    table = embedded(found, {"two": np.ones(3, np.float32)})
    assert list(table.columns) == ["source", "key", "order", "replicate", "embedding"]
    assert table[["key", "order"]].to_numpy().tolist() == [["x", "BA"]]
    assert table["embedding"].iloc[0].tolist() == [1, 1, 1]

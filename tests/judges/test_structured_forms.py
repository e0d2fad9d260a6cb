"""Short answers as JSON objects: the same choice, score and odds, wherever tokens end."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgeline.verdict.rubric import RubricError
from judgeline.verdict.short_answers import parse_choice_object, parse_score_object, reason_of_score
from resources.config.judges import JudgeDefinition
from resources.judges.catalog import in_form, open_managed
from resources.judges.forms.choice import ChoiceForm
from resources.judges.forms.evidence import choice_of, from_value, read_tokens, score_of
from resources.judges.forms.options import ChoiceOptions, ScoreOptions
from resources.judges.forms.score import ScoreForm

CHOICE = ChoiceForm(ChoiceOptions(structured=True))
SCORE = ScoreForm(ScoreOptions(scale=(1, 9), digits_per_token=1, structured=True))


def logs(*tokens: str, listed: dict[int, dict[str, float]]) -> str:
    """Tokens as they are stored; those at the given places with their alternatives' odds."""
    return json.dumps(
        [
            [text, -0.1, [[other, math.log(p)] for other, p in listed.get(place, {}).items()]]
            for place, text in enumerate(tokens)
        ]
    )


def read(stored: str):
    """The tokens of an answer that is what they spell."""
    return read_tokens(stored, "".join(text for text, _, _ in json.loads(stored)))


@pytest.mark.parametrize(
    ("tokens", "place", "odds"),
    [
        (("{", '"', "choice", '":', ' "', "A", '",'), 5, {"A": 0.6, "B": 0.3, "C": 0.1}),
        (('{"', "choice", '":', ' "A', '", "'), 3, {' "A': 0.6, ' "B': 0.3, ' "C': 0.1}),
        (('{"choice', '"', ":", '"A"'), 3, {'"A"': 0.6}),
        (("\n", "{", ' "choice":"', "A", '"'), 3, {"A": 0.6, "B": 0.3, "C": 0.1}),
    ],
)
def test_the_letter_is_found_wherever_tokens_end(tokens, place, odds):
    told = from_value(read(logs(*tokens, listed={place: odds})), "choice")
    if tokens[place].endswith('A"'):  # the letter and its quote in one token: not told apart
        with pytest.raises(ValueError, match="first token"):
            choice_of(told, "A")
        return
    first, tie, second = choice_of(told, "A").probabilities
    assert (first, tie, second) == pytest.approx((0.6, 0.1, 0.3))


def test_the_number_is_found_in_its_object():
    stored = logs('{"', "score", '":', " 7", ",", listed={3: {" 7": 0.5, " 8": 0.25, " 3": 0.25}})
    likely = score_of(from_value(read(stored), "score"), 7, scale=(1, 9), declared_digits=1)
    assert dict(zip(likely.values.tolist(), likely.probabilities, strict=True)) == pytest.approx(
        {3: 0.25, 7: 0.5, 8: 0.25}
    )


def test_a_key_that_was_not_said_has_no_odds():
    told = from_value(read(logs("A", "\n", listed={0: {"A": 0.9}})), "choice")
    with pytest.raises(ValueError, match="first token"):
        choice_of(told, "A")


@given(letter=st.sampled_from("ABC"), reason=st.text(max_size=40))
def test_what_is_written_is_read(letter: str, reason: str):
    assert parse_choice_object(json.dumps({"choice": letter, "reason": reason})) == letter
    assert CHOICE.parse(json.dumps({"reason": reason, "choice": letter})) == letter


@given(score=st.integers(1, 9), reason=st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_a_score_comes_with_its_reason(score: int, reason: str):
    answer = json.dumps({"score": score, "reason": reason})
    assert SCORE.parse(answer) == score
    assert reason_of_score(answer) == reason.strip()


@pytest.mark.parametrize(
    "answer",
    [
        '{"score": 10, "reason": ""}',
        '{"score": 0, "reason": ""}',
        '{"score": 7.0, "reason": ""}',
        '{"score": "7", "reason": ""}',
        '{"score": true, "reason": ""}',
        '{"score": NaN, "reason": ""}',
        '{"score": 7}',
        '{"score": 7, "reason": null}',
        '{"score": 7, "reason": "", "score": 8}',
        '{"score": 7, "reason": "", "also": 1}',
        '{"score": 7, "reason": ""',
        '{"score": 7, "reason": ""} {"score": 8, "reason": ""}',
        '[["score", 7], ["reason", ""]]',
        "7",
        "",
        '{"score": 7, "reason": {"score": 8}}',
    ],
)
def test_anything_else_is_no_score(answer: str):
    with pytest.raises(RubricError) as failure:
        parse_score_object(answer, scale=(1, 9))
    assert failure.value.failure_class == "parse_error"


def test_a_refusal_is_a_refusal():
    with pytest.raises(RubricError) as failure:
        parse_choice_object("I'm sorry, but I cannot compare these.")
    assert failure.value.failure_class == "refusal"


def test_structured_answers_have_an_identity_and_a_prompt_of_their_own():
    for form, plain in ((CHOICE, ChoiceForm()), (SCORE, ScoreForm())):
        assert form.identity["answer"] == "json"
        assert "answer" not in plain.identity
        assert form.template != plain.template
        assert form.response_format is not None
        assert plain.response_format is None
    named = ChoiceForm(ChoiceOptions(structured=True, template="mine.txt"))
    assert named.template == "mine.txt"


def test_the_value_comes_before_the_reason_in_the_constraint():
    for form, key in ((CHOICE, "choice"), (SCORE, "score")):
        schema = form.response_format["json_schema"]["schema"]
        assert list(schema["properties"]) == [key, "reason"]
        assert schema["additionalProperties"] is False


def test_simulated_judges_are_not_structured():
    rates = ("malformed_rate", "refusal_rate", "truncated_rate")
    biases = ("position_bias", "verbosity_bias", "family_bias")
    spreads = ("noise", "mood", "taste", "style_taste")
    traits = dict.fromkeys((*rates, *biases, *spreads), 0.0)
    with pytest.raises(ValueError, match="only served judges answer with JSON"):
        JudgeDefinition(
            slug="stub",
            display_name="Stub",
            family="none",
            kind="builtin",
            builtin={"seed": 1, **traits},
            asks=["rubric", "choice"],
            choice={"structured": True},
        )


def served(**fields) -> JudgeDefinition:
    return JudgeDefinition(
        slug="stub",
        display_name="Stub",
        family="none",
        kind="vllm",
        model="stub",
        asks=["rubric", "score", "choice"],
        **fields,
    )


def test_the_schema_goes_with_the_form_that_asks_for_it():
    definition = served(choice={"structured": True}, structured_output="on")
    assert in_form(definition, "choice").structured_output == "on"
    assert in_form(definition, "score").structured_output == "off"
    assert in_form(definition, "rubric").structured_output == "on"
    identities = {
        form: open_managed(definition, form=form).identity["structured_output"]
        for form in ("rubric", "score", "choice")
    }
    assert identities == {"rubric": "json_schema", "score": "none", "choice": "json_schema"}


def test_structured_answers_without_a_schema_are_refused():
    with pytest.raises(ValueError, match="remove one of the two"):
        served(score={"structured": True}, structured_output="off")

import pytest
from pydantic import ValidationError

from resources.config.candidate_options import CONTROLS, CandidateOptions


def test_defaults() -> None:
    options = CandidateOptions()
    assert (options.half_width, options.max_battles) == (60.0, 200)
    assert (options.budget, options.controls) == (["2000calls"], {})


def test_controls_may_be_names_alone() -> None:
    named = CandidateOptions.model_validate({"controls": list(CONTROLS)}).controls
    assert {name: own.bound for name, own in named.items()} == {
        "null-model": 0.0,
        "injected-instruction": 50.0,
        "copy-of-opponent": 50.0,
    }


def test_controls_may_have_options() -> None:
    given = {"null-model": {"bound": 25, "text_file": "null.txt"}, "copy-of-opponent": None}
    found = CandidateOptions.model_validate({"controls": given}).controls
    assert (found["null-model"].bound, found["null-model"].text_file) == (25.0, "null.txt")
    assert found["copy-of-opponent"].bound == 50.0


def test_a_budget_is_one_text_or_several() -> None:
    assert CandidateOptions(budget="500calls 2USD").budget == ["500calls", "2USD"]
    assert CandidateOptions(budget=["1Mtokens"]).budget == ["1Mtokens"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"controls": ["nul-model"]}, "did you mean 'null-model'"),
        ({"controls": {"copy-of-opponent": {"carrier": "x"}}}, "option of injected-instruction"),
        ({"controls": {"null-model": {"bond": 3}}}, "bond"),
        ({"controls": {"null-model": 3}}, "null-model"),
        ({"controls": 3}, "controls"),
        ({"budget": "much"}, "budget 'much' is none"),
        ({"budget": []}, "budget"),
        ({"budget": 5}, "budget"),
        ({"half_width": 0}, "half_width"),
        ({"max_battles": 0}, "max_battles"),
        ({"max_battles": 19}, "greater than or equal to 20"),
        ({"half": 1}, "half"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        CandidateOptions.model_validate(given)

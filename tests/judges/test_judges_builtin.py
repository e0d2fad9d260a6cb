import json
from dataclasses import replace

import numpy as np
import pytest
from answering import answered

from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import RubricError, parse_answer
from resources.arena.contestants import Contestant, write_completions
from resources.arena.prompts import write_prompts
from resources.arena.wording import FAMILIES
from resources.judges.judge import Answer, Judge, Presentation
from resources.judges.simulated.judge import BuiltinJudge, BuiltinTraits

PROMPTS = write_prompts(100, seed=2)
FLAWLESS = BuiltinTraits(
    seed=0,
    noise=0,
    mood=0,
    taste=0,
    style_taste=0,
    position_bias=0,
    verbosity_bias=0,
    family_bias=0,
    malformed_rate=0,
    refusal_rate=0,
    truncated_rate=0,
)
NOISY = FLAWLESS.model_copy(update={"noise": 1.0, "mood": 0.5, "taste": 0.5})


def texts(skill: float, family: str = "aster", padding: float = 0.0) -> tuple[str, ...]:
    contestant = Contestant(f"sim-{family}-1", family, skill, padding, "")
    return write_completions(contestant, PROMPTS, seed=0)


GOOD, POOR = texts(50.0), texts(-1.0)


def shown(first: tuple[str, ...], second: tuple[str, ...]) -> list[Presentation]:
    return [
        Presentation(prompt.question_id, "AB", 0, prompt.instruction, one, two, "x", "y")
        for prompt, one, two in zip(PROMPTS, first, second, strict=True)
    ]


def judge(traits: BuiltinTraits, family: str = "cedar") -> Judge:
    return BuiltinJudge(traits, family, PROMPTS, "Grade both.")


def differences(traits: BuiltinTraits, presentations: list[Presentation]) -> np.ndarray:
    rubrics = [parse_answer(a.text or "") for a in answered(judge(traits), presentations)]
    return np.array([np.mean(r.first) - np.mean(r.second) for r in rubrics])


def test_a_judge_without_flaws_sees_the_better_text_wherever_it_stands() -> None:
    ahead = differences(FLAWLESS, shown(GOOD, POOR))
    assert ahead.min() >= 0
    assert ahead.mean() > 1
    assert np.array_equal(differences(FLAWLESS, shown(POOR, GOOD)), -ahead)
    assert not differences(FLAWLESS, shown(POOR, POOR)).any()


def test_marks_follow_what_the_text_holds() -> None:
    rubrics = [parse_answer(a.text or "") for a in answered(judge(FLAWLESS), shown(GOOD, POOR))]
    assert {mark for rubric in rubrics for mark in rubric.first[:4]} == {9}
    assert min(mark for rubric in rubrics for mark in rubric.second) >= 2


@pytest.mark.parametrize("traits", [FLAWLESS, NOISY])
def test_position_bias_favours_the_first_shown(traits: BuiltinTraits) -> None:
    biased = traits.model_copy(update={"position_bias": 1.0})
    both = differences(biased, shown(POOR, POOR))
    assert both.mean() == pytest.approx(1.0, abs=0.4)  # 4 standard errors of 100 noisy pairs


def test_verbosity_bias_favours_the_longer_text() -> None:
    biased = FLAWLESS.model_copy(update={"verbosity_bias": 2.0})
    padded = texts(50.0, padding=8.0)
    neutral = differences(FLAWLESS, shown(padded, GOOD))
    assert neutral.mean() < 0  # padding costs clarity
    assert (differences(biased, shown(padded, GOOD)) - neutral).mean() > 1


def test_family_bias_favours_its_own_style_and_no_other() -> None:
    biased = FLAWLESS.model_copy(update={"family_bias": 1.0})
    for family in FAMILIES:
        gain = differences(biased, shown(texts(50.0, family), GOOD))
        gain -= differences(FLAWLESS, shown(texts(50.0, family), GOOD))
        assert np.all(gain == (1.0 if family == "cedar" else 0.0))


@pytest.mark.slow
def test_a_taste_in_style_lasts_over_texts_and_differs_between_styles() -> None:
    """One draw per ornament: constant over questions, with the declared spread over ornaments."""
    plain, tasteful = FLAWLESS, FLAWLESS.model_copy(update={"style_taste": 1.0})
    gains = []
    for number in range(40):
        ornament = " ".join("~*+=^"[number // 5**place % 5] for place in range(3))
        signed = Contestant("sim-aster-1", "aster", 0.0, 0.0, ornament)
        pairs = shown(write_completions(signed, PROMPTS, seed=0), texts(0.0))
        gain = differences(tasteful, pairs) - differences(plain, pairs)
        assert gain.std() < 0.6  # rounding to whole marks, and marks held at 10
        gains.append(gain.mean())
    noise = 1 / np.sqrt(2 * len(gains))
    assert np.std(gains) == pytest.approx(1.0, abs=4 * noise)


def test_noise_has_the_declared_spread() -> None:
    middling = texts(0.0)
    pairs = shown(middling, middling)
    spread = differences(FLAWLESS.model_copy(update={"mood": 0.7}), pairs).std()
    assert spread == pytest.approx(0.7 * np.sqrt(2), rel=0.3)
    lasting = FLAWLESS.model_copy(update={"taste": 0.7})
    assert not differences(lasting, pairs).any()  # the same opinion of the same text
    there, back = shown(middling, POOR), shown(POOR, middling)
    assert np.array_equal(differences(lasting, there), -differences(lasting, back))


def test_answers_depend_on_nothing_but_what_is_shown() -> None:
    pairs = shown(GOOD, POOR)
    alone = [answered(judge(NOISY), [one])[0] for one in pairs]
    assert answered(judge(NOISY), pairs) == alone
    assert answered(judge(NOISY), pairs[::-1]) == alone[::-1]
    renamed = [replace(one, battle_id="?", first_model="?", second_model="!") for one in pairs]
    assert answered(judge(NOISY), renamed) == alone


def test_replicates_seeds_and_families_draw_anew() -> None:
    pairs = shown(GOOD, POOR)
    base = answered(judge(NOISY), pairs)
    again = answered(judge(NOISY), [replace(one, replicate=1) for one in pairs])
    seeded = answered(judge(NOISY.model_copy(update={"seed": 9})), pairs)
    related = answered(judge(NOISY, family="fern"), pairs)
    for other in (again, seeded, related):
        assert sum(a == b for a, b in zip(base, other, strict=True)) < 10


def statuses(traits: BuiltinTraits) -> list[str]:
    def status(answer: Answer) -> str:
        if answer.failure:
            return answer.failure
        try:
            parse_answer(answer.text or "")
        except RubricError as error:
            return error.failure_class
        return "ok"

    return [status(answer) for answer in answered(judge(traits), shown(GOOD, POOR))]


@pytest.mark.parametrize(
    ("rate", "failure"),
    [
        ("malformed_rate", "parse_error"),
        ("refusal_rate", "refusal"),
        ("truncated_rate", "truncated"),
    ],
)
def test_failures_come_at_their_declared_rate(rate: str, failure: str) -> None:
    assert set(statuses(FLAWLESS.model_copy(update={rate: 1.0}))) == {failure}
    some = statuses(FLAWLESS.model_copy(update={rate: 0.3}))
    assert some.count(failure) == pytest.approx(30, abs=4 * np.sqrt(100 * 0.3 * 0.7))
    assert set(some) == {"ok", failure}


def test_the_answer_is_an_object_and_then_prose() -> None:
    answer = answered(judge(FLAWLESS), shown(GOOD, POOR))[0]
    assert answer.text is not None
    scores, _, prose = answer.text.partition("\n\n")
    assert {tuple(marks) for marks in json.loads(scores).values()} == {CRITERIA}
    assert prose.startswith("Response 1 has")
    assert answer.completion_tokens == len(answer.text.split())
    asked = (PROMPTS[0].instruction, GOOD[0], POOR[0], "Grade both.")
    assert answer.prompt_tokens == sum(len(text.split()) for text in asked)


def test_an_unknown_instruction_is_named() -> None:
    odd = replace(shown(GOOD, POOR)[0], instruction="Tell me a joke.", battle_id="b7")
    with pytest.raises(ValueError, match=r"'b7' asks 'Tell me a joke.'.*no prompt"):
        answered(judge(FLAWLESS), [odd])

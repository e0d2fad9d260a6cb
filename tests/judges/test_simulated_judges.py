"""Simulated judges: the marks, odds and reasons that their traits make of a text."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from answering import annotate, answered
from buyer_process import numbered
from hypothesis import given
from hypothesis import strategies as st

from judgeline.judges.definition import BuiltinTraits
from judgeline.judges.forms.choice import ChoiceForm
from judgeline.judges.forms.form import Prompt, ShortForm
from judgeline.judges.forms.score import ScoreForm, ScoreOptions
from judgeline.judges.judge import Judge
from judgeline.judges.presentation import Presentation
from judgeline.trust.distributions import aggregate_orders
from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import parse_answer
from resources.arena.contestants import Contestant, write_completions
from resources.arena.judge import BuiltinJudge
from resources.arena.prompts import write_prompts
from resources.arena.wording import FAMILIES

PROMPTS = write_prompts(100, seed=2)
FLAWLESS = BuiltinTraits(**dict.fromkeys(BuiltinTraits.model_fields, 0))
NOISY = FLAWLESS.model_copy(update={"noise": 1.0, "mood": 0.4, "taste": 0.5})
FORMS = pytest.mark.parametrize("form", [ScoreForm(), ChoiceForm()], ids=lambda form: form.name)


def texts(skill: float, family: str = "aster", padding: float = 0.0) -> tuple[str, ...]:
    contestant = Contestant(f"sim-{family}-1", family, skill, padding, "")
    return write_completions(contestant, PROMPTS, seed=0)


GOOD, MIDDLING, POOR = texts(50.0), texts(0.5), texts(-1.0)


def shown(first: tuple[str, ...], second: tuple[str, ...]) -> list[Presentation]:
    return [
        Presentation(prompt.question_id, "AB", 0, prompt.instruction, one, two, "x", "y")
        for prompt, one, two in zip(PROMPTS, first, second, strict=True)
    ]


def by_rubric(traits: BuiltinTraits, family: str = "cedar") -> Judge:
    return BuiltinJudge(traits, family, PROMPTS, "Grade both.")


def differences(traits: BuiltinTraits, presentations: list[Presentation]) -> np.ndarray:
    rubrics = [parse_answer(a.text or "") for a in answered(by_rubric(traits), presentations)]
    return np.array([np.mean(r.first) - np.mean(r.second) for r in rubrics])


def test_a_judge_without_flaws_sees_the_better_text_wherever_it_stands() -> None:
    ahead = differences(FLAWLESS, shown(GOOD, POOR))
    assert ahead.min() >= 0
    assert ahead.mean() > 1
    assert np.array_equal(differences(FLAWLESS, shown(POOR, GOOD)), -ahead)
    assert not differences(FLAWLESS, shown(POOR, POOR)).any()


def test_marks_follow_what_the_text_holds() -> None:
    rubrics = [parse_answer(a.text or "") for a in answered(by_rubric(FLAWLESS), shown(GOOD, POOR))]
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


def test_the_answer_is_an_object_and_then_prose() -> None:
    answer = answered(by_rubric(FLAWLESS), shown(GOOD, POOR))[0]
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
        answered(by_rubric(FLAWLESS), [odd])


# in one word


def battles(first: tuple[str, ...] = GOOD, second: tuple[str, ...] = POOR) -> pd.DataFrame:
    table = numbered(len(PROMPTS)).assign(
        battle_id=[f"b{i:02d}" for i in range(len(PROMPTS))],
        question_id=[prompt.question_id for prompt in PROMPTS],
        instruction=[prompt.instruction for prompt in PROMPTS],
        model_a="one",
        model_b="two",
        completion_a=first,
        completion_b=second,
    )
    return table.head(60)


def judge(traits: BuiltinTraits, form: ShortForm) -> BuiltinJudge:
    asked = Prompt("Answer in a word.", form)
    return BuiltinJudge(traits, "cedar", PROMPTS, "Grade both.", asked)


def choices(traits: BuiltinTraits, table: pd.DataFrame, n_replicates: int = 1) -> pd.DataFrame:
    asked = judge(traits, ChoiceForm())
    return annotate(asked, table, slug="sim", n_replicates=n_replicates)


def scores(traits: BuiltinTraits, table: pd.DataFrame) -> pd.DataFrame:
    return annotate(judge(traits, ScoreForm()), table, slug="sim")


def odds_in(told: pd.DataFrame, order: str) -> np.ndarray:
    return told.loc[told["order"].eq(order), ["p_a", "p_tie", "p_b"]].to_numpy(dtype=float)


def test_better_texts_are_chosen_and_scored_higher() -> None:
    told = choices(FLAWLESS, battles())
    assert told["evidence"].eq("log-probabilities").all()
    assert odds_in(told, "AB")[:, 0].mean() > 0.8
    assert np.allclose(odds_in(told, "AB"), odds_in(told, "BA"), atol=1e-5)
    graded = scores(FLAWLESS, battles()).groupby("model")["expected_score"].mean()
    assert graded["one"] > graded["two"] + 1
    assert graded["one"] == pytest.approx(9.0, abs=0.2)  # what the rubric gives a perfect text


def test_position_bias_shows_in_the_odds_and_cancels_in_both_orders() -> None:
    biased = FLAWLESS.model_copy(update={"position_bias": 0.4, "noise": 1.0})
    told = choices(biased, battles(POOR, POOR))
    ab, ba = odds_in(told, "AB"), odds_in(told, "BA")
    assert (ab[:, 0] > ab[:, 2] + 0.3).all()
    assert (ba[:, 2] > ba[:, 0] + 0.3).all()
    both = aggregate_orders(ab, ba[:, ::-1], tolerance=0.0)
    assert both.soft_outcome == pytest.approx(0.5, abs=1e-5)
    chosen = told.pivot_table("choice", "battle_id", "order")
    assert chosen["AB"].mean() > chosen["BA"].mean() + 0.3


def test_what_is_said_is_drawn_by_the_odds_that_are_told() -> None:
    told = choices(NOISY, battles(), n_replicates=30)
    mean = told["p_a"] + told["p_tie"] / 2
    variance = told["p_a"] + told["p_tie"] / 4 - mean**2
    surplus = float((told["choice"] - mean).sum())
    assert abs(surplus) < 4 * np.sqrt(variance.sum())  # independent draws: four standard errors


def test_scores_lie_around_what_is_expected() -> None:
    told = scores(NOISY, battles())
    gap = 1 + (told["score"].astype(float) - 1) / 11 - told["expected_score"]
    spread = max(0.25 * NOISY.noise, 0.5 / 11)
    assert abs(gap.mean()) < 4 * spread / np.sqrt(len(told))
    assert gap.abs().max() < 5 * spread
    assert told["covered"].min() > 0.9


@FORMS
def test_tokens_spell_the_answer_and_none_is_impossible(form) -> None:
    for answer in answered(judge(NOISY, form), form.present(battles(), 1)):
        tokens = json.loads(answer.log_probabilities or "")
        assert "".join(token for token, _, _ in tokens) == answer.text
        assert all(log_prob <= 0 for _, log_prob, _ in tokens)
        said, own, listed = tokens[0]
        assert [said, own] in listed
        assert np.exp([log_prob for _, log_prob in listed]).sum() <= 1 + 1e-6


def test_perplexity_is_lower_where_the_judge_is_sure() -> None:
    sure = choices(FLAWLESS, battles())["perplexity"].mean()
    torn = choices(FLAWLESS.model_copy(update={"noise": 4.0}), battles(POOR, POOR))["perplexity"]
    assert 1 <= sure < torn.mean()


def test_lasting_opinions_are_those_of_the_rubric() -> None:
    partial = NOISY.model_copy(update={"noise": 0, "mood": 0, "taste": 2.0})
    marker, own = by_rubric(partial), judge(partial, ScoreForm())
    told = annotate(own, battles(), slug="sim").set_index("completion_id")
    for one in ScoreForm().present(battles(), 1):
        opinion = marker.opinion(one, one.first_completion)
        points = 2 + 7 * np.mean(opinion.reading.levels) + opinion.liking
        expected = told.loc[one.battle_id, "expected_score"]
        assert expected == pytest.approx(np.clip(points, 1, 10), abs=0.06)  # ends cut the normal


COUNTS = re.compile(r"has (\d+) of (\d+) items right, (\d+) wrong and (\d+) typos, and (\w+) the")


def told_and_true(traits: BuiltinTraits, form: ScoreForm | ChoiceForm) -> tuple[np.ndarray, ...]:
    """Counts in the reasons, and in the texts: right, expected, wrong, typos, layout kept."""
    marker = by_rubric(traits)
    told, true = [], []
    shown = form.present(battles(MIDDLING, POOR), 1)
    for one, answer in zip(shown, answered(judge(traits, form), shown), strict=True):
        pair = [one.first_completion, one.second_completion][: 1 if form.name == "score" else 2]
        said = COUNTS.findall(answer.text)
        assert len(said) == len(pair)
        told += [[*map(int, counts), verb == "keeps"] for *counts, verb in said]
        for text in pair:
            reading = marker.opinion(one, text).reading
            counts = (reading.n_right, reading.n_expected, reading.n_wrong, reading.n_typos)
            true.append([*counts, reading.layout_kept])
    return np.array(told), np.array(true)


@FORMS
def test_a_judge_without_errors_tells_what_is_there(form) -> None:
    told, true = told_and_true(FLAWLESS, form)
    assert (told == true).all()


@FORMS
@pytest.mark.parametrize("trait", ["noise", "mood", "taste"])
def test_reasons_err_as_the_judge_does(form, trait: str) -> None:
    small, large = (
        told_and_true(FLAWLESS.model_copy(update={trait: size}), form) for size in (0.5, 3.0)
    )
    wrong = [float((told != true).any(axis=1).mean()) for told, true in (small, large)]
    assert wrong[0] < wrong[1]
    assert wrong[1] > 0.5


def test_reasons_lean_as_lasting_opinions_do() -> None:
    fond = FLAWLESS.model_copy(update={"taste": 3.0})
    marker = by_rubric(fond)
    shown = ScoreForm().present(battles(MIDDLING, POOR), 1)
    liking = np.array([marker.opinion(one, one.first_completion).liking for one in shown])
    told, true = told_and_true(fond, ScoreForm())
    for column, sign in ((0, 1), (2, -1), (3, -1)):  # right, wrong, typos
        ahead = sign * (told - true)[:, column] * np.sign(liking)
        assert (ahead >= 0).all()
        assert (ahead > 0).any()


def test_reasons_of_two_judges_differ_as_their_scores_do() -> None:
    shown = ScoreForm().present(battles(MIDDLING, POOR), 1)
    reasons = [
        [
            answer.text.partition("\n\n")[2]
            for answer in answered(
                judge(NOISY.model_copy(update={"seed": seed}), ScoreForm()), shown
            )
        ]
        for seed in (1, 2)
    ]
    same = [one == other for one, other in zip(*reasons, strict=True)]
    assert np.mean(same) < 0.5


def test_a_reasons_first_words_go_with_its_score() -> None:
    impressions = ["useless", "poor", "middling", "good", "excellent"]
    told = scores(NOISY.model_copy(update={"mood": 2.0}), battles(MIDDLING, POOR))
    words = told["answer"].str.extract(r"The response is (\w+),")[0]
    expected = (told["expected_score"] - 1) // 2
    off = (words.map(impressions.index) - expected.clip(0, 4)).abs()
    assert off.max() <= 1  # the mean of a cut normal may lie just across a bound
    assert (off > 0).mean() < 0.1


@given(ahead=st.floats(-9, 9), spread=st.floats(0.05, 5))
def test_choice_odds_are_mirrored_and_favour_the_better(ahead: float, spread: float) -> None:
    odds, mirrored = (ChoiceForm().chances([sign * ahead, 0.0], spread) for sign in (1, -1))
    assert odds.probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert odds.probabilities[::-1] == pytest.approx(mirrored.probabilities, abs=1e-12)
    assert (odds.probabilities[0] - odds.probabilities[2]) * ahead >= 0


@given(points=st.floats(-3, 14), spread=st.floats(0.05, 3))
def test_score_odds_are_those_of_a_normal_on_the_scale(points: float, spread: float) -> None:
    odds = ScoreForm().chances([points], spread)
    said = np.array([int(word) for word in odds.words])
    centre = np.clip(1 + 11 * (points - 1), 1, 100)
    assert said.min() >= 1
    assert said.max() <= 100
    assert odds.probabilities.sum() <= 1 + 1e-12
    log_ratio = np.log(odds.probabilities[1] / odds.probabilities[0])
    squares = ((said[:2] - centre) / max(11 * spread, 0.5)) ** 2  # oracle: the density itself
    assert log_ratio == pytest.approx((squares[0] - squares[1]) / 2, abs=1e-6)


def test_numbers_longer_than_a_token_are_refused() -> None:
    form = ScoreForm(ScoreOptions(scale=(1, 1000), digits_per_token=3))
    with pytest.raises(ValueError, match="1000 has more than 3 digits"):
        judge(FLAWLESS, form)


def test_a_form_without_odds_of_its_own_is_refused() -> None:
    class Letters(ShortForm):
        name = "letters"

    with pytest.raises(ValueError, match="not asked in the form 'letters'"):
        judge(FLAWLESS, Letters())

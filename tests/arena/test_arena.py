"""The built-in arena: prompts, contestants, the checker, votes, and the corpus that they make."""

import json
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from resources.arena.checker import QUALITY_WEIGHTS, quality, read_completion
from resources.arena.contestants import Contestant, enter_contestants, write_completions
from resources.arena.prompts import KINDS, Prompt, lay_out, write_prompts
from resources.arena.simulation import (
    DISCERNMENT,
    TIE_SHARE,
    Arena,
    ArenaOptions,
    build_arena,
    cast_votes,
    draw_battles,
    expected_outcome,
    mean_outcomes,
    read_arena,
    true_ratings,
)
from resources.arena.wording import LANGUAGES, RECORD_KEYS, WORDINGS, words
from resources.config.corpora import CorpusDefinition

# Prompts

PROMPTS = write_prompts(300, seed=0)


def test_prompts_are_balanced_distinct_and_kept_by_a_larger_arena() -> None:
    cells = [(prompt.language, prompt.kind) for prompt in PROMPTS]
    assert {cells.count(cell) for cell in set(cells)} == {300 // (len(LANGUAGES) * len(KINDS))}
    instructions = {prompt.instruction for prompt in PROMPTS}
    assert len({prompt.question_id for prompt in PROMPTS}) == len(instructions) == 300
    assert write_prompts(20, seed=0) == PROMPTS[:20]
    others = {prompt.instruction for prompt in write_prompts(300, seed=1)}
    assert len(others & instructions) < 10


# The oracles below solve the instruction from its text, as a reader would.


def sums(prompt: Prompt) -> None:
    tasks = prompt.instruction.split("\n\n")[1].split("\n")
    solved = []
    for task in tasks:
        a, sign, b = task.split(" ")
        result = {"+": int.__add__, "-": int.__sub__, "×": int.__mul__}[sign](int(a), int(b))
        solved.append(f"{task} = {result}")
    assert list(prompt.items) == solved


def numbers(prompt: Prompt) -> None:
    given = map(int, prompt.instruction.split("\n\n")[1].split(", "))
    assert lay_out("sort", list(prompt.items)) == str(sorted(given))[1:-1]


def codes(prompt: Prompt) -> None:
    template = re.escape(WORDINGS[prompt.language].cancelled_line).replace(r"\{code\}", r"(\S+)")
    cancelled = re.search(template, prompt.instruction)
    assert cancelled is not None
    found = re.findall(r"[A-Z]{2}-\d{3}", prompt.instruction)
    assert set(prompt.items) == set(found) - {cancelled[1]}
    assert len(found) == len(prompt.items) + 1


def record(prompt: Prompt) -> None:
    description = prompt.instruction.split("\n\n")[1]
    keys, values = zip(*(item.split(": ") for item in prompt.items), strict=True)
    assert keys == RECORD_KEYS
    assert all(re.search(rf"\b{re.escape(value)}\b", description) for value in values)
    assert re.findall(r"\d+", description) == list(values[2:])


def notice(prompt: Prompt) -> None:
    text = prompt.instruction.split("\n\n")[1]
    assert len(prompt.items) == 4
    assert all(item in text for item in prompt.items)


def test_items_are_what_the_instruction_asks_for_and_slips_are_wrong() -> None:
    solvers = dict(zip(KINDS, (sums, numbers, codes, record, notice), strict=True))
    for prompt in PROMPTS:
        solvers[prompt.kind](prompt)
        for item, pair in zip(prompt.items, prompt.slips, strict=True):
            assert item not in pair


@pytest.mark.parametrize("language", LANGUAGES)
def test_prose_cannot_be_mistaken_for_an_answer(language: str) -> None:
    wording = WORDINGS[language]
    prose = " ".join((*wording.openings, *wording.paddings))
    assert not re.search(r"\d|[:;{}]", prose)
    nouns = {word for noun in (*wording.days, *wording.places) for word in words(noun)}
    assert not {word for word in nouns if len(word) > 3} & set(words(prose))


# Contestants

ANSWERED = write_prompts(150, seed=3)


def skilled(skill: float, padding: float = 0.0) -> Contestant:
    return Contestant("sim-fern-1", "fern", skill, padding, "")


@pytest.mark.parametrize("padding", [0.0, 1.5])
def test_a_faultless_contestant_is_read_as_faultless_in_every_language(padding: float) -> None:
    texts = write_completions(skilled(50.0, padding), ANSWERED, seed=0)
    for prompt, text in zip(ANSWERED, texts, strict=True):
        reading = read_completion(prompt, text)
        assert reading.levels[:4] == (1, 1, 1, 1), text
        assert reading.n_typos == 0, text
        assert reading.style == "fern"
        assert padding or reading.levels[4] > 0.9


def test_a_hopeless_contestant_gets_nothing_right() -> None:
    texts = write_completions(skilled(-50.0), ANSWERED, seed=0)
    readings = [read_completion(prompt, text) for prompt, text in zip(ANSWERED, texts, strict=True)]
    assert not any(reading.layout_kept for reading in readings)
    assert sum(reading.n_right for reading in readings) <= 3  # a slip can meet another item
    assert min(reading.n_typos for reading in readings) >= 1


def test_quality_rises_with_skill_and_falls_with_difficulty() -> None:
    def mean_quality(skill: float, **changed: float) -> float:
        prompts = tuple(Prompt(**{**vars(prompt), **changed}) for prompt in ANSWERED)
        texts = write_completions(skilled(skill), prompts, seed=0)
        pairs = zip(prompts, texts, strict=True)
        return float(np.mean([quality(read_completion(*pair)) for pair in pairs]))

    means = [mean_quality(skill) for skill in (-2.0, -1.0, 0.0, 1.0, 2.0)]
    assert means == sorted(means)
    assert means[-1] - means[0] > 0.3
    easy, plain, hard = (mean_quality(0.0, difficulty=level) for level in (-1.0, 0.0, 1.0))
    assert hard < plain < easy


def test_neither_more_prompts_nor_more_contestants_change_a_text() -> None:
    few, many = enter_contestants(3, seed=5), enter_contestants(30, seed=5)
    assert many[:3] == few
    short = write_completions(few[2], ANSWERED[:10], seed=5)
    assert write_completions(many[2], ANSWERED, seed=5)[:10] == short
    assert write_completions(few[2], ANSWERED[:10], seed=6) != short


# The checker

SUMS = Prompt(
    "q", "calculate", "en", "Add.\n\n1 + 2\n3 + 4", ("1 + 2 = 3", "3 + 4 = 7"), (("", ""),) * 2, 0.0
)
NUMBERS = Prompt("q", "sort", "en", "Sort 9, 5, 7, 6, 8", ("5", "6", "7", "8", "9"), (), 0.0)
CODES = Prompt("q", "extract", "en", "AB-123 CD-456, not EF-789", ("AB-123", "CD-456"), (), 0.0)
LAMP = Prompt("q", "record", "en", "The lamp costs 5", ("product: lamp", "price: 5"), (), 0.0)
FAIR = Prompt(
    "q", "notice", "en", "A fair on Sunday", ("Sunday", "14:30", "Town Hall", "5 €"), (), 0.0
)
NAMES = ("adherence", "helpfulness", "factuality", "completeness", "clarity", "fluency")


def levels(prompt: Prompt, text: str) -> dict[str, float]:
    return dict(zip(NAMES, read_completion(prompt, text).levels, strict=True))


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        (SUMS, "1 + 2 = 3\n3 + 4 = 7"),
        (NUMBERS, "5, 6, 7, 8, 9"),
        (CODES, "- AB-123\n- CD-456"),
        (LAMP, json.dumps({"product": "lamp", "price": 5})),
        (FAIR, "A fair on Sunday, 14:30, Town Hall, 5 €."),
    ],
)
def test_a_perfect_answer_is_worth_one(prompt: Prompt, text: str) -> None:
    assert set(read_completion(prompt, text).levels) == {1.0}
    assert quality(read_completion(prompt, text)) == pytest.approx(1.0)
    assert sum(QUALITY_WEIGHTS) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        (SUMS, "1 + 2 = 3; 3 + 4 = 7."),
        (NUMBERS, "5\n6\n7\n8\n9"),
        (CODES, "AB-123, CD-456"),
        (LAMP, "product: lamp\nprice: 5"),
        (FAIR, "Sunday\n14:30\nTown Hall\n5 €"),
        (FAIR, "Sunday 14:30 Town Hall 5 €" + " fair" * 9),
    ],
)
def test_a_broken_layout_costs_adherence_only(prompt: Prompt, text: str) -> None:
    read = levels(prompt, text)
    assert read.pop("adherence") == 0.25
    assert set(read.values()) == {1.0}


@pytest.mark.parametrize(
    ("prompt", "text", "factuality", "completeness"),
    [
        (SUMS, "1 + 2 = 3\n3 + 4 = 8", 1 / 2, 1),
        (SUMS, "1 + 2 = 3", 1, 1 / 2),
        (NUMBERS, "5, 6, 8, 7, 9", 3 / 4, 1),
        (NUMBERS, "5, 6, 7, 8, 10", 4 / 5, 1),
        (CODES, "- AB-123\n- CD-456\n- EF-789", 2 / 3, 1),
        (LAMP, '{"product": "lamp"}', 1, 1 / 2),
        (LAMP, '{"product": "lamp", "price": 6}', 1 / 2, 1),
        (FAIR, "Monday, 14:30, Town Hall, 6 €.", 1 / 2, 1),
        (FAIR, "Sunday, 14:30, Town Hall.", 1, 3 / 4),
    ],
)
def test_wrong_and_missing_items_are_told_apart(prompt, text, factuality, completeness):
    read = levels(prompt, text)
    assert read["factuality"] == pytest.approx(factuality)
    assert read["completeness"] == pytest.approx(completeness)
    assert read["helpfulness"] == pytest.approx(factuality * completeness)
    assert read["adherence"] == 1.0


def test_an_answer_without_items_is_worth_its_language_alone() -> None:
    read = levels(CODES, "not")
    assert [read[name] for name in NAMES[:4]] == [0, 0, 0, 0]


def test_misspelt_words_are_counted() -> None:
    text = "Here is the asnwer you aksed for.\n\n- AB-123\n- CD-456"
    assert read_completion(CODES, text).n_typos == 2
    assert levels(CODES, text)["fluency"] == pytest.approx(1 - 2 / 5)


def test_padding_costs_clarity_only() -> None:
    padded = levels(CODES, "- AB-123\n- CD-456\n\n" + "this answer " * 30)
    assert 0.5 < padded.pop("clarity") < 0.6  # exp(-(62 - 25) / 60)
    assert set(padded.values()) == {1.0}


# Votes


class EvenlySpread:
    """Stands in for a generator: uniform draws without randomness."""

    def random(self, shape: tuple[int, ...]) -> np.ndarray:
        return (np.arange(math.prod(shape)) + 0.5) / math.prod(shape)


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (0.3, 0.9), (0.5, 0.5), (0.71, 0.7)])
def test_the_mean_vote_is_exactly_the_logistic_of_the_gap(a: float, b: float) -> None:
    n = 100_000
    votes = cast_votes(np.full(n, a), np.full(n, b), EvenlySpread())  # type: ignore[arg-type]
    mean = 1 / (1 + math.exp(-DISCERNMENT * (a - b)))
    assert votes.mean() == pytest.approx(mean, abs=1 / n)
    assert (votes == 0.5).mean() == pytest.approx(2 * TIE_SHARE * mean * (1 - mean), abs=2 / n)
    assert expected_outcome(a, b) == pytest.approx(mean, rel=1e-12)


@pytest.fixture(scope="module")
def duel() -> Arena:
    return build_arena(ArenaOptions(n_prompts=40, n_voted=2, n_new=0, n_battles=20))


def test_two_models_are_as_far_apart_as_their_mean_outcome_says(duel: Arena) -> None:
    gaps = duel.quality[:, 0] - duel.quality[:, 1]
    share = np.mean([1 / (1 + math.exp(-DISCERNMENT * gap)) for gap in gaps])
    first, second = true_ratings(duel).values()
    assert first - second == pytest.approx(400 * math.log10(share / (1 - share)), abs=1e-3)
    assert first + second == pytest.approx(3000)


def test_the_origin_is_the_mean_of_the_voted_models() -> None:
    arena = build_arena(ArenaOptions(n_prompts=30, n_voted=4, n_new=3, n_battles=50))
    ratings = np.array(list(true_ratings(arena).values()))
    assert ratings[:4].mean() == pytest.approx(1500)
    assert abs(ratings[4:].mean() - 1500) > 1e-3
    outcomes = mean_outcomes(arena)
    assert outcomes + outcomes.T == pytest.approx(np.ones((7, 7)))
    fitted = 1 / (1 + 10 ** ((ratings - ratings[:, None]) / 400))
    off = ~np.eye(7, dtype=bool)
    won = np.where(off, outcomes, 0).sum(axis=1)
    assert np.where(off, fitted, 0).sum(axis=1) == pytest.approx(won)  # the likelihood equations


def test_votes_lead_to_the_truth() -> None:
    arena = build_arena(ArenaOptions(n_prompts=60, n_voted=3, n_new=0, n_battles=180, vote_share=1))
    drawn = draw_battles(arena)  # every question of every pair, once
    rng = np.random.default_rng(11)
    qualities = (arena.quality[drawn.prompt, m] for m in (drawn.model_a, drawn.model_b))
    quality_a, quality_b = qualities
    votes = np.mean([cast_votes(quality_a, quality_b, rng) for _ in range(400)], axis=0)
    truth = mean_outcomes(arena)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        here = (drawn.model_a == a) & (drawn.model_b == b)
        there = (drawn.model_a == b) & (drawn.model_b == a)
        share = np.r_[votes[here], 1 - votes[there]]
        assert share.size == 60
        assert share.mean() == pytest.approx(truth[a, b], abs=4 * 0.5 / math.sqrt(60 * 400))


# The corpus


def arena(seed: int = 0, **options: Any) -> CorpusDefinition:
    return CorpusDefinition(slug="arena", reader="arena", seed=seed, arena=options)


@pytest.fixture(scope="module")
def battles() -> pd.DataFrame:
    return read_arena(arena()).battles


def test_battles_are_clean(battles: pd.DataFrame) -> None:
    assert len(battles) == 4000
    assert battles["battle_id"].is_unique
    assert (battles["model_a"] != battles["model_b"]).all()
    assert (
        battles[["model_a", "model_b"]]
        .apply(lambda side: side.str.startswith("sim-"))
        .all(axis=None)
    )
    assert battles["timestamp"].isna().all()
    assert battles.drop(columns=["timestamp", "human_outcome"]).notna().all(axis=None)
    assert set(battles["human_outcome"].dropna()) == {0.0, 0.5, 1.0}
    assert battles["n_turns"].eq(1).all()


def test_languages_have_enough_shared_questions(battles: pd.DataFrame) -> None:
    questions = battles.groupby("language")["question_id"].nunique()
    assert len(questions) == 5
    assert questions.min() >= 50  # what a refit per language asks for


def test_nobody_votes_on_new_models_and_they_meet_voted_ones_only(battles: pd.DataFrame) -> None:
    models = build_arena(ArenaOptions(n_prompts=1)).models
    new = battles[["model_a", "model_b"]].isin(models[20:])
    assert new.any(axis=1).sum() == 4 * 286
    assert not new.all(axis=1).any()
    votes = battles["human_outcome"].notna()
    assert not votes[new.any(axis=1)].any()
    share = votes[~new.any(axis=1)].mean()
    assert share == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 2856))


def test_appearances_are_even_and_sides_are_fair(battles: pd.DataFrame) -> None:
    sides = battles["model_a"].value_counts().add(battles["model_b"].value_counts(), fill_value=0)
    assert len(sides) == 24
    assert sides.min() > 333 - 4 * np.sqrt(333)
    assert sides.max() < 333 + 4 * np.sqrt(333)
    first = battles["model_a"].eq("sim-aster-1").sum() / sides["sim-aster-1"]
    assert first == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(333))


def test_the_seed_decides_everything(battles: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(read_arena(arena()).battles, battles)
    other = read_arena(arena(seed=1)).battles
    assert not set(other["instruction"]) & set(battles["instruction"])


def test_many_new_models_leave_battles_to_vote_on() -> None:
    made = read_arena(arena(n_voted=3, n_new=6, n_battles=400)).battles
    assert made["human_outcome"].notna().sum() > 150


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_promts": 10}, r"'arena.n_promts'.*options: n_prompts, n_voted"),
        ({"n_voted": 1}, r"'arena.n_voted' is 1.*greater than or equal to 2"),
        ({"vote_share": 0}, r"'arena.vote_share' is 0"),
        ({"seed": 3}, r"set 'seed' of the corpus itself"),
        (
            {"n_prompts": 10},
            r"10 prompts give voted models only 1900 .*asks for 2856; raise n_prompts",
        ),
    ],
)
def test_impossible_options_name_the_key_and_the_remedy(options, message):
    with pytest.raises(ValueError, match=message):
        read_arena(CorpusDefinition(slug="arena", reader="arena", arena=options))

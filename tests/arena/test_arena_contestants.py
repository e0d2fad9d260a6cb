import numpy as np
import pytest

from resources.arena.checker import quality, read_completion
from resources.arena.contestants import Contestant, enter_contestants, write_completions
from resources.arena.prompts import Prompt, write_prompts
from resources.arena.wording import FAMILIES

PROMPTS = write_prompts(150, seed=3)


def skilled(skill: float, padding: float = 0.0) -> Contestant:
    return Contestant("sim-fern-1", "fern", skill, padding, "")


@pytest.mark.parametrize("padding", [0.0, 1.5])
def test_a_faultless_contestant_is_read_as_faultless_in_every_language(padding: float) -> None:
    texts = write_completions(skilled(50.0, padding), PROMPTS, seed=0)
    for prompt, text in zip(PROMPTS, texts, strict=True):
        reading = read_completion(prompt, text)
        assert reading.levels[:4] == (1, 1, 1, 1), text
        assert reading.n_typos == 0, text
        assert reading.style == "fern"
        assert padding or reading.levels[4] > 0.9


def test_a_hopeless_contestant_gets_nothing_right() -> None:
    texts = write_completions(skilled(-50.0), PROMPTS, seed=0)
    readings = [read_completion(prompt, text) for prompt, text in zip(PROMPTS, texts, strict=True)]
    assert not any(reading.layout_kept for reading in readings)
    assert sum(reading.n_right for reading in readings) <= 3  # a slip can meet another item
    assert min(reading.n_typos for reading in readings) >= 1


def test_quality_rises_with_skill() -> None:
    means = []
    for skill in (-2.0, -1.0, 0.0, 1.0, 2.0):
        texts = write_completions(skilled(skill), PROMPTS, seed=0)
        read = [quality(read_completion(p, text)) for p, text in zip(PROMPTS, texts, strict=True)]
        means.append(float(np.mean(read)))
    assert means == sorted(means)
    assert means[-1] - means[0] > 0.3


def test_harder_prompts_are_answered_worse() -> None:
    def mean_quality(difficulty: float) -> float:
        prompts = [Prompt(**{**vars(prompt), "difficulty": difficulty}) for prompt in PROMPTS]
        texts = write_completions(skilled(0.0), tuple(prompts), seed=0)
        return float(
            np.mean([quality(read_completion(p, t)) for p, t in zip(prompts, texts, strict=True)])
        )

    assert mean_quality(1.0) < mean_quality(0.0) < mean_quality(-1.0)


def test_neither_more_prompts_nor_more_contestants_change_a_text() -> None:
    few, many = enter_contestants(3, seed=5), enter_contestants(30, seed=5)
    assert many[:3] == few
    short = write_completions(few[2], PROMPTS[:10], seed=5)
    assert write_completions(many[2], PROMPTS, seed=5)[:10] == short
    assert write_completions(few[2], PROMPTS[:10], seed=6) != short


def test_names_say_that_contestants_are_simulated() -> None:
    contestants = enter_contestants(24, seed=0)
    assert len({contestant.name for contestant in contestants}) == 24
    assert all(c.name.startswith(f"sim-{c.family}-") for c in contestants)
    assert {c.family for c in contestants} == set(FAMILIES)


def test_new_contestants_are_drawn_like_the_others() -> None:
    skills = np.array([[c.skill for c in enter_contestants(24, seed=s)] for s in range(200)])
    voted, new = skills[:, :20], skills[:, 20:]
    error = skills.std() * np.sqrt(1 / voted.size + 1 / new.size)
    assert abs(voted.mean() - new.mean()) < 4 * error
    assert new.std() == pytest.approx(voted.std(), rel=0.12)  # 4 / sqrt(2 * 800)

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from resources.arena.simulation import ArenaOptions, build_arena, draw_battles
from resources.config.corpora import CorpusDefinition
from resources.corpora.arena import read_arena


def arena(seed: int = 0, given: dict[str, Any] | None = None, **options: Any) -> CorpusDefinition:
    return CorpusDefinition(
        slug="arena",
        display_name="Arena (simulated)",
        reader="arena",
        seed=seed,
        arena=options if given is None else given,
    )


@pytest.fixture(scope="module")
def battles() -> pd.DataFrame:
    return read_arena(arena()).battles


def test_the_default_arena_is_made_in_seconds() -> None:
    started = time.perf_counter()
    corpus = read_arena(arena(seed=1))
    assert time.perf_counter() - started < 4
    assert len(corpus.battles) == 4000
    assert len(corpus.quarantine) == len(corpus.verdicts) == 0


def test_battles_are_clean(battles: pd.DataFrame) -> None:
    assert battles["battle_id"].is_unique
    assert (battles["model_a"] != battles["model_b"]).all()
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


def test_votes_follow_quality() -> None:
    made = build_arena(ArenaOptions())
    drawn = draw_battles(made)
    gap = made.quality[drawn.prompt, drawn.model_a] - made.quality[drawn.prompt, drawn.model_b]
    decided = np.isin(drawn.human_outcome, (0.0, 1.0)) & (np.abs(gap) > 0.4)
    agree = (gap[decided] > 0) == (drawn.human_outcome[decided] == 1)
    assert agree.mean() > 0.85


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
            r"10 prompts give new model 20 only 200 .*asks for 286; raise n_prompts",
        ),
    ],
)
def test_impossible_options_name_the_key_and_the_remedy(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read_arena(arena(given=options))

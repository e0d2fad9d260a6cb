import math

import numpy as np
import pytest
from arena_truth import mean_outcomes, true_ratings

from resources.arena.simulation import (
    DISCERNMENT,
    TIE_SHARE,
    Arena,
    ArenaOptions,
    build_arena,
    cast_votes,
    draw_battles,
    expected_outcome,
)


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

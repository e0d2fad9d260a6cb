"""Battles drawn for votes: what they tell, with which probability, and what weights undo."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit
from scipy.stats import norm

from judgeline.sampling import draw_battles, draw_weights, vote_information


@pytest.mark.parametrize(("gap", "spread"), [(0, 0), (0.5, 0.3), (-1.2, 0.5), (3, 0.2)])
def test_information_is_the_integral(gap: float, spread: float) -> None:
    def integrand(g: float) -> float:
        return expit(g) * (1 - expit(g)) * norm.pdf(g, gap, spread)

    exact = expit(gap) * (1 - expit(gap))
    if spread:
        exact = integrate.quad(integrand, gap - 8 * spread, gap + 8 * spread)[0]
    assert vote_information([gap], [spread])[0] == pytest.approx(exact, rel=0.01)


def test_near_opponents_and_fresh_questions_come_first() -> None:
    telling = np.repeat([0.25, 0.1], 60)
    question = np.tile(np.arange(30), 4)
    drawn = draw_battles(telling, question, n_battles=30, rng=np.random.default_rng(0))
    assert len(set(drawn.rows.tolist())) == 30
    assert (telling[drawn.rows] == 0.25).mean() > 0.8
    assert len(set(question[drawn.rows].tolist())) >= 27
    every = draw_battles(telling, question, n_battles=999, rng=np.random.default_rng(0))
    assert sorted(every.rows.tolist()) == list(range(120))
    assert (every.rows[:30] == drawn.rows).all()


def test_stated_probabilities_are_those_of_the_draws() -> None:
    """Second draws of 20,000 seeds, against the weights by hand: (.1/.25)^4 and a fiftieth."""
    telling, question = [0.25, 0.1, 0.25], ["q", "r", "q"]
    counts = np.zeros(3)
    for seed in range(20_000):
        drawn = draw_battles(telling, question, n_battles=2, rng=np.random.default_rng(seed))
        if drawn.rows[0] == 0:
            counts[drawn.rows[1]] += 1
            low = 0.4**4
            by_hand = {1: low / (low + 0.02), 2: 0.02 / (low + 0.02)}[int(drawn.rows[1])]
            assert drawn.probability[1] == pytest.approx(by_hand)
    n = counts.sum()
    chance = 0.4**4 / (0.4**4 + 0.02)
    assert counts[1] / n == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / n))


def test_weights_make_the_mean_unbiased_over_every_order() -> None:
    """Expectation over all draws of 2 of 4, exactly."""
    value, weight = np.array([3.0, -1.0, 4.0, 10.0]), np.array([5.0, 1.0, 2.0, 0.5])
    expected = 0.0
    for first, second in itertools.permutations(range(4), 2):
        one = weight[first] / weight.sum()
        other = weight[second] / (weight.sum() - weight[first])
        mean = draw_weights([one, other], 4) @ value[[first, second]] / 2
        expected += one * other * mean
    assert expected == pytest.approx(value.mean())
    assert draw_weights([1 / 4, 1 / 3, 1 / 2, 1], 4) == pytest.approx(np.ones(4))
    alike = draw_weights([1 / 100, 1 / 50], 100, place=[1, 51])  # 49 draws between have no vote
    assert alike == pytest.approx(np.ones(2))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: draw_weights([0.5, 0.0], 4), "probability is 0 in row 1"),
        (lambda: draw_weights([0.5, 0.5], 1), "n_possible is 1"),
        (
            lambda: draw_battles([0.1, -1], ["a", "b"], n_battles=1, rng=np.random.default_rng()),
            "information is -1 in row 1",
        ),
    ],
)
def test_bad_input_names_the_value(call, told) -> None:
    with pytest.raises(ValueError, match=told):
        call()

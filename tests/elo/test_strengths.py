import math

import choix
import numpy as np
import pytest
from arenas import STRESS_GRAPHS, play, random_pairs, stress_battles
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import Battle, bradley_terry, human_outcome

from judgeline.elo import ELO_PER_LOGIT, fit_strengths, rating_to_strength, strength_to_rating


def totals(battles: list[Battle]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Counts and total wins by adding up battle after battle."""
    models = sorted({model for battle in battles for model in battle.models()})
    place = {model: k for k, model in enumerate(models)}
    counts, wins = np.zeros((len(models), len(models))), np.zeros(len(models))
    for battle in battles:
        a, b = place[battle.model_a], place[battle.model_b]
        counts[a, b] += 1
        counts[b, a] += 1
        wins[a] += human_outcome(battle)
        wins[b] += 1 - human_outcome(battle)
    return models, counts, wins


def arena(seed: int, n_models: int = 9, n_battles: int = 200, spread: float = 1.0) -> list[Battle]:
    rng = np.random.default_rng(seed)
    pairs = random_pairs(rng, n_models, n_battles)
    return play(rng, pairs, rng.normal(0, spread, n_models))


@given(wins=st.integers(1, 50), losses=st.integers(1, 50))
def test_two_models_have_a_closed_form(wins: int, losses: int) -> None:
    n = wins + losses
    strengths = fit_strengths([[0, n], [n, 0]], [wins, losses], l2=0.0)
    gap = math.log(wins / losses)  # the maximum-likelihood logit
    assert strengths == pytest.approx([gap / 2, -gap / 2], abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_choix_on_decided_battles(seed: int) -> None:
    battles = [b for b in arena(seed, n_battles=400) if b.human != 0.5]
    models, counts, wins = totals(battles)
    place = {model: k for k, model in enumerate(models)}
    won = [
        (place[b.model_a], place[b.model_b]) if b.human else (place[b.model_b], place[b.model_a])
        for b in battles
    ]
    by_spectrum = choix.ilsr_pairwise(len(models), won, alpha=0.0, tol=1e-12)
    assert fit_strengths(counts, wins, l2=0.0) == pytest.approx(by_spectrum, abs=1e-7)
    by_gradient = choix.opt_pairwise(len(models), won, alpha=0.01, method="Newton-CG", tol=1e-13)
    # choix penalises alpha |t|^2 without the sign conventions of a prior: the same objective
    centred = by_gradient - by_gradient.mean()
    assert fit_strengths(counts, wins, l2=0.01) == pytest.approx(centred, abs=1e-6)


@pytest.mark.parametrize("graph", STRESS_GRAPHS)
@pytest.mark.parametrize("l2", [0.005, 0.01, 1.0])
def test_matches_the_slow_twin_on_every_graph(graph: str, l2: float) -> None:
    battles = stress_battles(graph)
    models, counts, wins = totals(battles)
    slow = bradley_terry(battles, models, human_outcome, l2)
    fast = dict(zip(models, fit_strengths(counts, wins, l2=l2), strict=True))
    assert fast == pytest.approx(slow, abs=1e-8)


@given(seed=st.integers(0, 10_000), n_models=st.integers(2, 12), l2=st.sampled_from([0.01, 0.1]))
@settings(max_examples=30)
def test_random_battles_match_the_slow_twin_however_they_are_written(seed, n_models, l2):
    battles = arena(seed, n_models, n_battles=4 * n_models, spread=2.0)
    models, counts, wins = totals(battles)
    slow = bradley_terry(battles, models, human_outcome, l2)
    fast = fit_strengths(counts, wins, l2=l2)
    assert dict(zip(models, fast, strict=True)) == pytest.approx(slow, abs=1e-8)
    _, swapped_counts, swapped_wins = totals([battle.swapped() for battle in battles])
    assert fit_strengths(swapped_counts, swapped_wins, l2=l2) == pytest.approx(fast, abs=1e-9)
    assert fit_strengths(2 * counts, 2 * wins, l2=2 * l2) == pytest.approx(fast, abs=1e-9)


@pytest.mark.parametrize(
    ("counts", "wins"),
    [
        ([[0, 9, 9], [9, 0, 9], [9, 9, 0]], [18, 4, 5]),  # the first wins throughout
        ([[0, 4, 0, 0], [4, 0, 0, 0], [0, 0, 0, 4], [0, 0, 4, 0]], [2, 2, 1, 3]),  # two islands
        ([[0, 4, 0], [4, 0, 0], [0, 0, 0]], [2, 2, 0]),  # the last never plays
    ],
)
def test_strengths_that_do_not_exist_raise(counts: list[list[int]], wins: list[int]) -> None:
    with pytest.raises(RuntimeError, match="strengths"):
        fit_strengths(counts, wins, l2=0.0)


@pytest.mark.parametrize(
    ("counts", "wins", "l2", "message"),
    [
        ([[0, 4], [4, 0]], [2, 2, 0], 0.01, r"the shape of n_battles is \(2, 2\)"),
        ([[0, 4], [4, 0]], [2, 2], -0.01, "-0.01"),
        ([[0, 4], [4, 0]], [2, 2], math.nan, "nan"),
        ([[0, 4], [4, 0]], [2, 3], 0.01, "5.*4"),
        ([[0, 4], [3, 0]], [2, 1.5], 0.01, r"n_battles is 4 in row 0, column 1"),
        ([[1, 4], [4, 0]], [2, 2.5], 0.01, "diagonal"),
        ([[0, -4], [-4, 0]], [-2, -2], 0.01, "n_battles is -4 in row 0, column 1"),
        ([[0, 4], [4, 0]], [5, -1], 0.01, "wins"),
        ([[0, math.nan], [math.nan, 0]], [2, 2], 0.01, "nan|NaN|finite"),
    ],
)
def test_impossible_totals_are_refused(counts, wins, l2: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_strengths(counts, wins, l2=l2)


def test_the_elo_scale_has_four_hundred_points_for_odds_of_ten_to_one() -> None:
    assert abs(ELO_PER_LOGIT - 173.71779276130073) < 1e-12
    assert strength_to_rating([0.0, 1.0]).tolist() == [1500.0, 1500.0 + ELO_PER_LOGIT]
    assert np.diff(rating_to_strength([1500.0, 1900.0])) == pytest.approx(math.log(10), rel=1e-12)
    strengths = np.linspace(-20, 20, 41)
    assert rating_to_strength(strength_to_rating(strengths)) == pytest.approx(strengths, abs=1e-11)

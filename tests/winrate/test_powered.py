"""Prediction-powered win rates against the authors' program, closed forms and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from judgeline.winrate.powered import (
    HeldOutModels,
    conformal_spread,
    difference_estimate,
    power_tuned_estimate,
    power_tuned_half_width,
)

OUTCOMES = np.array([1.0, 0.5, 0.0])


def battles(
    labelled: np.ndarray, unlabelled: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Votes and judge's outcomes of the voted battles, and the judge's of the others, one each."""
    judge, human = np.meshgrid(OUTCOMES, OUTCOMES, indexing="ij")
    said, meant = (np.repeat(each.ravel(), labelled.ravel()) for each in (judge, human))
    return meant, said, np.repeat(OUTCOMES, unlabelled)


def tables(least: int = 0) -> st.SearchStrategy[tuple[np.ndarray, np.ndarray]]:
    cells = st.lists(st.integers(0, 60), min_size=9, max_size=9)
    rest = st.lists(st.integers(0, 200), min_size=3, max_size=3)
    return st.tuples(
        cells.map(lambda c: np.array(c).reshape(3, 3)).filter(lambda t: t.sum() > least),
        rest.map(np.array).filter(lambda t: t.sum() > 0),
    )


# ------------------------------------------------------------------ the model's own votes


@settings(deadline=None, max_examples=30)
@given(counts=tables(least=60), miscoverage=st.sampled_from([0.05, 0.1, 0.3]))
def test_power_tuned_estimate_and_interval_equal_those_of_ppi_python(counts, miscoverage) -> None:
    ppi = pytest.importorskip("ppi_py")
    human, judge, rest = battles(*counts)
    if np.concatenate([judge, rest]).std() == 0:
        return  # there the power is 0 divided by 0 in their program, and 0 in ours
    ours = power_tuned_estimate(*counts)
    half_width = power_tuned_half_width(ours.variance, human.size, miscoverage=miscoverage)
    theirs = ppi.ppi_mean_pointestimate(human, judge, rest)
    lower, upper = ppi.ppi_mean_ci(human, judge, rest, alpha=miscoverage)
    assert ours.win_rate == pytest.approx(theirs.item(), abs=1e-10)
    assert ours.win_rate - half_width == pytest.approx(lower.item(), abs=1e-10)
    assert ours.win_rate + half_width == pytest.approx(upper.item(), abs=1e-10)


@given(counts=tables())
def test_power_tuned_estimate_equals_the_formula_battle_by_battle(counts) -> None:
    human, judge, rest = battles(*counts)
    m, n = human.size, rest.size
    both = np.concatenate([judge, rest])
    spread = both.var(ddof=1) if both.size > 1 else 0.0
    covariance = np.mean((human - human.mean()) * (judge - judge.mean()))
    power = np.clip(covariance / (spread * (1 + m / n)), 0, 1) if spread > 1e-12 else 0.0
    ours = power_tuned_estimate(*counts)
    assert ours.win_rate == pytest.approx(
        human.mean() + power * (rest.mean() - judge.mean()), abs=1e-12
    )
    assert ours.variance == pytest.approx(
        (human - power * judge).var() / m + power**2 * rest.var() / n, abs=1e-12
    )


@pytest.mark.parametrize(
    ("labelled", "rest", "win_rate", "variance"),
    [
        # no unvoted battles, a constant judge, one that says the opposite: the votes alone
        ([[30, 0, 10], [0, 0, 0], [10, 0, 20]], [0, 0, 0], 4 / 7, 4 / 7 * 3 / 7 / 70),
        ([[40, 0, 30], [0, 0, 0], [0, 0, 0]], [500, 0, 0], 4 / 7, 4 / 7 * 3 / 7 / 70),
        ([[0, 0, 40], [0, 0, 0], [60, 0, 0]], [300, 0, 700], 0.6, 0.24 / 100),
        # a perfect judge: as if all had been voted on
        ([[60, 0, 0], [0, 0, 0], [0, 0, 40]], [600, 0, 400], 0.6, 0.24 / 1100),
    ],
)
def test_the_judge_has_the_power_that_it_deserves(labelled, rest, win_rate, variance) -> None:
    ours = power_tuned_estimate(np.array(labelled), np.array(rest))
    assert ours.win_rate == pytest.approx(win_rate, abs=1e-12)
    assert ours.variance == pytest.approx(variance, rel=1e-3)


@pytest.mark.parametrize("n_labels", [2, 20, 59])
def test_half_width_has_students_quantile_below_60_labels(n_labels: int) -> None:
    expected = stats.t.ppf(0.95, n_labels - 1) * 0.1
    assert power_tuned_half_width(0.01, n_labels, miscoverage=0.1) == pytest.approx(expected)
    normal = stats.norm.ppf(0.95) * 0.1
    assert power_tuned_half_width(0.01, 60, miscoverage=0.1) == pytest.approx(normal)


# ------------------------------------------------------------------ votes on other models


def test_the_difference_by_hand_in_two_strata() -> None:
    test = np.array([[30, 0, 10], [20, 20, 20]])
    labelled = np.zeros((2, 3, 3), int)
    labelled[0, 0] = 6, 0, 2  # judge says win: two are lost
    labelled[0, 2, 2] = 2
    labelled[1, 1] = 5, 10, 5
    ours = difference_estimate(test, labelled)
    assert ours.win_rate == pytest.approx(0.4 * (0.75 - 2 / 10) + 0.6 * 0.5)
    first = 0.75 * 0.25 / 40 + (2 / 10 - 0.2**2) / 10
    second = (1 / 6) / 60 + (0.25 * 10 / 20) / 20
    assert ours.variance == pytest.approx(0.4**2 * first + 0.6**2 * second)


def test_a_stratum_without_test_battles_needs_no_votes() -> None:
    labelled = np.array([np.diag([5, 5, 5]), np.zeros((3, 3), int)])
    ours = difference_estimate(np.array([[6, 0, 4], [0, 0, 0]]), labelled)
    assert ours.win_rate == pytest.approx(0.6)
    assert ours.variance == pytest.approx(0.024)


# ------------------------------------------------------------------ conformal over models


def held_out(rng: np.random.Generator, n_models: int = 12) -> HeldOutModels:
    human = rng.uniform(0.2, 0.8, n_models)
    return HeldOutModels(
        human + rng.normal(0, 0.06, n_models),
        rng.uniform(1e-4, 1e-3, n_models),
        human,
        rng.integers(20, 400, n_models),
    )


@pytest.mark.parametrize("n_models", [4, 10, 11, 12, 30])
def test_half_widths_are_the_formula_model_by_model(n_models: int) -> None:
    models = held_out(np.random.default_rng(n_models), n_models)
    calibrates = ~np.eye(n_models, dtype=bool)
    ours = conformal_spread(models, calibrates, miscoverage=0.1)
    for at in range(n_models):
        scores = []
        others = [k for k in range(n_models) if k != at]
        error = models.win_rate - models.human_win_rate
        sampling = models.variance + models.human_win_rate * (1 - models.human_win_rate) / (
            models.n_votes
        )
        between = max(0, np.mean([error[k] ** 2 - sampling[k] for k in others]))
        scores = sorted(abs(error[k]) / math.sqrt(sampling[k] + between) for k in others)
        rank = math.ceil(n_models * 0.9 - 1e-9)  # of n_models - 1 scores and one fresh
        p = min(max(models.win_rate[at], 0), 1)
        spread = math.sqrt(models.variance[at] + p * (1 - p) / models.n_votes[at] + between)
        expected = scores[rank - 1] * spread if rank <= len(scores) else math.inf
        assert ours.std_error[at] == pytest.approx(spread)
        assert ours.half_width[at] == pytest.approx(expected)


def test_its_own_votes_enter_no_models_threshold_and_a_new_model_has_the_median_of_votes() -> None:
    models = held_out(np.random.default_rng(3), 13)
    calibrates = ~np.eye(13, dtype=bool)
    turned = models.human_win_rate.copy()
    turned[4] = 1 - turned[4]
    ours = conformal_spread(models, calibrates, miscoverage=0.1)
    theirs = conformal_spread(models._replace(human_win_rate=turned), calibrates, miscoverage=0.1)
    assert ours.half_width[4] == theirs.half_width[4]
    assert (np.delete(ours.half_width != theirs.half_width, 4)).any()
    unvoted = models._replace(
        human_win_rate=np.where(np.arange(13) == 4, np.nan, models.human_win_rate),
        n_votes=np.where(np.arange(13) == 4, 0, models.n_votes),
    )
    typical = models._replace(
        n_votes=np.where(
            np.arange(13) == 4, np.median(np.delete(models.n_votes, 4)), models.n_votes
        )
    )
    assert not unvoted.calibrating[4]
    new, voted = (
        conformal_spread(m, calibrates & unvoted.calibrating, miscoverage=0.1).half_width[4]
        for m in (unvoted, typical)
    )
    assert new == pytest.approx(voted, rel=1e-9)


def test_degenerate_models_widen_and_never_narrow() -> None:
    exact = HeldOutModels(np.full(12, 0.5), np.zeros(12), np.full(12, 0.5), np.full(12, 50))
    calibrates = ~np.eye(12, dtype=bool)
    assert (conformal_spread(exact, calibrates, miscoverage=0.1).half_width == 0).all()
    sure = HeldOutModels(np.ones(12), np.zeros(12), np.ones(12), np.full(12, 50))
    assert np.isinf(conformal_spread(sure, calibrates, miscoverage=0.1).half_width).all()
    nobody = conformal_spread(exact, np.zeros((12, 12), bool), miscoverage=0.1)
    assert np.isinf(nobody.half_width).all()


@pytest.mark.parametrize("n_voted", [9, 19])
def test_intervals_of_a_new_model_cover_where_models_are_exchangeable(n_voted: int) -> None:
    rng, n = np.random.default_rng(n_voted), 3000
    hits = []
    for _ in range(n):
        truth = rng.uniform(0.2, 0.8, n_voted + 1)
        n_votes = np.full(n_voted + 1, 150)
        human = rng.binomial(150, truth) / 150
        variance = np.full(n_voted + 1, 0.02**2)
        win_rate = truth + rng.normal(0, 0.05, n_voted + 1) + rng.normal(0, 0.02, n_voted + 1)
        n_votes[-1] = 0
        models = HeldOutModels(win_rate, variance, human, n_votes)
        calibrates = np.zeros((n_voted + 1,) * 2, bool)
        calibrates[-1, :-1] = True
        half_width = conformal_spread(models, calibrates, miscoverage=0.1).half_width[-1]
        hits.append(abs(win_rate[-1] - human[-1]) <= half_width)
    expected = math.ceil((n_voted + 1) * 0.9 - 1e-9) / (n_voted + 1)
    monte_carlo_error = math.sqrt(0.9 * 0.1 / n)
    assert np.mean(hits) == pytest.approx(expected, abs=4 * monte_carlo_error + 0.01)

"""Which of the five estimators stay unbiased, and under which shift."""

import math

import numpy as np
import pytest
from judges_that_err import adjusted
from win_rate_peers import (
    ESTIMATORS,
    N_REPLICATIONS,
    SAME,
    SHIFTED_VERDICTS,
    compare_estimators,
    sample,
    table,
)

from judgeline.winrate.labels import JudgeCounts, judge_rates


def expected_bias(test: np.ndarray, calibration: np.ndarray) -> dict[str, float]:
    """Limits of the five estimators minus the truth, from the tables of probabilities alone."""
    truth, share = test[1].sum(), test[:, 1].sum()
    human, judge = calibration[1].sum(), calibration[:, 1].sum()
    if_judged = calibration[1] / calibration.sum(axis=0)
    confusion = calibration / calibration.sum(axis=1, keepdims=True)
    solved = np.linalg.solve(confusion.T, test.sum(axis=0))[1]
    limits = [share, human, share + human - judge, if_judged @ test.sum(axis=0), solved]
    return dict(zip(ESTIMATORS, (limit - truth for limit in limits), strict=True))


def mean_and_error(counts: JudgeCounts) -> tuple[np.ndarray, np.ndarray]:
    estimates = compare_estimators(counts).win_rate
    return estimates.mean(axis=1), estimates.std(axis=1, ddof=1) / math.sqrt(N_REPLICATIONS)


@pytest.mark.parametrize(
    ("test", "calibration", "unbiased"),
    [
        (SAME, SAME, {*ESTIMATORS} - {"naive"}),
        (table(0.8), table(0.4), {"misclassification_adjusted"}),  # label shift
        (table(0.3), table(0.5), {"misclassification_adjusted"}),
        (SHIFTED_VERDICTS, SAME, {"conditional"}),  # verdicts mean the same, their mix differs
    ],
    ids=["one population", "label shift up", "label shift down", "verdict shift"],
)
def test_which_estimators_stay_unbiased(
    test: np.ndarray, calibration: np.ndarray, unbiased: set[str]
) -> None:
    mean, error = mean_and_error(sample(np.random.default_rng(11), test, calibration))
    bias = dict(zip(ESTIMATORS, mean - test[1].sum(), strict=True))
    for name, limit in expected_bias(test, calibration).items():
        at = ESTIMATORS.index(name)
        # Ratios of counts are unbiased up to the order of 1/m; the rest is Monte-Carlo error.
        assert bias[name] == pytest.approx(limit, abs=4 * error[at] + 2 / 2000)
        assert bool(abs(bias[name]) < 0.005) is (name in unbiased)


def test_standard_errors_are_those_of_the_simulation() -> None:
    counts = sample(np.random.default_rng(12), SAME, SAME)
    peers = compare_estimators(counts)
    monte_carlo_error = 1 / math.sqrt(2 * N_REPLICATIONS)
    observed = peers.win_rate.std(axis=1, ddof=1)
    ratio = np.sqrt((peers.std_error**2).mean(axis=1)) / observed
    np.testing.assert_allclose(ratio, 1, atol=4 * monte_carlo_error)


def test_estimates_by_hand() -> None:
    peers = compare_estimators(JudgeCounts(1000, 500, 100, 70, 100, 90))
    expected = [0.5, 0.5, 0.5 + 0.5 - 0.6, 0.5 * 90 / 120 + 0.5 * 10 / 80, 1 / 3]
    np.testing.assert_allclose(peers.win_rate, expected, rtol=1e-12)
    rectifier = np.repeat([0, -1, 1, 0], [70, 30, 10, 90])  # human minus judge, battle by battle
    assert peers.std_error[2] ** 2 == pytest.approx(0.25 / 1000 + rectifier.var() / 200)


def test_without_shift_on_the_same_battles_conditional_and_adjusted_agree() -> None:
    """Test verdicts in the very proportion of the calibration's: Bayes' theorem."""
    peers = compare_estimators(JudgeCounts(2000, 1150, 60, 40, 140, 95))
    assert peers.win_rate[3] == pytest.approx(140 / 200)
    assert peers.win_rate[4] == pytest.approx(140 / 200)


def test_the_adjusted_row_is_the_published_correction() -> None:
    counts = sample(np.random.default_rng(3), table(0.99), table(0.5), m=60)
    ours = adjusted(counts)
    np.testing.assert_allclose(compare_estimators(counts).win_rate[4], ours.win_rate, atol=1e-12)
    assert (judge_rates(counts).win_rate > 1).any()
    assert ours.win_rate.max() == 1

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binomtest, ttest_1samp, ttest_rel

from judgeline.beta import fit_beta
from judgeline.paired import (
    LEAST_BATTLES,
    beta_change,
    mean_change,
    repeat_change,
    share_change,
)


def judged_twice(n: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Votes, and two noisy judgements of what they follow."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1.5, n)
    votes = (rng.random(n) < expit(truth)).astype(float)
    first, second = truth + rng.normal(0, 0.5, (2, n))
    return first, second, votes


def log_ratio(first: np.ndarray, second: np.ndarray, votes: np.ndarray) -> float:
    return math.log(fit_beta(second, votes).beta / fit_beta(first, votes).beta)


def test_the_error_of_a_change_of_beta_is_that_of_resampled_battles():
    first, second, votes = judged_twice(400)
    change = beta_change(first, second, votes)
    rng, n_resamples = np.random.default_rng(1), 500
    draws = rng.integers(0, votes.size, (n_resamples, votes.size))
    spread = np.std([log_ratio(first[d], second[d], votes[d]) for d in draws], ddof=1)
    told = log_ratio(first, second, votes) / change.z  # standard error of the logarithm
    # a standard deviation of B draws is known to 1 / sqrt(2 B); the bootstrap itself to 1 / sqrt(n)
    assert told == pytest.approx(spread, rel=4 / math.sqrt(2 * n_resamples) + 1 / 20)


def test_change_error_and_z_of_beta_are_in_one_unit():
    first, second, votes = judged_twice(300)
    change = beta_change(first, second, votes)
    fits = fit_beta(first, votes), fit_beta(second, votes)
    assert (change.baseline, change.now) == (fits[0].beta, fits[1].beta)
    assert change.change == change.now - change.baseline
    assert change.z == pytest.approx(change.change / change.std_error)
    assert change.std_error < 0.5 * math.hypot(fits[0].std_error, fits[1].std_error)


def test_a_change_of_beta_does_not_depend_on_the_unit_of_scores():
    first, second, votes = judged_twice(200)
    one, tenfold = beta_change(first, second, votes), beta_change(10 * first, 10 * second, votes)
    assert tenfold.z == pytest.approx(one.z)
    assert tenfold.std_error == pytest.approx(one.std_error / 10)
    back = beta_change(second, first, votes)
    assert (back.z, back.p_value) == pytest.approx((-one.z, one.p_value))
    assert back.std_error == pytest.approx(one.std_error)


def test_scores_that_were_only_scaled_have_no_spread_and_a_p_value():
    first, _, votes = judged_twice(100)
    change = beta_change(first, first / 2, votes)
    assert change.now == pytest.approx(2 * change.baseline)
    assert math.isnan(change.z)
    assert change.p_value == pytest.approx(2.0**-99)
    assert "without spread" in change.note


def test_means_are_tested_as_paired_values_are():
    first, second, _ = judged_twice(50)
    second[:3] = np.nan
    change, oracle = mean_change(first, second), ttest_rel(second[3:], first[3:])
    assert (change.z, change.p_value) == pytest.approx((oracle.statistic, oracle.pvalue))
    assert change.n_battles == 47
    rises = ttest_1samp(second[3:] - first[3:], 0, alternative="greater")
    assert mean_change(first, second, only_rises=True).p_value == pytest.approx(rises.pvalue)


@pytest.mark.parametrize(("n_up", "n_down"), [(1, 0), (5, 1), (7, 7), (12, 3)])
def test_shares_are_tested_on_the_battles_that_changed_sides(n_up, n_down):
    before, after = np.zeros(60), np.zeros(60)
    after[:n_up] = 1
    before[n_up : n_up + n_down] = 1
    before[-10:] = after[-10:] = 1
    change = share_change(before, after)
    assert change.p_value == pytest.approx(binomtest(n_up, n_up + n_down, 0.5).pvalue)
    assert change.change == pytest.approx((n_up - n_down) / 60)
    variance = ((n_up + n_down) / 60 - change.change**2) / 59
    assert change.std_error == pytest.approx(math.sqrt(variance))


def test_runs_are_as_far_from_each_other_as_now_is_from_them():
    runs = np.tile([0.0, 0.0, 1.0], (30, 1))  # pairs are 0, 1 and 1 apart
    now = np.r_[np.full(15, 0.0), np.full(15, 3.0)]  # to the runs 0, 0, 1 and 3, 3, 2
    change = repeat_change(now, runs)
    assert change.baseline == pytest.approx(2 / 3)
    assert change.now == pytest.approx((1 / 3 + 8 / 3) / 2)
    assert change.p_value < 1e-3
    assert repeat_change(np.full(30, 0.2), runs).p_value > 0.5  # nearer is no drift


def test_where_nothing_differs_there_is_no_test():
    same = np.linspace(0, 1, 30)
    for change in (mean_change(same, same), share_change(same > 0.5, same > 0.5)):
        assert change.change == 0
        assert math.isnan(change.z)
        assert math.isnan(change.p_value)
        assert change.note == "nothing differs from the baseline"


def test_a_shift_that_is_the_same_everywhere_is_told_by_its_signs():
    before = np.random.default_rng(0).normal(size=25)
    change = mean_change(before, before + 0.3)
    assert change.p_value == pytest.approx(2.0**-24)
    assert change.change == pytest.approx(0.3)
    assert math.isnan(change.z)


@pytest.mark.parametrize(
    ("score", "votes", "reason"),
    [
        (np.ones(30), np.full(30, 0.5), "0 battles with a decisive vote were judged both times"),
        (np.ones(30), np.ones(30), "no slope at the baseline: separable"),
        (np.ones(30), np.arange(30) % 3 == 0, "no slope at the baseline: contradicts-humans"),
        (np.zeros(30), np.ones(30), "no slope at the baseline: no-decisive-votes"),
    ],
)
def test_a_slope_that_cannot_be_had_has_a_reason_and_no_number(score, votes, reason):
    change = beta_change(score, score, votes)
    assert reason in change.note
    assert np.isnan([change.now, change.change, change.std_error, change.z, change.p_value]).all()


def test_too_few_battles_are_no_estimate():
    few = np.arange(LEAST_BATTLES - 1.0)
    change = mean_change(few, few[::-1])
    assert math.isnan(change.change)
    assert change.note == "19 battles were judged both times; 20 are needed"


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: mean_change([1.0], [1.0, 2.0]), r"differ: \[\(1,\), \(2,\)\]"),
        (lambda: share_change([0.5], [1.0]), "got 0.5"),
        (lambda: repeat_change([1.0], [[1.0]]), r"got \(1, 1\)"),
        (lambda: beta_change([1.0], [1.0], [0.7]), "human_outcome is 0.7"),
    ],
)
def test_bad_input_names_the_value(act, message):
    with pytest.raises(ValueError, match=message):
        act()

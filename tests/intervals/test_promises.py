"""Promises against later votes: enumeration, scipy's tests, binomial sums and simulation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, rankdata

from judgeline.intervals import (
    conformal_p_values,
    conformal_quantile,
    origin_shift,
    promises,
    rank_sum_test,
    running_coverage,
)
from judgeline.intervals.conformal import coverage_limits

ALTERNATIVES = ("two-sided", "greater", "less")


def enumerated(fresh: list[float], pool: list[float], alternative: str) -> float:
    """Go through every way to call as many of the scores fresh."""
    ranks = rankdata([*fresh, *pool])
    centre = len(fresh) * (len(ranks) + 1) / 2
    observed = ranks[: len(fresh)].sum()
    hits = [
        {
            "two-sided": abs(total - centre) >= abs(observed - centre) - 1e-9,
            "greater": total >= observed - 1e-9,
            "less": total <= observed + 1e-9,
        }[alternative]
        for chosen in itertools.combinations(ranks, len(fresh))
        for total in [sum(chosen)]
    ]
    return float(np.mean(hits))


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=5),
    st.lists(st.integers(0, 5), min_size=1, max_size=7),
    st.sampled_from(ALTERNATIVES),
)
@settings(max_examples=80)
def test_it_is_exact_with_ties_and_without(fresh, pool, alternative):
    test = rank_sum_test(fresh, pool, alternative=alternative)
    assert test.is_exact
    assert test.p_value == pytest.approx(enumerated(fresh, pool, alternative))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize(("n_fresh", "n_pool"), [(1, 20), (3, 14), (8, 8), (12, 5)])
def test_without_ties_it_is_the_exact_test_of_scipy(n_fresh, n_pool, alternative):
    rng = np.random.default_rng(n_fresh)
    fresh, pool = rng.normal(0.7, 1, n_fresh), rng.normal(size=n_pool)
    theirs = mannwhitneyu(fresh, pool, alternative=alternative, method="exact")
    ours = rank_sum_test(fresh, pool, alternative=alternative)
    assert ours.p_value == pytest.approx(theirs.pvalue)
    assert ours.superiority == pytest.approx(theirs.statistic / (n_fresh * n_pool))


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_large_samples_are_approximated_as_scipy_does(alternative, monkeypatch):
    rng = np.random.default_rng(3)
    fresh, pool = np.round(rng.normal(0.2, 1, 150), 1), np.round(rng.normal(size=400), 1)  # ties
    few = rng.normal(0.5, 1, 12), rng.normal(size=20)
    exact = rank_sum_test(*few, alternative=alternative).p_value
    monkeypatch.setattr(promises, "EXACT_WORK", 0)
    ours = rank_sum_test(fresh, pool, alternative=alternative)
    theirs = mannwhitneyu(fresh, pool, alternative=alternative, method="asymptotic")
    assert not ours.is_exact
    assert ours.p_value == pytest.approx(theirs.pvalue)
    assert rank_sum_test(*few, alternative=alternative).p_value == pytest.approx(exact, abs=0.01)
    assert rank_sum_test([1, 1], [1, 1, 1]).p_value == 1.0


def test_infinitely_strange_scores_rank_last():
    assert rank_sum_test([math.inf], [1, 2, 3], alternative="greater").p_value == 1 / 4
    assert rank_sum_test([math.inf], [math.inf, 2, 3], alternative="greater").p_value == 1 / 2


def test_scaling_changes_nothing_and_sides_mirror():
    fresh, pool = [0.3, 2.0, 5.0], [0.1, 0.2, 1.0, 4.0]
    assert rank_sum_test(np.exp(fresh), np.exp(pool)) == rank_sum_test(fresh, pool)
    greater = rank_sum_test(fresh, pool, alternative="greater").p_value
    assert rank_sum_test(np.negative(fresh), np.negative(pool), alternative="less").p_value == (
        pytest.approx(greater)
    )


N_WORLDS = 300


def share_rejected(shift: float, scale: float, *, alternative: str, seed: int) -> float:
    """Of some worlds: six fresh residuals against a pool of 20, heavy tails."""
    rng = np.random.default_rng(seed)
    tests = []
    for _ in range(N_WORLDS):
        pool, fresh = rng.standard_t(3, 20), shift + scale * rng.standard_t(3, 6)
        if alternative == "greater":
            pool, fresh = np.abs(pool), np.abs(fresh)
        tests.append(rank_sum_test(fresh, pool, alternative=alternative).p_value <= 0.05)
    return float(np.mean(tests))


def test_residuals_are_rejected_as_often_as_stated_where_they_are_alike_and_else_more_often():
    errors = [4 * math.sqrt(p * (1 - p) / N_WORLDS) for p in (0.05, 0.5)]
    for alternative in ("two-sided", "greater"):
        assert share_rejected(0, 1, alternative=alternative, seed=1) <= 0.05 + errors[0]
    assert share_rejected(2, 1, alternative="two-sided", seed=2) > 0.5 + errors[1]
    assert share_rejected(0, 5, alternative="greater", seed=3) > 0.5 + errors[1]
    assert share_rejected(0, 5, alternative="two-sided", seed=4) < 0.25  # a shift it is not


# one score at a time


def test_a_conformal_p_value_counts_who_is_as_strange():
    assert conformal_p_values([0.5, 2.0, 2.5, 9.0], [1, 2, 3]).tolist() == [1, 3 / 4, 1 / 2, 1 / 4]


def test_conformal_p_values_are_uniform_or_larger():
    rng = np.random.default_rng(5)
    scores = np.round(np.abs(rng.standard_t(3, (1500, 20))), 1)
    found = np.array([conformal_p_values(row[:1], row[1:])[0] for row in scores])
    for level in (0.05, 0.1, 0.5):
        slack = 4 * math.sqrt(level * (1 - level) / len(found))
        assert np.mean(found <= level) <= level + slack


@pytest.mark.parametrize(
    ("fresh", "pool", "message"),
    [
        ([], [1.0], "the shape of fresh is"),
        ([1.0], [], r"the shape of pool is \(0,\)"),
        ([[1.0]], [1.0], "the shape of fresh is"),
        ([1.0], [math.nan, 1.0], "pool is nan in row 0"),
    ],
)
@pytest.mark.parametrize("function", [rank_sum_test, conformal_p_values])
def test_scores_that_cannot_be_ranked_are_refused(function, fresh, pool, message):
    with pytest.raises(ValueError, match=message):
        function(fresh, pool)
    with pytest.raises(ValueError, match="alternative is 'larger'"):
        rank_sum_test([1.0], [2.0], alternative="larger")


# ------------------------------------------------------------------ coverage of predictions


def binomial_tail(n: int, p: float, at_most: int) -> float:
    return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(at_most + 1))


def test_predictions_are_counted_by_what_they_promised():
    record = running_coverage([True, False, True, True], [0.1, 0.1, 0.2, 0.1], n_calibration=19)
    assert record.miscoverage.tolist() == [0.1, 0.2]
    assert record.n_predictions.tolist() == [3, 1]
    assert record.n_covered.tolist() == [2, 1]
    assert record.coverage.tolist() == [2 / 3, 1.0]
    assert record.nominal.tolist() == [18 / 20, 16 / 20]  # ranks of 20


@pytest.mark.parametrize("n", [1, 7, 30, 200])
def test_limits_are_the_exact_binomial_ones(n):
    """By sums of binomial terms: not less than the tail at the limit, less than it just below."""
    record = running_coverage([True] * n, [0.1] * n, n_calibration=19)
    lower, upper = round(record.lower[0] * n), round(record.upper[0] * n)
    assert binomial_tail(n, 0.9, lower - 1) < 0.005 <= binomial_tail(n, 0.9, lower)
    assert binomial_tail(n, 0.9, upper - 1) < 0.995 <= binomial_tail(n, 0.9, upper) + 1e-12


def test_a_shared_pool_widens_them():
    record = running_coverage([True] * 50, [0.1] * 50, n_calibration=19)
    assert record.shared_lower[0] < record.lower[0]
    assert record.shared_upper[0] >= record.upper[0]
    expected = coverage_limits([19], [50], miscoverage=[0.1])
    assert (record.shared_lower[0], record.shared_upper[0]) == tuple(end[0] for end in expected)


def test_too_few_to_calibrate_promise_everything():
    record = running_coverage([True], [0.1], n_calibration=5)
    assert record.nominal[0] == 1
    assert running_coverage([], [], n_calibration=19).coverage.size == 0
    assert record.lower[0] == record.shared_lower[0] == 1


def test_intervals_that_share_a_pool_keep_within_its_limits():
    """1,000 pools of 19 models, 30 predictions each: at most one in 200 beyond either limit."""
    rng = np.random.default_rng(2)
    record = running_coverage([True] * 30, [0.1] * 30, n_calibration=19)
    scores = np.abs(rng.standard_t(3, (1000, 49)))
    shares = np.array(
        [(row[19:] <= conformal_quantile(row[:19], miscoverage=0.1)).mean() for row in scores]
    )
    slack = 4 * math.sqrt(0.005 * 0.995 / len(shares))
    assert (shares < record.shared_lower[0] - 1e-9).mean() <= 0.005 + slack
    assert (shares > record.shared_upper[0] + 1e-9).mean() <= 0.005 + slack
    assert (shares < record.lower[0] - 1e-9).mean() > 0.005 + slack  # which binomial ones do not


@pytest.mark.parametrize(
    ("covered", "miscoverage", "n_calibration", "message"),
    [
        (
            [True],
            [0.1, 0.1],
            19,
            r"covered \(1,\), miscoverage \(2,\); expected a value for each row",
        ),
        ([True], [1.0], 19, "miscoverage is 1 in row 0"),
        ([True], [0.1], -1, "n_calibration is -1"),
    ],
)
def test_predictions_that_promise_nothing_are_refused(covered, miscoverage, n_calibration, message):
    with pytest.raises(ValueError, match=message):
        running_coverage(covered, miscoverage, n_calibration=n_calibration)


# ------------------------------------------------------------------ where zero lies

STRENGTH = np.array([0.0, 60.0, -45.0, 130.0, 240.0, 310.0])  # Elo points
MODEL = 85.0
OLD = [0, 1, 2, 3]


def rated(strength: np.ndarray) -> np.ndarray:
    """Each relative to the mean of the others, which is what a rating held out is."""
    n_others = strength.size - 1
    return 1500 + strength - (strength.sum() - strength) / n_others


def shift(then: list[int], now: list[int]) -> float:
    before = rated(STRENGTH[then])
    after = dict(zip(now, rated(np.append(STRENGTH[now], MODEL)), strict=False))
    as_now = [after.get(k, math.nan) for k in then]
    return origin_shift(before, as_now, [after[k] for k in now])


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (OLD, OLD),
        (OLD, [0, 1, 2, 3, 4, 5]),  # strong models got votes
        ([0, 1, 2, 3, 4, 5], OLD),  # strong models are gone
        ([0, 1, 4], [1, 2, 3, 5]),  # both
    ],
)
def test_the_shift_is_the_difference_of_the_anchors_means(then, now):
    expected = STRENGTH[now].mean() - STRENGTH[then].mean()
    assert shift(then, now) == pytest.approx(expected, abs=1e-9)


def test_where_no_anchor_is_left_there_is_no_shift_to_state():
    assert math.isnan(shift([0, 1], [2, 3]))
    assert math.isnan(origin_shift([], [], [1500.0]))


def test_what_is_no_rating_is_refused():
    with pytest.raises(ValueError, match="then is nan in row 1"):
        origin_shift([1500.0, math.nan], [1500.0, 1400.0], [1500.0])
    with pytest.raises(ValueError, match=r"then \(2,\), then_as_now \(1,\)"):
        origin_shift([1500.0, 1400.0], [1500.0], [1500.0])

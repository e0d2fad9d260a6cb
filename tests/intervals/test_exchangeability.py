"""Rank tests against enumeration, scipy's exact test and simulation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, rankdata

from judgeline.intervals import conformal_p_values, promises, rank_sum_test

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
@settings(max_examples=150)
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
    monkeypatch.setattr(promises, "EXACT_WORK", 0)
    ours = rank_sum_test(fresh, pool, alternative=alternative)
    theirs = mannwhitneyu(fresh, pool, alternative=alternative, method="asymptotic")
    assert not ours.is_exact
    assert ours.p_value == pytest.approx(theirs.pvalue)


def test_the_approximation_is_near_the_exact_value(monkeypatch):
    rng = np.random.default_rng(4)
    fresh, pool = rng.normal(0.5, 1, 12), rng.normal(size=20)
    exact = rank_sum_test(fresh, pool).p_value
    monkeypatch.setattr(promises, "EXACT_WORK", 0)
    assert rank_sum_test(fresh, pool).p_value == pytest.approx(exact, abs=0.01)
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


def share_rejected(shift: float, scale: float, *, alternative: str, seed: int) -> float:
    """Of 600 worlds: six fresh residuals against a pool of 20, heavy tails."""
    rng = np.random.default_rng(seed)
    tests = []
    for _ in range(600):
        pool, fresh = rng.standard_t(3, 20), shift + scale * rng.standard_t(3, 6)
        if alternative == "greater":
            pool, fresh = np.abs(pool), np.abs(fresh)
        tests.append(rank_sum_test(fresh, pool, alternative=alternative).p_value <= 0.05)
    return float(np.mean(tests))


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_exchangeable_residuals_are_rejected_no_more_often_than_stated(alternative):
    four_errors = 4 * math.sqrt(0.05 * 0.95 / 600)
    assert share_rejected(0, 1, alternative=alternative, seed=1) <= 0.05 + four_errors


def test_shifted_and_inflated_residuals_are_found():
    four_errors = 4 * math.sqrt(0.25 / 600)
    assert share_rejected(2, 1, alternative="two-sided", seed=2) > 0.5 + four_errors
    assert share_rejected(0, 5, alternative="greater", seed=3) > 0.5 + four_errors
    assert share_rejected(0, 5, alternative="two-sided", seed=4) < 0.25  # a shift it is not


# one score at a time


def test_a_conformal_p_value_counts_who_is_as_strange():
    assert conformal_p_values([0.5, 2.0, 2.5, 9.0], [1, 2, 3]).tolist() == [1, 3 / 4, 1 / 2, 1 / 4]


def test_conformal_p_values_are_uniform_or_larger():
    rng = np.random.default_rng(5)
    scores = np.round(np.abs(rng.standard_t(3, (4000, 20))), 1)
    found = np.array([conformal_p_values(row[:1], row[1:])[0] for row in scores])
    for level in (0.05, 0.1, 0.5):
        slack = 4 * math.sqrt(level * (1 - level) / len(found))
        assert np.mean(found <= level) <= level + slack


@pytest.mark.parametrize(
    ("fresh", "pool", "message"),
    [
        ([], [1.0], "fresh must have shape"),
        ([1.0], [], "pool must have shape"),
        ([[1.0]], [1.0], "fresh must have shape"),
        ([1.0], [math.nan, 1.0], "pool holds 1 NaN in 2"),
    ],
)
@pytest.mark.parametrize("function", [rank_sum_test, conformal_p_values])
def test_scores_that_cannot_be_ranked_are_refused(function, fresh, pool, message):
    with pytest.raises(ValueError, match=message):
        function(fresh, pool)


def test_an_unknown_alternative_is_refused():
    with pytest.raises(ValueError, match="got 'larger'"):
        rank_sum_test([1.0], [2.0], alternative="larger")

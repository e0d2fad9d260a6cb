"""Promises against later votes: binomial sums and simulation."""

import math

import numpy as np
import pytest

from judgeline.intervals import (
    conformal_quantile,
    origin_shift,
    running_coverage,
)
from judgeline.intervals.conformal import coverage_limits

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

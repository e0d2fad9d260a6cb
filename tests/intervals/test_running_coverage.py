import math

import numpy as np
import pytest

from judgeline.intervals import conformal_quantile, running_coverage
from judgeline.intervals.conformal import coverage_limits


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


def test_no_prediction_makes_no_row():
    assert running_coverage([], [], n_calibration=19).coverage.size == 0


@pytest.mark.parametrize(
    ("covered", "miscoverage", "n_calibration", "message"),
    [
        ([True], [0.1, 0.1], 19, "differ"),
        ([True], [1.0], 19, "got 1.0"),
        ([True], [0.1], -1, "got -1"),
    ],
)
def test_bad_input_names_the_value(covered, miscoverage, n_calibration, message):
    with pytest.raises(ValueError, match=message):
        running_coverage(covered, miscoverage, n_calibration=n_calibration)

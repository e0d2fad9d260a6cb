"""What more battles would buy, against closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judgeline.intervals import expected_half_width, sampling_half_width

positive = st.floats(1e-3, 1e6)


def test_four_times_the_battles_halve_an_interval() -> None:
    assert expected_half_width(10.0, 100, 400) == 5.0
    assert expected_half_width(10.0, 100, 100) == 10.0
    assert expected_half_width(12.0, 900, 100) == 36.0
    assert expected_half_width(math.inf, 100, 400) == math.inf


@given(width=positive, n=positive, then=positive, later=positive)
def test_plans_in_steps_are_plans_at_once(
    width: float, n: float, then: float, later: float
) -> None:
    steps = expected_half_width(expected_half_width(width, n, then), then, later)
    assert steps == pytest.approx(expected_half_width(width, n, later), rel=1e-9)


@pytest.mark.parametrize("miscoverage", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("n_battles", [1, 50, 1234])
def test_sampling_alone_leaves_the_width_of_the_fisher_information(
    n_battles: int, miscoverage: float
) -> None:
    """Each battle of equals carries p (1 - p) = 1/4; 400 Elo points are a factor ten in odds."""
    strengths = np.array([-1e-4, 0.0, 1e-4])
    log_likelihood = 0.5 * stats.logistic.logcdf(strengths) + 0.5 * stats.logistic.logsf(strengths)
    information = -np.diff(log_likelihood, 2)[0] / 1e-8
    logits = stats.norm.isf(miscoverage / 2) / math.sqrt(n_battles * information)
    expected = logits * 400 / math.log(10)
    width = sampling_half_width(n_battles, miscoverage=miscoverage)
    assert width == pytest.approx(expected, rel=1e-5)


def test_ten_thousand_battles_leave_six_points() -> None:
    assert sampling_half_width(10_000, miscoverage=0.1) == pytest.approx(5.7148, abs=1e-4)


@pytest.mark.parametrize("n", [0, -1, math.nan])
def test_numbers_of_battles_are_positive(n: float) -> None:
    with pytest.raises(ValueError, match=f"n_battles is {n}; it must be positive"):
        expected_half_width(1.0, n, 1)
    with pytest.raises(ValueError, match=f"n_planned is {n}; it must be positive"):
        expected_half_width(1.0, 1, n)
    with pytest.raises(ValueError, match=f"n_battles is {n}; it must be positive"):
        sampling_half_width(n, miscoverage=0.1)


@pytest.mark.parametrize("miscoverage", [0.0, 1.0, -0.1, math.nan])
def test_miscoverage_is_a_share(miscoverage: float) -> None:
    with pytest.raises(ValueError, match=f"got {miscoverage}"):
        sampling_half_width(10, miscoverage=miscoverage)

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress

from judgeline.recalibration import fit_ruler, fit_scale

SIZES = st.integers(4, 30)


def ratings(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n, seed])
    human = rng.normal(1500, 90, n)
    return 1500 + 1.7 * (human - 1500) + rng.normal(0, 30, n), human


@given(n=SIZES)
def test_a_line_is_least_squares_through_the_others(n: int) -> None:
    judge, human = ratings(n)
    ruler = fit_ruler(judge, human)
    for model in range(n):
        others = np.arange(n) != model
        line = linregress(judge[others], human[others])
        assert ruler.slope[model] == pytest.approx(line.slope, rel=1e-9)
        assert ruler.intercept[model] == pytest.approx(line.intercept, rel=1e-9, abs=1e-6)


@given(n=SIZES)
def test_a_scale_is_least_squares_through_1500(n: int) -> None:
    judge, human = ratings(n)
    ruler = fit_scale(judge, human)
    for model in range(n):
        others = np.arange(n) != model
        x, y = judge[others][:, None] - 1500, human[others] - 1500
        slope = np.linalg.lstsq(x, y, rcond=None)[0][0]
        assert ruler.slope[model] == pytest.approx(slope, rel=1e-9)
        assert ruler.intercept[model] + 1500 * ruler.slope[model] == pytest.approx(1500)


@pytest.mark.parametrize("fit", [fit_ruler, fit_scale])
def test_a_models_own_ratings_never_move_its_line(fit) -> None:
    judge, human = ratings(10)
    before = fit(judge, human)
    judge[3], human[3] = 2900.0, 400.0
    after = fit(judge, human)
    assert after.slope[3] == pytest.approx(before.slope[3])
    assert after.intercept[3] == pytest.approx(before.intercept[3])
    assert after.slope[4] != pytest.approx(before.slope[4])


@pytest.mark.parametrize("fit", [fit_ruler, fit_scale])
def test_a_model_without_votes_uses_every_voted_model(fit) -> None:
    judge, human = ratings(10)
    alone = fit(np.r_[judge, 1777.0], np.r_[human, math.nan])
    line = linregress(judge, human).slope
    through = np.sum((judge - 1500) * (human - 1500)) / np.sum((judge - 1500) ** 2)
    assert alone.slope[-1] == pytest.approx(line if fit is fit_ruler else through)
    assert alone.slope[:-1] == pytest.approx(fit(judge, human).slope)


def test_too_few_or_equal_ratings_have_no_line() -> None:
    assert np.isnan(
        fit_ruler(np.array([1400.0, 1500, 1600]), np.array([1400.0, 1500, 1600])).slope
    ).all()
    equal = np.full(6, 1550.0)
    assert np.isnan(fit_ruler(equal, np.linspace(1400, 1600, 6)).slope).all()
    assert np.isnan(fit_scale(np.full(6, 1500.0), np.linspace(1400, 1600, 6)).slope).all()


def test_a_perfect_ruler_stays_as_it_is() -> None:
    rating = np.array([1400.0, 1450, 1520, 1600, 1610])
    ruler = fit_ruler(rating, rating)
    assert ruler.slope == pytest.approx(np.ones(5))
    assert ruler.intercept == pytest.approx(np.zeros(5), abs=1e-9)

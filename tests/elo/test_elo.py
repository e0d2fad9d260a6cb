import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgeline.elo import ELO_PER_LOGIT, rating_to_strength, strength_to_rating


def test_four_hundred_points_are_odds_of_ten_to_one() -> None:
    stronger = rating_to_strength(np.array([1900.0, 1500.0]))
    odds = math.exp(float(stronger[0] - stronger[1]))
    assert odds == pytest.approx(10, rel=1e-12)


def test_strength_zero_is_1500() -> None:
    assert float(strength_to_rating(0.0)) == 1500.0
    assert float(rating_to_strength(1500.0)) == 0.0


def test_one_logit_is_400_over_ln_10_points() -> None:
    assert abs(ELO_PER_LOGIT - 173.71779276130073) < 1e-12
    assert float(strength_to_rating(1.0)) == pytest.approx(1673.7177927613007, rel=1e-15)


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=20))
def test_the_two_scales_are_inverse(strengths: list[float]) -> None:
    there_and_back = rating_to_strength(strength_to_rating(np.array(strengths)))
    assert there_and_back == pytest.approx(strengths, abs=1e-11)

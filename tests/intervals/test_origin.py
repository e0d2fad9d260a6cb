"""Where zero lies: the shift of a mean of anchors, against its definition."""

import math

import numpy as np
import pytest

from judgeline.intervals import origin_shift

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
    with pytest.raises(ValueError, match="leave it out"):
        origin_shift([1500.0, math.nan], [1500.0, 1400.0], [1500.0])
    with pytest.raises(ValueError, match="2 anchors then, 1 of them now"):
        origin_shift([1500.0, 1400.0], [1500.0], [1500.0])

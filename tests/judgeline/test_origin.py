"""Where zero lies: the shift of a mean of anchors, against its definition."""

import math

import numpy as np
import pytest

from judgeline.origin import origin_shift


def test_the_same_anchors_move_nothing():
    assert origin_shift([1400.0, 1700.0, 1550.0], range(3), range(3)) == 0.0


def test_a_strong_newcomer_moves_zero_by_its_share():
    # strengths 0, 60, 240 and the model in question at -300: zero mean, n = 4
    strengths = np.array([0.0, 60.0, 240.0])
    rated = 1500 + strengths * 4 / 3
    assert origin_shift(rated, [0, 1], range(3)) == pytest.approx(100 - 30)


def test_without_anchors_there_is_no_shift_to_state():
    assert math.isnan(origin_shift([1500.0], [], [0]))


def test_an_anchor_without_a_rating_is_refused():
    with pytest.raises(ValueError, match="leave out those without one"):
        origin_shift([1500.0, math.nan], [0], [0, 1])

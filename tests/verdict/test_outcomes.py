import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgeline.verdict.outcomes import (
    CRITERIA,
    criterion_difference,
    hard_outcome,
    mean_difference,
    sign_outcome,
    smooth_outcome,
)

SCORES = st.lists(st.integers(1, 10), min_size=6, max_size=6)
DIFFERENCES = st.lists(st.integers(-54, 54).map(lambda k: k / 6), min_size=1, max_size=30)


def test_the_six_criteria_are_the_rubric_in_order() -> None:
    assert CRITERIA == (
        "adherence",
        "helpfulness",
        "factuality",
        "completeness",
        "clarity",
        "fluency",
    )


@given(a=SCORES, b=SCORES)
def test_difference_is_the_exact_mean_over_criteria(a: list[int], b: list[int]) -> None:
    exact = sum(Fraction(x - y) for x, y in zip(a, b, strict=True)) / 6
    assert float(criterion_difference([a], [b])[0]) == pytest.approx(float(exact), abs=1e-15)


@given(a=SCORES, b=SCORES)
def test_swapping_the_completions_negates_the_difference(a: list[int], b: list[int]) -> None:
    assert criterion_difference([a], [b])[0] == -criterion_difference([b], [a])[0]


def test_extremes_are_nine_points() -> None:
    assert criterion_difference([[10] * 6, [1] * 6], [[1] * 6, [10] * 6]).tolist() == [9.0, -9.0]


def test_mean_difference_is_the_average_of_both_orders() -> None:
    assert mean_difference([3.0, -1.0], [1.0, 1.0]).tolist() == [2.0, 0.0]


@pytest.mark.parametrize(
    ("ab", "ba", "outcome"),
    [
        (1.0, 2.0, 1.0),
        (-1.0, -0.5, 0.0),
        (0.0, 0.0, 0.5),
        (0.0, 1.0, 1.0),  # zero does not conflict with a sign
        (-1.0, 0.0, 0.0),
        (5.0, -1.0, 0.5),  # the mean favours A, but the orders contradict each other
        (-5.0, 1.0, 0.5),
        (1.0, -1.0, 0.5),
    ],
)
def test_hard_outcome_by_hand(ab: float, ba: float, outcome: float) -> None:
    assert hard_outcome([ab], [ba]).tolist() == [outcome]


@given(DIFFERENCES)
def test_hard_outcome_mirrors_under_a_swap(differences: list[float]) -> None:
    ab = np.array(differences)
    ba = np.roll(ab, 1)
    assert hard_outcome(-ab, -ba).tolist() == (1 - hard_outcome(ab, ba)).tolist()


@given(DIFFERENCES)
def test_two_equal_orders_leave_the_sign(differences: list[float]) -> None:
    assert hard_outcome(differences, differences).tolist() == sign_outcome(differences).tolist()


def test_sign_outcome_by_hand() -> None:
    assert sign_outcome([1 / 12, 0.0, -1 / 12]).tolist() == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("level", [0.55, 0.65, 0.75, 0.85, 0.95])
def test_smoothing_softens_decisions_and_keeps_ties(level: float) -> None:
    softened = smooth_outcome([1.0, 0.5, 0.0], level)
    assert softened.tolist() == pytest.approx([level, 0.5, 1 - level], abs=1e-15)


def test_bad_scores_are_named() -> None:
    good = [5] * 6
    with pytest.raises(ValueError, match="1 NaN in 6"):
        criterion_difference([good], [[math.nan, 5, 5, 5, 5, 5]])
    with pytest.raises(ValueError, match="holds 11"):
        criterion_difference([good], [[11, 5, 5, 5, 5, 5]])
    with pytest.raises(ValueError, match="holds 0"):
        criterion_difference([[0, 5, 5, 5, 5, 5]], [good])
    with pytest.raises(ValueError, match=r"\(1, 5\)"):
        criterion_difference([[5] * 5], [[5] * 5])
    with pytest.raises(ValueError, match=r"scores_b .*\(2, 6\)"):
        criterion_difference([good], [good, good])


@pytest.mark.parametrize("function", [mean_difference, hard_outcome])
def test_an_order_that_did_not_parse_is_refused(function) -> None:
    with pytest.raises(ValueError, match="difference_ba holds 1 NaN in 2"):
        function([1.0, 2.0], [1.0, math.nan])


@pytest.mark.parametrize("level", [0.5, 0.3, 1.2, math.nan])
def test_a_level_that_does_not_smooth_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        smooth_outcome([1.0], level)


def test_a_missing_outcome_is_not_a_tie() -> None:
    with pytest.raises(ValueError, match="NaN"):
        smooth_outcome([1.0, math.nan], 0.75)
    with pytest.raises(ValueError, match="NaN"):
        sign_outcome([math.nan])

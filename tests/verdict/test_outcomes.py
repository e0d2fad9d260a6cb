import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judgeline.verdict.outcomes import (
    criterion_difference,
    hard_outcome,
    mean_difference,
    sign_outcome,
    smooth_outcome,
)

SCORES = st.lists(st.integers(1, 10), min_size=6, max_size=6)
DIFFERENCES = st.lists(st.integers(-54, 54).map(lambda k: k / 6), min_size=1, max_size=30)


@given(a=SCORES, b=SCORES)
@example(a=[10] * 6, b=[1] * 6)
def test_difference_is_the_exact_mean_over_criteria(a: list[int], b: list[int]) -> None:
    exact = sum(Fraction(x - y) for x, y in zip(a, b, strict=True)) / 6
    assert float(criterion_difference([a], [b])[0]) == pytest.approx(float(exact), abs=1e-15)


@given(a=SCORES, b=SCORES)
def test_swapping_the_completions_negates_the_difference(a: list[int], b: list[int]) -> None:
    assert criterion_difference([a], [b])[0] == -criterion_difference([b], [a])[0]


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


FIVES, NAN = [5] * 6, math.nan


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: criterion_difference([FIVES], [[NAN, 5, 5, 5, 5, 5]]), "scores_b is nan"),
        (lambda: criterion_difference([FIVES], [[11, 5, 5, 5, 5, 5]]), "scores_b is 11"),
        (lambda: criterion_difference([[0, 5, 5, 5, 5, 5]], [FIVES]), "scores_a is 0"),
        (lambda: criterion_difference([[5] * 5], [[5] * 5]), r"scores_a is \(1, 5\)"),
        (lambda: criterion_difference([FIVES], [FIVES, FIVES]), r"scores_b .*\(2, 6\)"),
        (lambda: mean_difference([1.0, 2.0], [1.0, NAN]), "difference_ba is nan in row 1"),
        (lambda: hard_outcome([1.0, 2.0], [1.0, NAN]), "difference_ba is nan in row 1"),
        *((lambda level=it: smooth_outcome([1.0], level), "level") for it in (0.5, 0.3, 1.2, NAN)),
        (lambda: smooth_outcome([1.0, NAN], 0.75), "outcome is nan in row"),
        (lambda: sign_outcome([NAN]), "score_difference is nan in row"),
    ],
)
def test_bad_scores_orders_levels_and_outcomes_are_named(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()

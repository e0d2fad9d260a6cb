"""Wins, ties and losses: rational inversion, finite differences, simulation."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judges_that_err import coverage

from judgeline.winrate import adjusted_shares

CONFUSION = np.array([[0.75, 0.25, 0.08], [0.15, 0.50, 0.17], [0.10, 0.25, 0.75]])
TABLE = [[75, 15, 8], [15, 30, 17], [10, 15, 75]]
TEST = [420, 260, 320]


def determinant(rows: list[list[Fraction]]) -> Fraction:
    (a, b, c), (d, e, f), (g, h, i) = rows
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def cramer(test: list[int], table: list[list[int]]) -> list[Fraction]:
    """Corrected shares in rational arithmetic by Cramer's rule."""
    totals = [sum(row[k] for row in table) for k in range(3)]
    matrix = [[Fraction(row[k], totals[k]) for k in range(3)] for row in table]
    right = [Fraction(count, sum(test)) for count in test]
    swapped = [
        [[right[j] if k == solved else matrix[j][k] for k in range(3)] for j in range(3)]
        for solved in range(3)
    ]
    return [determinant(rows) / determinant(matrix) for rows in swapped]


def test_shares_equal_cramers_rule_in_rational_arithmetic() -> None:
    shares = cramer(list(TEST), TABLE)
    ours = adjusted_shares(TEST, TABLE)
    np.testing.assert_allclose(ours.shares, [float(share) for share in shares], atol=1e-13)
    assert ours.win_rate == pytest.approx(float(shares[0] + shares[1] / 2), abs=1e-13)
    assert ours.naive == pytest.approx(0.42 + 0.13)


def test_standard_error_is_the_delta_method_by_finite_differences() -> None:
    """Numerical derivative of the win rate in each of the twelve smoothed counts."""
    z = 1.959963984540054
    test = np.array(TEST) + z**2 / 3
    table = np.array(TABLE) + 1 / 3

    def win_rate(test: np.ndarray, table: np.ndarray) -> float:
        shares = np.linalg.solve(table / table.sum(axis=0), test / test.sum())
        return float(shares[0] + shares[1] / 2)

    variance = 0.0
    for column, rest in [(test, None), *((table[:, k], k) for k in range(3))]:
        total, step = column.sum(), 1e-4
        gradient = np.empty(3)
        for row in range(3):
            ends = []
            for sign in (1, -1):
                moved_test, moved_table = test.copy(), table.copy()
                if rest is None:
                    moved_test[row] += sign * step
                else:
                    moved_table[row, rest] += sign * step
                ends.append(win_rate(moved_test, moved_table))
            gradient[row] = (ends[0] - ends[1]) / (2 * step)
        share = column / total
        variance += total * (gradient**2 @ share - (gradient @ share) ** 2)
    ours = adjusted_shares(TEST, TABLE)
    assert ours.std_error == pytest.approx(math.sqrt(variance), rel=1e-6)
    assert (ours.upper - ours.lower) / 2 == pytest.approx(z * ours.std_error)


def test_exchanging_wins_and_losses_mirrors_everything() -> None:
    ours = adjusted_shares(TEST, TABLE)
    theirs = adjusted_shares(TEST[::-1], np.array(TABLE)[::-1, ::-1])
    np.testing.assert_allclose(theirs.shares, ours.shares[::-1], atol=1e-12)
    assert (1 - theirs.upper, 1 - theirs.lower) == pytest.approx((ours.lower, ours.upper))


def test_shares_of_a_consistent_judge_are_found_exactly() -> None:
    shares = np.array([0.5, 0.2, 0.3])
    ours = adjusted_shares(np.round(10_000 * CONFUSION @ shares), 100 * CONFUSION)
    np.testing.assert_allclose(ours.shares, shares, atol=1e-12)
    assert ours.win_rate == pytest.approx(0.6)
    assert (ours.shares_lower < shares).all()
    assert (shares < ours.shares_upper).all()


def test_a_perfect_judge_keeps_its_shares_and_some_doubt() -> None:
    ours = adjusted_shares([50, 30, 20], np.diag([40, 40, 40]))
    np.testing.assert_allclose(ours.shares, [0.5, 0.3, 0.2])
    assert ours.std_error > 0


@pytest.mark.parametrize(
    "shares", [(0.3, 0.2, 0.5), (0.6, 0.1, 0.3), (0.05, 0.05, 0.9), (0.9, 0.05, 0.05)]
)
def test_coverage_is_close_to_nominal(shares: tuple[float, float, float]) -> None:
    """1,000 test battles; 100 wins, 60 ties and 100 losses to calibrate on."""
    rng, size = np.random.default_rng([3, round(100 * shares[0])]), 4000
    test = rng.multinomial(1000, CONFUSION @ shares, size)
    columns = [rng.multinomial(m, CONFUSION[:, k], size) for k, m in enumerate((100, 60, 100))]
    found = [
        adjusted_shares(row, table)
        for row, table in zip(test, np.stack(columns, axis=2), strict=True)
    ]
    lower, upper = (np.array([getattr(one, end) for one in found]) for end in ("lower", "upper"))
    covered = coverage(lower, upper, shares[0] + shares[1] / 2)
    # Bias of a ratio costs up to 1.5 points either way; the rest is Monte-Carlo error.
    assert covered == pytest.approx(0.955, abs=0.015 + 3 * math.sqrt(0.05 * 0.95 / size))


@pytest.mark.parametrize(
    ("test", "table", "told"),
    [
        ([1, 2], TABLE, r"test must have shape \(3,\), got \(2,\)"),
        ([1, 2, 3], [[1, 2], [3, 4]], r"calibration must have shape \(3, 3\)"),
        ([1, 2, math.nan], TABLE, "test must hold whole numbers from 0"),
        ([1, 2, 3], np.array(TABLE) - 10, "calibration must hold whole numbers"),
        ([0, 0, 0], TABLE, "there is no test battle"),
        ([1, 2, 3], [[5, 0, 1], [1, 0, 1], [1, 0, 5]], "no battle that humans call a tie"),
        ([1, 2, 3], [[5, 5, 1], [1, 1, 1], [1, 1, 5]], "the judge says win to 0.7143"),
        ([1, 2, 3], [[1, 5, 1], [1, 9, 1], [8, 1, 3]], "no better than chance"),
        ([1, 2, 3], [[5, 2, 1], [0, 0, 0], [1, 2, 5]], "the judge says tie to 0 of the battles"),
    ],
)
def test_bad_counts_are_refused(test: list, table: list, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        adjusted_shares(test, table)


@given(cells=st.lists(st.integers(0, 40), min_size=9, max_size=9))
def test_whatever_judge_is_not_refused_has_a_matrix_that_turns_nothing_over(
    cells: list[int],
) -> None:
    table = [[cells[3 * row + column] + 1 for column in range(3)] for row in range(3)]
    totals = [sum(row[k] for row in table) for k in range(3)]
    matrix = [[Fraction(row[k], totals[k]) for k in range(3)] for row in table]
    try:
        adjusted_shares([3, 3, 3], table)
    except ValueError:
        assert any(
            matrix[k][k] <= max(matrix[k][j] for j in range(3) if j != k) for k in range(3)
        ) or ("after smoothing" in _refusal(table))
    else:
        assert determinant(matrix) > 0


def _refusal(table: list[list[int]]) -> str:
    with pytest.raises(ValueError, match="no better than chance") as caught:
        adjusted_shares([3, 3, 3], table)
    return str(caught.value)


def test_a_judge_barely_better_than_chance_knows_next_to_nothing() -> None:
    flat = adjusted_shares([1, 1, 1], [[34, 33, 33], [33, 34, 33], [33, 33, 34]])
    assert (flat.lower, flat.upper) == (0, 1)

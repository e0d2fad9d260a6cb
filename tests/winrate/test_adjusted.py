"""Corrected win rates against exact arithmetic, published values and simulation."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judges_that_err import (
    MISPRINTS,
    adjusted,
    coverage,
    outcome_tables,
    play_judge,
    printed_interval,
)

from judgeline.winrate import NoWinRateError, adjusted_mean
from judgeline.winrate.labels import JudgeCounts, JudgeRates, judge_rates, smoothed_rates
from judgeline.winrate.outcomes import normal_quantile

CHECK = JudgeCounts(1000, 500, 100, 70, 100, 90)

# p, q0, q1, n, m0, m1, miscoverage, lower, upper, from the fixtures of the R package
# llmjudgereporting, after Lee et
# al. (2025); of its cases those whose counts are whole numbers.
PUBLISHED = [
    (0.4, 0.7, 0.9, 1000, 200, 200, 0.05, 0.05635072484160894, 0.2627330257859588),
    (0.5, 0.8, 0.8, 500, 100, 100, 0.05, 0.3799746588561528, 0.6200253411438469),
    (0.9, 0.6, 0.99, 10000, 1000, 1000, 0.01, 0.8273348478706124, 0.8686713102464316),
    (0.05, 0.9, 0.9, 1000, 200, 200, 0.05, 0.0, 0.0),
    (0.97, 0.9, 0.9, 1000, 200, 200, 0.05, 1.0, 1.0),
    (0.0, 1.0, 1.0, 50, 10, 10, 0.05, 0.0, 0.09568563633822108),
    (1.0, 1.0, 1.0, 50, 10, 10, 0.05, 0.9043143636617791, 1.0),
]


def counts_of(p: float, q0: float, q1: float, n: int, m0: int, m1: int) -> JudgeCounts:
    return JudgeCounts(n, round(p * n), m0, round(q0 * m0), m1, round(q1 * m1))


# ------------------------------------------------------------------ exact and published values


def exact_parts(counts: JudgeCounts, quantile: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """Rogan and Gladen's estimate, the interval's centre and its variance, in rationals.

    Second formulation: with errors e0 = 1 - q0 and e1 = 1 - q1 the estimate is where the share
    lies between e0 and q1; the variance is summed over a common denominator.
    """
    n, x, m0, k0, m1, k1 = (Fraction(int(value)) for value in counts)
    estimate = (x / n - (m0 - k0) / m0) / (k1 / m1 - (m0 - k0) / m0)
    n, x = n + quantile**2, x + quantile**2 / 2
    m0, k0, m1, k1 = m0 + 2, k0 + 1, m1 + 2, k1 + 1
    low, high = (m0 - k0) / m0, k1 / m1
    smoothed = (x / n - low) / (high - low)
    noise0 = low * (1 - low) * (1 - smoothed) / m0
    noise1 = high * (1 - high) * smoothed / m1
    centre = smoothed + 2 * quantile**2 * (noise1 - noise0)
    variance = (x * (n - x) / n**3 + (1 - smoothed) * noise0 + smoothed * noise1) / (
        high - low
    ) ** 2
    return estimate, centre, variance


def ends(centre: Fraction, variance: Fraction, quantile: Fraction) -> tuple[Decimal, Decimal]:
    with localcontext() as context:
        context.prec = 40
        middle, squared, reach = (
            Decimal(v.numerator) / Decimal(v.denominator) for v in (centre, variance, quantile)
        )
        half = reach * squared.sqrt()
        return middle - half, middle + half


def exact_interval(counts: JudgeCounts, quantile: Fraction) -> tuple[Fraction, Decimal, Decimal]:
    estimate, centre, variance = exact_parts(counts, quantile)
    return estimate, *ends(centre, variance, quantile)


def can_be_corrected(counts: JudgeCounts) -> bool:
    """Whether the judge does better than chance, in whole numbers, as observed and smoothed."""
    _, _, m0, k0, m1, k1 = counts
    return k0 * m1 + k1 * m0 > m0 * m1 and (k0 + 1) * (m1 + 2) + (k1 + 1) * (m0 + 2) > (m0 + 2) * (
        m1 + 2
    )


def test_the_worked_check_equals_rational_arithmetic() -> None:
    quantile = Fraction("1.959963984540054235524594430521")
    estimate, lower, upper = exact_interval(CHECK, quantile)
    ours = adjusted(CHECK)
    assert estimate == Fraction(1, 3)
    assert ours.win_rate == pytest.approx(1 / 3, abs=1e-15)
    assert ours.lower == pytest.approx(float(lower), abs=1e-13)
    assert ours.upper == pytest.approx(float(upper), abs=1e-13)
    assert ours.naive == 0.5


@st.composite
def skilled_counts(draw: st.DrawFn) -> JudgeCounts:
    n, m0, m1 = (draw(st.integers(1, 3000)) for _ in range(3))
    x, k0, k1 = (draw(st.integers(0, size)) for size in (n, m0, m1))
    counts = JudgeCounts(n, x, m0, k0, m1, k1)
    if not can_be_corrected(counts):
        counts = JudgeCounts(n, x, m0, m0, m1, m1)
    return counts


@given(counts=skilled_counts(), miscoverage=st.sampled_from([0.01, 0.05, 0.2, 0.5]))
def test_interval_equals_rational_arithmetic(counts: JudgeCounts, miscoverage: float) -> None:
    quantile = Fraction(normal_quantile(miscoverage))
    estimate, lower, upper = exact_interval(counts, quantile)
    ours = adjusted(counts, miscoverage=miscoverage)
    clipped = min(max(float(estimate), 0), 1)
    assert ours.win_rate == pytest.approx(clipped, abs=1e-9 * (1 + abs(float(estimate))))
    for end, exact in ((ours.lower, lower), (ours.upper, upper)):
        assert end == pytest.approx(
            min(max(float(exact), 0), 1), abs=1e-9 * (1 + abs(float(exact)))
        )


@given(first=skilled_counts(), second=skilled_counts())
def test_strata_weigh_by_their_test_battles_in_rational_arithmetic(
    first: JudgeCounts, second: JudgeCounts
) -> None:
    quantile = Fraction(normal_quantile(0.1))
    tables = [outcome_tables(counts) for counts in (first, second)]
    test, known = (np.concatenate(part) for part in zip(*tables, strict=True))
    ours = adjusted_mean(test, known, miscoverage=0.1)
    n = [Fraction(int(counts.n_test)) for counts in (first, second)]
    parts = [exact_parts(counts, quantile) for counts in (first, second)]
    weights = [size / sum(n) for size in n]
    estimate = sum(w * part[0] for w, part in zip(weights, parts, strict=True))
    centre = sum(w * part[1] for w, part in zip(weights, parts, strict=True))
    variance = sum(w**2 * part[2] for w, part in zip(weights, parts, strict=True))
    exact = (estimate, *ends(centre, variance, quantile))
    for found, value in zip((ours.win_rate, ours.lower, ours.upper), exact, strict=True):
        scale = 1 + abs(float(value))
        assert found == pytest.approx(min(max(float(value), 0), 1), abs=1e-8 * scale)


@pytest.mark.parametrize("case", PUBLISHED)
def test_interval_equals_the_published_values(case: tuple) -> None:
    ours = adjusted(counts_of(*case[:6]), miscoverage=case[6])
    assert (ours.lower, ours.upper) == pytest.approx(case[7:], abs=1e-12)


def smoothed_by_hand(case: tuple) -> JudgeRates:
    p, q0, q1, n, m0, m1, miscoverage = case[:7]
    squared = normal_quantile(miscoverage) ** 2
    shares = ((n * p + squared / 2) / (n + squared), (m0 * q0 + 1) / (m0 + 2))
    return JudgeRates(
        *(np.asarray(v) for v in (*shares, (m1 * q1 + 1) / (m1 + 2), n + squared, m0 + 2, m1 + 2))
    )


@pytest.mark.parametrize("misprint", [*MISPRINTS, "the estimate clipped first"])
def test_each_misprint_misses_a_published_value_that_the_formula_meets(misprint: str) -> None:
    options = MISPRINTS.get(misprint, {"clip_first": True})

    def missed(**kind: float | bool) -> float:
        return max(
            np.abs(
                np.subtract(printed_interval(smoothed_by_hand(c), miscoverage=c[6], **kind), c[7:])
            ).max()
            for c in PUBLISHED
        )

    assert missed() < 1e-12
    assert missed(**options) > 0.005


# ------------------------------------------------------------------ coverage

N_REPLICATIONS = 10_000
WIN_RATES = np.round(np.arange(0.05, 0.96, 0.05), 2)


@pytest.mark.parametrize("win_rate", WIN_RATES)
def test_coverage_is_close_to_nominal(win_rate: float) -> None:
    """94 to 96.5 %, calibrated on 200 battles, 100 of either human outcome."""
    rng = np.random.default_rng([2025, round(100 * win_rate)])
    ours = adjusted(play_judge(rng, win_rate, n_replications=N_REPLICATIONS))
    covered = coverage(ours.lower, ours.upper, win_rate)
    monte_carlo_error = math.sqrt(0.95 * 0.05 / N_REPLICATIONS)
    assert 0.94 <= covered <= 0.965  # the band promised
    assert covered == pytest.approx(0.954, abs=0.003 + 3.5 * monte_carlo_error)  # 0.951 to 0.957


@pytest.mark.parametrize(
    ("misprint", "win_rate", "expected"),
    [
        ("the skill inside of the root", 0.5, 0.865),
        ("the shift subtracted", 0.7, 0.973),
        ("the estimate clipped first", 0.05, 0.970),
    ],
)
def test_misprints_leave_the_band_in_which_the_formula_stays(
    misprint: str, win_rate: float, expected: float
) -> None:
    options = MISPRINTS.get(misprint, {"clip_first": True})
    rng = np.random.default_rng([7, round(100 * win_rate)])
    counts = play_judge(rng, win_rate, n_replications=N_REPLICATIONS)
    rates = judge_rates(counts, normal_quantile(0.05), extra=1)
    right = coverage(*printed_interval(rates, miscoverage=0.05), win_rate)
    wrong = coverage(*printed_interval(rates, miscoverage=0.05, **options), win_rate)
    assert 0.94 <= right <= 0.965
    assert not 0.94 <= wrong <= 0.965
    assert wrong == pytest.approx(expected, abs=4 * math.sqrt(0.13 / N_REPLICATIONS))


# ------------------------------------------------------------------ properties


@given(counts=skilled_counts())
def test_exchanging_wins_and_losses_mirrors_everything(counts: JudgeCounts) -> None:
    n, x, m0, k0, m1, k1 = counts
    ours, mirrored = (adjusted(c) for c in (counts, JudgeCounts(n, n - x, m1, k1, m0, k0)))
    assert mirrored.win_rate == pytest.approx(1 - ours.win_rate, abs=1e-9)
    assert mirrored.lower == pytest.approx(1 - ours.upper, abs=1e-9)
    assert mirrored.upper == pytest.approx(1 - ours.lower, abs=1e-9)


def test_many_models_at_once_equal_each_alone() -> None:
    rng = np.random.default_rng(1)
    many = play_judge(rng, 0.4, n_replications=12)
    together = adjusted(many)
    for row in range(12):
        alone = adjusted(JudgeCounts(*(int(part[row]) for part in many)))
        assert tuple(float(part[row]) for part in together) == tuple(float(v) for v in alone)


def test_a_perfect_judge_needs_no_correction() -> None:
    ours = adjusted(JudgeCounts(400, 100, 50, 50, 50, 50))
    assert ours.win_rate == ours.naive == 0.25
    assert ours.lower < 0.25 < ours.upper


def test_test_battles_that_contradict_the_calibration_leave_no_width() -> None:
    ours = adjusted(JudgeCounts(1000, 50, 200, 180, 200, 180))
    assert (ours.win_rate, ours.lower, ours.upper) == (0, 0, 0)


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("miscoverage", [0, 1, math.nan])
def test_bad_miscoverage_is_refused(miscoverage: float) -> None:
    with pytest.raises(ValueError, match="miscoverage must lie strictly"):
        adjusted(CHECK, miscoverage=miscoverage)


@given(counts=skilled_counts())
def test_a_judge_that_says_the_opposite_is_refused_by_both_forms(counts: JudgeCounts) -> None:
    n, x, m0, k0, m1, k1 = counts
    wrong = JudgeCounts(n, x, m0, m0 - k0, m1, m1 - k1)
    for estimate in (partial(smoothed_rates, quantile=1.96), adjusted):
        with pytest.raises(NoWinRateError, match="no better than chance") as refusal:
            estimate(wrong)
        assert refusal.value.status == "chance"

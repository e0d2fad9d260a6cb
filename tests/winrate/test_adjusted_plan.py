"""How labels are divided and how many are needed, against search, enumeration and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges_that_err import adjusted, coverage, play_judge
from scipy.stats import binom

from judgeline.winrate.counts import JudgeCounts
from judgeline.winrate.label_allocation import allocate_calibration, label_variance, winning_range
from judgeline.winrate.label_counts import (
    LabelPlan,
    plan_by_human_outcome,
    plan_by_verdict,
    plan_in_words,
)

PILOT = JudgeCounts(1000, 500, 30, 21, 30, 27)

# ------------------------------------------------------------------ allocation

# m, p, q0 and q1 of the pilot, pilot size, m0, m1, from the fixtures of the R package
# llmjudgereporting, after Lee et
# al. (2025); of its cases those with a pilot and a share of wins above 0.
PUBLISHED = [
    (200, 0.4, 0.7, 0.9, 10, 136, 64),
    (100, 0.5, 0.8, 0.8, 5, 50, 50),
    (1000, 0.1, 0.95, 0.6, 50, 786, 214),
    (1000, 0.9, 0.6, 0.99, 50, 294, 706),
    (50, 1.0, 0.7, 0.8, 5, 5, 45),
    (20, 0.02, 0.5, 0.99, 8, 12, 8),
    (7, 0.5, 0.6, 0.6, 1, 3, 4),
    (5, 0.5, 0.6, 0.6, 1, 3, 2),
]


@pytest.mark.parametrize("case", PUBLISHED)
def test_allocation_equals_the_published_values(case: tuple) -> None:
    m, p, q0, q1, pilot, m0, m1 = case
    ours = allocate_calibration(
        m, judge_share=p, pilot_lost_right=q0 * pilot, pilot_won_right=q1 * pilot, n_pilot=pilot
    )
    assert (int(ours.n_lost), int(ours.n_won)) == (m0, m1)


@given(
    share=st.floats(0, 1),
    total=st.integers(2, 500),
    pilot=st.integers(1, 250),
    right=st.tuples(st.integers(0, 250), st.integers(0, 250)),
)
def test_allocation_keeps_the_pilot_and_the_total(
    share: float, total: int, pilot: int, right: tuple[int, int]
) -> None:
    pilot = min(pilot, total // 2)
    ours = allocate_calibration(
        total,
        judge_share=share,
        pilot_lost_right=min(right[0], pilot),
        pilot_won_right=min(right[1], pilot),
        n_pilot=pilot,
    )
    assert ours.n_lost + ours.n_won == total
    assert min(ours) >= pilot


def test_a_share_of_zero_or_one_leaves_the_pilot_to_the_class_that_is_not_there() -> None:
    ours = allocate_calibration(
        100, judge_share=[0.0, 1.0], pilot_lost_right=8, pilot_won_right=8, n_pilot=10
    )
    assert ours.n_won.tolist() == [10, 90]


N_PILOT, N_LABELS, Q0, Q1 = 10, 200, 0.7, 0.9


def spread(win_rate: float, n_lost: np.ndarray, n_won: np.ndarray) -> np.ndarray:
    """Standard error of the estimate without smoothing, from the true rates."""
    share = win_rate * Q1 + (1 - win_rate) * (1 - Q0)
    variance = share * (1 - share) / 1000 + (1 - win_rate) ** 2 * Q0 * (1 - Q0) / n_lost
    return np.sqrt(variance + win_rate**2 * Q1 * (1 - Q1) / n_won)


def gain_in_theory(win_rate: float) -> float:
    """Expected relative gain over an even split, the noise of the pilot enumerated."""
    right = np.arange(N_PILOT + 1)
    plan = allocate_calibration(
        N_LABELS,
        judge_share=win_rate * Q1 + (1 - win_rate) * (1 - Q0),
        pilot_lost_right=right[:, None],
        pilot_won_right=right,
        n_pilot=N_PILOT,
    )
    odds = np.outer(binom.pmf(right, N_PILOT, Q0), binom.pmf(right, N_PILOT, Q1))
    even = spread(win_rate, np.array(100), np.array(100))
    return float(1 - (odds * spread(win_rate, plan.n_lost, plan.n_won)).sum() / even)


def adaptive(rng: np.random.Generator, win_rate: float, n_replications: int) -> JudgeCounts:
    """Counts when a pilot of ten per class divides 200 labels; the pilot is kept."""
    size = n_replications
    test = rng.binomial(1000, win_rate * Q1 + (1 - win_rate) * (1 - Q0), size)
    lost_right, won_right = rng.binomial(N_PILOT, Q0, size), rng.binomial(N_PILOT, Q1, size)
    plan = allocate_calibration(
        N_LABELS,
        judge_share=test / 1000,
        pilot_lost_right=lost_right,
        pilot_won_right=won_right,
        n_pilot=N_PILOT,
    )
    return JudgeCounts(
        np.full(size, 1000),
        test,
        plan.n_lost,
        lost_right + rng.binomial(plan.n_lost - N_PILOT, Q0),
        plan.n_won,
        won_right + rng.binomial(plan.n_won - N_PILOT, Q1),
    )


WIN_RATES = np.round(np.arange(0.05, 0.96, 0.05), 2)
GAIN_WORTH_NAMING = 0.005  # half a per cent of the width; below, 10,000 replications cannot tell


def test_theory_names_the_win_rates_at_which_adaptive_allocation_pays() -> None:
    paying = [rate for rate in WIN_RATES if gain_in_theory(rate) > GAIN_WORTH_NAMING]
    assert paying == [rate for rate in WIN_RATES if not 0.45 <= rate <= 0.7]


@pytest.mark.parametrize("win_rate", WIN_RATES)
def test_adaptive_allocation_shortens_intervals_where_theory_says_so(win_rate: float) -> None:
    rng = np.random.default_rng([31, round(100 * win_rate)])
    even = adjusted(play_judge(rng, win_rate, n_replications=10_000))
    ours = adjusted(adaptive(rng, win_rate, 10_000))
    assert 0.94 <= coverage(ours.lower, ours.upper, win_rate) <= 0.965
    widths = [found.upper - found.lower for found in (even, ours)]
    monte_carlo_error = math.sqrt(sum(width.var() for width in widths) / 10_000)
    gained = widths[0].mean() - widths[1].mean()
    if gain_in_theory(win_rate) > GAIN_WORTH_NAMING:
        assert gained > 2 * monte_carlo_error
    else:  # and where it does not pay, it costs little
        assert gained > -0.01 * widths[0].mean()


# ------------------------------------------------------------------ planner


def half_width(n_lost: int, n_won: int) -> float:
    """Half-width of the pilot's interval with its smoothed rates on other numbers of labels."""
    p, q0, q1 = (500 + 1.959964**2 / 2) / (1000 + 1.959964**2), 22 / 32, 28 / 32
    theta = (p + q0 - 1) / (q0 + q1 - 1)
    variance = p * (1 - p) / (1000 + 1.959964**2)
    variance += (1 - theta) ** 2 * q0 * (1 - q0) / (n_lost + 2)
    variance += theta**2 * q1 * (1 - q1) / (n_won + 2)
    return 1.959964 * math.sqrt(variance) / (q0 + q1 - 1)


@pytest.mark.parametrize("wanted", [0.19, 0.17, 0.15, 0.13])
def test_plan_by_human_outcome_is_the_best_of_a_search(wanted: float) -> None:
    plan = plan_by_human_outcome(PILOT, half_width=wanted)
    reached = half_width(30 + plan.n_lost, 30 + plan.n_won)
    assert plan.half_width == pytest.approx(reached, abs=1e-6)
    assert plan.half_width <= wanted
    total = plan.n_lost + plan.n_won
    fewer = (half_width(30 + lost, 30 + total - 1 - lost) for lost in range(total))
    assert total == 0 or min(fewer) > wanted


def test_a_short_enough_interval_needs_no_label() -> None:
    now = adjusted(PILOT)
    width = float(now.upper - now.lower) / 2
    plan = plan_by_human_outcome(PILOT, half_width=width + 1e-9)
    assert plan == LabelPlan(0, 0, pytest.approx(width))
    assert plan_in_words(plan).startswith("No more labels are needed")


@given(
    counts=st.tuples(st.integers(50, 950), st.integers(12, 20), st.integers(14, 20)),
    wanted=st.floats(0.06, 0.3),
)
@settings(max_examples=40)
def test_plan_by_verdict_is_the_best_of_a_search(
    counts: tuple[int, int, int], wanted: float
) -> None:
    won_test, lost_right, won_right = counts
    pilot = JudgeCounts(1000, won_test, 20, lost_right, 20, won_right)
    plan = plan_by_verdict(pilot, half_width=wanted)
    judged_won, judged_lost = won_right + 20 - lost_right + 2, lost_right + 20 - won_right + 2
    if_won, if_lost = (won_right + 1) / judged_won, (21 - won_right) / judged_lost
    z = 1.959963984540054
    share = (won_test + z**2 / 2) / (1000 + z**2)

    def reached(won: int, lost: int) -> float:
        variance = (if_won - if_lost) ** 2 * share * (1 - share) / (1000 + z**2)
        variance += share**2 * if_won * (1 - if_won) / (judged_won + won)
        variance += (1 - share) ** 2 * if_lost * (1 - if_lost) / (judged_lost + lost)
        return z * math.sqrt(variance)

    assert plan.half_width == pytest.approx(reached(plan.n_won, plan.n_lost))
    assert plan.half_width <= wanted
    total = plan.n_won + plan.n_lost
    assert not total or min(reached(k, total - 1 - k) for k in range(total)) > wanted


def test_following_the_verdict_plan_reaches_the_half_width() -> None:
    """A judge with the pilot's rates; labels by verdict from one population."""
    pilot = JudgeCounts(2000, 1000, 100, 70, 100, 90)
    plan = plan_by_verdict(pilot, half_width=0.045)
    assert min(plan.n_won, plan.n_lost) > 0
    rng = np.random.default_rng(5)
    n_won, n_lost = 120 + plan.n_won, 80 + plan.n_lost
    right, missed = rng.binomial(n_won, 0.75, 4000), rng.binomial(n_lost, 0.125, 4000)
    share = rng.binomial(2000, 0.5, 4000) / 2000
    found = share * right / n_won + (1 - share) * missed / n_lost
    assert 1.96 * found.std() == pytest.approx(0.045, rel=0.05)


def test_the_plan_speaks() -> None:
    plan = LabelPlan(90, 50, 0.0299)
    assert plan_in_words(plan) == (
        "Label 140 more battles, 90 where the judge said A and 50 where the judge said B, "
        "for a half-width of 3.0 points of the win rate in per cent."
    )
    assert "1 more battle, 0 where humans said won" in plan_in_words(
        LabelPlan(0, 1, 0.1), said_by="humans", won="won", lost="lost"
    )


# ------------------------------------------------------------------ worth of a label


@given(accuracy=st.floats(0.51, 1.0), win_rate=st.floats(0.001, 0.999))
def test_the_winning_range_is_where_the_variance_is_smaller(
    accuracy: float, win_rate: float
) -> None:
    worth = label_variance(win_rate, specificity=accuracy, sensitivity=accuracy)
    ends = winning_range(accuracy)
    wins = ends is not None and ends[0] < win_rate < ends[1]
    close = math.isclose(worth.adjusted, worth.direct, rel_tol=1e-9)
    assert close or bool(worth.adjusted < worth.direct) is wins


def test_no_win_rate_is_won_up_to_an_accuracy_of_0_854() -> None:
    limit = 0.5 + 1 / (2 * math.sqrt(2))
    assert winning_range(limit - 1e-9) is None
    low, high = winning_range(limit + 1e-9) or (0, 0)
    assert low == pytest.approx(0.5, abs=1e-4) == high
    assert winning_range(1.0) == (0.0, 1.0)
    low, high = winning_range(0.9) or (0, 0)
    assert (low, high) == pytest.approx((0.5 - math.sqrt(0.109375), 0.5 + math.sqrt(0.109375)))


def test_label_variance_is_that_of_a_large_simulation() -> None:
    """900 labels in the best division, three test battles per label."""
    rng = np.random.default_rng(8)
    weight_lost, weight_won = 0.6 * math.sqrt(0.16), 0.4 * math.sqrt(0.09)
    n_lost = round(900 * weight_lost / (weight_lost + weight_won))
    counts = play_judge(
        rng, 0.4, n_replications=20_000, n_test=2700, n_lost=n_lost, n_won=900 - n_lost,
        specificity=0.8, sensitivity=0.9,
    )  # fmt: skip
    found = adjusted(counts).win_rate
    worth = label_variance(0.4, specificity=0.8, sensitivity=0.9, labels_per_test_battle=1 / 3)
    assert 900 * found.var() == pytest.approx(float(worth.adjusted), rel=0.05)
    assert worth.direct == pytest.approx(0.24)


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("plan", [plan_by_human_outcome, plan_by_verdict])
def test_what_no_label_can_reach_is_refused(plan) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=r"out of reach: the test battles alone leave 0\.0"):
        plan(PILOT, half_width=0.01)
    for wanted in (0, -0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="half_width must be a positive share"):
            plan(PILOT, half_width=wanted)
    with pytest.raises(ValueError, match="no better than chance"):
        plan(JudgeCounts(10, 5, 10, 5, 10, 5), half_width=0.1)
    with pytest.raises(ValueError, match=r"counts of shape \(1,\)"):
        plan(JudgeCounts(*([value] for value in PILOT)), half_width=0.1)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"n_pilot": 0}, "n_pilot is 0 and n_total 100"),
        ({"n_pilot": 51}, "n_pilot is 51"),
        ({"judge_share": math.nan}, "judge_share holds nan"),
        ({"judge_share": [0.1, 1.2]}, "judge_share holds 1.2"),
        ({"pilot_lost_right": 11}, r"pilot_lost_right holds 11; need \[0, 10\]"),
    ],
)
def test_a_bad_allocation_is_refused(change: dict, told: str) -> None:
    good = {"judge_share": 0.5, "pilot_lost_right": 7, "pilot_won_right": 8, "n_pilot": 10}
    with pytest.raises(ValueError, match=told):
        allocate_calibration(100, **(good | change))


def test_bad_worths_are_refused() -> None:
    with pytest.raises(ValueError, match="1, at most 1"):
        label_variance(0.5, specificity=0.4, sensitivity=0.6)
    with pytest.raises(ValueError, match="labels_per_test_battle is -1"):
        label_variance(0.5, specificity=0.8, sensitivity=0.8, labels_per_test_battle=-1)
    for accuracy in (0.5, 1.01, math.nan):
        with pytest.raises(ValueError, match="accuracy must lie"):
            winning_range(accuracy)

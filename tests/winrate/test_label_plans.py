"""How labels are divided and how many are needed, against search, enumeration and simulation."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judges_that_err import adjusted
from scipy.stats import binom

from judgeline.winrate import allocate_labels, judge_or_humans, plan_labels, tabulate_outcomes
from judgeline.winrate.labels import (
    JudgeCounts,
    LabelPlan,
    paying_rates,
    paying_text,
    plan_by_human_outcome,
    plan_by_verdict,
    plan_text,
)
from judgeline.winrate.outcomes import normal_quantile
from papers.correct_reporting import (
    compare_estimators,
    play_judge,
)

from win_rate_worlds import world  # isort: skip

PILOT = JudgeCounts(1000, 500, 30, 21, 30, 27)
Z = normal_quantile(0.05)

# ------------------------------------------------------------------ peers of the benchmark


@pytest.mark.parametrize(
    ("m", "p", "q0", "q1", "pilot", "n_lost", "n_won"),
    # from the fixtures of the R package llmjudgereporting, after Lee et al. (2025)
    [
        (200, 0.4, 0.7, 0.9, 10, 136, 64),
        (50, 1.0, 0.7, 0.8, 5, 5, 45),
        (20, 0.02, 0.5, 0.99, 8, 12, 8),
        (1000, 0.1, 0.95, 0.6, 50, 786, 214),
        (1000, 0.9, 0.6, 0.99, 50, 294, 706),
    ],
)
def test_allocation_equals_the_published_values(m, p, q0, q1, pilot, n_lost, n_won) -> None:
    found = allocate_labels(m, JudgeCounts(1.0, p, pilot, q0 * pilot, pilot, q1 * pilot))
    assert tuple(map(int, found)) == (n_lost, n_won)


def test_peers_by_hand() -> None:
    peers = compare_estimators(JudgeCounts(1000, 500, 100, 70, 100, 90))
    expected = [0.5, 0.5, 0.5 + 0.5 - 0.6, 0.5 * 90 / 120 + 0.5 * 10 / 80, 1 / 3]
    np.testing.assert_allclose(peers, expected, rtol=1e-12)


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
    plan = plan_by_human_outcome(PILOT, half_width=wanted, quantile=Z)
    reached = half_width(30 + plan.n_lost, 30 + plan.n_won)
    assert plan.half_width == pytest.approx(reached, abs=1e-6)
    assert plan.half_width <= wanted
    total = plan.n_lost + plan.n_won
    fewer = (half_width(30 + lost, 30 + total - 1 - lost) for lost in range(total))
    assert total == 0 or min(fewer) > wanted


def test_a_short_enough_interval_needs_no_label() -> None:
    now = adjusted(PILOT)
    width = float(now.upper - now.lower) / 2
    plan = plan_by_human_outcome(PILOT, half_width=width + 1e-9, quantile=Z)
    assert plan == LabelPlan(0, 0, pytest.approx(width))
    assert plan_text(plan, said_by="the judge", won="A", lost="B").startswith(
        "No more labels are needed"
    )


@given(
    counts=st.tuples(st.integers(50, 950), st.integers(12, 20), st.integers(14, 20)),
    wanted=st.floats(0.06, 0.3),
)
@settings(max_examples=40)
def test_plan_by_verdict_is_the_best_of_a_search(counts, wanted):
    won_test, lost_right, won_right = counts
    pilot = JudgeCounts(1000, won_test, 20, lost_right, 20, won_right)
    plan = plan_by_verdict(pilot, half_width=wanted, quantile=Z)
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


def test_the_plan_speaks() -> None:
    ours = {"said_by": "the judge", "won": "A", "lost": "B"}
    assert plan_text(LabelPlan(90, 50, 0.0299), **ours) == (
        "Label 140 more battles, 90 where the judge said A and 50 where the judge said B, "
        "for a half-width of 3.0 percentage points."
    )
    assert plan_text(LabelPlan(0, 1, 0.1), **ours).startswith("Label 1 more battle, 0 where")


# ------------------------------------------------------------------ worth of a label


def winning_range(accuracy: float) -> tuple[float, float]:
    """Win rates at which a judge as accurate either way beats humans alone, in closed form."""
    reach = 0.5 - 1 / (4 * (2 * accuracy - 1) ** 2)
    return (0.5, 0.5) if reach <= 0 else (0.5 - math.sqrt(reach), 0.5 + math.sqrt(reach))


@given(accuracy=st.floats(0.51, 0.999), win_rate=st.floats(0.001, 0.999))
@example(accuracy=0.5 + 1 / (2 * math.sqrt(2)) - 1e-9, win_rate=0.5)  # the least accuracy that pays
@example(accuracy=0.5 + 1 / (2 * math.sqrt(2)) + 1e-9, win_rate=0.5)
def test_judge_and_labels_beat_humans_in_the_published_range(accuracy, win_rate):
    worth = float(judge_or_humans(win_rate, specificity=accuracy, sensitivity=accuracy))
    low, high = winning_range(accuracy)
    assert math.isclose(worth, 1, rel_tol=1e-9) or (worth > 1) is (low < win_rate < high)


def test_a_perfect_judge_makes_one_label_worth_any_number() -> None:
    assert judge_or_humans(0.3, specificity=1, sensitivity=1) == math.inf


def test_the_worth_of_a_label_is_that_of_a_large_simulation() -> None:
    """900 labels in the best division, three test battles per label."""
    rng = np.random.default_rng(8)
    weight_lost, weight_won = 0.6 * math.sqrt(0.16), 0.4 * math.sqrt(0.09)
    n_lost = round(900 * weight_lost / (weight_lost + weight_won))
    counts = play_judge(
        rng, 0.4, n_replications=20_000, n_test=2700, n_lost=n_lost, n_won=900 - n_lost,
        specificity=0.8, sensitivity=0.9,
    )  # fmt: skip
    found = adjusted(counts).win_rate
    worth = judge_or_humans(0.4, specificity=0.8, sensitivity=0.9, labels_per_test_battle=1 / 3)
    assert 900 * found.var() == pytest.approx(0.24 / float(worth), rel=0.05)


def enumerated_worth(win_rate, q0, q1, per_test, n_labels=1200):  # type: ignore[no-untyped-def]
    """Worth of a label by every count of right calls: mean squared errors, and no expansion."""
    lost, won = (1 - win_rate) * math.sqrt(q0 * (1 - q0)), win_rate * math.sqrt(q1 * (1 - q1))
    n_lost = min(max(round(n_labels * lost / (lost + won)), 1), n_labels - 1)
    sizes = n_lost, n_labels - n_lost
    right = [np.arange(m + 1) for m in sizes]
    chance = [binom.pmf(k, m, q) for k, m, q in zip(right, sizes, (q0, q1), strict=True)]
    found0, found1 = right[0][:, None] / sizes[0], right[1] / sizes[1]
    skill = found0 + found1 - 1
    weight = np.where(skill > 0.1, np.outer(*chance), 0)
    judged = win_rate * q1 + (1 - win_rate) * (1 - q0)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = ((judged + found0 - 1) / skill - win_rate) ** 2
        error += judged * (1 - judged) * per_test / n_labels / skill**2
        adjusted = np.where(weight > 0, weight * error, 0).sum()
    return win_rate * (1 - win_rate) / n_labels / adjusted


@pytest.mark.parametrize(
    ("q0", "q1", "per_test"), [(0.9, 0.9, 0), (0.86, 0.98, 0), (0.93, 0.9, 0.25)]
)
def test_labels_alone_win_where_every_count_says_so(q0, q1, per_test) -> None:  # type: ignore[no-untyped-def]
    low, high = paying_rates(q0, q1, labels_per_test_battle=per_test)
    assert 0.05 < low < high < 0.97
    for end, inwards in ((low, 0.02), (high, -0.02)):
        assert enumerated_worth(end + inwards, q0, q1, per_test) > 1
        assert enumerated_worth(end - inwards, q0, q1, per_test) < 1


@pytest.mark.parametrize(("q", "per_test"), [(0.85, 0), (0.9, 0.6), (0.95, 1), (0.95, 3)])
def test_a_weak_judge_or_few_test_battles_pay_nowhere(q, per_test) -> None:  # type: ignore[no-untyped-def]
    assert all(map(math.isnan, paying_rates(q, q, labels_per_test_battle=per_test)))
    worth = [enumerated_worth(rate, q, q, per_test) for rate in np.linspace(0.1, 0.9, 9)]
    assert max(worth) < 1


def test_the_range_is_that_of_the_worth_of_a_label() -> None:
    rates = (np.arange(2000) + 0.37) / 2000  # none is an end of the range
    for q0, q1, per_test in product((0.75, 0.9, 0.99), (0.8, 0.97, 1.0), (0, 0.1, 0.5)):
        low, high = paying_rates(q0, q1, labels_per_test_battle=per_test)
        share = {"specificity": q0, "sensitivity": q1, "labels_per_test_battle": per_test}
        pays = judge_or_humans(rates, **share) > 1
        assert np.array_equal(pays, (low < rates) & (rates < high))
    with pytest.raises(ValueError, match=r"specificity \+ sensitivity is 1"):
        paying_rates(0.4, 0.6)


def test_the_range_of_a_judge_is_a_sentence() -> None:
    assert paying_text(0.123, 0.878, 10).endswith("for rates below 12% or above 88%.")
    assert paying_text(math.nan, math.nan, 10).endswith("than 'corrected' at every rate.")
    assert paying_text(math.nan, math.nan, 9) == ""


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize("plan", [plan_by_human_outcome, plan_by_verdict])
def test_what_no_label_can_reach_is_refused(plan) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(
        ValueError, match=r"out of reach: the test battles alone leave \d\.\d percentage points"
    ):
        plan(PILOT, half_width=0.01, quantile=Z)
    for wanted in (0, -0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"half_width is .*; expected a positive share"):
            plan_labels(tabulate_outcomes(*world(8)[:2]), half_width=wanted, miscoverage=0.1)
    with pytest.raises(ValueError, match="no better than chance"):
        plan(JudgeCounts(10, 5, 10, 5, 10, 5), half_width=0.1, quantile=Z)


REFUSED = [
    ((1000, 500, 0, 0, 100, 90), "n_lost is 0; specificity needs battles"),
    ((1000, 500, 100, 70, 0, 0), "n_won is 0; sensitivity needs battles"),
    ((0, 0, 100, 70, 100, 90), "n_test is 0"),
    ((1000, 500, 100, 50, 100, 50), "0.5 .* 0.5 is at most 1: the judge is no better"),
    ((1000, 500, 100, 20, 100, 60), "no better than chance"),
    ((1000, 500, 100, 2, 1, 1), "after smoothing by one battle a side"),
]


@pytest.mark.parametrize(("counts", "message"), REFUSED)
def test_counts_without_an_interval_have_no_plan(counts: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_by_human_outcome(JudgeCounts(*counts), half_width=0.1, quantile=Z)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"specificity": 0.4, "sensitivity": 0.6}, r"specificity \+ sensitivity is 1"),
        ({"specificity": 1.2}, "specificity is 1.2"),
        ({"win_rate": math.nan}, "win_rate is nan"),
        ({"labels_per_test_battle": -1}, "labels_per_test_battle is -1"),
    ],
)
def test_a_bad_share_has_no_worth(changed: dict, message: str) -> None:
    shares = {"win_rate": 0.5, "specificity": 0.8, "sensitivity": 0.8} | changed
    with pytest.raises(ValueError, match=message):
        judge_or_humans(shares.pop("win_rate"), **shares)


# ------------------------------------------------------------------ rows of plans


def test_plans_of_models_and_of_the_corpus() -> None:
    battles, question, _ = world(7, n_battles=16_000, share_voted=0.2)
    tables = tabulate_outcomes(battles, question)
    found = plan_labels(tables, half_width=0.05, miscoverage=0.1)
    assert found.grouping.tolist() == ["all"] * 2 + ["model"] * 16
    assert found.chosen_by.tolist() == ["human outcome", "verdict"] * 9
    assert set(found.status) == {"ok"}
    needy = (found.win_rate_half_width > 0.05) & (found.status == "ok")
    assert needy.any()
    assert (found.planned_half_width <= 0.05).all()
    more = found.n_more_won + found.n_more_lost
    assert ((more > 0) == needy).all()
    for row in np.flatnonzero(needy):
        said = "humans" if found.chosen_by[row] == "human outcome" else "the judge"
        assert found.plan[row].startswith(f"Label {more[row]:.0f} more battles, ")
        assert f"{found.n_more_won[row]:.0f} where {said} said that it won" in found.plan[row]
    worth = ["a label that corrects the judge counts as much as" in note for note in found.note]
    assert worth == [True, False] * 9


@pytest.mark.parametrize(
    ("options", "half_width", "status"),
    [
        ({"share_voted": 1.0}, 0.05, "all-voted"),
        ({"share_voted": 0.2}, 0.001, "out-of-reach"),
        ({"share_voted": 0.2, "accuracy": 0.0}, 0.05, "chance"),
    ],
)
def test_where_there_is_no_plan_it_says_why(options: dict, half_width: float, status: str) -> None:
    tables = tabulate_outcomes(*world(8, **options)[:2])
    found = plan_labels(tables, half_width=half_width, miscoverage=0.1)
    assert set(found.status) == {status}
    assert np.isnan(found.planned_half_width).all()
    assert np.isnan(found.n_more_won).all()
    assert all(words.startswith("No plan: ") for words in found.plan)

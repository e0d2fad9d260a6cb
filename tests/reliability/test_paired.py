import math

import numpy as np
import pytest
from lanes import sized
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binomtest, ttest_1samp, ttest_rel

from judgeline.elo import fit_beta
from judgeline.reliability.drift import (
    LEAST_BATTLES,
    beta_change,
    call_change,
    mean_change,
    repeat_change,
    share_change,
)


def judged_twice(n: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Votes, and two noisy judgements of what they follow."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1.5, n)
    votes = (rng.random(n) < expit(truth)).astype(float)
    first, second = truth + rng.normal(0, 0.5, (2, n))
    return first, second, votes


def slope_of(margin: np.ndarray) -> float:
    """The root of the likelihood's slope, on either side of zero, by bisection."""
    return brentq(lambda beta: margin @ expit(-beta * margin), -50, 50, xtol=1e-14)


def margins(votes: np.ndarray, *scores: np.ndarray) -> list[np.ndarray]:
    return [score * (2 * votes - 1) for score in scores]


def test_the_error_of_a_change_of_beta_is_that_of_resampled_battles():
    first, second, votes = judged_twice(400)
    change = beta_change(first, second, votes)
    rng, n_resamples = np.random.default_rng(1), 500
    draws = rng.integers(0, votes.size, (n_resamples, votes.size))
    both = margins(votes, first, second)
    spread = np.std([slope_of(both[1][d]) - slope_of(both[0][d]) for d in draws], ddof=1)
    # a standard deviation of B draws is known to 1 / sqrt(2 B); the bootstrap itself to 1 / sqrt(n)
    assert change.std_error == pytest.approx(spread, rel=4 / math.sqrt(2 * n_resamples) + 1 / 20)


@pytest.mark.parametrize("sign", [1, -1])
def test_slopes_on_either_side_of_zero_and_the_score_test_of_their_difference(sign):
    first, second, votes = judged_twice(300)
    change = beta_change(first, sign * second, votes)
    both = margins(votes, first, sign * second)
    slopes, common = [slope_of(margin) for margin in both], slope_of(np.concatenate(both))
    assert [change.baseline, change.now] == pytest.approx(slopes)
    assert sign * change.now > 0
    assert change.change == pytest.approx(slopes[1] - slopes[0])
    pulls = [margin * expit(-common * margin) for margin in both]
    oracle = ttest_rel(pulls[1], pulls[0])
    assert (change.z, change.p_value) == pytest.approx((oracle.statistic, oracle.pvalue))
    assert change.z == pytest.approx(change.change / change.std_error)


def test_the_error_of_hardly_any_change_is_that_of_the_influences():
    first, _, votes = judged_twice(300)
    noise = np.random.default_rng(2).normal(0, 1e-6, 300)
    change = beta_change(first, first + noise, votes)
    slope = change.baseline
    both = [margin * expit(-slope * margin) for margin in margins(votes, first, first + noise)]
    error = (
        np.std(both[1] - both[0], ddof=1) * math.sqrt(300) * fit_beta(first, votes).std_error ** 2
    )
    assert change.std_error == pytest.approx(error, rel=1e-3)


def test_a_change_of_beta_does_not_depend_on_the_unit_of_scores():
    first, second, votes = judged_twice(200)
    one, tenfold = beta_change(first, second, votes), beta_change(10 * first, 10 * second, votes)
    assert tenfold.z == pytest.approx(one.z)
    assert tenfold.std_error == pytest.approx(one.std_error / 10)
    back = beta_change(second, first, votes)
    assert (back.z, back.p_value) == pytest.approx((-one.z, one.p_value))
    assert back.std_error == pytest.approx(one.std_error)


def test_exchanging_both_judgements_of_a_battle_turns_the_sign_of_its_difference_only():
    """What makes the test exact: the differences keep their sizes, so that t is of signs alone."""
    first, second, votes = judged_twice(60)
    turned = np.arange(60) % 3 == 0
    swapped = np.where(turned, second, first), np.where(turned, first, second)
    common = slope_of(np.concatenate(margins(votes, first, second)))
    pulls = [margin * expit(-common * margin) for margin in margins(votes, first, second)]
    signs = np.where(turned, -1, 1)
    oracle = ttest_1samp(signs * (pulls[1] - pulls[0]), 0)
    assert beta_change(*swapped, votes).p_value == pytest.approx(oracle.pvalue)


@pytest.mark.parametrize("sign", [1, -1])
def test_scores_that_lose_their_slope_are_tested_all_the_same(sign):
    first, _, votes = judged_twice(100)
    extreme = sign * np.abs(first) * (2 * votes - 1)  # predicts every vote, or contradicts it
    change = beta_change(first, extreme, votes)
    assert change.p_value < 1e-3
    assert np.sign(change.z) == sign
    assert np.isnan([change.now, change.change, change.std_error]).all()
    assert change.baseline > 0
    says = "predict" if sign > 0 else "contradict"
    assert change.note == f"there is no slope now: scores {says} every vote, so that it has no end"


LINE, ONES = np.linspace(1, 2, 30), np.ones(30)


@pytest.mark.parametrize(
    ("before", "after", "votes", "notes", "is_tested"),
    [
        (LINE, -LINE, ONES, ["baseline: scores predict", "now: scores contradict"], True),
        (ONES, ONES, ONES / 2, ["0 battles with a decisive vote were judged both times"], False),
        (ONES, ONES, ONES, ["at the baseline: scores predict every vote"], False),
        (ONES, ONES, 0 * ONES, ["at the baseline: scores contradict every vote"], False),
        (0 * ONES, 0 * ONES, ONES, ["at the baseline: scores are equal"], False),
        (judged_twice(30)[0], 0 * ONES, judged_twice(30)[2], ["now: scores are equal"], False),
    ],
)
def test_a_slope_without_an_end_has_a_reason_and_no_number(before, after, votes, notes, is_tested):
    change = beta_change(before, after, votes)
    assert all(note in change.note for note in notes)
    assert np.isnan([change.now, change.change, change.std_error]).all()
    assert change.p_value < 1e-9 if is_tested else np.isnan([change.z, change.p_value]).all()


def test_a_balanced_judge_has_the_slope_zero():
    scores, votes = np.ones(40), np.arange(40) % 2.0
    change = beta_change(scores, np.where(np.arange(40) < 20, scores, 2 * votes - 1), votes)
    assert change.baseline == 0
    assert change.now > 0


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.05, 0.8])
@pytest.mark.parametrize("n", [20, 50])
def test_without_a_change_no_p_value_of_a_slope_is_too_small(n, noise):
    """Strong judges, whose few contradicted votes make slopes large and their ratio wild."""
    rng, n_trials, level = np.random.default_rng(n), sized(4000, 1000), 0.01
    small = 0
    for _ in range(n_trials):
        truth = rng.normal(0, 3, n)
        votes = (rng.random(n) < expit(truth)).astype(float)
        first, second = truth + rng.normal(0, noise, (2, n))
        small += beta_change(first, second, votes).p_value <= level
    assert small / n_trials <= level + 4 * math.sqrt(level * (1 - level) / n_trials)


def test_means_are_tested_as_paired_values_are():
    first, second, _ = judged_twice(50)
    second[:3] = np.nan
    change, oracle = mean_change(first, second), ttest_rel(second[3:], first[3:])
    assert (change.z, change.p_value) == pytest.approx((oracle.statistic, oracle.pvalue))
    assert change.n_battles == 47
    rises = ttest_1samp(second[3:] - first[3:], 0, alternative="greater")
    assert mean_change(first, second, only_rises=True).p_value == pytest.approx(rises.pvalue)


@pytest.mark.parametrize(("n_up", "n_down"), [(1, 0), (5, 1), (7, 7), (12, 3)])
def test_shares_are_tested_on_the_battles_that_changed_sides(n_up, n_down):
    before, after = np.zeros(60), np.zeros(60)
    after[:n_up] = 1
    before[n_up : n_up + n_down] = 1
    before[-10:] = after[-10:] = 1
    change = share_change(before, after)
    assert change.p_value == pytest.approx(binomtest(n_up, n_up + n_down, 0.5).pvalue)
    assert change.change == pytest.approx((n_up - n_down) / 60)
    variance = ((n_up + n_down) / 60 - change.change**2) / 59
    assert change.std_error == pytest.approx(math.sqrt(variance))


def test_runs_are_as_far_from_each_other_as_now_is_from_them():
    runs = np.tile([0.0, 0.0, 1.0], (30, 1))  # pairs are 0, 1 and 1 apart
    now = np.r_[np.full(15, 0.0), np.full(15, 3.0)]  # to the runs 0, 0, 1 and 3, 3, 2
    change = repeat_change(now, runs)
    assert change.baseline == pytest.approx(2 / 3)
    assert change.now == pytest.approx((1 / 3 + 8 / 3) / 2)
    assert change.p_value < 1e-3
    assert repeat_change(np.full(30, 0.2), runs).p_value > 0.5  # nearer is no drift


def test_calls_of_one_time_are_as_far_apart_as_those_of_two():
    ab, ba = np.tile([0.0, 1.0], 15), np.tile([0.5, 1.5], 15)
    change = call_change(ab, ba, ab + 2, ba + 3)
    assert change.baseline == pytest.approx((0.5 + 1.5) / 2)
    assert change.now == pytest.approx((3.5 + 1.5) / 2)
    assert change.p_value < 1e-6
    assert call_change(ab, ba, ab, ba).note == "nothing differs from the baseline"
    # a lead of the first position puts no two calls further apart
    noise = np.random.default_rng(6).normal(0, 0.1, (4, 100))
    leading = call_change(*(noise + np.array([[4], [-4], [4], [-4]])))
    assert leading.note == "nothing differs from the baseline"


def test_exchanging_a_call_of_both_times_exchanges_the_distances():
    ab, ba, ab_now, ba_now = np.random.default_rng(6).normal(0, 1, (4, 40))
    one, other = call_change(ab, ba, ab_now, ba_now), call_change(ab, ba_now, ab_now, ba)
    assert (other.baseline, other.now) == pytest.approx((one.now, one.baseline))
    assert other.z == pytest.approx(-one.z)


def test_where_nothing_differs_there_is_no_test():
    same = np.linspace(0, 1, 30)
    for change in (mean_change(same, same), share_change(same > 0.5, same > 0.5)):
        assert change.change == 0
        assert math.isnan(change.z)
        assert math.isnan(change.p_value)
        assert change.note == "nothing differs from the baseline"


def test_a_shift_that_is_the_same_everywhere_is_told_by_its_signs():
    before = np.random.default_rng(0).normal(size=25)
    change = mean_change(before, before + 0.3)
    assert change.p_value == pytest.approx(2.0**-24)
    assert change.change == pytest.approx(0.3)
    assert math.isnan(change.z)


def test_too_few_battles_are_no_estimate():
    few = np.arange(LEAST_BATTLES - 1.0)
    change = mean_change(few, few[::-1])
    assert math.isnan(change.change)
    assert change.note == "19 battles were judged both times; 20 are needed"


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: mean_change([1.0], [1.0, 2.0]), r"before \(1,\), after \(2,\)"),
        (lambda: share_change([0.5], [1.0]), "a battle of a share is 0.5"),
        (lambda: repeat_change([1.0], [[1.0]]), r"runs is \(1, 1\)"),
        (lambda: beta_change([1.0], [1.0], [0.7]), "human_outcome is 0.7"),
    ],
)
def test_bad_input_names_the_value(act, message):
    with pytest.raises(ValueError, match=message):
        act()

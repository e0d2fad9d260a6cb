"""Conformal thresholds and their trials, by exact ranks, by hand and by simulation."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from ratings_by_hand import Rated, heldout_of
from scipy import stats
from twins import conformal_threshold
from unlike_models import try_bands, try_weights

from judgeline.elo import HeldOutRatings
from judgeline.intervals import (
    Calibrating,
    Skill,
    calibrate_intervals,
    conformal_quantile,
    judge_skill,
    nonconformity_scores,
    sampling_half_width,
)
from judgeline.intervals.conformal import coverage_limits, structured_splits


def test_the_rank_is_exact_at_every_level_and_size() -> None:
    for hundredths, n in itertools.product(range(1, 100), range(200)):
        rank = math.ceil((1 - Fraction(hundredths, 100)) * (n + 1))
        expected = rank if rank <= n else math.inf
        scores = np.arange(1.0, n + 1)
        assert conformal_quantile(scores, miscoverage=hundredths / 100) == expected


def test_an_infinite_score_is_not_dropped() -> None:
    scores = [1.0] * 8 + [math.inf]
    assert conformal_quantile(scores, miscoverage=0.1) == math.inf
    assert conformal_quantile(scores, miscoverage=0.2) == 1.0


def test_nonconformity_is_unsigned_in_standard_errors_and_infinite_without_one() -> None:
    found = nonconformity_scores([-6.0, 3.0, 0.0, 5.0, 0.0], [2.0, 2.0, 5.0, 0.0, math.nan])
    assert found.tolist() == [3.0, 1.5, 0.0, math.inf, math.inf]


def threshold(scores: ArrayLike, weight: ArrayLike, miscoverage: float = 0.1) -> float:
    return conformal_quantile(scores, miscoverage=miscoverage, weight=weight)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: conformal_quantile([[1.0]], miscoverage=0.1), r"shape \(n,\), got \(1, 1\)"),
        (lambda: conformal_quantile([1.0, math.nan], miscoverage=0.1), "1 NaN in 2"),
        (lambda: conformal_quantile([1.0], miscoverage=1.0), "got 1.0"),
        (lambda: conformal_quantile([1.0], miscoverage=0.0), "got 0.0"),
        (lambda: conformal_quantile([1.0], miscoverage=math.nan), "got nan"),
        (lambda: threshold([1.0], [True, False]), r"weight has shape \(2,\)"),
        (lambda: threshold([1.0], [-0.5]), "weight is -0.5"),
        (lambda: nonconformity_scores([5.0, 5.0], [1.0, -1.0]), "row 1"),
        (lambda: nonconformity_scores([5.0, 5.0], [1.0, math.inf]), "row 1"),
        (lambda: nonconformity_scores([5.0, math.nan], [1.0, 1.0]), "row 1"),
        (lambda: calibrate_intervals(random_heldout(20), n_splits=0), "got 0"),
        (lambda: calibrate_intervals(random_heldout(20), std_error="closed"), "'closed'"),
        (lambda: calibrate_intervals(random_heldout(20), std_error="bootstrap"), "no bootstrap"),
        (lambda: calibrate_intervals(random_heldout(20), miscoverage=1.5), r"1\.5"),
        (lambda: sampling_half_width(0, miscoverage=0.1), "n_battles is 0; it must be positive"),
        (lambda: sampling_half_width(10, miscoverage=-0.1), "got -0.1"),
    ],
)
def test_bad_input_names_the_value(act, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        act()


# ------------------------------------------------------------------ weights


def test_a_band_has_the_threshold_of_its_own_scores_if_they_are_enough() -> None:
    scores, low = np.r_[np.arange(1.0, 10), 100 + np.arange(1.0, 20)], np.arange(28) < 9
    assert (threshold(scores, ~low), threshold(scores, low)) == (118, 9)  # 18th of 19, 9th of 9
    assert threshold(scores, np.arange(28) < 8) == math.inf
    assert threshold(scores, np.full(28, 1e-6)) == math.inf, "a fresh model unlike all of these"
    assert threshold([1.0], [True]) == math.inf
    assert threshold(scores, scores > 0, 0.2) == conformal_quantile(scores, miscoverage=0.2)


def test_coverage_holds_in_every_band_where_one_threshold_for_all_misses_in_one() -> None:
    found = try_bands(19, n_trials=1000, rng=np.random.default_rng(6))
    error = math.sqrt(0.9 * 0.1 / 1000)
    for band in (0, 1):
        assert np.mean(found.held[:, band]) == pytest.approx(18 / 20, abs=4 * error)
    assert np.mean(found.plain_held[:, 1]) < 0.9 - 4 * error


def test_weights_keep_the_promise_under_a_known_shift_where_equal_ones_break_it() -> None:
    found = try_weights(60, n_trials=1000, rng=np.random.default_rng(8))
    error = math.sqrt(0.9 * 0.1 / 1000)
    assert np.mean(found.plain_held) < 0.9 - 4 * error
    assert np.mean(found.held) >= 0.9 - 3 * error
    ratio = np.median(found.width) / np.median(found.plain_width)
    assert 1.05 < ratio < 1.5, "the price in width"


# ------------------------------------------------------------------ what more battles would buy


@pytest.mark.parametrize("miscoverage", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("n_battles", [1, 50, 1234])
def test_sampling_alone_leaves_the_width_of_the_fisher_information(n_battles, miscoverage):
    """Each battle of equals carries p (1 - p) = 1/4; 400 Elo points are a factor ten in odds."""
    strengths = np.array([-1e-4, 0.0, 1e-4])
    log_likelihood = 0.5 * stats.logistic.logcdf(strengths) + 0.5 * stats.logistic.logsf(strengths)
    information = -np.diff(log_likelihood, 2)[0] / 1e-8
    logits = stats.norm.isf(miscoverage / 2) / math.sqrt(n_battles * information)
    width = sampling_half_width(n_battles, miscoverage=miscoverage)
    assert width == pytest.approx(logits * 400 / math.log(10), rel=1e-5)
    assert sampling_half_width(10_000, miscoverage=0.1) == pytest.approx(5.7148, abs=1e-4)


# ------------------------------------------------------------------ calibration of ratings


def random_heldout(n_models: int, seed: int = 0, n_new: int = 3) -> HeldOutRatings:
    rng = np.random.default_rng(seed)
    spread = rng.uniform(5, 20, n_models)
    rows = [
        Rated(f"m{k:02d}", 1500.0 + shift, 1500.0, spread[k])
        for k, shift in enumerate(spread * rng.standard_normal(n_models))
    ]
    rows += [row._replace(method="human") for row in rows]  # people do not calibrate themselves
    return heldout_of([*rows, *(Rated(f"new{k}", 1600.0, None, 9.0) for k in range(n_new))])


@given(n_models=st.integers(2, 40), level=st.sampled_from(["0.05", "0.1", "0.25", "0.5"]))
@settings(max_examples=40)
def test_the_deployed_threshold_is_that_of_all_residuals(n_models: int, level: str) -> None:
    heldout = random_heldout(n_models, seed=n_models)
    rows = (heldout.method == "soft") & np.isfinite(heldout.residual)
    scores = (np.abs(heldout.residual) / heldout.std_error_analytic)[rows].tolist()
    table = calibrate_intervals(heldout, miscoverage=float(level), n_splits=1)
    assert table.method.tolist() == ["soft"]
    assert table.threshold.tolist() == [conformal_threshold(scores, level)]
    counts = (table.n_models[0], table.n_calibration[0], table.n_test[0])
    assert counts == (n_models, n_models // 2, n_models - n_models // 2)


def test_models_without_a_spread_widen_intervals_and_are_told() -> None:
    """Nine scores of 0.1 to 0.9 and a miss: at 80 % the ninth of ten, at 90 % the miss itself."""
    rows = [Rated(f"m{k}", 1400.0 + k, 1400.0, 10.0) for k in range(1, 10)]
    rows.append(Rated("one-battle", 1400.0, 1400.0, math.nan))
    kept = calibrate_intervals(heldout_of(rows), miscoverage=0.2)
    assert kept.threshold.tolist() == [0.9]
    assert "1 of 10 calibration models have no standard error" in kept.note[0]
    assert calibrate_intervals(heldout_of(rows), miscoverage=0.1).threshold.tolist() == [math.inf]


def test_splits_try_half_of_the_models_on_the_other_half() -> None:
    """Against random halvings of our own; tolerance from both sides' Monte-Carlo error."""
    heldout, n_splits = random_heldout(21, seed=4, n_new=0), 800
    scores = (np.abs(heldout.residual) / heldout.std_error_analytic)[heldout.method == "soft"]
    rng, coverage, thresholds = np.random.default_rng(99), [], []
    for _ in range(n_splits):
        order = rng.permutation(21)
        top = conformal_threshold(scores[order[:10]].tolist(), "0.2")
        thresholds.append(top)
        coverage.append(np.mean(scores[order[10:]] <= top))
    table = calibrate_intervals(heldout, miscoverage=0.2, n_splits=n_splits)
    error = math.sqrt(2 * np.var(coverage) / n_splits)
    assert table.coverage[0] == pytest.approx(np.mean(coverage), abs=4 * error)
    assert table.split_threshold[0] == pytest.approx(np.median(thresholds), rel=0.05)
    assert table.coverage_min[0] == pytest.approx(np.min(coverage), abs=0.1)
    assert table.coverage_max[0] == 1.0


def test_an_interval_without_ends_is_not_counted_as_coverage() -> None:
    """One of three calibrates: near misses far, far holds near, and the third has no spread."""
    spreads = {"near": (10.0, 10.0), "far": (40.0, 10.0), "none": (0.0, math.nan)}
    rows = [Rated(name, 1500.0 + off, 1500.0, error) for name, (off, error) in spreads.items()]
    table = calibrate_intervals(heldout_of(rows), miscoverage=0.5, n_splits=60)
    assert (table.coverage_min[0], table.coverage_max[0]) == (0.0, 1.0)
    assert 0.2 < table.coverage[0] < 0.8


def test_equal_spreads_give_widths_of_two_thresholds() -> None:
    rows = [Rated(f"m{k:02d}", 1500.0 + k, 1500.0, 10.0) for k in range(20)]
    table = calibrate_intervals(heldout_of(rows), miscoverage=0.2, n_splits=1)
    assert table.median_width[0] == pytest.approx(2 * 10.0 * table.split_threshold[0])
    assert table.width_min[0] == table.width_max[0] == table.median_width[0]
    assert table.n_splits[0] == 1


def test_a_split_too_small_says_so_and_is_not_clipped() -> None:
    table = calibrate_intervals(random_heldout(14), miscoverage=0.1)
    assert table.split_threshold[0] == math.inf  # 7 models calibrate, 9 are needed
    for coverage in (table.coverage, table.coverage_min, table.coverage_max):
        assert math.isnan(coverage[0])  # what has no ends covers everything and shows nothing
    assert math.isfinite(table.threshold[0])
    assert "the intervals stand" in table.note[0]
    assert "9" in table.note[0]
    assert calibrate_intervals(random_heldout(18), miscoverage=0.1).note[0] == ""
    none = calibrate_intervals(random_heldout(9))  # nor is a structured split tried
    assert (none.n_structured[0], none.structured[0], none.structured_below[0]) == (0, "", "")
    assert math.isnan(none.structured_coverage[0])


def test_seeds_choose_the_splits_and_nothing_else() -> None:
    heldout = random_heldout(20)
    first, again, other = (
        calibrate_intervals(heldout, miscoverage=0.2, seed=seed) for seed in (1, 1, 2)
    )
    for ours, theirs in zip(first, again, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert first.threshold.tolist() == other.threshold.tolist()
    assert first.median_width.tolist() != other.median_width.tolist()


def test_limits_hold_the_coverage_of_simulated_splits() -> None:
    rng = np.random.default_rng(3)
    n_calibration, n_test, miscoverage = 12, 15, 0.2
    rank = math.ceil((n_calibration + 1) * (1 - miscoverage))
    draws = rng.exponential(size=(20_000, n_calibration + n_test))
    top = np.sort(draws[:, :n_calibration], axis=1)[:, rank - 1 : rank]
    coverage = (draws[:, n_calibration:] <= top).mean(axis=1)
    lower, upper = coverage_limits([n_calibration], [n_test], miscoverage=[miscoverage])
    assert np.mean(coverage < lower[0]) <= 0.005 + 0.002
    assert np.mean(coverage > upper[0]) <= 0.005 + 0.002
    assert np.mean(coverage <= lower[0]) > 0.005 - 0.002  # no wider than need be


@pytest.mark.parametrize("miscoverage", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("n_calibration", [2, 9, 30, 59])
def test_limits_are_scipys_beta_binomial_quantiles(n_calibration: int, miscoverage: float) -> None:
    n_test = np.arange(1, 60)
    found = coverage_limits(
        np.full(59, n_calibration), n_test, miscoverage=np.full(59, miscoverage)
    )
    n_above = math.floor(Fraction(str(miscoverage)) * (n_calibration + 1))
    chance = stats.betabinom(n_test, n_calibration + 1 - n_above, max(n_above, 1))
    for limit, share in zip(found, (0.005, 0.995), strict=True):
        expected = chance.ppf(share) / n_test if n_above else np.ones(59)  # no finite threshold
        assert limit.tolist() == expected.tolist()


# ------------------------------------------------------------------ the spread of residuals


def calibrating(
    residual: ArrayLike, std_error: ArrayLike, human: ArrayLike, votes: ArrayLike
) -> Calibrating:
    given_ = (np.asarray(c, float) for c in (residual, std_error, human, votes))
    columns = np.broadcast_arrays(*given_)
    size = columns[0].size
    rating = np.linspace(1400.0, 1600.0, size)
    names = np.arange(size).astype(str)
    return Calibrating(names, rating, rating - columns[0], *columns, np.full(size, 50))


def test_the_spread_of_a_residual_by_hand() -> None:
    """Residuals of 13 with errors of 3 and 4: an excess of 12; and 3, 4 and 12 again make 13."""
    voted = calibrating([13.0, -13.0] * 5, 3.0, 4.0, 4.0)
    assert voted.excess_sd == pytest.approx(12)
    assert voted.spread(np.array([3.0]), np.array([4.0])) == pytest.approx([13])
    assert voted.threshold(0.1) == pytest.approx(1)
    assert np.isnan(voted.spread(np.array([0.0, math.nan]), np.array([4.0, 4.0]))).all()
    assert voted.take(np.arange(8)).threshold(0.1) == math.inf


@given(scale=st.floats(0.01, 100), seed=st.integers(0, 99), miscoverage=st.floats(0.1, 0.5))
@settings(max_examples=50)
def test_without_excess_and_votes_noise_standard_errors_alone_scale(scale, seed, miscoverage):
    """And intervals scale with the unit of ratings."""
    rng = np.random.default_rng(seed)
    error = rng.uniform(5, 20, 1 + seed % 40)
    residual = error * rng.uniform(-1, 1, error.size)  # less than the errors explain
    voted = calibrating(residual, error, 3.0, 0.0)
    assert voted.excess_sd == 0.0
    assert voted.spread(error, np.zeros(error.size)).tolist() == error.tolist()
    scores = np.abs(residual) / error
    assert voted.threshold(miscoverage) == conformal_quantile(scores, miscoverage=miscoverage)
    columns = rng.uniform(1, 30, (4, 20))
    one, other = calibrating(*columns), calibrating(*(scale * columns))
    assert other.threshold(0.2) == pytest.approx(one.threshold(0.2), rel=1e-9)
    spread = one.spread(columns[1], columns[3])
    assert other.spread(scale * columns[1], scale * columns[3]) == pytest.approx(scale * spread)


@pytest.mark.parametrize("miscoverage", [0.1, 0.3])
def test_published_intervals_are_residuals_in_standard_errors_alone(miscoverage: float) -> None:
    residual, error = np.arange(1.0, 15), np.arange(14.0, 0, -1)
    voted = calibrating(residual, error, 4.0, 5.0)._replace(published=True)
    assert voted.excess_sd == 0.0
    assert voted.spread(error, np.full(14, 5.0)).tolist() == error.tolist()
    expected = conformal_threshold((residual / error).tolist(), str(miscoverage))
    assert voted.threshold(miscoverage) == voted.take(np.arange(14)).threshold(miscoverage)
    assert voted.threshold(miscoverage) == expected
    rows = [
        Rated(f"m{k}", 1500 + off, 1500.0, 99.0, bootstrap=spread, human_error=4.0, vote_error=5.0)
        for k, (off, spread) in enumerate(zip(residual, error, strict=True))
    ]
    table = calibrate_intervals(heldout_of(rows), miscoverage=miscoverage)
    assert table.published_threshold.tolist() == [expected]
    assert table.published_width.tolist() == [2 * expected * 7.5]
    none = calibrate_intervals(heldout_of([row._replace(bootstrap=math.nan) for row in rows]))
    assert np.isnan([none.published_threshold[0], none.published_width[0]]).all()


# ------------------------------------------------------------------ what a judge knows

HUMAN = np.array([1400.0, 1500.0, 1600.0, 1700.0])  # squares about the mean: 50,000


def skill_of(residual: ArrayLike, human: ArrayLike = HUMAN, noise: ArrayLike = 10.0) -> Skill:
    columns = np.broadcast_arrays(residual, human, noise)
    return judge_skill(*columns, miscoverage=0.1)


def test_skill_and_floor_by_hand() -> None:
    assert skill_of([10, -20, 0, 0]).skill == pytest.approx(1 - 500 / 50_000)
    assert skill_of(0.0).skill == 1.0
    assert skill_of(HUMAN.mean() - HUMAN).skill == pytest.approx(0), "people's mean rating"
    assert skill_of(2 * (HUMAN.mean() - HUMAN)).skill == pytest.approx(-3), "reversed"
    # mean |noise| of a normal error of 10 and of 20 / sqrt(2) Elo points
    assert skill_of(3.0).floor == pytest.approx(10 * stats.foldnorm(0).mean())
    assert skill_of(3.0, noise=[20, 0, 20, 0]).floor == pytest.approx(
        stats.foldnorm(0, scale=20 / math.sqrt(2)).mean()
    )


def test_two_models_or_models_that_people_rate_alike_show_no_skill() -> None:
    for found in (skill_of([1.0, 2.0], HUMAN[:2]), skill_of([1.0, 2.0, 3.0, 4.0], 1500.0)):
        assert np.isnan(found[:3]).all()
        assert found.floor > 0


def test_skills_interval_is_that_of_a_slow_jackknife() -> None:
    rng = np.random.default_rng(4)
    human = rng.normal(1500, 100, 12)
    residual = rng.normal(0, 40, 12)
    without = []
    for k in range(12):
        e, h = np.delete(residual, k), np.delete(human, k)
        without.append(math.log(sum(e**2) / sum((h - sum(h) / 11) ** 2)))
    error = math.sqrt(11 / 12 * sum((value - sum(without) / 12) ** 2 for value in without))
    found = skill_of(residual, human)
    reach = stats.t(11).ppf(0.95) * error
    ends = [1 - (1 - found.skill) * math.exp(sign * reach) for sign in (1, -1)]
    assert [found.lower, found.upper] == pytest.approx(ends, rel=1e-9)
    assert found.lower < found.skill < found.upper < 1


def test_a_judge_of_noise_has_no_skill_and_its_interval_says_so() -> None:
    rng, human = np.random.default_rng(5), np.random.default_rng(6).normal(1500, 100, 30)
    noise = [skill_of(rng.normal(1500, 100, 30) - human, human) for _ in range(100)]
    good = [skill_of(rng.normal(0, 40, 30), human) for _ in range(100)]
    assert np.mean([found.skill < 0 for found in noise]) > 0.95
    assert np.mean([found.lower < 0 for found in noise]) > 0.95
    assert all(found.lower > 0 for found in good)
    # 1 - 40^2 / 100^2, within 4 errors of a mean of 100 with chi-square noise of 30
    assert np.mean([f.skill for f in good]) == pytest.approx(
        1 - 40**2 / human.var(), abs=4 * 0.16 * math.sqrt(2 / 30 / 100)
    )


def test_calibration_carries_the_skill_of_each_method() -> None:
    heldout = random_heldout(20)
    own = heldout.take((heldout.method == "soft") & np.isfinite(heldout.residual))
    shifted = heldout._replace(human_std_error=np.full(heldout.rating.size, 6.0))
    table = calibrate_intervals(shifted)
    expected = judge_skill(own.residual, own.human_rating, np.full(20, 6.0), miscoverage=0.1)
    found = [table.skill[0], table.skill_lower[0], table.skill_upper[0], table.floor[0]]
    np.testing.assert_array_equal(found, expected)


# ------------------------------------------------------------------ coverage that can fail


def test_structured_splits_by_hand() -> None:
    voted = calibrating(np.zeros(6), 1.0, 1.0, 1.0)._replace(
        model=np.array(["gpt-4", "GPT3.5", "claude-2", "claude_1", "bard", "llama"]),
        n_battles=np.array([10, 20, 30, 40, 50, 60]),
    )  # rated in this order, worst first
    days = dict(zip(voted.model.tolist(), [0, 9, 0, 0, 3, 0], strict=True))
    makers = ["openai", "openai", "anthropic", "anthropic", "google", ""]
    family = dict(zip(voted.model.tolist(), makers, strict=True))
    splits = [
        (split, np.flatnonzero(~who).tolist())
        for split, who in structured_splits(voted, days, family)
    ]
    assert splits == [
        ("above the upper third", [4, 5]),
        ("below it", [0, 1, 2, 3]),
        ("fewer battles", [0, 1, 2]),
        ("newer models", [1, 4]),
        ("other families", [2, 3]),
        ("other families", [0, 1]),
    ]
    for alike in ({}, dict.fromkeys(days, 4.0), {"bard": 1.0, "llama": 2.0}):
        assert "newer models" not in dict(structured_splits(voted, alike, family))


def judge_of_sixty(shift: float, shifted: slice) -> HeldOutRatings:
    """Normal residuals of 10 points, and some of 60 models rated too high by a shift."""
    residual = np.random.default_rng(6).normal(0, 10, 60)
    residual[shifted] += shift
    return heldout_of(
        [
            Rated(f"model-{k}", 1000.0 + 100 * k + off, 1000.0 + 100 * k, 10.0, human_error=1.0)
            for k, off in enumerate(residual)
        ]
    )


def test_a_judge_that_flatters_newer_models_is_caught_where_their_days_are_known() -> None:
    days = {f"model-{k}": float(k % 3 == 2) for k in range(60)}
    heldout = judge_of_sixty(60.0, slice(2, None, 3))
    undated, dated = (calibrate_intervals(heldout, first_day=known) for known in (None, days))
    assert undated.structured_below[0] == ""
    assert dated.structured_below[0].startswith("newer models")
    assert dated.n_structured[0] == undated.n_structured[0] + 20


def test_a_judge_that_flatters_the_strong_is_caught_by_structured_splits_alone() -> None:
    strong = slice(40, None)
    fair, flattered = (calibrate_intervals(judge_of_sixty(off, strong)) for off in (0.0, 40.0))
    least, _ = coverage_limits([30], [30], miscoverage=[0.1])
    for table in (fair, flattered):  # random halves see nothing
        assert table.coverage[0] >= least[0]
    assert fair.structured_below[0] == ""
    assert flattered.structured_below[0].startswith("above the upper third")
    assert flattered.structured_coverage[0] < fair.structured_coverage[0]
    assert fair.n_structured[0] == 20 + 40  # one family, and equally many battles

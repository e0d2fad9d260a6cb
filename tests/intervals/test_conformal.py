import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from ratings_by_hand import Rated, heldout_of
from twins import conformal_threshold

from judgeline.elo import HeldOutRatings
from judgeline.intervals import (
    Calibrating,
    calibrate_intervals,
    conformal_quantile,
    nonconformity_scores,
)
from judgeline.intervals.conformal import coverage_limits
from judgeline.intervals.thresholds import structured_splits


@pytest.mark.parametrize("hundredths", range(1, 100))
def test_the_rank_is_exact_at_every_level_and_size(hundredths: int) -> None:
    level = Fraction(hundredths, 100)
    for n in range(200):
        rank = math.ceil((1 - level) * (n + 1))
        scores = np.arange(1.0, n + 1)
        expected = rank if rank <= n else math.inf
        assert conformal_quantile(scores, miscoverage=hundredths / 100) == expected


@pytest.mark.parametrize(("n", "miscoverage"), [(8, 0.1), (0, 0.5), (18, 0.05)])
def test_too_few_scores_promise_the_whole_line(n: int, miscoverage: float) -> None:
    assert conformal_quantile(np.ones(n), miscoverage=miscoverage) == math.inf
    assert conformal_quantile(np.ones(n + 1), miscoverage=miscoverage) == 1.0


def test_an_infinite_score_is_not_dropped() -> None:
    scores = [1.0] * 8 + [math.inf]
    assert conformal_quantile(scores, miscoverage=0.1) == math.inf
    assert conformal_quantile(scores, miscoverage=0.2) == 1.0


@pytest.mark.parametrize(
    ("scores", "miscoverage", "message"),
    [
        ([[1.0]], 0.1, r"shape \(n,\), got \(1, 1\)"),
        ([1.0, math.nan], 0.1, "1 NaN in 2"),
        ([1.0], 1.0, "got 1.0"),
        ([1.0], 0.0, "got 0.0"),
        ([1.0], math.nan, "got nan"),
    ],
)
def test_bad_input_names_the_value(scores, miscoverage: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        conformal_quantile(scores, miscoverage=miscoverage)


def test_nonconformity_is_unsigned_and_in_standard_errors() -> None:
    assert nonconformity_scores([-6.0, 3.0, 0.0], [2.0, 2.0, 5.0]).tolist() == [3.0, 1.5, 0.0]


@pytest.mark.parametrize("std_error", [0.0, math.nan])
@pytest.mark.parametrize("residual", [5.0, 0.0])
def test_a_model_without_a_spread_counts_as_a_miss(std_error: float, residual: float) -> None:
    assert nonconformity_scores([5.0, residual], [1.0, std_error]).tolist() == [5.0, math.inf]


@pytest.mark.parametrize(("residual", "std_error"), [(5.0, -1.0), (5.0, math.inf), (math.nan, 1)])
def test_impossible_residuals_and_errors_are_refused(residual: float, std_error: float) -> None:
    with pytest.raises(ValueError, match="row 1"):
        nonconformity_scores([5.0, residual], [1.0, std_error])


def test_models_without_a_spread_widen_intervals_and_are_told() -> None:
    """Nine scores of 0.1 to 0.9 and a miss: at 80 % the ninth of ten, at 90 % the miss itself."""
    rows = [Rated(f"m{k}", 1400.0 + k, 1400.0, 10.0) for k in range(1, 10)]
    rows.append(Rated("one-battle", 1400.0, 1400.0, math.nan))
    kept = calibrate_intervals(heldout_of(rows), miscoverage=0.2)
    assert kept.threshold.tolist() == [0.9]
    assert "1 of 10 calibration models have no standard error" in kept.note[0]
    assert calibrate_intervals(heldout_of(rows), miscoverage=0.1).threshold.tolist() == [math.inf]


# ------------------------------------------------------------------ calibration of ratings


def random_heldout(n_models: int, seed: int = 0, n_new: int = 3) -> HeldOutRatings:
    rng = np.random.default_rng(seed)
    spread = rng.uniform(5, 20, n_models)
    rows = [
        Rated(f"m{k:02d}", 1500.0 + shift, 1500.0, spread[k])
        for k, shift in enumerate(spread * rng.standard_normal(n_models))
    ]
    return heldout_of([*rows, *(Rated(f"new{k}", 1600.0, None, 9.0) for k in range(n_new))])


@given(n_models=st.integers(2, 40), level=st.sampled_from(["0.05", "0.1", "0.25", "0.5"]))
def test_the_deployed_threshold_is_that_of_all_residuals(n_models: int, level: str) -> None:
    heldout = random_heldout(n_models, seed=n_models)
    scores = [
        abs(residual) / spread
        for residual, spread in zip(heldout.residual, heldout.std_error_analytic, strict=True)
        if not math.isnan(residual)
    ]
    table = calibrate_intervals(heldout, miscoverage=float(level))
    assert table.threshold.tolist() == [conformal_threshold(scores, level)]
    assert (table.n_models[0], table.n_calibration[0], table.n_test[0]) == (
        n_models,
        n_models // 2,
        n_models - n_models // 2,
    )


def test_splits_try_half_of_the_models_on_the_other_half() -> None:
    """Against random halvings of our own; tolerance from both sides' Monte-Carlo error."""
    heldout = random_heldout(21, seed=4, n_new=0)
    scores = np.abs(heldout.residual) / heldout.std_error_analytic
    rng, coverage, thresholds = np.random.default_rng(99), [], []
    for _ in range(3000):
        order = rng.permutation(21)
        threshold = conformal_threshold(scores[order[:10]].tolist(), "0.2")
        thresholds.append(threshold)
        coverage.append(np.mean(scores[order[10:]] <= threshold))
    table = calibrate_intervals(heldout, miscoverage=0.2, n_splits=3000)
    error = math.sqrt(2 * np.var(coverage) / 3000)
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
    assert "infinite" in table.note[0]
    assert "9" in table.note[0]
    assert calibrate_intervals(random_heldout(18), miscoverage=0.1).note[0] == ""


def test_seeds_choose_the_splits_and_nothing_else() -> None:
    heldout = random_heldout(20)
    first, again = (calibrate_intervals(heldout, miscoverage=0.2, seed=1) for _ in range(2))
    other = calibrate_intervals(heldout, miscoverage=0.2, seed=2)
    assert [c.tolist() for c in first] == [c.tolist() for c in again]
    assert first.threshold.tolist() == other.threshold.tolist()
    assert first.median_width.tolist() != other.median_width.tolist()


def test_humans_do_not_calibrate_themselves() -> None:
    rows = [Rated(f"m{k}", 1500.0 + k, 1500.0, 2.0) for k in range(20)]
    rows += [Rated(f"m{k}", 1500.0, 1500.0, 2.0, method="human") for k in range(20)]
    assert calibrate_intervals(heldout_of(rows)).method.tolist() == ["soft"]


def test_bad_settings_are_refused() -> None:
    heldout = random_heldout(20)
    with pytest.raises(ValueError, match="got 0"):
        calibrate_intervals(heldout, n_splits=0)
    with pytest.raises(ValueError, match="'closed'"):
        calibrate_intervals(heldout, std_error="closed")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no bootstrap"):
        calibrate_intervals(heldout, std_error="bootstrap")
    with pytest.raises(ValueError, match=r"1\.5"):
        calibrate_intervals(heldout, miscoverage=1.5)


def test_limits_hold_the_coverage_of_simulated_splits() -> None:
    rng = np.random.default_rng(3)
    n_calibration, n_test, miscoverage = 12, 15, 0.2
    rank = math.ceil((n_calibration + 1) * (1 - miscoverage))
    draws = rng.exponential(size=(20_000, n_calibration + n_test))
    threshold = np.sort(draws[:, :n_calibration], axis=1)[:, rank - 1 : rank]
    coverage = (draws[:, n_calibration:] <= threshold).mean(axis=1)
    lower, upper = coverage_limits([n_calibration], [n_test], miscoverage=[miscoverage])
    assert np.mean(coverage < lower[0]) <= 0.005 + 0.002
    assert np.mean(coverage > upper[0]) <= 0.005 + 0.002
    assert np.mean(coverage <= lower[0]) > 0.005 - 0.002  # no wider than need be


# ------------------------------------------------------------------ the spread of residuals


def calibrating(
    residual: ArrayLike, std_error: ArrayLike, human: ArrayLike, votes: ArrayLike
) -> Calibrating:
    columns = np.broadcast_arrays(
        *(np.asarray(c, float) for c in (residual, std_error, human, votes))
    )
    size = columns[0].size
    rating = np.linspace(1400.0, 1600.0, size)
    return Calibrating(np.arange(size).astype(str), rating, *columns, np.full(size, 50))


def test_the_spread_of_a_residual_by_hand() -> None:
    """Residuals of 13 with errors of 3 and 4: an excess of 12; and 3, 4 and 12 again make 13."""
    voted = calibrating([13.0, -13.0] * 5, 3.0, 4.0, 4.0)
    assert voted.excess_sd == pytest.approx(12)
    assert voted.spread(np.array([3.0]), np.array([4.0])) == pytest.approx([13])
    assert voted.threshold(0.1) == pytest.approx(1)
    assert np.isnan(voted.spread(np.array([0.0, math.nan]), np.array([4.0, 4.0]))).all()
    assert voted.take(np.arange(8)).threshold(0.1) == math.inf


@given(st.integers(1, 40), st.floats(0.1, 0.5))
def test_without_an_excess_and_votes_noise_the_standard_errors_alone_scale(
    n_models: int, miscoverage: float
) -> None:
    rng = np.random.default_rng(n_models)
    error = rng.uniform(5, 20, n_models)
    residual = error * rng.uniform(-1, 1, n_models)  # less than the errors explain
    voted = calibrating(residual, error, 3.0, 0.0)
    assert voted.excess_sd == 0.0
    assert voted.spread(error, np.zeros(n_models)).tolist() == error.tolist()
    scores = np.abs(residual) / error
    assert voted.threshold(miscoverage) == conformal_quantile(scores, miscoverage=miscoverage)


@given(scale=st.floats(0.01, 100), seed=st.integers(0, 99))
def test_intervals_scale_with_the_unit_of_ratings(scale: float, seed: int) -> None:
    columns = np.random.default_rng(seed).uniform(1, 30, (4, 20))
    one, other = calibrating(*columns), calibrating(*(scale * columns))
    assert other.threshold(0.2) == pytest.approx(one.threshold(0.2), rel=1e-9)
    spread = one.spread(columns[1], columns[3])
    assert other.spread(scale * columns[1], scale * columns[3]) == pytest.approx(scale * spread)


# ------------------------------------------------------------------ coverage that can fail


def test_structured_splits_by_hand() -> None:
    voted = calibrating(np.zeros(6), 1.0, 1.0, 1.0)._replace(
        model=np.array(["gpt-4", "GPT3.5", "claude-2", "claude_1", "bard", "llama"]),
        n_battles=np.array([10, 20, 30, 40, 50, 60]),
    )  # rated in this order, worst first
    days = dict(zip(voted.model.tolist(), [0, 9, 0, 0, 3, 0], strict=True))
    splits = [
        (split, np.flatnonzero(~who).tolist()) for split, who in structured_splits(voted, days)
    ]
    assert splits == [
        ("above the upper third", [4, 5]),
        ("below it", [0, 1, 2, 3]),
        ("fewer battles", [0, 1, 2]),
        ("newer models", [1, 4]),
        ("other families", [2, 3]),
        ("other families", [0, 1]),
    ]


@pytest.mark.parametrize("days", [{}, {str(k): 4.0 for k in range(6)}, {"0": 1.0, "1": 2.0}])
def test_models_whose_age_does_not_tell_them_apart_are_not_split_by_it(days) -> None:
    voted = calibrating(np.zeros(6), 1.0, 1.0, 1.0)
    assert "newer models" not in dict(structured_splits(voted, days))


def test_a_judge_that_flatters_newer_models_is_caught_where_their_days_are_known() -> None:
    noise = np.random.default_rng(6).normal(0, 10, 60)
    rows = [
        Rated(
            f"model-{k}", 100.0 * k + noise[k] + 60 * (k % 3 == 2), 100.0 * k, 10.0, human_error=1
        )
        for k in range(60)
    ]
    days = {f"model-{k}": float(k % 3 == 2) for k in range(60)}
    undated, dated = (calibrate_intervals(heldout_of(rows), first_day=d) for d in (None, days))
    assert undated.structured_below[0] == ""
    assert dated.structured_below[0].startswith("newer models")
    assert dated.n_structured[0] == undated.n_structured[0] + 20


def residuals_of_sixty(shift: float) -> HeldOutRatings:
    """Normal residuals of 10 points, and the upper third of models rated too high by a shift."""
    noise = np.random.default_rng(6).normal(0, 10, 60)
    rows = [
        Rated(f"model-{k}", 1000.0 + 100 * k + noise[k] + shift * (k >= 40), 1000.0 + 100 * k, 10.0)
        for k in range(60)
    ]
    return heldout_of([row._replace(human_error=1.0) for row in rows])


def test_a_judge_that_flatters_the_strong_is_caught_by_structured_splits_alone() -> None:
    fair, flattered = (calibrate_intervals(residuals_of_sixty(shift)) for shift in (0.0, 40.0))
    least, _ = coverage_limits([30], [30], miscoverage=[0.1])
    for table in (fair, flattered):  # random halves see nothing
        assert table.coverage[0] >= least[0]
    assert fair.structured_below[0] == ""
    assert flattered.structured_below[0].startswith("above the upper third")
    assert flattered.structured_coverage[0] < fair.structured_coverage[0]
    assert fair.n_structured[0] == 20 + 40  # one family, and equally many battles


def test_no_structured_split_is_tried_where_every_threshold_is_infinite() -> None:
    table = calibrate_intervals(random_heldout(9))
    assert (table.n_structured[0], table.structured[0], table.structured_below[0]) == (0, "", "")
    assert math.isnan(table.structured_coverage[0])

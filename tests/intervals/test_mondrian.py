import math

import numpy as np
import pytest

from judgeline.intervals.conformal import conformal_quantile
from judgeline.intervals.mondrian import bands_of, mondrian_thresholds


def test_a_band_with_enough_models_has_the_threshold_of_its_own_scores():
    scores = np.r_[np.arange(1.0, 10), 100 + np.arange(1.0, 20)]
    bands = ["low"] * 9 + ["high"] * 19
    found = mondrian_thresholds(scores, bands, miscoverage=0.1)
    assert found.band.tolist() == ["high", "low"]
    assert found.threshold.tolist() == [118, 9]  # the 18th of 19, the 9th of 9
    assert found.n_models.tolist() == [19, 9]
    assert found.is_own.all()


def test_a_band_with_too_few_has_the_threshold_of_all():
    scores, bands = np.arange(1.0, 29), ["few"] * 8 + ["many"] * 20
    found = mondrian_thresholds(scores, bands, miscoverage=0.1)
    assert found.is_own.tolist() == [False, True]
    assert found.threshold[0] == conformal_quantile(scores, miscoverage=0.1)
    assert found.n_models.tolist() == [28, 20]
    wary = mondrian_thresholds(scores, bands, miscoverage=0.1, least_models=21)
    assert not wary.is_own.any()
    assert mondrian_thresholds([1.0], ["a"], miscoverage=0.1).threshold.tolist() == [math.inf]


def test_one_band_is_split_conformal():
    scores = np.random.default_rng(0).exponential(size=50)
    found = mondrian_thresholds(scores, ["all"] * 50, miscoverage=0.2)
    assert found.threshold.tolist() == [conformal_quantile(scores, miscoverage=0.2)]


def test_coverage_holds_in_every_band_where_one_threshold_for_all_misses_in_one():
    rng, n_trials, n = np.random.default_rng(6), 3000, 19
    bands = np.repeat(["calm", "wild"], n)
    draws = np.abs(rng.normal(size=(n_trials, 2 * n)) * np.repeat([1.0, 3.0], n))
    fresh = np.abs(rng.normal(size=(n_trials, 2)) * [1.0, 3.0])
    own = np.array([mondrian_thresholds(row, bands, miscoverage=0.1).threshold for row in draws])
    pooled = np.array([conformal_quantile(row, miscoverage=0.1) for row in draws])
    error = math.sqrt(0.9 * 0.1 / n_trials)
    for band in (0, 1):
        assert np.mean(fresh[:, band] <= own[:, band]) == pytest.approx(18 / 20, abs=4 * error)
    assert np.mean(fresh[:, 1] <= pooled) < 0.9 - 4 * error


def test_bands_are_of_equal_size_and_keep_equals_together():
    assert bands_of([30.0, 10.0, 20.0, 40.0], n_bands=2).tolist() == ["2", "1", "1", "2"]
    assert bands_of([5.0, 5.0, 5.0, 9.0], n_bands=4).tolist() == ["1", "1", "1", "4"]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: mondrian_thresholds([], [], miscoverage=0.1), "at least one model"),
        (lambda: mondrian_thresholds([1.0], ["a", "b"], miscoverage=0.1), r"band \(2,\)"),
        (lambda: mondrian_thresholds([math.nan], ["a"], miscoverage=0.1), "1 NaN in 1"),
        (lambda: mondrian_thresholds([1.0], ["a"], miscoverage=1.0), "got 1.0"),
        (lambda: bands_of([1.0], n_bands=0), "got 0"),
        (lambda: bands_of([math.nan], n_bands=2), "1 NaN in 1"),
    ],
)
def test_bad_input_names_the_value(act, message):
    with pytest.raises(ValueError, match=message):
        act()

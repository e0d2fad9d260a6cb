import math

import numpy as np
import pytest
from ratings_by_hand import Rated, heldout_of

from judgeline.intervals import bands_of, conformal_quantile, rank_models


def threshold(scores, alike, miscoverage=0.1):
    return conformal_quantile(scores, miscoverage=miscoverage, alike=alike)


def test_a_band_has_the_threshold_of_its_own_scores_if_they_are_enough():
    scores, low = np.r_[np.arange(1.0, 10), 100 + np.arange(1.0, 20)], np.arange(28) < 9
    assert (threshold(scores, ~low), threshold(scores, low)) == (118, 9)  # 18th of 19, 9th of 9
    assert threshold(scores, np.arange(28) < 8) == conformal_quantile(scores, miscoverage=0.1)
    assert threshold([1.0], [True]) == math.inf
    assert threshold(scores, scores > 0, 0.2) == conformal_quantile(scores, miscoverage=0.2)


def test_coverage_holds_in_every_band_where_one_threshold_for_all_misses_in_one():
    rng, n_trials, n = np.random.default_rng(6), 3000, 19
    wild = np.repeat([False, True], n)
    draws = np.abs(rng.normal(size=(n_trials, 2 * n)) * np.where(wild, 3.0, 1.0))
    fresh = np.abs(rng.normal(size=(n_trials, 2)) * [1.0, 3.0])
    own = np.array([[threshold(row, ~wild), threshold(row, wild)] for row in draws])
    pooled = np.array([conformal_quantile(row, miscoverage=0.1) for row in draws])
    error = math.sqrt(0.9 * 0.1 / n_trials)
    for band in (0, 1):
        assert np.mean(fresh[:, band] <= own[:, band]) == pytest.approx(18 / 20, abs=4 * error)
    assert np.mean(fresh[:, 1] <= pooled) < 0.9 - 4 * error


def test_a_board_with_bands_gives_each_model_the_threshold_of_its_band():
    rows = [Rated(f"calm-{k}", 1500 + k, 1500.0, 1.0) for k in range(1, 12)]
    rows += [Rated(f"wild-{k}", 1500 + 10 * k, 1500.0, 1.0) for k in range(1, 12)]
    rows += [Rated(name, 1500.0, None, 1.0) for name in ("calm-new", "wild-new", "stray")]
    bands = {row.model: row.model.split("-")[0] for row in rows if "-" in row.model}
    board = rank_models(heldout_of(rows), method="soft", miscoverage=0.1, bands=bands)
    half_width = dict(zip(board.model.tolist(), (board.upper - board.lower) / 2, strict=True))
    assert half_width["calm-new"] == pytest.approx(11)  # the 11th of 11
    assert half_width["calm-11"] == pytest.approx(10)  # the 10th of the other 10
    assert half_width["wild-new"] == pytest.approx(110)
    assert half_width["stray"] == pytest.approx(100)  # the 21st of all 22


def test_bands_are_of_equal_size_and_keep_equals_together():
    assert bands_of([30.0, 10.0, 20.0, 40.0], n_bands=2).tolist() == ["2", "1", "1", "2"]
    assert bands_of([5.0, 5.0, 5.0, 9.0], n_bands=4).tolist() == ["1", "1", "1", "4"]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: threshold([1.0], [True, False]), r"alike has shape \(2,\)"),
        (lambda: bands_of([1.0], n_bands=0), "got 0"),
        (lambda: bands_of([math.nan], n_bands=2), "1 NaN in 1"),
    ],
)
def test_bad_input_names_the_value(act, message):
    with pytest.raises(ValueError, match=message):
        act()

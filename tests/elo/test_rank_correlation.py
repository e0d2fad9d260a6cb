import math

import numpy as np
import pytest
from scipy.stats import kendalltau, rankdata, spearmanr

from judgeline.elo import kendall, spearman
from judgeline.elo.summary import average_ranks


@pytest.mark.parametrize("n_values", [2, 3, 10, 1_000_000])  # few of them tie often
@pytest.mark.parametrize("size", [2, 3, 17, 120])
def test_correlations_are_those_of_scipy_to_the_last_bit(size, n_values):
    rng = np.random.default_rng([size, n_values])
    for _ in range(20):
        first, second = rng.integers(n_values, size=(2, size)) / 7
        assert average_ranks(first).tolist() == rankdata(first).tolist()
        if np.ptp(first) and np.ptp(second):
            assert kendall(first, second) == kendalltau(first, second).statistic
            assert spearman(first, second) == spearmanr(first, second).statistic


def test_extremes():
    rising = np.array([-math.inf, 0.0, 1.0, math.inf])
    for correlation in (kendall, spearman):
        assert correlation(rising, rising) == pytest.approx(1)
        assert correlation(rising, -rising) == pytest.approx(-1)
        assert math.isnan(correlation([1.0, 2.0, math.nan], [1.0, 2.0, 3.0]))

import math

import numpy as np
import pytest
from ratings_by_hand import Rated, heldout_of
from scipy.stats import kendalltau, linregress, spearmanr

from judgeline.elo import summarise


def test_figures_are_those_of_scipy_and_of_hand() -> None:
    rng = np.random.default_rng(1)
    human = rng.normal(1500, 80, 25)
    judge = 1500 + 1.4 * (human - 1500) + rng.normal(0, 40, 25)
    rows = [Rated(f"m{k}", judge[k], human[k], 9.0, beta=0.5 + k / 100) for k in range(25)]
    rows += [Rated("new", 1900.0, None, 9.0, beta=99.0)]  # no votes: takes no part
    summary = summarise(heldout_of(rows))
    assert summary.method.tolist() == ["soft"]
    assert summary.n_models.tolist() == [25]
    assert summary.mae[0] == pytest.approx(np.mean(np.abs(judge - human)))
    assert summary.bias[0] == pytest.approx(np.mean(judge - human))
    assert summary.spearman[0] == pytest.approx(spearmanr(judge, human).statistic)
    assert summary.kendall[0] == pytest.approx(kendalltau(judge, human).statistic)
    assert summary.stretch[0] == pytest.approx(linregress(human, judge).slope)
    assert summary.mean_beta[0] == pytest.approx(0.62)


def test_every_judge_method_has_a_row_and_humans_none() -> None:
    rows = [
        Rated(f"m{k}", 1500.0 + k, 1500.0 + k, 9.0, method=method)
        for method in ("human", "hard", "soft")
        for k in range(4)
    ]
    assert sorted(summarise(heldout_of(rows)).method.tolist()) == ["hard", "soft"]


def test_one_model_has_no_correlation() -> None:
    summary = summarise(heldout_of([Rated("m", 1510.0, 1500.0, 9.0)]))
    assert (summary.n_models[0], summary.mae[0], summary.bias[0]) == (1, 10.0, 10.0)
    assert math.isnan(summary.spearman[0])
    assert math.isnan(summary.kendall[0])

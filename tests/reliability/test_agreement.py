"""Agreement of judges: published examples, two other programs, and invariances."""

import math

import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from sklearn.metrics import cohen_kappa_score

from judgeline.reliability import (
    cohen_kappa,
    icc_average,
    kappa_of_scores,
    mean_pairwise_kappa,
    pooled_variance,
    reliability_factor,
    single_run_reliability,
)

SHROUT_FLEISS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
)
"""Six targets x four judges: Shrout and Fleiss (1979), table 2."""


def icc_single(panel: ArrayLike) -> float:
    """ICC(3,1) as the Spearman-Brown formula has it from ICC(3,k)."""
    return single_run_reliability(icc_average(panel), np.shape(panel)[1])


def noisy_panel(seed: int, least: int = 2) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(least, 12)), int(rng.integers(2, 7))
    prompt, run = rng.normal(scale=2, size=(n, 1)), rng.normal(size=(1, k))
    return 5 + prompt + run + rng.normal(scale=rng.uniform(0.1, 3), size=(n, k))


def published(panel: np.ndarray) -> dict[str, float]:
    """ICC by type, as pingouin computes them from a table with a row per score."""
    prompts, runs = (index.ravel() for index in np.indices(panel.shape))
    long = pd.DataFrame({"prompt": prompts, "run": runs, "score": panel.ravel().astype(float)})
    table = pingouin.intraclass_corr(long, targets="prompt", raters="run", ratings="score")
    return dict(zip(table["Type"], table["ICC"], strict=True))


def test_published_example() -> None:
    # Their table 4 prints the correlations .71 and .91.
    assert icc_single(SHROUT_FLEISS) == pytest.approx(0.71, abs=0.005)
    assert icc_average(SHROUT_FLEISS) == pytest.approx(0.91, abs=0.005)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_reliabilities_are_those_of_another_program(seed: int) -> None:
    panel = noisy_panel(seed, least=5)  # pingouin refuses fewer prompts
    theirs = published(panel)
    assert icc_average(panel) == pytest.approx(theirs["ICC(C,k)"], abs=1e-9)
    assert icc_single(panel) == pytest.approx(theirs["ICC(C,1)"], abs=1e-9)


@given(st.integers(0, 10_000))
def test_average_reliability_is_cronbachs_alpha(seed: int) -> None:
    panel = noisy_panel(seed)
    k, total = panel.shape[1], panel.sum(axis=1).var(ddof=1)
    alpha = k / (k - 1) * (1 - panel.var(axis=0, ddof=1).sum() / total)
    assert icc_average(panel) == pytest.approx(alpha, rel=1e-8, abs=1e-9)


@given(st.integers(0, 10_000), st.floats(0.01, 100), st.floats(-50, 50))
def test_unit_origin_and_offsets_of_runs_do_not_count(seed, unit, origin):
    panel = noisy_panel(seed)
    moved = unit * panel + origin + np.arange(panel.shape[1])
    assert icc_single(moved) == pytest.approx(icc_single(panel), rel=1e-6, abs=1e-8)


def test_single_run_reliability_undoes_spearman_brown() -> None:
    for single in (0.1, 0.5, 0.9):
        average = 3 * single / (1 + 2 * single)
        assert single_run_reliability(average, 3) == pytest.approx(single, rel=1e-12)
    assert single_run_reliability(0.8, 1) == 0.8
    identical = np.repeat([[1.0], [4.0], [2.0]], 3, axis=1)
    assert icc_average(identical) == icc_single(identical) == 1


OUTCOME = st.sampled_from([0.0, 0.5, 1.0])


@given(st.lists(st.tuples(OUTCOME, OUTCOME), min_size=1, max_size=60))
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[float, float]]) -> None:
    first, second = zip(*pairs, strict=True)
    kappa = cohen_kappa(first, second)
    if len({*first, *second}) == 1:
        assert math.isnan(kappa)
    else:
        expected = cohen_kappa_score([str(x) for x in first], [str(x) for x in second])
        assert kappa == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(1, 10)), min_size=1, max_size=60))
def test_kappa_of_scores_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    first, second = zip(*pairs, strict=True)
    kappa = kappa_of_scores(first, second)
    if len({*first, *second}) == 1:
        assert math.isnan(kappa)
    else:
        assert kappa == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)


def test_kappa_is_averaged_over_all_pairs() -> None:
    outcome = np.random.default_rng(9).choice([0.0, 0.5, 1.0], size=(4, 60), p=[0.5, 0.1, 0.4])
    outcome[1:, :30] = outcome[0, :30]
    labels = (2 * outcome).astype(int)
    pairs = [cohen_kappa_score(labels[i], labels[j]) for i in range(4) for j in range(i)]
    assert mean_pairwise_kappa(outcome) == pytest.approx(np.mean(pairs), rel=1e-12)


@pytest.mark.parametrize(
    ("kappa", "factor"), [(0.7225, 0.85), (0.25, 0.5), (1.0, 1.0), (0.04, 0.2)]
)
def test_factor_takes_one_square_root_and_is_the_limit_of_pooling(kappa, factor):
    """The tables have 0.85 for a kappa of 0.7225. Two roots, as one sentence has it, give 0.92."""
    assert reliability_factor(kappa) == pytest.approx(factor, rel=1e-12)
    floor = math.sqrt(pooled_variance(12.0**2, kappa, 10**9))
    assert 12.0 * reliability_factor(kappa) == pytest.approx(floor, rel=1e-6)


@given(st.integers(1, 12), st.floats(0, 1))
def test_pooled_variance_is_that_of_a_mean_of_correlated_ratings(n_judges, correlation):
    covariance = 9.0 * (correlation + (1 - correlation) * np.eye(n_judges))
    weights = np.full(n_judges, 1 / n_judges)
    expected = weights @ covariance @ weights
    assert pooled_variance(9.0, correlation, n_judges) == pytest.approx(expected, rel=1e-12)
    assert pooled_variance(1.0, -0.5, 3) == pytest.approx(0, abs=1e-15)


NAN = math.nan
SAME_MEAN = "one and the same mean over 3 runs"
BAD_INPUT = [
    (icc_average, ([1.0, 2.0],), r"panel is \(2,\)"),
    (icc_average, ([[1.0], [2.0]],), r"panel is \(2, 1\); .* at least twice"),
    (icc_average, (np.empty((3, 0)),), r"panel is \(3, 0\)"),
    (icc_average, ([[1.0, 2.0]],), r"panel is \(1, 2\)"),
    (icc_average, (np.empty((0, 3)),), r"panel is \(0, 3\)"),
    (icc_average, ([[1.0, 2.0], [3.0, NAN]],), r"panel is nan in row 1, column 1"),
    (icc_average, ([[1.0, 2.0], [math.inf, 1.0]],), r"panel is inf in row 1, column 0"),
    (icc_average, (np.full((4, 3), 0.1),), SAME_MEAN),
    (icc_average, ([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]],), SAME_MEAN),
    (icc_average, (np.zeros((4, 3)),), "without variance between prompts"),
    (single_run_reliability, (1.1, 3), "average is 1.1"),
    (single_run_reliability, (NAN, 3), "average is nan"),
    (single_run_reliability, (0.9, 0), "n_runs is 0"),
    (cohen_kappa, ([1.0], [1.0, 0.0]), r"first \(1,\), second \(2,\)"),
    (cohen_kappa, ([], []), "outcomes is 0"),
    (cohen_kappa, ([1.0, 0.0], [1.0, NAN]), "second is nan in row 1"),
    (kappa_of_scores, ([1.0, NAN], [1.0, 2.0]), "score is nan in row 1; .* leave out"),
    (kappa_of_scores, ([1.0], [1.0, 2.0]), r"first \(1,\), second \(2,\)"),
    (mean_pairwise_kappa, ([[0.0, 1.0]],), r"outcome is \(1, 2\)"),
    (mean_pairwise_kappa, ([0.0, 1.0],), r"outcome is \(2,\)"),
    (mean_pairwise_kappa, ([[0.0, 1.0], [1.0, 1.0], [1.0, 1.0]],), "judges 1 and 2 .* one class"),
    (mean_pairwise_kappa, ([[0.0, 1.0], [1.0, NAN]],), "second is nan in row 1"),
    (mean_pairwise_kappa, (np.empty((2, 0)),), "outcomes is 0"),
    *((reliability_factor, (kappa,), r"a kappa in \(0, 1\]") for kappa in (0.0, -0.2, 1.1, NAN)),
    (pooled_variance, (1.0, -0.6, 3), r"correlation is -0.6"),
    (pooled_variance, (-1.0, 0.5, 3), "variance is -1"),
    (pooled_variance, (1.0, 0.5, 0), "n_judges is 0"),
]


@pytest.mark.parametrize(("function", "arguments", "message"), BAD_INPUT)
def test_bad_input_names_the_value(function, arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        function(*arguments)

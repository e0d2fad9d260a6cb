import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from sklearn.metrics import cohen_kappa_score

from judgeline.reliability.agreement import (
    icc_average,
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


def noisy_panel(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 12)), int(rng.integers(2, 7))
    prompt, run = rng.normal(scale=2, size=(n, 1)), rng.normal(size=(1, k))
    return 5 + prompt + run + rng.normal(scale=rng.uniform(0.1, 3), size=(n, k))


def residual_squares(columns: list[np.ndarray], scores: np.ndarray) -> float:
    design = np.column_stack(columns)
    fitted = design @ np.linalg.lstsq(design, scores, rcond=None)[0]
    return float(((scores - fitted) ** 2).sum())


def least_squares_anova(panel: np.ndarray) -> tuple[float, float, float]:
    """Mean squares from nested regressions on indicators: a slow twin."""
    n, k = panel.shape
    scores = panel.ravel()
    prompt, run = np.divmod(np.arange(scores.size), k)
    prompts = [(prompt == i).astype(float) for i in range(n)]
    runs = [(run == j).astype(float) for j in range(k)]
    both = residual_squares(prompts + runs, scores)
    return (
        (residual_squares(runs, scores) - both) / (n - 1),
        (residual_squares(prompts, scores) - both) / (k - 1),
        both / ((n - 1) * (k - 1)),
    )


# ------------------------------------------------------------------ intraclass correlation


def test_published_example() -> None:
    # Their table 3 prints 11.24, 32.49 and 1.02; their table 4 the correlations .71 and .91.
    assert least_squares_anova(SHROUT_FLEISS) == pytest.approx((11.24, 32.49, 1.02), abs=0.006)
    assert icc_single(SHROUT_FLEISS) == pytest.approx(0.71, abs=0.005)
    assert icc_average(SHROUT_FLEISS) == pytest.approx(0.91, abs=0.005)


@given(st.integers(0, 10_000))
def test_reliabilities_are_those_of_nested_regressions(seed: int) -> None:
    panel = noisy_panel(seed)
    prompts, _, error = least_squares_anova(panel)
    k = panel.shape[1]
    assert icc_average(panel) == pytest.approx((prompts - error) / prompts, rel=1e-7, abs=1e-9)
    single = (prompts - error) / (prompts + (k - 1) * error)
    assert icc_single(panel) == pytest.approx(single, rel=1e-7, abs=1e-9)


@given(st.integers(0, 10_000))
def test_average_reliability_is_cronbachs_alpha(seed: int) -> None:
    panel = noisy_panel(seed)
    k = panel.shape[1]
    total = panel.sum(axis=1).var(ddof=1)
    alpha = k / (k - 1) * (1 - panel.var(axis=0, ddof=1).sum() / total)
    assert icc_average(panel) == pytest.approx(alpha, rel=1e-8, abs=1e-9)


@given(st.integers(0, 10_000), st.floats(0.01, 100), st.floats(-50, 50))
def test_unit_origin_and_offsets_of_runs_do_not_count(
    seed: int, unit: float, origin: float
) -> None:
    panel = noisy_panel(seed)
    moved = unit * panel + origin + np.arange(panel.shape[1])
    assert icc_single(moved) == pytest.approx(icc_single(panel), rel=1e-6, abs=1e-8)


def test_single_run_reliability_undoes_spearman_brown() -> None:
    for single in (0.1, 0.5, 0.9):
        average = 3 * single / (1 + 2 * single)
        assert single_run_reliability(average, 3) == pytest.approx(single, rel=1e-12)
    assert single_run_reliability(0.8, 1) == 0.8


def test_identical_runs_are_perfectly_reliable() -> None:
    panel = np.repeat([[1.0], [4.0], [2.0]], 3, axis=1)
    assert icc_average(panel) == icc_single(panel) == 1


def test_reliability_is_the_share_of_true_variance() -> None:
    rng = np.random.default_rng(8)
    n, k, noise = 40_000, 3, 0.5
    panel = rng.normal(size=(n, 1)) + noise * rng.normal(size=(n, k))
    expected = 1 / (1 + noise**2)
    # Large-sample standard error of an intraclass correlation (Fisher 1925, section 38)
    error = (1 - expected) * (1 + (k - 1) * expected) * math.sqrt(2 / (k * (k - 1) * n))
    assert icc_single(panel) == pytest.approx(expected, abs=4 * error)


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        ([1.0, 2.0], r"shape \(prompts, runs\), got \(2,\)"),
        ([[1.0], [2.0]], "panel has 1 run: judge each prompt at least twice"),
        (np.empty((3, 0)), "panel has 0 run"),
        ([[1.0, 2.0]], "panel has 1 prompt"),
        (np.empty((0, 3)), "panel has 0 prompt"),
        ([[1.0, 2.0], [3.0, math.nan]], r"misses 1 of 4 cells \(first at prompt 1, run 1\)"),
        ([[1.0, 2.0], [math.inf, 1.0]], "misses 1 of 4 cells"),
        (np.full((4, 3), 0.1), "one and the same mean over 3 runs"),
        ([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]], "one and the same mean over 3 runs"),
        (np.zeros((4, 3)), "without variance between prompts no reliability is defined"),
    ],
)
def test_unusable_panels_are_refused(panel: ArrayLike, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        icc_average(panel)


@pytest.mark.parametrize(("average", "n_runs"), [(1.1, 3), (math.nan, 3), (0.9, 0)])
def test_impossible_averages_are_refused(average: float, n_runs: int) -> None:
    with pytest.raises(ValueError, match=r"at most 1, got|at least 1, got 0"):
        single_run_reliability(average, n_runs)


# ------------------------------------------------------------------ agreement of judges


def test_kappa_is_averaged_over_all_pairs() -> None:
    outcome = np.random.default_rng(9).choice([0.0, 0.5, 1.0], size=(4, 60), p=[0.5, 0.1, 0.4])
    outcome[1:, :30] = outcome[0, :30]
    labels = (2 * outcome).astype(int)
    pairs = [cohen_kappa_score(labels[i], labels[j]) for i in range(4) for j in range(i)]
    assert mean_pairwise_kappa(outcome) == pytest.approx(np.mean(pairs), rel=1e-12)


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ([[0.0, 1.0]], r"judges >= 2, battles\), got \(1, 2\)"),
        ([0.0, 1.0], r"got \(2,\)"),
        ([[0.0, 1.0], [1.0, 1.0], [1.0, 1.0]], "judges 1 and 2 put all 2 battles in one class"),
        ([[0.0, 1.0], [1.0, math.nan]], "1 NaN in 2"),
        (np.empty((2, 0)), "got 0 and 0"),
    ],
)
def test_incomparable_judges_are_refused(outcome: ArrayLike, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mean_pairwise_kappa(outcome)


def test_factor_takes_one_square_root() -> None:
    # The tables have 0.85 for a kappa of 0.7225. Two roots, as one sentence has it, give 0.92.
    assert reliability_factor(0.7225) == pytest.approx(0.85, rel=1e-12)
    assert reliability_factor(0.7225) != pytest.approx(0.7225**0.25, rel=0.05)
    assert reliability_factor(0.25) == 0.5  # and not 0.7071
    assert reliability_factor(1.0) == 1


@pytest.mark.parametrize("kappa", [0.04, 0.36, 0.81])
def test_factor_is_what_pooling_ever_more_judges_tends_to(kappa: float) -> None:
    one, many = 12.0**2, 10**9
    floor = math.sqrt(pooled_variance(one, kappa, many))
    assert 12.0 * reliability_factor(kappa) == pytest.approx(floor, rel=1e-6)


@pytest.mark.parametrize("kappa", [0.0, -0.2, 1.1, math.nan])
def test_judges_who_agree_by_chance_cannot_be_pooled(kappa: float) -> None:
    with pytest.raises(ValueError, match=r"kappa must lie in \(0, 1\]"):
        reliability_factor(kappa)


@given(st.integers(1, 12), st.floats(0, 1))
def test_pooled_variance_is_that_of_a_mean_of_correlated_ratings(
    n_judges: int, correlation: float
) -> None:
    covariance = 9.0 * (correlation + (1 - correlation) * np.eye(n_judges))
    weights = np.full(n_judges, 1 / n_judges)
    expected = weights @ covariance @ weights
    assert pooled_variance(9.0, correlation, n_judges) == pytest.approx(expected, rel=1e-12)


def test_judges_can_only_oppose_each_other_so_far() -> None:
    assert pooled_variance(1.0, -0.5, 3) == pytest.approx(0, abs=1e-15)
    with pytest.raises(ValueError, match=r"of 3 judges must lie in \[-0.5, 1\], got -0.6"):
        pooled_variance(1.0, -0.6, 3)
    with pytest.raises(ValueError, match="variance must be at least 0, got -1"):
        pooled_variance(-1.0, 0.5, 3)
    with pytest.raises(ValueError, match="n_judges must be at least 1, got 0"):
        pooled_variance(1.0, 0.5, 0)


def published(panel: np.ndarray) -> dict[str, float]:
    """ICC by type, as pingouin computes them from a table with a row per score."""
    pd = pytest.importorskip("pandas")
    pingouin = pytest.importorskip("pingouin")
    prompts, runs = np.indices(panel.shape)
    long = pd.DataFrame(
        {"prompt": prompts.ravel(), "run": runs.ravel(), "score": panel.ravel().astype(float)}
    )
    table = pingouin.intraclass_corr(long, targets="prompt", raters="run", ratings="score")
    return dict(zip(table["Type"], table["ICC"], strict=True))


def test_both_give_what_shrout_and_fleiss_published() -> None:
    theirs = published(SHROUT_FLEISS)
    assert icc_average(SHROUT_FLEISS) == pytest.approx(theirs["ICC(C,k)"], abs=1e-10)
    assert icc_single(SHROUT_FLEISS) == pytest.approx(theirs["ICC(C,1)"], abs=1e-10)


@settings(max_examples=15, deadline=None)
@given(
    n_prompts=st.integers(5, 40),  # pingouin refuses fewer
    n_runs=st.integers(2, 6),
    noise=st.floats(0.05, 3),
    seed=st.integers(0, 10_000),
)
def test_panels_of_any_shape_agree(n_prompts: int, n_runs: int, noise: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    panel = rng.normal(size=(n_prompts, 1)) + noise * rng.normal(size=(n_prompts, n_runs))
    theirs = published(panel + rng.normal(size=n_runs))  # offsets of runs do not count
    assert icc_average(panel) == pytest.approx(theirs["ICC(C,k)"], abs=1e-9)
    assert icc_single(panel) == pytest.approx(theirs["ICC(C,1)"], abs=1e-9)
    single = single_run_reliability(theirs["ICC(C,k)"], n_runs)
    assert single == pytest.approx(theirs["ICC(C,1)"], abs=1e-8)


def test_the_other_forms_of_icc_would_be_told_apart() -> None:
    theirs = published(SHROUT_FLEISS)
    assert abs(icc_average(SHROUT_FLEISS) - theirs["ICC(A,k)"]) > 0.1
    assert abs(icc_average(SHROUT_FLEISS) - theirs["ICC(1,k)"]) > 0.1

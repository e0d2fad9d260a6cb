"""Intraclass correlations against an independent statistics package, on the same panels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgeline.reliability.agreement import icc_average, single_run_reliability


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


# Shrout and Fleiss (1979), table 2: six targets, four judges.
SHROUT_FLEISS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
)


def test_both_give_what_shrout_and_fleiss_published() -> None:
    theirs = published(SHROUT_FLEISS)
    assert icc_average(SHROUT_FLEISS) == pytest.approx(theirs["ICC(C,k)"], abs=1e-10)
    single = single_run_reliability(icc_average(SHROUT_FLEISS), SHROUT_FLEISS.shape[1])
    assert single == pytest.approx(theirs["ICC(C,1)"], abs=1e-10)
    assert round(single, 2) == 0.71
    assert round(icc_average(SHROUT_FLEISS), 2) == 0.91


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
    ours = single_run_reliability(icc_average(panel), n_runs)
    assert ours == pytest.approx(theirs["ICC(C,1)"], abs=1e-9)
    single = single_run_reliability(theirs["ICC(C,k)"], n_runs)
    assert single == pytest.approx(theirs["ICC(C,1)"], abs=1e-8)


def test_the_other_forms_of_icc_would_be_told_apart() -> None:
    theirs = published(SHROUT_FLEISS)
    assert abs(icc_average(SHROUT_FLEISS) - theirs["ICC(A,k)"]) > 0.1
    assert abs(icc_average(SHROUT_FLEISS) - theirs["ICC(1,k)"]) > 0.1

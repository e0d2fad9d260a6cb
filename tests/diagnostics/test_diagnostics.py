import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from arenas import code, play, random_pairs
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.metrics import cohen_kappa_score
from twins import Battle, beta, voted_models

from judgeline.diagnostics.judge import (
    diagnose_judge,
    equal_mass_bins,
    expected_calibration_error,
    quantile_bins,
    reliability_curve,
)
from judgeline.elo import RatingSettings, fit_beta, fit_beta_folds, rate


def test_calibration_error_by_hand() -> None:
    """Ten battles of ten bins: the mean distance of each prediction from its outcome."""
    score = np.arange(1, 11) / 4
    outcome = np.array([1, 1, 0, 1, 1, 1, 0, 1, 1, 1.0])
    bins = reliability_curve(score, outcome, 0.8)
    by_hand = np.mean(np.abs(expit(0.8 * score) - outcome))
    assert expected_calibration_error(bins) == pytest.approx(by_hand, rel=1e-12)
    assert bins.n.tolist() == [1] * 10


def test_reliability_turns_battles_towards_the_judges_side() -> None:
    bins = reliability_curve([2.0, -2.0], [1.0, 0.0], 1.0)
    assert bins.mean_y.tolist() == [1.0]  # equal confidence shares a bin
    assert (
        reliability_curve([2.0, -2.0, 1.0], [1.0, 0.0, 0.5], 1.0).n.sum() == 2
    )  # ties do not count


@given(seed=st.integers(0, 300), n_bins=st.integers(1, 12), counted=st.booleans())
def test_quantile_bins_are_those_of_pandas(seed: int, n_bins: int, counted: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 80))
    x, y = rng.integers(0, 12, n) / 4 if seed % 2 else rng.normal(size=n), rng.random(n)
    each = rng.integers(1, 4, n) if counted else np.ones(n, int)
    table = pd.DataFrame({"x": x, "y": y}).loc[np.repeat(np.arange(n), each)]
    rows = table.groupby(pd.qcut(table["x"], n_bins, duplicates="drop"), observed=True)
    found = quantile_bins(x, y, n_bins=n_bins, count=each if counted else None)
    if np.ptp(x):  # pandas has no bin for a single value
        assert found.n.tolist() == rows.size().tolist()
        assert found.mean_y == pytest.approx(rows["y"].mean().to_numpy())
        assert found.mean_x == pytest.approx(rows["x"].mean().to_numpy())
    assert found.n.sum() == each.sum()


@pytest.mark.parametrize("label", [None, "given"])
def test_label_says_the_side_and_score_the_confidence(label: str | None) -> None:
    """Ties of either are left out; a label against its score counts as it was said."""
    battles = [
        *arena(),
        Battle("model-000", "model-001", 1.0, 0.0, 3.0),
        Battle("model-000", "model-001", 1.0, 1.0, 0.0),
    ]
    told = None if label is None else [1 - b.judge for b in battles]
    found = diagnose(battles, label=told)
    judge = [b.judge for b in battles] if told is None else told
    sided = [
        (abs(b.score), (j > 0.5) == (b.human == 1))
        for b, j in zip(battles, judge, strict=True)
        if b.human in (0, 1) and j != 0.5
    ]
    size, agrees = (np.array(column, float) for column in zip(*sided, strict=True))
    assert found["decisive_agreement", ""] == (pytest.approx(agrees.mean()), len(sided))
    table = pd.DataFrame({"p": expit(found["beta_pooled", ""][0] * size), "y": agrees})
    means = table.groupby(pd.qcut(table["p"], 10, duplicates="drop"), observed=True)
    error = np.average((means["p"].mean() - means["y"].mean()).abs(), weights=means.size())
    assert found["expected_calibration_error", ""] == (pytest.approx(error), len(sided))


@given(n=st.integers(1, 57), n_bins=st.integers(1, 12))
def test_bins_hold_equally_many_in_order(n: int, n_bins: int) -> None:
    x = np.random.default_rng(n).permutation(n).astype(float)
    bins = equal_mass_bins(x, 2 * x, n_bins=n_bins)
    assert bins.n.sum() == n
    assert np.ptp(bins.n) <= 1
    assert (bins.low[1:] > bins.high[:-1]).all()
    assert bins.mean_y == pytest.approx(2 * bins.mean_x)


# ------------------------------------------------------------------ of a whole judge


def arena(seed: int = 5, n: int = 900) -> list[Battle]:
    rng = np.random.default_rng(seed)
    pairs = random_pairs(rng, 10, n)
    return play(rng, pairs, rng.normal(0, 0.8, 10), vote_share=0.9)


def diagnose(battles: list[Battle], **columns) -> dict[tuple[str, str], tuple[float, int]]:
    coded = code(battles)
    heldout = rate(coded, RatingSettings(n_resamples=0))
    table = diagnose_judge(coded, fit_beta_folds(coded), heldout, **columns)
    keys = zip(table.diagnostic.tolist(), table.level.tolist(), strict=True)
    return dict(zip(keys, zip(table.value.tolist(), table.n.tolist(), strict=True), strict=True))


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], tuple[float, int]]:
    """The figures of `arena()` without any optional column."""
    return diagnose(arena())


def test_named_figures_agree_with_their_definitions(found) -> None:
    battles = arena()
    voted = [b for b in battles if b.human is not None]
    decisive = [b for b in voted if b.human != 0.5]
    decided = [b for b in battles if b.judge != 0.5]
    kappa = cohen_kappa_score([str(b.judge) for b in voted], [str(b.human) for b in voted])
    turned = [*voted, *(b.swapped() for b in voted)]
    both = cohen_kappa_score([str(b.judge) for b in turned], [str(b.human) for b in turned])
    agreement = [0.5 if b.score == 0 else float((b.score > 0) == (b.human == 1)) for b in decisive]
    sided = [b for b in decisive if b.judge != 0.5]
    agree = [(b.judge > 0.5) == (b.human == 1) for b in sided]
    correlation = np.corrcoef([abs(b.score) for b in sided], agree)[0, 1]
    pooled = fit_beta([b.score for b in voted], [b.human for b in voted])
    folds = fit_beta_folds(code(battles))
    expected = {
        "cohen_kappa": (kappa, len(voted)),
        "verdict_score_disagreement": (
            np.mean([(b.judge - 0.5) * b.score < 0 for b in decided]),
            len(decided),
        ),
        "kappa_both_ways": (both, len(voted)),
        "mean_absolute_score": (np.mean([abs(b.score) for b in battles]), len(battles)),
        "vote_agreement": (np.mean(agreement), len(decisive)),
        "decisive_agreement": (np.mean(agree), len(sided)),
        "score_agreement_correlation": (correlation, len(sided)),
        "beta_pooled": (pooled.beta, pooled.n_battles),
        "beta_fold_sd": (np.std(folds.beta, ddof=1), 10),
    }
    for name, (value, n) in expected.items():
        assert found[name, ""] == (pytest.approx(value), n), name
    assert found["beta_pooled", ""][0] == pytest.approx(beta(battles)[0], rel=1e-9)
    optional = ("position", "verbosity", "beta_by_language")
    assert not [name for name, _ in found if name.startswith(optional)]
    # the slope with ties solves its equation
    slope, n = found["beta_with_ties", ""]
    score, outcome = np.array([[b.score, b.human] for b in voted]).T
    assert n == len(voted)
    assert np.sum(score * (outcome - expit(slope * score))) == pytest.approx(0, abs=1e-6)


def test_residuals_are_summed_up_by_quartile_of_human_ratings(found) -> None:
    heldout = rate(code(arena()), RatingSettings(n_resamples=0))
    rows = heldout.method == "soft"
    residual = heldout.residual[rows][np.argsort(heldout.human_rating[rows])]
    assert len(residual) == len(voted_models(arena()))
    values = [found["residual_soft_by_human_rating", f"Q{k}"] for k in (1, 2, 3, 4)]
    assert sum(n for _, n in values) == len(residual)
    assert sum(value * n for value, n in values) == pytest.approx(residual.sum())
    assert values[0][0] == pytest.approx(residual[: values[0][1]].mean())
    correlation = np.corrcoef(heldout.residual[rows], heldout.human_rating[rows])[0, 1]
    assert found["residual_soft_human_correlation", ""][0] == pytest.approx(correlation)


def test_excess_of_the_judges_family_is_that_of_statsmodels(found) -> None:
    """At equal human rating: a method that draws all models to the middle favours no family."""
    battles = arena()
    names = sorted(voted_models(battles))[:3]
    same = diagnose(battles, same_family=[*names, "no-model"])
    heldout = rate(code(battles), RatingSettings(n_resamples=0))
    rows = (heldout.method == "soft") & np.isfinite(heldout.residual)
    own = np.isin(heldout.model[rows], names).astype(float)
    design = np.column_stack([own, np.ones(own.size), heldout.human_rating[rows]])
    fit = sm.OLS(heldout.residual[rows], design).fit()
    n = sum(bool({b.model_a, b.model_b} & {*names}) for b in battles)
    assert same["same_family_excess", ""] == (pytest.approx(fit.params[0]), n)
    assert same["same_family_excess_std_error", ""] == (pytest.approx(fit.bse[0]), n)
    everybody = diagnose(battles, same_family=voted_models(battles))
    for none in (found, everybody):
        assert not [name for name, _ in none if name.startswith("same_family")]


def test_a_judge_that_favours_its_family_is_seen() -> None:
    """One and a half rubric points for three of ten models, in every battle of theirs."""
    battles = arena(seed=8, n=3000)
    names = sorted(voted_models(battles))[:3]
    biased = [
        Battle(
            b.model_a, b.model_b, b.human, b.judge,
            b.score + 1.5 * ((b.model_a in names) - (b.model_b in names)),
        )
        for b in battles
    ]  # fmt: skip
    found, fair = (diagnose(one, same_family=names) for one in (biased, battles))
    excess, error = (found[f"same_family_excess{end}", ""][0] for end in ("", "_std_error"))
    assert excess > 3 * error
    none, error = (fair[f"same_family_excess{end}", ""][0] for end in ("", "_std_error"))
    assert abs(none) < 3 * error


def test_position_by_hand() -> None:
    battles = arena(n=100)
    missing = [math.nan] * 95
    found = diagnose(
        battles,
        difference_ab=[2.0, 1.0, -1.0, 0.0, 3.0, *missing],
        difference_ba=[1.0, -1.0, -2.0, 0.0, 0.0, *missing],
    )
    # AB shows A first: 2, 1, -1, 0, 3 towards it; BA shows B first: -1, 1, 2, 0, 0
    assert found["position_first_score", ""] == (pytest.approx(7 / 10), 5)
    assert found["position_first_preferred", ""] == (pytest.approx(5 / 7), 7)
    assert found["position_flip_rate", ""] == (pytest.approx(1 / 3), 3)


def test_verbosity_counts_near_ties_of_unequal_length() -> None:
    battles = [
        Battle(b.model_a, b.model_b, b.human, b.judge, score)
        for b, score in zip(
            arena(n=100), [0.25, -0.25, 0.25, 0.0, 0.25, 0.25, *[2.0] * 94], strict=True
        )
    ]
    length_a = [9, 9, 5, 9, 7, math.nan, *[9] * 94]
    length_b = [5, 5, 9, 5, 7, 5.0, *[5] * 94]
    found = diagnose(battles, length_a=length_a, length_b=length_b)
    assert found["verbosity_longer_preferred", ""] == (pytest.approx(1 / 3), 3)


def test_languages_with_enough_votes_have_their_own_slope() -> None:
    battles = arena()
    language = np.array(["en", "fr"])[np.arange(len(battles)) % 2].astype(object)
    language[:10] = "ja"
    language[10:20] = None
    found = diagnose(battles, language=language)
    french = [b for b, name in zip(battles, language, strict=True) if name == "fr"]
    assert found["beta_by_language", "fr"][0] == pytest.approx(beta(french)[0], rel=1e-9)
    assert ("beta_by_language", "ja") not in found


def test_order_of_battles_and_names_of_sides_move_no_figure(found) -> None:
    """Grid scores tie often: which of them fall into a bin must not be a matter of rows."""
    battles = arena()
    shuffled = [battles[k] for k in np.random.default_rng(1).permutation(len(battles))]
    random_ones = ("surrogacy", "beta_sd_at_budget")  # split by row, at random
    for other, left_out in (
        (shuffled, random_ones),
        ([battle.swapped() for battle in battles], ()),
    ):
        again = diagnose(other)
        for key, (value, n) in found.items():
            if not key[0].startswith(left_out):
                assert again[key] == (pytest.approx(value, abs=1e-9), n), key


def test_the_slope_varies_less_on_a_larger_budget() -> None:
    found = diagnose(arena(seed=6, n=4000))
    spread = {
        int(level): v for (what, level), (v, _) in found.items() if what == "beta_sd_at_budget"
    }
    assert sorted(spread) == [5, 10, 20, 50, 100]
    assert spread[100] < spread[5] / 2


def test_a_label_a_little_off_the_middle_is_a_side() -> None:
    battles = arena()
    near, clear = (
        diagnose(battles, label=[0.5 + reach * (2 * b.judge - 1) for b in battles])
        for reach in (0.1, 0.5)
    )
    for name in ("decisive_agreement", "expected_calibration_error"):
        assert near[name, ""] == clear[name, ""]

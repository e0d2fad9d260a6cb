"""Gaps to one reference against exact Betas, bootstraps and thirty real models."""

import math
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import sized
from scipy.special import betainc, polygamma
from scipy.stats import beta, kendalltau, rankdata, spearmanr

from judgeline.reference import (
    abstain,
    anchored_elo,
    anchored_elo_of_preferences,
    bootstrap_gap_std_error,
    compare_references,
    diagnose_reference,
    finite_population_factor,
    narrow_intervals,
    soft_counts,
    subset_std_error,
)

POINTS = 400 / math.log(10)
COUNTS = st.integers(0, 900)
NAN = math.nan


def elo_points(share):
    return 400 * np.log10(share / (1 - share))


# ------------------------------------------------------------------ counts


def test_worked_example() -> None:
    # 30 wins, 10 ties and 60 losses: a = 35.5, b = 65.5, p = 71/202
    elo = anchored_elo(30, 10, 60)
    assert elo.win_share == pytest.approx(71 / 202, rel=1e-14)
    assert elo.gap == pytest.approx(400 * math.log10(71 / 131), rel=1e-12)
    variance = 35.5 * 65.5 / (101**2 * 102)
    slope = POINTS / (71 / 202 * 131 / 202)
    assert elo.std_error == pytest.approx(slope * math.sqrt(variance), rel=1e-12)
    assert elo.n_prompts == 100


@given(wins=COUNTS, ties=COUNTS, losses=COUNTS, miscoverage=st.sampled_from([0.01, 0.05, 0.32]))
def test_interval_is_that_of_beta_quantiles(wins, ties, losses, miscoverage) -> None:
    if wins + ties + losses == 0:
        return
    elo = anchored_elo(wins, ties, losses, miscoverage=miscoverage)
    a, b = wins + ties / 2 + 0.5, losses + ties / 2 + 0.5
    lower, upper = beta.ppf([miscoverage / 2, 1 - miscoverage / 2], a, b)
    assert [elo.share_lower, elo.share_upper] == pytest.approx([lower, upper], rel=1e-10)
    assert betainc(a, b, elo.share_lower) == pytest.approx(miscoverage / 2, rel=1e-9)
    if lower > 1e-9 and upper < 1 - 1e-6:  # nearer to the ends the share itself rounds
        assert elo_points(elo.share_lower) == pytest.approx(elo.lower, rel=1e-7, abs=1e-7)
        assert elo_points(elo.share_upper) == pytest.approx(elo.upper, rel=1e-7, abs=1e-7)
    assert elo.lower < elo.gap < elo.upper


@given(wins=COUNTS, ties=COUNTS, losses=st.integers(1, 900))
def test_swapping_model_and_reference_mirrors_everything(wins, ties, losses) -> None:
    ours, theirs = anchored_elo(wins, ties, losses), anchored_elo(losses, ties, wins)
    assert ours.gap == pytest.approx(-theirs.gap, abs=1e-9)
    assert (ours.lower, ours.upper) == (-theirs.upper, -theirs.lower)
    assert ours.std_error == pytest.approx(theirs.std_error, rel=1e-14)
    halves = anchored_elo(wins + ties / 2, 0, losses + ties / 2)
    assert [*map(float, halves)] == [*map(float, ours)]  # a tie is half a win and half a loss


@pytest.mark.parametrize(("wins", "n"), [(300, 805), (40, 805), (700, 805), (60, 100)])
def test_std_error_is_that_of_the_posterior(wins: int, n: int) -> None:
    # The log-odds of a Beta(a, b) have variance trigamma(a) + trigamma(b) exactly, and
    # 1/x < trigamma(x) - 1/(2 x^2) < 1/x + 1/(6 x^3): that bounds the delta method's error.
    a, b = wins + 0.5, n - wins + 0.5
    exact = POINTS**2 * float(polygamma(1, a) + polygamma(1, b))
    delta = float(anchored_elo(wins, 0, n - wins).std_error) ** 2
    remainder = 1 / (2 * a**2) + 1 / (2 * b**2) + 1 / (6 * a**3) + 1 / (6 * b**3)
    allowed = remainder / (1 / a + 1 / b) + 1 / (a + b + 1)
    assert abs(delta / exact - 1) < allowed < 0.03


def test_one_prompt_all_ties_and_no_wins_are_estimates_too() -> None:
    one = anchored_elo(1, 0, 0)
    assert one.gap == pytest.approx(400 * math.log10(3), rel=1e-14)  # a = 1.5, b = 0.5
    assert one.upper - one.lower > 1000
    tied = anchored_elo(0, 805, 0)
    assert tied.gap == 0
    assert tied.lower == -tied.upper
    never = anchored_elo(0, 0, 805)
    assert never.gap == pytest.approx(400 * math.log10(0.5 / 805.5), rel=1e-12)
    assert np.isfinite([never.lower, never.upper]).all()


def test_another_prior_is_that_many_more_wins_and_losses() -> None:
    laplace = anchored_elo(30, 10, 60, prior=1)
    assert laplace.win_share == pytest.approx(36 / 102, rel=1e-14)
    assert laplace.gap == pytest.approx(anchored_elo(30.5, 10, 60.5).gap, rel=1e-12)
    for prior in (0, -1, NAN, math.inf):
        with pytest.raises(ValueError, match=r"prior is .*; expected a finite number above 0"):
            anchored_elo(1, 0, 1, prior=prior)


# ------------------------------------------------------------------ soft preferences


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 0.2, 0.9]), min_size=2, max_size=40))
def test_both_estimates_share_their_gap(preference: list[float]) -> None:
    counts = soft_counts([*preference, NAN])  # a prompt without a verdict counts nowhere
    expected = (sum(preference), 0, len(preference) - sum(preference))
    assert counts == pytest.approx(expected, abs=1e-12)
    if len(set(preference)) > 1:
        ours = anchored_elo_of_preferences(preference)
        assert ours.gap == pytest.approx(anchored_elo(*counts).gap, abs=1e-9)
        assert ours.lower < ours.gap < ours.upper


def beta_with(mean, std):
    concentration = mean * (1 - mean) / std**2 - 1
    return mean * concentration, (1 - mean) * concentration


@pytest.mark.parametrize("preference", [[0.25, 0.75], [0.1, 0.4, 0.9, 0.2, 0.5]])
def test_std_error_of_preferences_is_the_delta_method_on_their_mean(preference) -> None:
    """Half a prompt won and half a prompt lost count in the spread as in the mean."""
    elo = anchored_elo_of_preferences(preference)
    n = len(preference)
    prompts, weight = np.array([*preference, 0.0, 1.0]), np.array([1] * n + [0.5, 0.5])
    share = np.average(prompts, weights=weight)
    error_of_share = math.sqrt((weight * (prompts - share) ** 2).sum()) / (n + 1)
    expected = POINTS * error_of_share / (share * (1 - share))
    assert elo.std_error == pytest.approx(expected, rel=1e-12)
    bounds = beta.ppf([0.025, 0.975], *beta_with(share, error_of_share))
    assert [elo.share_lower, elo.share_upper] == pytest.approx(bounds, rel=1e-10)


def test_both_std_errors_agree_on_wins_and_losses() -> None:
    outcome = np.repeat([1.0, 0.0], [240, 565])
    ours = anchored_elo_of_preferences(outcome).std_error
    # The two half prompts make it a count of wins and losses: p (1 - p) / (n + 1), the Beta n + 2.
    jeffreys = anchored_elo(240, 0, 565).std_error
    assert (ours / jeffreys) ** 2 == pytest.approx(807 / 806, rel=1e-12)


def spread(preference, n_resamples: int = 4000, seed: int = 3) -> float:
    rng = np.random.default_rng(seed)
    return bootstrap_gap_std_error(preference, n_resamples=n_resamples, rng=rng)


def test_wins_and_losses_spread_as_the_beta_posterior_does() -> None:
    """Oracle: log-odds of a Beta(a, b) have variance trigamma(a) + trigamma(b)."""
    exact = POINTS * math.sqrt(polygamma(1, 25.5) + polygamma(1, 15.5))
    assert spread([1.0] * 25 + [0.0] * 15) == pytest.approx(exact, rel=4 / math.sqrt(2 * 4000))
    values = np.random.default_rng(0).uniform(size=30)
    assert spread(1 - values) == pytest.approx(spread(values), rel=4 / math.sqrt(4000))
    assert spread(np.append(values, [NAN, NAN])) == spread(values)
    assert [spread([value] * 7) for value in (0.0, 0.3, 0.5, 1.0)] == [0.0] * 4


# ------------------------------------------------------------------ finite populations


def test_factor_is_the_spread_of_means_drawn_without_replacement() -> None:
    population = np.random.default_rng(6).random(7)
    means = [np.mean(drawn) for drawn in combinations(population, 3)]  # every sample there is
    with_replacement = population.std() / math.sqrt(3)
    factor = float(finite_population_factor(3, 7))
    assert np.std(means) == pytest.approx(with_replacement * factor, rel=1e-12)
    assert finite_population_factor([1, 805], 805).tolist() == [1, 0]


def test_narrowing_scales_errors_and_bounds_about_the_gap() -> None:
    wide = anchored_elo([30, 3], [10, 0], [60, 17])
    half = narrow_intervals(wide, [0.5, 1.0])
    assert half.gap.tolist() == wide.gap.tolist()
    assert half.std_error == pytest.approx(wide.std_error * [0.5, 1], rel=1e-14)
    assert half.upper - half.lower == pytest.approx((wide.upper - wide.lower) * [0.5, 1])
    assert half.share_lower[1] == pytest.approx(wide.share_lower[1], rel=1e-12)
    assert half.share_upper == pytest.approx(1 / (1 + 10 ** (-half.upper / 400)), rel=1e-12)
    census = narrow_intervals(wide, 0.0)
    assert census.lower.tolist() == wide.gap.tolist() == census.upper.tolist()


# ------------------------------------------------------------------ reach of a reference


def test_reach_counts_win_shares_within_the_bounds() -> None:
    # with half a prompt won and lost: 4 / 5 and 1 / 5, the bounds themselves, and one beyond each
    wins = ([1.0] * 3 + [0.5], [0.0] * 3 + [0.5], [1.0] * 4, [0.0] * 4)
    reach = diagnose_reference(wins).models
    assert reach.within.tolist() == [True, True, False, False]
    assert (reach.share, reach.is_adequate) == (0.5, False)
    # Every model wins half of its prompts; every prompt is won by all models or by none.
    both = diagnose_reference(np.tile([1.0, 0.0], (30, 20)))
    assert (both.models.share, both.models.is_adequate) == (1, True)
    assert (both.prompts.share, both.prompts.is_adequate) == (0, False)
    assert both.prompts.within.shape == (40,)


@pytest.mark.parametrize(("n_outside", "adequate"), [(0, True), (1, True), (2, False)])
def test_reference_is_flagged_below_95_percent(n_outside: int, adequate: bool) -> None:
    wins = np.where(np.arange(20) < n_outside, 100, 500)  # of a thousand prompts
    preference = (np.arange(1000) < wins[:, None]).astype(float)
    assert diagnose_reference(preference).models.is_adequate is adequate


def test_references_on_one_scale_move_the_origin_only() -> None:
    strength = np.array([-1.0, 0.3, 0.8, 2.0])
    references = np.array([-0.5, 0.0, 1.5])
    n = 10_000_000  # so many prompts that the prior is out of sight
    share = 1 / (1 + np.exp(-(strength - references[:, None])))
    compared = compare_references(anchored_elo(n * share, 0 * share, n * (1 - share)).gap)
    assert compared.kendall == pytest.approx(np.ones((3, 3)))
    assert compared.mean_abs_shift == pytest.approx([0, 0, 0], abs=1e-3)


def test_one_models_shift_is_shared_out_by_centring() -> None:
    compared = compare_references([[0, 100, 200, 300], [50, 150, 250, 150]])
    assert compared.shift.tolist() == [[0, 0, 0, 0], [50, 50, 50, -150]]
    assert compared.mean_abs_shift.tolist() == [0, 75]
    # of six pairs, 5 and 3: four agree, one disagrees, one is tied on one side
    assert compared.kendall[0, 1] == pytest.approx((4 - 1) / math.sqrt(6 * 5))


def test_judge_abstains_where_its_runs_disagree() -> None:
    steady, torn = [0.9, 0.9, 0.9], [0.0, 0.5, 1.0]  # spreads 0 and 0.5
    left = abstain([[steady, torn, steady], [torn, steady, [NAN] * 3]], max_spread=0.4)
    assert left.kept.tolist() == [[True, False, True], [False, True, False]]
    assert left.coverage == pytest.approx([2 / 3, 1 / 2])
    assert left.gap == pytest.approx(anchored_elo([1.8, 0.9], [0, 0], [0.2, 0.1]).gap)
    assert left.shift == pytest.approx(left.gap - anchored_elo([2.3, 1.4], [0, 0], [0.7, 0.6]).gap)
    assert left.centred_shift == pytest.approx(left.shift - left.shift.mean())


@pytest.mark.parametrize(
    ("max_spread", "coverage"),
    # The sample standard deviation of two runs is their distance over sqrt(2): 0.71 and 0.35.
    [(float(np.std([0.25, 0.75], ddof=1)), 0.5), (0.7, 0.5), (1.0, 1.0)],
)
def test_spread_equal_to_the_limit_counts(max_spread: float, coverage: float) -> None:
    left = abstain([[[0.0, 1.0], [0.25, 0.75]]], max_spread=max_spread)
    assert left.coverage == [coverage]
    assert left.shift.tolist() == [0]
    equal = np.full((1, 3, 3), 0.1)  # their rounded mean is not 0.1, and their spread is 0
    assert abstain(equal, max_spread=0.0).coverage == [1]


# ------------------------------------------------------------------ refusals

OF_MODELS = partial(abstain, max_spread=0.1)


@pytest.mark.parametrize(
    ("door", "arguments", "message"),
    [
        (anchored_elo, ([3, -1], [0, 0], [1, 1]), "wins is -1"),
        (anchored_elo, ([3], [NAN], [1]), "ties is nan"),
        (anchored_elo, ([3], [0], [math.inf]), "losses is inf"),
        (anchored_elo, ([3, 0], [0, 0], [1, 0]), "prompts of a model is 0 in row 1"),
        (anchored_elo, ([], [], []), "the number of models is 0"),
        (anchored_elo, ([3], [0, 1], [1]), r"wins \(1,\), ties \(2,\), losses"),
        (partial(anchored_elo, miscoverage=1.0), ([3], [0], [1]), "miscoverage is 1; .* strictly"),
        (anchored_elo_of_preferences, ([[0.5, 1.2]],), "preference is 1.2"),
        (anchored_elo_of_preferences, ([[0.5, -0.1]],), "preference is -0.1"),
        (anchored_elo_of_preferences, (0.5,), "got a single number"),
        (anchored_elo_of_preferences, ([0.5, 0.5],), "every preference of a model is 0.5"),
        (anchored_elo_of_preferences, ([0.4],), "the number of prompts of a model is 1"),
        (
            anchored_elo_of_preferences,
            ([[0.4, 0.1], [0.3, NAN]],),
            "prompts of a model is 1 in row 1",
        ),
        (
            anchored_elo_of_preferences,
            ([[0.4, 0.1], [0.5, 0.5]],),
            "preference of a model is 0.5 in row 1",
        ),
        (anchored_elo_of_preferences, (np.empty((0, 5)),), "the number of models is 0"),
        (spread, ([[0.1, 0.2]], 10), r"shape of preference is \(1, 2\)"),
        (spread, ([0.1, 0.2], 1), "n_resamples is 1"),
        (spread, ([NAN], 10), "no prompt has a verdict"),
        (spread, ([0.5, 1.5], 10), "preference is 1.5"),
        (finite_population_factor, (0, 5), "expected 1 to 5"),
        (finite_population_factor, (6, 5), "expected 1 to 5"),
        (finite_population_factor, (NAN, 5), "expected 1 to 5"),
        (finite_population_factor, (1, 1), "n_population is 1"),
        (narrow_intervals, (anchored_elo(3, 0, 2), 1.5), "factor is 1.5"),
        (diagnose_reference, ([0.5, 0.5],), r"shape of preference is \(2,\)"),
        (diagnose_reference, ([[0.5, NAN], [0.2, NAN]],), "prompt 1 has no verdict"),
        (diagnose_reference, ([[NAN, NAN], [0.2, 0.3]],), "model 0 has no verdict"),
        (diagnose_reference, (np.empty((0, 0)),), "the number of models is 0"),
        (diagnose_reference, ([[2.0]],), "preference is 2"),
        (compare_references, ([[1.0, 2.0]],), r"shape of gap is \(1, 2\)"),
        (compare_references, ([[1.0, 2.0], [NAN, 1.0]],), r"gap is nan in row 1, column 0"),
        (compare_references, ([[1.0, 2.0], [3.0, 3.0]],), "every gap is 3 in row 1"),
        (OF_MODELS, ([[[0.5], [0.5]]],), r"shape of preference is \(1, 2, 1\)"),
        (OF_MODELS, ([[[0.5, NAN], [0.5, 0.5]]],), r"the number of runs is 1 in row 0, column 0"),
        (OF_MODELS, ([[[0.0, 1.0], [1.0, 0.0]]],), "prompts kept of a model is 0 in row 0"),
        (partial(abstain, max_spread=-0.1), ([[[0.0, 1.0]]],), "max_spread is -0.1"),
        (partial(abstain, max_spread=9.0), ([[[0.0, 3.0]]],), "preference is 1.5"),
    ],
)
def test_wrong_input_is_refused_by_value_and_place(door, arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        door(*arguments)


# ------------------------------------------------------------------ 30 real models


@pytest.fixture(scope="module")
def arena(data_dir: Path) -> tuple[list[str], np.ndarray]:
    """29 real models x 805 prompts of preferences against the thirtieth, and their names."""
    path = data_dir / "alpacaeval_reference_battles.parquet"
    if not path.is_file():
        pytest.skip(f"no real data: {path} does not exist")
    battles = pd.read_parquet(path)
    table = battles.pivot_table("preference", "model", "question_id", dropna=False)
    assert table.shape == (30, 805)
    rest = table.drop(index=battles["reference_model"].unique().item())
    return rest.index.tolist(), rest.to_numpy()


def bootstrap_std_error(preference: np.ndarray, n_resamples: int) -> np.ndarray:
    """Spread of the gap over resampled prompts, one resample for all models: a slow twin."""
    rng = np.random.default_rng(11)
    n = preference.shape[1]
    times = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples)
    won = times @ np.nan_to_num(preference).T + 0.5
    lost = times @ np.nan_to_num(1 - preference).T + 0.5
    return np.std(400 * np.log10(won / lost), axis=0, ddof=1)


def test_leaderboard_of_real_models_and_the_reach_of_its_strong_reference(arena) -> None:
    models, preference = arena
    elo = anchored_elo_of_preferences(preference)
    assert spearmanr(elo.gap, np.nanmean(preference, axis=1)).statistic > 0.999
    assert kendalltau(elo.gap, np.nanmean(preference, axis=1)).statistic > 0.99
    place = dict(zip(models, rankdata(-elo.gap), strict=True))
    assert place["NullModel"] == 1  # a constant answer that games this judge
    assert place["oasst-sft-pythia-12b"] == 29
    assert ((elo.lower < elo.gap) & (elo.gap < elo.upper)).all()
    reach = diagnose_reference(preference)
    assert not reach.models.is_adequate
    assert not reach.prompts.is_adequate
    within = {model for model, inside in zip(models, reach.models.within, strict=True) if inside}
    sizes = ("3.1-8B", "3.2-1B", "3.2-3B")
    assert within == {"NullModel", *(f"FuseChat-Llama-{size}-Instruct" for size in sizes)}


def test_std_errors_of_real_models_are_a_bootstraps(arena) -> None:
    models, preference = arena
    twin = bootstrap_std_error(preference, 4000)
    assert anchored_elo_of_preferences(preference).std_error == pytest.approx(twin, rel=0.12)
    ratio = anchored_elo(*soft_counts(preference)).std_error / twin
    assert (ratio > 1).all()  # Jeffreys' error overstates that of soft preferences
    assert (ratio > 1.12).sum() > 15  # of 29: not the error to publish for these
    assert models[int(np.argmax(ratio))] == "NullModel"
    assert ratio.max() > 1.5
    outcome = np.where(np.isnan(preference), np.nan, (np.sign(preference - 0.5) + 1) / 2)
    counts = (np.sum(outcome == value, axis=1).astype(float) for value in (1.0, 0.5, 0.0))
    jeffreys = anchored_elo(*counts).std_error  # of hard outcomes it is right
    assert jeffreys == pytest.approx(bootstrap_std_error(outcome, 4000), rel=0.12)


def spread_of_prompts_alone(preference: np.ndarray) -> np.ndarray:
    """90 % intervals, in Elo, from the sample variance: two half prompts in the mean only."""
    n = preference.shape[-1]
    share = (preference.sum(axis=-1) + 0.5) / (n + 1)
    std_error = preference.std(axis=-1, ddof=1) * math.sqrt(n) / (n + 1)
    ends = beta.ppf(np.array([0.05, 0.95])[:, None], *beta_with(share, std_error))
    with np.errstate(divide="ignore"):  # a share of 0 is minus infinity
        return elo_points(ends)


def coverage_of_draws(preference: np.ndarray, n_prompts: int, n_draws: int) -> np.ndarray:
    """Coverage of 90 % intervals from few prompts: plain, and with half prompts."""
    rng, held = np.random.default_rng(n_prompts), []
    for row in preference:
        known = row[np.isfinite(row)]
        drawn = rng.choice(known, size=(n_draws, n_prompts))
        drawn = drawn[np.ptp(drawn, axis=1) > 0]
        truth = elo_points(known.mean())
        lower, upper = spread_of_prompts_alone(drawn)
        elo = anchored_elo_of_preferences(drawn, miscoverage=0.1)
        ours = (elo.lower <= truth) & (truth <= elo.upper)
        held.append((((lower <= truth) & (truth <= upper)).mean(), ours.mean()))
    return np.mean(held, axis=0)


@pytest.mark.parametrize(
    ("n_prompts", "alone", "expected"),
    [
        (25, 0.74, 0.93),
        (50, 0.84, 0.92),
        pytest.param(100, 0.88, 0.91, marks=pytest.mark.full),
        pytest.param(200, 0.89, 0.90, marks=pytest.mark.full),
        pytest.param(400, 0.90, 0.91, marks=pytest.mark.full),
    ],
)
def test_few_prompts_of_real_models_hold_the_gap_at_the_rate(arena, n_prompts, alone, expected):
    n_draws = sized(1000, 200)
    found = coverage_of_draws(arena[1], n_prompts, n_draws)
    monte_carlo_error = math.sqrt(0.09 / (29 * n_draws))
    assert found == pytest.approx([alone, expected], abs=0.012 + 4 * monte_carlo_error)


# ------------------------------------------------------------------ subsets of prompts


@pytest.mark.parametrize("n", [1, 3, 6])
def test_spread_of_subsets_is_that_of_all_of_them(n: int) -> None:
    values = np.array([0.0, 1.0, 0.2, 0.9, 0.5, 1.0])
    shares = [(values[list(chosen)].sum() + 0.5) / (n + 1) for chosen in combinations(range(6), n)]
    rows = [[*values, NAN], [0.3] * 7]  # a prompt without a verdict is none of the population
    assert subset_std_error(rows, n) == pytest.approx([np.std(shares), 0], abs=1e-12)


def test_spread_of_subsets_of_wins_and_losses_has_the_finite_population_factor() -> None:
    wins = (np.arange(160) < 72).astype(float)
    binomial = math.sqrt(0.45 * 0.55 / 40) * finite_population_factor(40, 160)
    assert subset_std_error(wins, 40) == pytest.approx(40 / 41 * binomial, rel=1e-12)
    for n, message in ((0, "n_prompts is 0"), (161, "the number of prompts of a model is 160")):
        with pytest.raises(ValueError, match=message):
            subset_std_error(wins, n)

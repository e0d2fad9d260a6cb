import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import sized
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import betainc, betaln, polygamma
from scipy.stats import beta, kendalltau, rankdata, spearmanr

from judgeline.elo import ELO_PER_LOGIT
from judgeline.reference.gaps import (
    AnchoredElo,
    anchored_elo,
    anchored_elo_of_preferences,
    bootstrap_gap_std_error,
    finite_population_factor,
    narrow_intervals,
    soft_counts,
)
from judgeline.reference.reach import (
    abstain,
    compare_references,
    diagnose_reference,
)

POINTS = 400 / math.log(10)
COUNTS = st.integers(0, 900)


def elo_points(share: float) -> float:
    return 400 * math.log10(share / (1 - share))


def bisected_quantile(a: float, b: float, level: float) -> float:
    """The Beta quantile by bisection of the regularised incomplete beta function."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if betainc(a, b, middle) < level else (low, middle)
    return (low + high) / 2


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
def test_interval_is_that_of_beta_quantiles(
    wins: int, ties: int, losses: int, miscoverage: float
) -> None:
    if wins + ties + losses == 0:
        return
    elo = anchored_elo(wins, ties, losses, miscoverage=miscoverage)
    a, b = wins + ties / 2 + 0.5, losses + ties / 2 + 0.5
    lower, upper = beta.ppf([miscoverage / 2, 1 - miscoverage / 2], a, b)
    assert elo.share_lower == pytest.approx(lower, rel=1e-10)
    assert elo.share_upper == pytest.approx(upper, rel=1e-10)
    assert elo.share_lower == pytest.approx(bisected_quantile(a, b, miscoverage / 2), rel=1e-10)
    assert elo.lower < elo.gap < elo.upper


@pytest.mark.parametrize(("wins", "ties", "losses"), [(30, 10, 60), (3, 0, 17), (40, 5, 5)])
def test_density_between_the_bounds_holds_the_credibility(
    wins: int, ties: int, losses: int
) -> None:
    elo = anchored_elo(wins, ties, losses, miscoverage=0.1)
    a, b = wins + ties / 2 + 0.5, losses + ties / 2 + 0.5

    def density(share: float) -> float:
        log = (a - 1) * math.log(share) + (b - 1) * math.log1p(-share) - betaln(a, b)
        return math.exp(log)

    inside, _ = quad(density, float(elo.share_lower), float(elo.share_upper), epsabs=1e-12)
    assert inside == pytest.approx(0.9, abs=1e-10)
    assert elo.lower == pytest.approx(elo_points(float(elo.share_lower)), rel=1e-10)
    assert elo.upper == pytest.approx(elo_points(float(elo.share_upper)), rel=1e-10)


@given(wins=COUNTS, ties=COUNTS, losses=st.integers(1, 900))
def test_swapping_model_and_reference_mirrors_everything(wins: int, ties: int, losses: int) -> None:
    ours, theirs = anchored_elo(wins, ties, losses), anchored_elo(losses, ties, wins)
    assert ours.gap == pytest.approx(-theirs.gap, abs=1e-9)
    assert ours.lower == -theirs.upper
    assert ours.upper == -theirs.lower
    assert ours.std_error == pytest.approx(theirs.std_error, rel=1e-14)


def test_a_tie_is_half_a_win_and_half_a_loss() -> None:
    ties, halves = anchored_elo(3, 8, 5), anchored_elo(7, 0, 9)
    for tied, halved in zip(ties, halves, strict=True):
        assert tied == halved


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


@pytest.mark.parametrize("share", [0.1, 0.35, 0.5, 0.8])
def test_std_error_is_the_spread_of_gaps_over_samples(share: float) -> None:
    n, n_draws = 805, 40_000
    wins = np.random.default_rng(3).binomial(n, share, size=n_draws)
    spread = anchored_elo(wins, 0 * wins, n - wins).gap.std(ddof=1)
    claimed = anchored_elo(n * share, 0, n * (1 - share)).std_error
    # Monte-Carlo error of an sd, and what the delta method leaves out: O(1 / (n p (1 - p)))
    tolerance = 4 / math.sqrt(2 * n_draws) + 1 / (n * share * (1 - share))
    assert claimed == pytest.approx(spread, rel=tolerance)


def test_jeffreys_interval_covers_binary_outcomes_at_its_rate() -> None:
    n, n_draws, share = 400, 20_000, 0.3
    wins = np.random.default_rng(4).binomial(n, share, size=n_draws)
    elo = anchored_elo(wins, 0 * wins, n - wins, miscoverage=0.1)
    covered = ((elo.lower <= elo_points(share)) & (elo_points(share) <= elo.upper)).mean()
    # Coverage at one share wavers by the steps of a discrete count: up to one of its atoms.
    atom = 1 / math.sqrt(2 * math.pi * n * share * (1 - share))
    assert covered == pytest.approx(0.9, abs=4 * math.sqrt(0.09 / n_draws) + atom / 2)


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


@pytest.mark.parametrize(
    ("wins", "ties", "losses", "miscoverage", "message"),
    [
        ([3, -1], [0, 0], [1, 1], 0.05, "wins holds -1; counts are finite"),
        ([3], [math.nan], [1], 0.05, "ties holds nan"),
        ([3], [0], [math.inf], 0.05, "losses holds inf"),
        ([3, 0], [0, 0], [1, 0], 0.05, "model 1 has too few prompts"),
        ([], [], [], 0.05, "the input is empty"),
        ([3], [0, 1], [1], 0.05, r"share a shape, got \(1,\), \(2,\), \(1,\)"),
        ([3], [0], [1], 1.0, "miscoverage must lie strictly between 0 and 1, got 1.0"),
    ],
)
def test_bad_counts_name_the_value(
    wins: ArrayLike, ties: ArrayLike, losses: ArrayLike, miscoverage: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        anchored_elo(wins, ties, losses, miscoverage=miscoverage)


# ------------------------------------------------------------------ soft preferences


def test_soft_counts_leave_out_prompts_without_a_verdict() -> None:
    counts = soft_counts([[0.25, 0.5, math.nan], [1.0, 0.0, 0.75]])
    assert counts.wins.tolist() == [0.75, 1.75]
    assert counts.ties.tolist() == [0, 0]
    assert counts.losses.tolist() == [1.25, 1.25]


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 0.2, 0.9]), min_size=2, max_size=40))
def test_both_estimates_share_their_gap(preference: list[float]) -> None:
    if len(set(preference)) == 1:
        return
    ours = anchored_elo_of_preferences(preference)
    assert ours.gap == pytest.approx(anchored_elo(*soft_counts(preference)).gap, abs=1e-9)
    assert ours.lower < ours.gap < ours.upper


def test_half_a_prompt_won_and_half_a_prompt_lost_count_in_the_spread() -> None:
    # Squares 1/16 twice, and 1/4 of either half prompt: (1/8 + 1/4) / 3^2 = 1/24, whose Beta of
    # mean 1/2 has 1/4 * 24 - 1 = 5 prompts.
    elo = anchored_elo_of_preferences([0.25, 0.75], miscoverage=0.1)
    assert elo.gap == 0
    assert elo.std_error == pytest.approx(POINTS * 4 / math.sqrt(24), rel=1e-12)
    assert elo.share_lower == pytest.approx(beta.ppf(0.05, 2.5, 2.5), rel=1e-12)


def test_std_error_of_preferences_is_the_delta_method_on_their_mean() -> None:
    preference = np.array([0.1, 0.4, 0.9, 0.2, 0.5])
    elo = anchored_elo_of_preferences(preference)
    prompts, weight = np.array([*preference, 0.0, 1.0]), np.array([1, 1, 1, 1, 1, 0.5, 0.5])
    share = np.average(prompts, weights=weight)
    error_of_share = math.sqrt((weight * (prompts - share) ** 2).sum()) / 6
    assert elo.std_error == pytest.approx(
        POINTS * error_of_share / (share * (1 - share)), rel=1e-12
    )
    spread = beta.std(*_beta_with(share, error_of_share))
    assert spread == pytest.approx(error_of_share, rel=1e-12)
    bounds = beta.ppf([0.025, 0.975], *_beta_with(share, error_of_share))
    assert [elo.share_lower, elo.share_upper] == pytest.approx(bounds, rel=1e-10)


def _beta_with(mean: float, std: float) -> tuple[float, float]:
    concentration = mean * (1 - mean) / std**2 - 1
    return mean * concentration, (1 - mean) * concentration


def test_both_std_errors_agree_on_wins_and_losses() -> None:
    outcome = np.repeat([1.0, 0.0], [240, 565])
    ours = anchored_elo_of_preferences(outcome).std_error
    # The two half prompts make it a count of wins and losses: p (1 - p) / (n + 1), the Beta n + 2.
    jeffreys = anchored_elo(240, 0, 565).std_error
    assert (ours / jeffreys) ** 2 == pytest.approx(807 / 806, rel=1e-12)


@pytest.mark.parametrize("shapes", [(0.2, 0.6), (2.0, 3.0), (0.05, 0.5)])
def test_soft_interval_covers_at_its_rate_where_jeffreys_covers_too_often(
    shapes: tuple[float, float],
) -> None:
    n, n_draws = 400, 6000
    draws = np.random.default_rng(5).beta(*shapes, size=(n_draws, n))
    truth = elo_points(shapes[0] / sum(shapes))

    def coverage(elo: AnchoredElo) -> float:
        return float(((elo.lower <= truth) & (truth <= elo.upper)).mean())

    soft = coverage(anchored_elo_of_preferences(draws, miscoverage=0.1))
    # Monte-Carlo error, and one percent for a variance estimated from 400 skewed numbers
    assert soft == pytest.approx(0.9, abs=4 * math.sqrt(0.09 / n_draws) + 0.01)
    assert coverage(anchored_elo(*soft_counts(draws), miscoverage=0.1)) > soft + 0.02


@pytest.mark.parametrize(
    ("preference", "message"),
    [
        ([[0.5, 1.2]], r"preference holds 1.2; preferences lie in \[0, 1\]"),
        ([[0.5, -0.1]], "preference holds -0.1"),
        (0.5, "got a single number"),
        ([0.5, 0.5], "all preferences of the only model equal 0.5"),
        ([0.4], "the only model has too few prompts: an estimate needs at least two"),
        ([[0.4, 0.1], [0.3, math.nan]], "model 1 has too few prompts"),
        ([[0.4, 0.1], [0.5, 0.5]], "all preferences of model 1 equal 0.5"),
        (np.empty((0, 5)), "the input is empty"),
    ],
)
def test_bad_preferences_name_the_value(preference: ArrayLike, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        anchored_elo_of_preferences(preference)


# ------------------------------------------------------------------ finite populations


def test_factor_is_the_spread_of_means_drawn_without_replacement() -> None:
    population = np.random.default_rng(6).random(7)
    means = [np.mean(drawn) for drawn in combinations(population, 3)]  # every sample there is
    with_replacement = population.std() / math.sqrt(3)
    assert np.std(means) == pytest.approx(
        with_replacement * float(finite_population_factor(3, 7)), rel=1e-12
    )


def test_factor_is_one_for_one_prompt_and_zero_for_all() -> None:
    assert finite_population_factor([1, 805], 805).tolist() == [1, 0]


@pytest.mark.parametrize(("n", "population"), [(0, 5), (6, 5), (math.nan, 5), (1, 1)])
def test_impossible_samples_are_refused(n: float, population: int) -> None:
    with pytest.raises(ValueError, match=r"must lie in \[1, 5\]|at least 2 prompts, got 1"):
        finite_population_factor(n, population)


def test_narrowing_scales_errors_and_bounds_about_the_gap() -> None:
    wide = anchored_elo([30, 3], [10, 0], [60, 17])
    half = narrow_intervals(wide, [0.5, 1.0])
    assert half.gap.tolist() == wide.gap.tolist()
    assert half.std_error == pytest.approx(wide.std_error * [0.5, 1], rel=1e-14)
    assert half.upper - half.lower == pytest.approx((wide.upper - wide.lower) * [0.5, 1])
    assert half.share_lower[1] == pytest.approx(wide.share_lower[1], rel=1e-12)
    census = narrow_intervals(wide, 0.0)
    assert census.lower.tolist() == wide.gap.tolist() == census.upper.tolist()
    with pytest.raises(ValueError, match=r"factor must lie in \[0, 1\], got 1.5"):
        narrow_intervals(wide, 1.5)


# ------------------------------------------------------------------ diagnostics


def shares_of(win_share: list[float]) -> np.ndarray:
    """Preferences of models that have these Jeffreys win shares, over a thousand prompts."""
    wins = np.round(1001 * np.array(win_share) - 0.5)
    return (np.arange(1000) < wins[:, None]).astype(float)


def test_shares_on_the_bounds_are_within_reach() -> None:
    # with half a prompt won and lost: 4 / 5 and 1 / 5, the bounds themselves, and one beyond each
    wins = ([1.0] * 3 + [0.5], [0.0] * 3 + [0.5], [1.0] * 4, [0.0] * 4)
    reach = diagnose_reference(wins).models
    assert reach.within.tolist() == [True, True, False, False]
    assert (reach.share, reach.is_adequate) == (0.5, False)


@pytest.mark.parametrize(("n_outside", "adequate"), [(0, True), (1, True), (2, False)])
def test_reference_is_flagged_below_95_percent(n_outside: int, adequate: bool) -> None:
    preference = shares_of(np.where(np.arange(20) < n_outside, 0.1, 0.5).tolist())
    assert diagnose_reference(preference).models.is_adequate is adequate


def test_reach_is_of_models_and_of_prompts() -> None:
    # Every model wins half of its prompts; every prompt is won by all models or by none.
    preference = np.tile([1.0, 0.0], (30, 20))
    reach = diagnose_reference(preference)
    assert (reach.models.share, reach.models.is_adequate) == (1, True)
    assert (reach.prompts.share, reach.prompts.is_adequate) == (0, False)
    assert reach.prompts.within.shape == (40,)


@pytest.mark.parametrize(
    ("preference", "message"),
    [
        ([0.5, 0.5], r"shape \(models, prompts\), got \(2,\)"),
        ([[0.5, math.nan], [0.2, math.nan]], "prompt 1 has no verdict"),
        ([[math.nan, math.nan], [0.2, 0.3]], "model 0 has no verdict"),
        (np.empty((0, 0)), "the input is empty"),
        ([[2.0]], "preference holds 2"),
    ],
)
def test_diagnosis_of_bad_tables_names_the_place(preference: ArrayLike, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        diagnose_reference(preference)


def test_references_on_one_scale_move_the_origin_only() -> None:
    strength = np.array([-1.0, 0.3, 0.8, 2.0])
    references = np.array([-0.5, 0.0, 1.5])
    n = 10_000_000  # so many prompts that the prior is out of sight
    share = 1 / (1 + np.exp(-(strength - references[:, None])))
    gap = anchored_elo(n * share, 0 * share, n * (1 - share)).gap
    compared = compare_references(gap)
    assert compared.kendall == pytest.approx(np.ones((3, 3)))
    assert compared.mean_abs_shift == pytest.approx([0, 0, 0], abs=1e-3)


def test_one_models_shift_is_shared_out_by_centring() -> None:
    compared = compare_references([[0, 100, 200, 300], [50, 150, 250, 150]])
    assert compared.shift.tolist() == [[0, 0, 0, 0], [50, 50, 50, -150]]
    assert compared.mean_abs_shift.tolist() == [0, 75]
    # of six pairs, 5 and 3: four agree, one disagrees, one is tied on one side
    assert compared.kendall[0, 1] == pytest.approx((4 - 1) / math.sqrt(6 * 5))


@pytest.mark.parametrize(
    ("gap", "message"),
    [
        ([[1.0, 2.0]], r"references >= 2, models >= 2\), got \(1, 2\)"),
        ([[1.0, 2.0], [math.nan, 1.0]], "1 values that are not finite"),
        ([[1.0, 2.0], [3.0, 3.0]], "all gaps under reference 1 equal 3"),
    ],
)
def test_incomparable_leaderboards_are_refused(gap: ArrayLike, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_references(gap)


# ------------------------------------------------------------------ abstention


def test_judge_abstains_where_its_runs_disagree() -> None:
    steady, torn = [0.9, 0.9, 0.9], [0.0, 0.5, 1.0]  # spreads 0 and 0.5
    unsaid = [math.nan] * 3
    left = abstain([[steady, torn, steady], [torn, steady, unsaid]], max_spread=0.4)
    assert left.kept.tolist() == [[True, False, True], [False, True, False]]
    assert left.coverage == pytest.approx([2 / 3, 1 / 2])
    assert left.gap == pytest.approx(anchored_elo([1.8, 0.9], [0, 0], [0.2, 0.1]).gap)
    assert left.shift == pytest.approx(left.gap - anchored_elo([2.3, 1.4], [0, 0], [0.7, 0.6]).gap)
    assert left.centred_shift == pytest.approx(left.shift - left.shift.mean())


def test_spread_equal_to_the_limit_counts_and_nothing_moves_without_a_limit() -> None:
    runs = np.array([[[0.0, 1.0], [0.25, 0.75]]])
    assert abstain(runs, max_spread=float(np.std([0.25, 0.75], ddof=1))).coverage == [0.5]
    # The sample standard deviation of two runs is their distance over sqrt(2): 0.71 and 0.35.
    assert abstain(runs, max_spread=0.7).coverage == [0.5]
    whole = abstain(runs, max_spread=1.0)
    assert (whole.coverage, whole.shift) == ([1], [0])


def test_equal_runs_have_no_spread_however_they_round() -> None:
    runs = np.full((1, 3, 3), 0.1)  # their rounded mean is not 0.1
    assert abstain(runs, max_spread=0.0).coverage == [1]


@pytest.mark.parametrize(
    ("preference", "max_spread", "message"),
    [
        ([[[0.5], [0.5]]], 0.1, r"runs >= 2\), got \(1, 2, 1\)"),
        ([[[0.5, math.nan], [0.5, 0.5]]], 0.1, "model 0 misses some runs of prompt 0"),
        ([[[0.0, 1.0], [1.0, 0.0]]], 0.1, "model 0 keeps none of its 2 prompts"),
        ([[[0.0, 1.0]]], -0.1, "max_spread must be at least 0, got -0.1"),
        ([[[0.0, 3.0]]], 9.0, "preference holds 1.5"),
    ],
)
def test_impossible_abstentions_are_refused(
    preference: ArrayLike, max_spread: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        abstain(preference, max_spread=max_spread)


# ------------------------------------------------------------------ 30 real models


@pytest.fixture(scope="module")
def arena(data_dir: Path) -> tuple[list[str], np.ndarray]:
    """29 real models x 805 prompts of preferences against the thirtieth, and their names."""
    pd = pytest.importorskip("pandas")
    path = data_dir / "alpacaeval_reference_battles.parquet"
    if not path.is_file():
        pytest.skip(f"no real data: {path} does not exist")
    battles = pd.read_parquet(
        path, columns=["question_id", "model", "reference_model", "preference"]
    )
    table = battles.pivot(index="model", columns="question_id", values="preference")
    assert table.shape == (30, 805)
    reference = battles["reference_model"].unique().item()
    assert set(table.loc[reference]) == {0.5}
    rest = table.drop(index=reference)
    return rest.index.tolist(), rest.to_numpy()


def bootstrap_std_error(preference: np.ndarray, n_resamples: int) -> np.ndarray:
    """Spread of the gap over resampled prompts, one resample for all models: a slow twin."""
    rng = np.random.default_rng(11)
    n = preference.shape[1]
    times = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples)
    won = times @ np.nan_to_num(preference).T + 0.5
    lost = times @ np.nan_to_num(1 - preference).T + 0.5
    return np.std(400 * np.log10(won / lost), axis=0, ddof=1)


def test_leaderboard_ranks_as_mean_preferences_do(arena: tuple[list[str], np.ndarray]) -> None:
    models, preference = arena
    elo = anchored_elo_of_preferences(preference)
    assert spearmanr(elo.gap, np.nanmean(preference, axis=1)).statistic > 0.999
    assert kendalltau(elo.gap, np.nanmean(preference, axis=1)).statistic > 0.99
    place = dict(zip(models, rankdata(-elo.gap), strict=True))
    assert place["NullModel"] == 1  # a constant answer that games this judge
    assert place["oasst-sft-pythia-12b"] == 29
    assert ((elo.lower < elo.gap) & (elo.gap < elo.upper)).all()


def test_std_error_of_soft_preferences_is_a_bootstraps(
    arena: tuple[list[str], np.ndarray],
) -> None:
    _, preference = arena
    spread = bootstrap_std_error(preference, 4000)
    assert anchored_elo_of_preferences(preference).std_error == pytest.approx(spread, rel=0.12)


def spread_of_prompts_alone(preference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """90 % intervals, in Elo, from the sample variance: two half prompts in the mean only."""
    n = preference.shape[-1]
    share = (preference.sum(axis=-1) + 0.5) / (n + 1)
    spread = preference.std(axis=-1, ddof=1) * math.sqrt(n) / (n + 1)
    ends = beta.ppf(np.array([0.05, 0.95])[:, None], *_beta_with(share, spread))
    with np.errstate(divide="ignore"):  # a share of 0 is minus infinity
        return 400 * np.log10(ends[0] / (1 - ends[0])), 400 * np.log10(ends[1] / (1 - ends[1]))


def coverage_of_draws(preference: np.ndarray, n_prompts: int, n_draws: int) -> tuple[float, float]:
    """Shares of 90 % intervals from few prompts that hold the gap on all of a model's prompts.

    By the prompts' own spread alone, and with the two half prompts in it.
    """
    rng = np.random.default_rng(n_prompts)
    held = []
    for row in preference:
        known = row[np.isfinite(row)]
        drawn = rng.choice(known, size=(n_draws, n_prompts))
        drawn = drawn[np.ptp(drawn, axis=1) > 0]
        truth = elo_points(known.mean())
        lower, upper = spread_of_prompts_alone(drawn)
        elo = anchored_elo_of_preferences(drawn, miscoverage=0.1)
        held.append(
            (
                ((lower <= truth) & (truth <= upper)).mean(),
                ((elo.lower <= truth) & (truth <= elo.upper)).mean(),
            )
        )
    alone, ours = np.mean(held, axis=0)
    return float(alone), float(ours)


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
def test_few_prompts_of_real_models_hold_the_gap_at_the_rate(
    arena: tuple[list[str], np.ndarray], n_prompts: int, alone: float, expected: float
) -> None:
    n_draws = sized(1000, 200)
    found = coverage_of_draws(arena[1], n_prompts, n_draws)
    monte_carlo_error = math.sqrt(0.09 / (29 * n_draws))
    assert found == pytest.approx((alone, expected), abs=0.012 + 4 * monte_carlo_error)


def test_jeffreys_std_error_overstates_that_of_soft_preferences(
    arena: tuple[list[str], np.ndarray],
) -> None:
    models, preference = arena
    ratio = anchored_elo(*soft_counts(preference)).std_error / bootstrap_std_error(preference, 4000)
    assert (ratio > 1).all()
    assert (ratio > 1.12).sum() > 15  # of 29: not the error to publish for these
    assert models[int(np.argmax(ratio))] == "NullModel"
    assert ratio.max() > 1.5


def test_jeffreys_std_error_is_a_bootstraps_once_outcomes_are_hard(
    arena: tuple[list[str], np.ndarray],
) -> None:
    _, preference = arena
    outcome = np.where(np.isnan(preference), np.nan, (np.sign(preference - 0.5) + 1) / 2)
    wins, ties, losses = (
        np.sum(outcome == value, axis=1).astype(float) for value in (1.0, 0.5, 0.0)
    )
    jeffreys = anchored_elo(wins, ties, losses).std_error
    assert jeffreys == pytest.approx(bootstrap_std_error(outcome, 4000), rel=0.12)


def test_a_strong_reference_is_flagged(arena: tuple[list[str], np.ndarray]) -> None:
    models, preference = arena
    reach = diagnose_reference(preference)
    assert not reach.models.is_adequate
    assert not reach.prompts.is_adequate
    within = {model for model, inside in zip(models, reach.models.within, strict=True) if inside}
    assert within == {
        "FuseChat-Llama-3.1-8B-Instruct",
        "FuseChat-Llama-3.2-1B-Instruct",
        "FuseChat-Llama-3.2-3B-Instruct",
        "NullModel",
    }


def test_the_reference_against_itself_shows_no_spread(
    arena: tuple[list[str], np.ndarray],
) -> None:
    _, preference = arena
    with_itself = np.vstack([preference, np.full(805, 0.5)])
    with pytest.raises(ValueError, match=r"model 29 equal 0.5.*is it the reference itself"):
        anchored_elo_of_preferences(with_itself)


def spread(preference, n_resamples: int = 4000, seed: int = 3) -> float:
    rng = np.random.default_rng(seed)
    return bootstrap_gap_std_error(preference, n_resamples=n_resamples, rng=rng)


def test_wins_and_losses_spread_as_the_beta_posterior_does() -> None:
    """Oracle: log-odds of a Beta(a, b) have variance trigamma(a) + trigamma(b)."""
    won, lost = 25, 15
    exact = ELO_PER_LOGIT * math.sqrt(polygamma(1, won + 0.5) + polygamma(1, lost + 0.5))
    found = spread([1.0] * won + [0.0] * lost)
    assert found == pytest.approx(exact, rel=4 / math.sqrt(2 * 4000))


def test_swapping_sides_and_silent_prompts_change_nothing() -> None:
    values = np.random.default_rng(0).uniform(size=30)
    assert spread(1 - values) == pytest.approx(spread(values), rel=4 / math.sqrt(4000))
    assert spread(np.append(values, [np.nan, np.nan])) == spread(values)


@pytest.mark.parametrize("value", [0.0, 0.3, 0.5, 1.0])
def test_equal_preferences_show_no_spread(value: float) -> None:
    assert spread([value] * 7) == 0.0


@pytest.mark.parametrize(
    ("preference", "n_resamples", "message"),
    [
        ([[0.1, 0.2]], 10, r"shape \(prompts,\), got \(1, 2\)"),
        ([0.1, 0.2], 1, "got 1"),
        ([math.nan], 10, "no prompt has a verdict"),
        ([0.5, 1.5], 10, "holds 1.5"),
    ],
)
def test_bad_input_names_the_value(preference, n_resamples: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        spread(preference, n_resamples)

"""The published corrections against exact arithmetic, published values and simulation."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from judges_that_err import adjusted, coverage

from judgeline.winrate import OUTCOMES, NoWinRateError, adjusted_mean, adjusted_shares
from judgeline.winrate.corrections import require_possible
from judgeline.winrate.labels import JudgeCounts, smoothed_rates
from judgeline.winrate.outcomes import normal_quantile
from judgeline.winrate.powered import difference_estimate
from papers.correct_reporting import outcome_tables, play_judge

CHECK = JudgeCounts(1000, 500, 100, 70, 100, 90)

# p, q0, q1, n, m0, m1, miscoverage, lower, upper, from the fixtures of the R package
# llmjudgereporting, after Lee et
# al. (2025); of its cases those whose counts are whole numbers.
PUBLISHED = [
    (0.4, 0.7, 0.9, 1000, 200, 200, 0.05, 0.05635072484160894, 0.2627330257859588),
    (0.5, 0.8, 0.8, 500, 100, 100, 0.05, 0.3799746588561528, 0.6200253411438469),
    (0.9, 0.6, 0.99, 10000, 1000, 1000, 0.01, 0.8273348478706124, 0.8686713102464316),
    (0.05, 0.9, 0.9, 1000, 200, 200, 0.05, 0.0, 0.0),
    (0.97, 0.9, 0.9, 1000, 200, 200, 0.05, 1.0, 1.0),
    (0.0, 1.0, 1.0, 50, 10, 10, 0.05, 0.0, 0.09568563633822108),
    (1.0, 1.0, 1.0, 50, 10, 10, 0.05, 0.9043143636617791, 1.0),
]


def counts_of(p: float, q0: float, q1: float, n: int, m0: int, m1: int) -> JudgeCounts:
    return JudgeCounts(n, round(p * n), m0, round(q0 * m0), m1, round(q1 * m1))


# ------------------------------------------------------------------ exact and published values


def exact_parts(counts: JudgeCounts, quantile: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """Rogan and Gladen's estimate, the interval's centre and its variance, in rationals.
    It is where the share lies between e0 = 1 - q0 and q1; the variance has a common denominator."""
    n, x, m0, k0, m1, k1 = (Fraction(int(value)) for value in counts)
    estimate = (x / n - (m0 - k0) / m0) / (k1 / m1 - (m0 - k0) / m0)
    n, x = n + quantile**2, x + quantile**2 / 2
    m0, k0, m1, k1 = m0 + 2, k0 + 1, m1 + 2, k1 + 1
    low, high = (m0 - k0) / m0, k1 / m1
    smoothed = (x / n - low) / (high - low)
    noise0 = low * (1 - low) * (1 - smoothed) / m0
    noise1 = high * (1 - high) * smoothed / m1
    centre = smoothed + 2 * quantile**2 * (noise1 - noise0)
    variance = (x * (n - x) / n**3 + (1 - smoothed) * noise0 + smoothed * noise1) / (
        high - low
    ) ** 2
    return estimate, centre, variance


def ends(centre: Fraction, variance: Fraction, quantile: Fraction) -> tuple[Decimal, Decimal]:
    with localcontext() as context:
        context.prec = 40
        middle, squared, reach = (
            Decimal(v.numerator) / Decimal(v.denominator) for v in (centre, variance, quantile)
        )
        half = reach * squared.sqrt()
        return middle - half, middle + half


def exact_interval(counts: JudgeCounts, quantile: Fraction) -> tuple[Fraction, Decimal, Decimal]:
    estimate, centre, variance = exact_parts(counts, quantile)
    return estimate, *ends(centre, variance, quantile)


def can_be_corrected(counts: JudgeCounts) -> bool:
    """Whether the judge does better than chance, in whole numbers, as observed and smoothed."""
    _, _, m0, k0, m1, k1 = counts
    return k0 * m1 + k1 * m0 > m0 * m1 and (k0 + 1) * (m1 + 2) + (k1 + 1) * (m0 + 2) > (m0 + 2) * (
        m1 + 2
    )


@st.composite
def skilled_counts(draw: st.DrawFn) -> JudgeCounts:
    n, m0, m1 = (draw(st.integers(1, 3000)) for _ in range(3))
    x, k0, k1 = (draw(st.integers(0, size)) for size in (n, m0, m1))
    counts = JudgeCounts(n, x, m0, k0, m1, k1)
    if not can_be_corrected(counts):
        counts = JudgeCounts(n, x, m0, m0, m1, m1)
    return counts


@given(counts=skilled_counts(), miscoverage=st.sampled_from([0.01, 0.05, 0.2, 0.5]))
@example(counts=CHECK, miscoverage=0.05)  # 1/3, where the judge alone says 1/2
def test_interval_equals_rational_arithmetic(counts: JudgeCounts, miscoverage: float) -> None:
    quantile = Fraction(normal_quantile(miscoverage))
    estimate, lower, upper = exact_interval(counts, quantile)
    ours = adjusted(counts, miscoverage=miscoverage)
    clipped = min(max(float(estimate), 0), 1)
    assert ours.win_rate == pytest.approx(clipped, abs=1e-9 * (1 + abs(float(estimate))))
    for end, exact in ((ours.lower, lower), (ours.upper, upper)):
        assert end == pytest.approx(
            min(max(float(exact), 0), 1), abs=1e-9 * (1 + abs(float(exact)))
        )


@given(first=skilled_counts(), second=skilled_counts())
def test_strata_weigh_by_their_test_battles_in_rational_arithmetic(first, second):
    quantile = Fraction(normal_quantile(0.1))
    tables = [outcome_tables(counts) for counts in (first, second)]
    test, known = (np.concatenate(part) for part in zip(*tables, strict=True))
    ours = adjusted_mean(test, known, miscoverage=0.1)
    n = [Fraction(int(counts.n_test)) for counts in (first, second)]
    parts = [exact_parts(counts, quantile) for counts in (first, second)]
    weights = [size / sum(n) for size in n]
    estimate = sum(w * part[0] for w, part in zip(weights, parts, strict=True))
    centre = sum(w * part[1] for w, part in zip(weights, parts, strict=True))
    variance = sum(w**2 * part[2] for w, part in zip(weights, parts, strict=True))
    exact = (estimate, *ends(centre, variance, quantile))
    for found, value in zip((ours.win_rate, ours.lower, ours.upper), exact, strict=True):
        scale = 1 + abs(float(value))
        assert found == pytest.approx(min(max(float(value), 0), 1), abs=1e-8 * scale)


@pytest.mark.parametrize("case", PUBLISHED)
def test_interval_equals_the_published_values(case: tuple) -> None:
    ours = adjusted(counts_of(*case[:6]), miscoverage=case[6])
    assert (ours.lower, ours.upper) == pytest.approx(case[7:], abs=1e-12)


# ------------------------------------------------------------------ coverage

N_REPLICATIONS = 10_000
WIN_RATES = np.round(np.arange(0.05, 0.96, 0.05), 2)


@pytest.mark.parametrize("win_rate", WIN_RATES)
def test_coverage_is_close_to_nominal(win_rate: float) -> None:
    """94 to 96.5 %, calibrated on 200 battles, 100 of either human outcome."""
    rng = np.random.default_rng([2025, round(100 * win_rate)])
    ours = adjusted(play_judge(rng, win_rate, n_replications=N_REPLICATIONS))
    covered = coverage(ours.lower, ours.upper, win_rate)
    monte_carlo_error = math.sqrt(0.95 * 0.05 / N_REPLICATIONS)
    assert 0.94 <= covered <= 0.965  # the band promised
    assert covered == pytest.approx(0.954, abs=0.003 + 3.5 * monte_carlo_error)  # 0.951 to 0.957


# ------------------------------------------------------------------ properties


def test_many_models_at_once_equal_each_alone() -> None:
    rng = np.random.default_rng(1)
    many = play_judge(rng, 0.4, n_replications=12)
    together = adjusted(many)
    for row in range(12):
        alone = adjusted(JudgeCounts(*(int(part[row]) for part in many)))
        assert tuple(float(part[row]) for part in together) == tuple(float(v) for v in alone)


def test_a_perfect_judge_needs_no_correction_and_a_contradiction_has_no_width() -> None:
    ours = adjusted(JudgeCounts(400, 100, 50, 50, 50, 50))
    assert ours.win_rate == ours.naive == 0.25
    assert ours.lower < 0.25 < ours.upper
    beyond = adjusted(JudgeCounts(1000, 50, 200, 180, 200, 180))
    assert (beyond.win_rate, beyond.lower, beyond.upper) == (0, 0, 0)


@pytest.mark.parametrize("win_rate", [0.0, 0.05, 0.5])
def test_a_judge_that_errs_alike_is_refuted_no_oftener_than_its_intervals_miss(win_rate) -> None:
    """Where the assumption holds, also where the interval of most samples reaches below 0."""
    n = 4000
    counts = play_judge(np.random.default_rng(3), win_rate, n_replications=n)
    ours, quantile = adjusted(counts, miscoverage=0.1), normal_quantile(0.1)
    refuted = []
    for centre, error in zip(ours.centre.ravel(), ours.std_error.ravel(), strict=True):
        try:
            require_possible(centre, quantile * error)
            refuted.append(False)
        except NoWinRateError as refusal:
            refuted.append(refusal.status == "refuted")
    assert np.array_equal(refuted, (ours.lower == ours.upper).ravel())
    assert np.mean(refuted) <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / n)
    if win_rate == 0.0:
        assert (ours.lower == 0).mean() > 0.9
    if win_rate == 0.5:
        assert not any(refuted)


@given(counts=skilled_counts())
def test_a_judge_that_says_the_opposite_is_refused_by_both_forms(counts: JudgeCounts) -> None:
    n, x, m0, k0, m1, k1 = counts
    wrong = JudgeCounts(n, x, m0, m0 - k0, m1, m1 - k1)
    for estimate in (partial(smoothed_rates, quantile=1.96), adjusted):
        with pytest.raises(NoWinRateError, match="no better than chance") as refusal:
            estimate(wrong)
        assert refusal.value.status == "chance"


# ------------------------------------------------------------------ shifts of the population


def joint(win_rate: float, specificity: float = 0.7, sensitivity: float = 0.9) -> np.ndarray:
    """Probabilities by judge (win, tie, loss) and human, of a judge that never ties."""
    won = np.array([sensitivity, 0, 1 - sensitivity]) * win_rate
    lost = np.array([1 - specificity, 0, specificity]) * (1 - win_rate)
    return np.stack([won, 0 * won, lost], axis=1)


SAME = joint(0.6)
VERDICTS = SAME / SAME.sum(axis=1, keepdims=True).clip(1e-9) * np.array([[0.7], [0], [0.3]])


@pytest.mark.parametrize(
    ("test", "calibration", "unbiased"),
    [
        (SAME, SAME, {"corrected", "difference"}),
        (joint(0.8), joint(0.4), {"corrected"}),  # label shift: the judge errs alike
        (joint(0.3), joint(0.5), {"corrected"}),
        (VERDICTS, SAME, set()),  # verdicts mean the same, and their mix differs
    ],
    ids=["one population", "label shift up", "label shift down", "verdict shift"],
)
def test_which_estimators_stay_unbiased(test, calibration, unbiased: set[str]) -> None:
    rng, n = np.random.default_rng(11), 1000
    judged = rng.multinomial(5000, test.sum(axis=1), n)[:, None]
    known = rng.multinomial(2000, calibration.ravel(), n).reshape(-1, 1, 3, 3)
    pairs = zip(judged, known, strict=True)
    found = {
        "corrected": adjusted_mean(judged, known).win_rate,
        "difference": [difference_estimate(*both).win_rate for both in pairs],
        "naive": judged[:, 0, 0] / 5000,
    }
    truth = test.sum(axis=0)[0]
    assert {k for k, values in found.items() if abs(np.mean(values) - truth) < 0.005} == unbiased


# ------------------------------------------------------------------ ties and strata

SHARES = np.array([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4]])  # of humans, in two strata
NEVER_TIES = np.array([[0.9, 0.6, 0.2], [0.0, 0.0, 0.0], [0.1, 0.4, 0.8]])
CONFUSION = np.array([[0.75, 0.25, 0.08], [0.15, 0.50, 0.17], [0.10, 0.25, 0.75]])


def test_an_exact_mixture_gives_back_the_win_rate_though_the_judge_never_ties() -> None:
    calibration = 1000 * NEVER_TIES * SHARES[:, None]
    test = 1000 * (NEVER_TIES @ SHARES[..., None])[..., 0] * np.array([[1], [3]])
    found = adjusted_mean(np.rint(test), np.rint(calibration))
    truth = (SHARES @ OUTCOMES) @ np.array([0.25, 0.75])
    assert float(found.win_rate) == pytest.approx(truth, abs=1e-12)


def test_where_ties_are_midway_their_share_does_not_matter() -> None:
    midway = np.array([[0.8, 0.5, 0.2], [0.0, 0.0, 0.0], [0.2, 0.5, 0.8]])
    test = np.array([[620, 0, 380]])  # mean 0.62, from (0.62 - 0.2) / 0.6
    for shares in ([4, 1, 5], [2, 7, 1]):
        calibration = np.rint(1000 * midway * np.array(shares))
        assert float(adjusted_mean(test, calibration[None]).win_rate) == pytest.approx(0.7)


def test_with_a_judge_that_ties_it_agrees_with_the_inverted_matrix() -> None:
    calibration, test = np.rint(2000 * CONFUSION * SHARES[0]), np.rint(2000 * CONFUSION @ SHARES[0])
    ours = float(adjusted_mean(test[None], calibration[None]).win_rate)
    assert ours == pytest.approx(adjusted_shares(test, calibration).win_rate, abs=1e-9)


def test_intervals_cover_over_simulated_judges_that_never_tie() -> None:
    rng, n = np.random.default_rng(3), 2000
    known, said = np.zeros((n, 2, 3, 3), int), np.zeros((n, 2, 3), int)
    for stratum, shares in enumerate(SHARES):
        by_human = rng.multinomial(150, shares, size=n)
        for human in range(3):
            known[:, stratum, :, human] = rng.multinomial(by_human[:, human], NEVER_TIES[:, human])
        said[:, stratum] = rng.multinomial(400, NEVER_TIES @ shares, size=n)
    found = adjusted_mean(said, known, miscoverage=0.1)
    truth = (SHARES @ OUTCOMES).mean()
    assert coverage(found.lower, found.upper, truth) == pytest.approx(
        0.9, abs=4 * math.sqrt(0.9 * 0.1 / n) + 0.005
    )
    assert found.win_rate.std() == pytest.approx(found.std_error.mean(), rel=0.1)


def test_strata_without_test_battles_have_no_weight() -> None:
    known = np.array([[[30, 5, 10], [0, 0, 0], [10, 5, 30]], np.zeros((3, 3))])
    alone = adjusted_mean([[50, 0, 30]], known[:1])
    both = adjusted_mean([[50, 0, 30], [0, 0, 0]], known)
    assert [float(value) for value in both] == pytest.approx([float(value) for value in alone])


# ------------------------------------------------------------------ three shares

TABLE = [[75, 15, 8], [15, 30, 17], [10, 15, 75]]
TEST = [420, 260, 320]


def determinant(rows: list[list[Fraction]]) -> Fraction:
    (a, b, c), (d, e, f), (g, h, i) = rows
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def test_shares_equal_cramers_rule_in_rational_arithmetic() -> None:
    totals = [sum(row[k] for row in TABLE) for k in range(3)]
    matrix = [[Fraction(row[k], totals[k]) for k in range(3)] for row in TABLE]
    right = [Fraction(count, sum(TEST)) for count in TEST]
    swapped = [
        [[right[j] if k == solved else matrix[j][k] for k in range(3)] for j in range(3)]
        for solved in range(3)
    ]
    shares = [determinant(rows) / determinant(matrix) for rows in swapped]
    ours = adjusted_shares(TEST, TABLE)
    np.testing.assert_allclose(ours.shares, [float(share) for share in shares], atol=1e-13)
    assert ours.win_rate == pytest.approx(float(shares[0] + shares[1] / 2), abs=1e-13)
    assert ours.naive == pytest.approx(0.42 + 0.13)


def test_standard_error_is_the_delta_method_by_finite_differences() -> None:
    """Numerical derivative of the win rate in each of the twelve smoothed counts."""
    z, step = 1.959963984540054, 1e-4
    smoothed = np.vstack([np.array(TEST) + z**2 / 3, (np.array(TABLE) + 1 / 3).T])

    def win_rate(columns: np.ndarray) -> float:
        shares = columns / columns.sum(axis=1, keepdims=True)
        return float(np.linalg.solve(shares[1:].T, shares[0]) @ OUTCOMES)

    variance = 0.0
    for column, counts in enumerate(smoothed):
        gradient = np.empty(3)
        for row in range(3):
            moved = np.zeros_like(smoothed)
            moved[column, row] = step
            gradient[row] = (win_rate(smoothed + moved) - win_rate(smoothed - moved)) / (2 * step)
        share = counts / counts.sum()
        variance += counts.sum() * (gradient**2 @ share - (gradient @ share) ** 2)
    ours = adjusted_shares(TEST, TABLE)
    assert ours.std_error == pytest.approx(math.sqrt(variance), rel=1e-6)
    assert (ours.upper - ours.lower) / 2 == pytest.approx(z * ours.std_error)


def test_exchanging_wins_and_losses_mirrors_the_shares() -> None:
    ours = adjusted_shares(TEST, TABLE)
    theirs = adjusted_shares(TEST[::-1], np.array(TABLE)[::-1, ::-1])
    np.testing.assert_allclose(theirs.shares, ours.shares[::-1], atol=1e-12)
    assert (1 - theirs.upper, 1 - theirs.lower) == pytest.approx((ours.lower, ours.upper))


def test_shares_of_a_consistent_judge_are_found_exactly_and_with_some_doubt() -> None:
    shares = np.array([0.5, 0.2, 0.3])
    ours = adjusted_shares(np.round(10_000 * CONFUSION @ shares), 100 * CONFUSION)
    np.testing.assert_allclose(ours.shares, shares, atol=1e-12)
    assert ours.win_rate == pytest.approx(0.6)
    assert (ours.shares_lower < shares).all()
    assert (shares < ours.shares_upper).all()
    perfect = adjusted_shares([50, 30, 20], np.diag([40, 40, 40]))
    np.testing.assert_allclose(perfect.shares, [0.5, 0.3, 0.2])
    assert perfect.std_error > 0
    flat = adjusted_shares([1, 1, 1], [[34, 33, 33], [33, 34, 33], [33, 33, 34]])
    assert (flat.lower, flat.upper) == (0, 1)  # barely better than chance


@given(cells=st.lists(st.integers(1, 41), min_size=9, max_size=9))
def test_a_judge_that_is_not_refused_has_a_matrix_that_turns_nothing_over(cells) -> None:
    table = np.reshape(cells, (3, 3))
    totals = table.sum(axis=0).tolist()
    matrix = [[Fraction(int(cell), totals[k]) for k, cell in enumerate(row)] for row in table]
    others = [max(row[k] for k in range(3) if k != at) for at, row in enumerate(matrix)]
    refused = ""
    try:
        adjusted_shares([3, 3, 3], table)
    except NoWinRateError as refusal:
        refused = str(refusal)
    blind = any(matrix[at][at] <= others[at] for at in range(3))
    assert bool(refused) == (blind or "after smoothing" in refused)
    assert blind or determinant(matrix) > 0


# ------------------------------------------------------------------ refusals

GOOD = [[9, 0, 1], [0, 0, 0], [1, 0, 9]]


@pytest.mark.parametrize(
    ("estimate", "test", "known", "status", "message"),
    [
        (adjusted_mean, [[5, 0, 5]], [[[1, 0, 9], [0, 0, 0], [9, 0, 1]]], "chance", "no better"),
        (adjusted_mean, [[5, 0, 5]], [[[2, 0, 1], [0, 0, 0], [98, 0, 0]]], "chance", "no higher"),
        (adjusted_mean, [[5, 0, 5]], [[[0, 0, 0], [9, 0, 9], [0, 0, 0]]], "chance", "0 of 1"),
        (adjusted_mean, [[5, 0, 5]], [[[9, 0, 0], [0, 0, 0], [1, 0, 0]]], "class-absent", "lost"),
        (adjusted_mean, [[5, 0, 5]], [[[0, 5, 0], [0, 5, 0], [0, 5, 0]]], "all-ties", "no vote"),
        (adjusted_mean, [[0, 0, 0]], [GOOD], "all-ties", "no test battle"),
        (adjusted_mean, [[5, 0, 5], [1, 0, 0]], [GOOD, np.zeros((3, 3))], "all-ties", "1 of 2"),
        (adjusted_mean, [5, 0, 5], [GOOD], None, r"the pair of shapes is \(\(3,\), \(1, 3, 3\)\)"),
        (adjusted_mean, [[0.5, 0, 5]], [GOOD], None, r"test is 0.5 in row 0, column 0"),
        (adjusted_shares, [1, 2, 3], [[5, 0, 1], [1, 0, 1], [1, 0, 5]], "no-ties", "call a tie"),
        (adjusted_shares, [1, 2, 3], [[0, 5, 0], [0, 5, 0], [0, 1, 0]], "all-ties", "no vote"),
        (adjusted_shares, [1, 2, 3], [[5, 1, 0], [1, 1, 0], [1, 1, 0]], "class-absent", "a loss"),
        (adjusted_shares, [1, 2, 3], [[5, 5, 1], [1, 1, 1], [1, 1, 5]], "chance", "win to 0.7143"),
        (adjusted_shares, [1, 2, 3], [[1, 5, 1], [1, 9, 1], [8, 1, 3]], "chance", "no better"),
        (adjusted_shares, [1, 2, 3], [[5, 2, 1], [0, 0, 0], [1, 2, 5]], "chance", "tie to 0"),
        (adjusted_shares, [1, 2], TABLE, None, r"the shape of test is \(2,\)"),
        (adjusted_shares, [1, 2, 3], [[1, 2], [3, 4]], None, r"calibration is \(2, 2\)"),
        (adjusted_shares, [1, 2, math.nan], TABLE, None, "test is nan in row 2"),
        (adjusted_shares, [1, 2, 3], np.array(TABLE) - 10, None, "calibration is -2"),
        (adjusted_shares, [0, 0, 0], TABLE, None, "the number of test battles is 0"),
    ],
)
def test_battles_that_allow_no_correction_are_refused(estimate, test, known, status, message):
    with pytest.raises(ValueError, match=message) as refusal:
        estimate(test, known)
    assert getattr(refusal.value, "status", None) == status


@pytest.mark.parametrize("miscoverage", [0, 1, math.nan])
def test_bad_miscoverage_is_refused(miscoverage: float) -> None:
    with pytest.raises(ValueError, match="miscoverage must lie strictly"):
        adjusted(CHECK, miscoverage=miscoverage)


def test_the_worked_check_equals_rational_arithmetic() -> None:
    quantile = Fraction("1.959963984540054235524594430521")
    estimate, lower, upper = exact_interval(CHECK, quantile)
    ours = adjusted(CHECK)
    assert estimate == Fraction(1, 3)
    assert ours.win_rate == pytest.approx(1 / 3, abs=1e-15)
    assert ours.lower == pytest.approx(float(lower), abs=1e-13)
    assert ours.upper == pytest.approx(float(upper), abs=1e-13)
    assert ours.naive == 0.5


@given(counts=skilled_counts())
def test_exchanging_wins_and_losses_mirrors_everything(counts: JudgeCounts) -> None:
    n, x, m0, k0, m1, k1 = counts
    ours, mirrored = (adjusted(c) for c in (counts, JudgeCounts(n, n - x, m1, k1, m0, k0)))
    assert mirrored.win_rate == pytest.approx(1 - ours.win_rate, abs=1e-9)
    assert mirrored.lower == pytest.approx(1 - ours.upper, abs=1e-9)
    assert mirrored.upper == pytest.approx(1 - ours.lower, abs=1e-9)

"""Differences of two ratings: oracles by hand, by brute force, and by simulation."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import sized
from scipy.stats import t

from judgeline.intervals import compare_models, may_be_best
from judgeline.intervals.differences import (
    LEAST_VOTED,
    MOST_VOTES,
    Difference,
    RatedModels,
    difference_by_judge,
    joined_interval,
    pair_threshold,
    votes_that_tell,
)

MIRRORED = {"a above": "b above", "b above": "a above", "cannot tell": "cannot tell"}


def models_of(
    residual: list[float] | np.ndarray, newcomers: list[float], *, half: float = 50.0
) -> RatedModels:
    """Models with votes, one per residual, then models that only the judge has rated.

    Ratings of voted models are half-way between judge and people, 100 Elo from one to the next.
    A vote on each of 200 battles would leave a standard error of 10: one alone has a variance of
    20,000.
    """
    n, new = len(residual), len(newcomers)
    human = 1500.0 + 100 * np.arange(n)
    judge = np.r_[human + residual, newcomers]
    rating = np.r_[human + np.asarray(residual) / 2, newcomers]
    voted = np.arange(n + new) < n
    width = np.where(voted, half, 3 * half)
    return RatedModels(
        model=np.array([f"model-{k}" for k in range(n + new)]),
        evidence=np.where(voted, "judge and 100 votes", "judge"),
        rating=rating,
        lower=rating - width,
        upper=rating + width,
        std_error=np.where(voted, half / 2, math.nan),
        judge_rating=judge,
        judge_std_error=np.full(n + new, 3.0),
        vote_std_error=np.full(n + new, 10.0),
        human_rating=np.r_[human, np.full(new, math.nan)],
        human_std_error=np.where(voted, 20.0, math.nan),
        n_battles=np.full(n + new, 200.0),
        n_votes=np.where(voted, 100.0, 0.0),
    )


def some_models(seed: int, n: int = 12) -> RatedModels:
    rng = np.random.default_rng(seed)
    found = models_of(rng.normal(0, 40, n), rng.normal(1500, 200, 3).tolist())
    spread = rng.uniform(0.5, 2.0, len(found.model))
    return found._replace(
        judge_std_error=found.judge_std_error * spread,
        lower=found.rating - rng.uniform(20, 90, len(spread)),
        upper=found.rating + rng.uniform(20, 90, len(spread)),
    )


# ------------------------------------------------------------------ two ratings by the judge


@given(
    n=st.integers(2, 14), seed=st.integers(0, 999), level=st.sampled_from(["0.1", "0.2", "0.45"])
)
def test_threshold_is_the_exact_rank_over_pairs_or_students_t(
    n: int, seed: int, level: str
) -> None:
    rng = np.random.default_rng(seed)
    residual, spread = rng.normal(0, 30, n), rng.uniform(5, 40, n)
    scores = sorted(
        abs(residual[k] - residual[j]) / math.sqrt(spread[k] ** 2 + spread[j] ** 2)
        for k, j in combinations(range(n), 2)
    )
    rank = math.ceil((len(scores) + 1) * (1 - Fraction(level)))  # oracle: rational arithmetic
    by_rank = scores[rank - 1] if rank <= len(scores) else math.inf
    student = t.ppf(1 - float(level) / 2, n - 1)
    found = pair_threshold(residual, spread, miscoverage=float(level))
    assert found == pytest.approx(max(by_rank, student), rel=1e-12)


def test_equal_residuals_leave_students_t() -> None:
    # the two-sided 90 % quantile with 7 degrees of freedom, from printed tables
    found = pair_threshold(np.full(8, 25.0), np.ones(8), miscoverage=0.1)
    assert found == pytest.approx(1.895, abs=5e-4)
    assert pair_threshold([3.0], [1.0], miscoverage=0.1) == math.inf


@given(seed=st.integers(0, 999), data=st.data())
def test_neither_of_the_two_models_calibrates_its_own_difference(
    seed: int, data: st.DataObject
) -> None:
    models = some_models(seed)
    a, b = data.draw(st.permutations(range(12)))[:2]
    others = np.delete(np.arange(15), [a, b])
    residual = (models.judge_rating - models.human_rating)[others]
    known = np.isfinite(residual)
    excess = residual**2 - models.judge_std_error[others] ** 2 - 20.0**2
    common = max(excess[known].mean(), 0.0)
    spread = np.sqrt(models.judge_std_error**2 + models.vote_std_error**2 + common)
    by_hand = pair_threshold(residual[known], spread[others][known], miscoverage=0.1)
    found = difference_by_judge(models, a, b)
    assert (found.threshold, found.n_calibrating) == (pytest.approx(by_hand), 10)
    human = models.human_rating.copy()
    human[[a, b]] = 9e4, -9e4  # votes on the two move nothing
    assert difference_by_judge(models._replace(human_rating=human), a, b) == found
    half = by_hand * math.sqrt(spread[a] ** 2 + spread[b] ** 2)
    gap = models.judge_rating[a] - models.judge_rating[b]
    assert found[:2] == pytest.approx((gap - half, gap + half))


def test_newcomers_are_told_apart_by_hand() -> None:
    # 8 models without residuals: Student's t of 1.895; spreads of sqrt(9 + 100) = 10.44
    models = models_of([0.0] * 8, [1700.0, 1660.0, 1695.0])
    found = compare_models(models, 8, 9)
    assert found.answer == "a above"
    assert found.difference == 40
    assert found.difference - found.lower == pytest.approx(1.8946 * math.sqrt(218), abs=1e-3)
    assert (found.votes_a, found.votes_b, found.reason) == (0, 0, "")
    first, rests = found.lines()
    assert first == "model-8 is above model-9: +40 Elo (90 % interval: +12 to +68)."
    assert "8 models with votes" in rests
    assert compare_models(models, 8, 10).answer == "cannot tell"


@pytest.mark.parametrize(("n", "is_refused"), [(LEAST_VOTED - 1, True), (LEAST_VOTED, False)])
def test_newcomers_are_not_compared_below_eight_voted_models(n: int, is_refused: bool) -> None:
    found = compare_models(models_of([0.0] * n, [2500.0, 1500.0]), n, n + 1)
    assert (found.answer, found.n_calibrating) == (
        ("cannot tell", n) if is_refused else ("a above", n)
    )
    assert math.isinf(found.upper) is is_refused
    assert (f"{n} models with votes are too few" in found.reason) is is_refused
    assert any("takes 8" in line for line in found.lines()) is is_refused


def test_no_interval_below_what_the_rank_needs_and_without_a_spread() -> None:
    models = models_of([0.0] * 8, [2500.0, 1500.0])  # 28 pairs, and 99 % coverage needs 99
    found = compare_models(models, 8, 9, miscoverage=0.01)
    assert (found.lower, found.upper, found.answer) == (-math.inf, math.inf, "cannot tell")
    assert "too few pairs for 99 % coverage" in found.reason
    unknown = models._replace(judge_std_error=np.r_[np.full(8, 3.0), math.nan, 3.0])
    found = compare_models(unknown, 8, 9)
    assert (found.answer, bool(found.reason)) == ("cannot tell", True)


def test_coverage_by_the_judge_is_nominal_where_models_are_exchangeable() -> None:
    """Errors are normal, with spreads that are known: the promise then holds, and at least."""
    for n in (11, 55):
        held = []
        for seed in range(sized(4000, 800)):
            rng = np.random.default_rng([n, seed])
            own = rng.uniform(5, 20, n + 2)
            error = rng.normal(0, np.sqrt(own**2 + 10.0**2 + 20.0**2))
            models = models_of(error[:n], [1500.0, 1500.0])._replace(judge_std_error=own)
            found = difference_by_judge(models, n, n + 1)
            held.append(found.lower <= error[n] - error[n + 1] <= found.upper)
        assert np.mean(held) >= 0.9 - 4 * math.sqrt(0.09 / len(held))


# ------------------------------------------------------------------ ratings with votes


def test_intervals_with_votes_are_joined_by_hand() -> None:
    models = models_of([0.0] * 2, [1540.0], half=30.0)
    models = models._replace(rating=np.array([1500.0, 1600.0, 1540.0]))
    models = models._replace(
        lower=np.array([1470.0, 1540.0, 1500.0]), upper=np.array([1530.0, 1640.0, 1580.0])
    )
    # below: sqrt(30^2 + 40^2) = 50; above: sqrt(30^2 + 60^2)
    assert joined_interval(models, 0, 1) == pytest.approx((-150, -100 + math.sqrt(4500)))
    found = compare_models(models, 0, 1)
    assert (found.answer, found.lower) == ("b above", -150)
    assert math.isnan(found.threshold)
    assert found.lines()[0].startswith("model-1 is above model-0: +100 Elo")
    # one of each: the judge's interval of 40 stands in
    assert joined_interval(models, 0, 2)[0] == pytest.approx(-40 - 50)
    assert compare_models(models, 0, 2).answer == "cannot tell"


def test_a_whole_line_tells_nothing_and_asks_for_votes() -> None:
    models = models_of([0.0, 0.0], [2500.0])
    models = models._replace(
        lower=np.array([1450.0, 1550.0, -math.inf]), upper=np.array([1550.0, 1650.0, math.inf])
    )
    found = compare_models(models, 0, 2)
    assert (found.lower, found.upper, found.answer) == (-math.inf, math.inf, "cannot tell")
    assert found.reason == "the interval of model-2 is the whole line: have people vote on it"
    assert (found.votes_a, found.votes_b) == (0, 20)
    assert (
        found.lines()[-1] == "About 20 more votes on model-2 would tell, if the difference stays."
    )


# ------------------------------------------------------------------ all pairs


@given(seed=st.integers(0, 999), data=st.data())
def test_swapping_the_models_mirrors_everything(seed: int, data: st.DataObject) -> None:
    models = some_models(seed)
    a, b = data.draw(st.permutations(range(15)))[:2]
    one, other = (compare_models(models, *pair) for pair in ((a, b), (b, a)))
    assert (one.difference, one.lower) == pytest.approx((-other.difference, -other.upper))
    assert one.answer == MIRRORED[other.answer]
    assert (one.votes_a, one.votes_b) == (other.votes_b, other.votes_a)
    assert (one.answer == "cannot tell") == (one.lower <= 0 <= one.upper)


@given(seed=st.integers(0, 999))
def test_another_unit_changes_no_answer_and_no_votes(seed: int) -> None:
    models = some_models(seed)
    names = [
        n for n in RatedModels._fields if n not in ("model", "evidence", "n_battles", "n_votes")
    ]
    scaled = models._replace(**{name: 3 * getattr(models, name) for name in names})
    for a, b in ((0, 1), (2, 13), (12, 14)):
        one = compare_models(models, a, b)
        other = compare_models(scaled, a, b)
        assert (other.answer, other.upper) == (one.answer, pytest.approx(3 * one.upper))
        assert (other.votes_a, other.votes_b) == pytest.approx((one.votes_a, one.votes_b), abs=1)


# ------------------------------------------------------------------ votes that would tell


def half_width_after(models: RatedModels, rows: tuple[int, int], votes: tuple[int, int]) -> float:
    """By hand: 20,000 per vote; half-widths of voted models are 2 standard errors."""
    widths = [(models.upper[row] - models.lower[row]) / 2 for row in rows]
    after = [
        2 / math.sqrt(4 / width**2 + n / 20_000) if n else width
        for width, n in zip(widths, votes, strict=True)
    ]
    return math.hypot(*after)


@pytest.mark.parametrize(
    ("rows", "gap"), [((0, 1), 60.0), ((0, 1), 69.0), ((0, 8), 150.0), ((8, 9), 100.0)]
)
def test_planned_votes_are_enough_and_the_fewest(rows: tuple[int, int], gap: float) -> None:
    models = models_of([0.0] * 8, [0.0, 0.0])
    rating = models.rating.copy()
    rating[rows[0]] = rating[rows[1]] + gap
    width = (models.upper - models.lower) / 2
    models = models._replace(rating=rating, lower=rating - width, upper=rating + width)
    planned = votes_that_tell(models, *rows)
    assert half_width_after(models, rows, planned) < gap
    fewest = min(  # oracle: every plan of fewer votes, on a grid
        one + other
        for one, other in product(range(int(sum(planned)) + 1), repeat=2)
        if half_width_after(models, rows, (one, other)) < gap
    ) if sum(planned) < 400 else None  # fmt: skip
    assert fewest is None or fewest <= sum(planned) <= fewest + 2
    fewer = (math.floor(0.98 * n) for n in planned)
    assert half_width_after(models, rows, tuple(fewer)) >= gap * 0.99


def test_models_as_good_as_equal_are_beyond_any_votes() -> None:
    models = models_of([0.0] * 8, [1500.0, 1500.0, 1500.02])
    for pair in ((8, 9), (8, 10)):
        found = compare_models(models, *pair)
        assert (found.votes_a, found.votes_b) == (math.inf, math.inf)
        assert f"more than {MOST_VOTES:,} further votes" in found.lines()[-1]


def test_votes_that_say_a_tenth_are_needed_tenfold() -> None:
    models = models_of([0.0] * 8, [1500.0, 1560.0])
    alone = votes_that_tell(models, 8, 9)
    noisy = models._replace(vote_std_error=models.vote_std_error * math.sqrt(10))
    assert sum(votes_that_tell(noisy, 8, 9)) == pytest.approx(10 * sum(alone), rel=0.01)


# ------------------------------------------------------------------ the best, and refusals


def test_models_that_may_be_best_have_a_best_rank_of_one() -> None:
    ranks = [1.0, 1.0, 2.0, 3.0, math.nan]
    assert may_be_best(ranks).tolist() == [True, True, False, False, False]


def test_refusals_name_the_value() -> None:
    models = models_of([0.0] * 8, [1500.0, math.nan])
    with pytest.raises(ValueError, match=r"second model is 'model-3'; expected another model"):
        compare_models(models, 3, 3)
    with pytest.raises(ValueError, match=r"model 'model-9' has no rating to compare"):
        compare_models(models, 0, 9)
    with pytest.raises(ValueError, match=r"miscoverage must lie strictly between 0 and 1, got 1"):
        compare_models(models, 0, 1, miscoverage=1.0)
    with pytest.raises(ValueError, match=r"shapes residual \(1,\), spread \(2,\)"):
        pair_threshold([1.0], [1.0, 2.0], miscoverage=0.1)


def test_an_answer_echoes_its_settings() -> None:
    found = compare_models(some_models(1), 0, 12, miscoverage=0.2)
    assert isinstance(found, Difference)
    assert (found.miscoverage, found.evidence_a, found.evidence_b) == (
        0.2, "judge and 100 votes", "judge",
    )  # fmt: skip
    assert "80 % interval" in found.lines()[0]


# ------------------------------------------------------------------ margins


@given(seed=st.integers(0, 300), margin=st.sampled_from([0.0, 20.0, 75.5]))
def test_a_margin_is_a_rating_that_much_higher(seed: int, margin: float) -> None:
    models = some_models(seed)
    a, b = (int(row) for row in np.random.default_rng(seed).permutation(15)[:2])
    higher = {
        name: getattr(models, name) + np.where(np.arange(15) == a, margin, 0.0)
        for name in ("rating", "lower", "upper", "judge_rating")
    }
    shifted = compare_models(models._replace(**higher), a, b)
    found = compare_models(models, a, b, margin=margin)
    assert (found.answer, found.votes_a, found.votes_b) == (
        shifted.answer, shifted.votes_a, shifted.votes_b,
    )  # fmt: skip
    assert found.lower + margin == pytest.approx(shifted.lower)
    wide = compare_models(models, a, b, widening=1.5)
    assert wide.upper - wide.difference == pytest.approx(1.5 * (found.upper - found.difference))


def test_calls_bring_the_spread_of_two_newcomers_to_the_reach() -> None:
    models = models_of(np.tile([30.0, -30.0], 6), [1500.0, 1510.0])
    models = models._replace(judge_std_error=np.full(14, 25.0))
    found = compare_models(models, 12, 13, margin=70.0)
    assert found.answer == "cannot tell"
    assert found.calls > 0
    factor = 1 + found.calls / models.n_battles[12]
    calmer = np.where(models.human_rating > 0, 25.0, 25.0 / math.sqrt(factor))
    known = np.isfinite(models.residual)
    spread = np.hypot(*(calmer**2 + models.spread(known) ** 2 - 25.0**2)[12:] ** 0.5)
    assert spread * found.threshold == pytest.approx(abs(found.difference + 70), rel=0.02)
    assert math.isinf(compare_models(models, 12, 13, margin=11.0).calls)

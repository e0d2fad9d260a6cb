"""Simulated arenas of exchangeable models: the conformal procedure as a whole keeps its promise.
With 19 models to calibrate on, 90 % is kept with probability 18 / 20 exactly."""

import math
from functools import cache

import numpy as np
import pytest
from lanes import sized
from scipy.special import expit

from judgeline.elo import CodedBattles, HeldOutRatings, RatingSettings, code_battles, rate
from judgeline.intervals import FAR, calibrate_intervals, rank_models

SIZE, N = 20, 1200
METHODS = ("hard", "soft", "average", "gap")


def arena_battles(seed: int, *, size: int = SIZE, first_is_new: bool = False) -> CodedBattles:
    """Models drawn alike, votes (of the first perhaps none), and a judge with tastes."""
    rng = np.random.default_rng([2026, seed])
    strengths, taste = rng.normal(0, 0.7, size), rng.normal(0, 0.25, size)
    first = rng.integers(0, size, N)
    second = (first + rng.integers(1, size, N)) % size
    gap = strengths[first] - strengths[second]
    tie = rng.random(N) < 0.2
    human = np.where(tie, 0.5, rng.random(N) < expit(1.2 * gap))
    liked = gap + taste[first] - taste[second]
    score = np.round(12 * np.clip(2 * liked + 1.5 * rng.standard_normal(N), -9, 9)) / 12
    new = ((first == 0) | (second == 0)) & first_is_new
    names = np.array([f"m{k:02d}" for k in range(size)])
    return code_battles(
        names[first], names[second], human_outcome=np.where(new, math.nan, human),
        judge_outcome=0.5 + 0.5 * np.sign(score), score_difference=score,
    )  # fmt: skip


@cache
def arena(seed: int, *, first_is_new: bool = False) -> HeldOutRatings:
    battles = arena_battles(seed, first_is_new=first_is_new)
    return rate(battles, RatingSettings(n_resamples=0, smoothing_levels=()))


def without_outward(heldout: HeldOutRatings) -> HeldOutRatings:
    return heldout._replace(outward=np.zeros(heldout.rating.size))


SEEDS = range(sized(500, 200))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_new_models_interval_holds_its_human_rating_at_the_stated_rate(method: str) -> None:
    """Before its end moves outward, which makes it hold more and at most 6 % wider."""
    hits, widths = [], []
    for seed in SEEDS:
        full, before = arena(seed), arena(seed, first_is_new=True)
        truth = full.rating[(full.model == "m00") & (full.method == "human")][0]
        boards = [
            rank_models(heldout, method=method) for heldout in (without_outward(before), before)
        ]
        new = [board.take(board.model == "m00") for board in boards]
        assert math.isnan(new[0].human_rating[0])
        hits.append([(b.lower <= truth)[0] and (truth <= b.upper)[0] for b in new])
        widths.append([(b.upper - b.lower)[0] for b in new])
    monte_carlo_error = math.sqrt(0.9 * 0.1 / len(hits))
    plain, outward = np.mean(hits, axis=0)
    assert plain == pytest.approx(18 / 20, abs=3 * monte_carlo_error)
    assert plain <= outward
    assert 1 <= np.median(np.divide(*np.transpose(widths)[::-1])) <= 1.06


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", METHODS)
def test_of_twenty_that_calibrate_all_but_the_strangest_are_held_whatever_the_judge(
    method, seed: int
) -> None:
    """Rank 19 of 20 at 90 %: a count that cannot fail, and says nothing of the judge."""
    counts = []
    for heldout in (without_outward(arena(seed)), arena(seed)):
        board = rank_models(heldout, method=method)
        within = (board.judge_lower <= board.human_rating) & (
            board.human_rating <= board.judge_upper
        )
        assert within.tolist() == [FAR not in flags.split(";") for flags in board.flags.tolist()]
        counts.append(within.sum())
    assert counts[0] == 19
    assert counts[1] >= 19


@pytest.mark.slow
def test_split_coverage_is_what_ten_calibration_models_give() -> None:
    """Rank 10 of 10 at 90 %: a fresh model is inside with probability 10 / 11."""
    tables = [calibrate_intervals(arena(seed), n_splits=20) for seed in SEEDS]
    assert {n for table in tables for n in table.n_calibration.tolist()} == {10}
    for row, method in enumerate(tables[0].method.tolist()):
        coverage = [table.coverage[row] for table in tables]
        error = np.std(coverage, ddof=1) / math.sqrt(len(coverage))
        assert np.mean(coverage) == pytest.approx(10 / 11, abs=4 * error), method

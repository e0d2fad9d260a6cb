"""Simulated arenas: does the whole leave-one-out conformal procedure deliver what it promises?

Models are drawn alike, so they are exchangeable. With 19 models to calibrate on, the promise
at 90 % is kept with probability 18 / 20 exactly.
"""

import math

import numpy as np
import pytest
from lanes import sized
from scipy.special import expit

from judgeline.elo import CodedBattles, HeldOutRatings, RatingSettings, code_battles, rate
from judgeline.intervals import calibrate_intervals, rank_models

SIZE = 20
SETTINGS = RatingSettings(n_resamples=0, smoothing_levels=())


class Arena:
    """Battles of models with strengths drawn alike, votes, and a judge with tastes of its own."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([2026, seed])
        strengths, taste = rng.normal(0, 0.7, SIZE), rng.normal(0, 0.25, SIZE)
        n = 1200
        self.first = rng.integers(0, SIZE, n)
        self.second = (self.first + rng.integers(1, SIZE, n)) % SIZE
        gap = strengths[self.first] - strengths[self.second]
        liked = gap + taste[self.first] - taste[self.second]
        tie = rng.random(n) < 0.2
        self.human = np.where(tie, 0.5, rng.random(n) < expit(1.2 * gap))
        score = np.clip(2 * liked + 1.5 * rng.standard_normal(n), -9, 9)
        self.score = np.round(12 * score) / 12

    def coded(self, human: np.ndarray) -> CodedBattles:
        names = np.array([f"m{k:02d}" for k in range(SIZE)])
        return code_battles(
            names[self.first],
            names[self.second],
            human_outcome=human,
            judge_outcome=0.5 + 0.5 * np.sign(self.score),
            score_difference=self.score,
        )

    def with_all_votes(self) -> HeldOutRatings:
        return rated(self.coded(self.human))

    def with_a_new_model(self) -> HeldOutRatings:
        """The first model as if it were new: none of its votes."""
        new = (self.first == 0) | (self.second == 0)
        return rated(self.coded(np.where(new, math.nan, self.human)))


def rated(battles: CodedBattles) -> HeldOutRatings:
    return rate(battles, SETTINGS)


METHODS = ("hard", "soft", "average", "gap")


@pytest.fixture(scope="module")
def arenas() -> list[tuple[HeldOutRatings, HeldOutRatings]]:
    every = [Arena(seed) for seed in range(sized(500, 200))]
    return [(arena.with_all_votes(), arena.with_a_new_model()) for arena in every]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_new_models_interval_holds_its_human_rating_at_the_stated_rate(arenas, method) -> None:
    hits = []
    for full, masked in arenas:
        truth = full.rating[(full.model == "m00") & (full.method == "human")][0]
        board = rank_models(masked, method=method)
        new = board.model == "m00"
        assert math.isnan(board.human_rating[new][0])
        hits.append(board.lower[new][0] <= truth <= board.upper[new][0])
    monte_carlo_error = math.sqrt(0.9 * 0.1 / len(hits))
    assert np.mean(hits) == pytest.approx(18 / 20, abs=3 * monte_carlo_error)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", METHODS)
def test_voted_models_intervals_hold_eighteen_of_twenty_human_ratings(method, seed: int) -> None:
    """Each is measured by the 19 others: the two strangest are outside, in any arena at all."""
    board = rank_models(Arena(seed).with_all_votes(), method=method)
    inside = (board.lower <= board.human_rating) & (board.human_rating <= board.upper)
    assert inside.sum() == 18


@pytest.mark.slow
def test_split_coverage_is_what_ten_calibration_models_give(arenas) -> None:
    """Rank 10 of 10 at 90 %: a fresh model is inside with probability 10 / 11."""
    tables = [calibrate_intervals(full, n_splits=20) for full, _ in arenas]
    assert {n for table in tables for n in table.n_calibration.tolist()} == {10}
    for row, method in enumerate(tables[0].method.tolist()):
        coverage = [table.coverage[row] for table in tables]
        error = np.std(coverage, ddof=1) / math.sqrt(len(coverage))
        assert np.mean(coverage) == pytest.approx(10 / 11, abs=4 * error), method

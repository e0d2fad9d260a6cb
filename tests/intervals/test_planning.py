"""Worth in votes, frontiers and mixes: against published counts, simulation and search."""

import math
import os
import re
from pathlib import Path

import numpy as np
import pytest

import judgeline
from judgeline.api import Settings
from judgeline.intervals import Frontier, Worth, cheapest_mix, effective_judges, judge_worth

REAL = Path(os.environ.get("JUDGELINE_DATA", "data")) / "real"
FAST = Settings(n_resamples=0)
real = pytest.mark.skipif(not REAL.is_dir(), reason="needs the folder real of JUDGELINE_DATA")


@real
@pytest.mark.parametrize(
    ("name", "worth", "crossing"),
    # by prototypes that share no code: the formula, and where votes overtook the judge in replays
    [
        ("llmfao_gpt4_votes", 37, 26),
        ("hanna_chatgpt", 22, 24),
        ("hanna_beluga-13b", 48, 79),
        ("hanna_mistral-7b", 11, 14),
    ],
)
def test_the_worth_of_real_judges(name: str, worth: int, crossing: int) -> None:
    found = judgeline.plan(REAL / f"{name}.csv", FAST)
    votes = float(found.judges["worth"].iloc[0])
    assert round(votes) == worth
    assert 0.5 < votes / crossing < 2
    assert f"is worth {worth} votes a model (at least " in found.lines()[0]
    (frontier,) = found.frontiers.values()
    told = re.search(r"own error, (\d+) Elo, .* it takes (\d+)\.", found.lines()[0])
    error, together = (int(part) for part in told.groups())
    shared = frontier.vote_noise * math.sqrt(frontier.design_effect / together)
    assert error == pytest.approx(shared, rel=0.05)  # one error, by either kind of votes


@real
def test_five_judges_of_one_corpus_count_as_two() -> None:
    found = judgeline.plan(sorted(REAL.glob("hanna_*.csv")), FAST, half_width=60, vote_price=1)
    assert round(found.n_effective, 1) == 1.9
    assert "5 judges count as 1.9" in " ".join(found.lines())
    assert len(found.mixes) == 5
    assert (found.mixes["reached"] <= 60).all()


@real
def test_the_frontier_foretells_the_width_of_the_board() -> None:
    path = REAL / "hanna_chatgpt.csv"
    frontier = judgeline.plan(path, FAST).frontiers.popitem()[1]
    board = judgeline.rank(path, FAST).leaderboard
    now = float(((board["judge_upper"] - board["judge_lower"]) / 2).median())
    assert frontier.half_width(frontier.n_usual) == pytest.approx(now, rel=0.1)
    voted = float(((board["upper"] - board["lower"]) / 2).median())
    assert frontier.design_effect == pytest.approx(2.93, rel=0.02)  # by another program
    votes = float(board["n_votes"].median())
    assert frontier.half_width(frontier.n_usual, votes) == pytest.approx(voted, rel=0.1)


def test_worth_is_the_ratio_of_variances() -> None:
    """1,000 models, of whose ratings the judge is 50 off and people's votes 30: 2500 = tau^2."""
    rng = np.random.default_rng(1)
    residual = rng.normal(0, math.hypot(50, 30), 1000)
    found = judge_worth(residual, np.full(1000, 30.0), np.full(1000, 120_000.0))
    assert found.votes == pytest.approx(48, rel=0.15)
    assert 0.85 * found.votes < found.at_least < found.votes


def test_a_judge_as_good_as_the_noise_has_a_limit_alone() -> None:
    rng = np.random.default_rng(2)
    found = judge_worth(rng.normal(0, 30, 14), np.full(14, 30.0), np.full(14, 120_000.0))
    assert math.isinf(found.votes)
    assert 0 < found.at_least < math.inf
    assert all(map(math.isnan, judge_worth([1.0], [1.0], [1.0])))


def test_effective_judges_of_known_correlation() -> None:
    """Equal variances and correlation r: J / (1 + (J - 1) r), 5 / 2 at 1/4; copies count as one."""
    rng = np.random.default_rng(3)
    own, common = rng.standard_normal((5, 200_000)), rng.standard_normal(200_000)
    assert effective_judges(math.sqrt(3) * own + common) == pytest.approx(2.5, rel=0.02)
    assert effective_judges(np.tile(common, (5, 1))) == pytest.approx(1)
    assert math.isnan(effective_judges(np.ones((2, 1))))
    with pytest.raises(ValueError, match=r"\(judges, models\)"):
        effective_judges([1.0, 2.0])


MADE = Frontier(
    judge_noise=300.0, excess_sd=40.0, vote_noise=380.0, n_target_votes=100.0, threshold=2.0,
    reach=1.7, prior=2500.0, n_usual=100.0,
    design_effect=1.5, worth=Worth(50.0, 20.0),
)  # fmt: skip


def test_numbers_that_reach_a_half_width_are_the_fewest() -> None:
    widths = [MADE.half_width(n) for n in range(1, 400)]
    assert widths == sorted(widths, reverse=True)
    for wanted in (120, 130, 160):
        n = MADE.battles_for(wanted)
        assert MADE.half_width(n) <= wanted < MADE.half_width(n - 1)
    assert math.isinf(MADE.battles_for(100))  # 2 sqrt(40^2 + 38^2) = 110 is left by endless calls
    for wanted in (30, 60):
        n = MADE.votes_for(wanted, 100)
        assert MADE.half_width(100, n) <= wanted < MADE.half_width(100, n - 1)
    assert MADE.votes_for(130, 1e6) == 0
    enough = MADE.enough_battles()
    endless = MADE.half_width(1e15)
    assert MADE.half_width(enough) <= 1.02 * endless < MADE.half_width(enough - 1)


@pytest.mark.parametrize(("battle", "vote"), [(0.01, 0.5), (1.0, 0.5), (0.0, 1.0), (2.0, 0.0)])
def test_the_cheapest_mix_is_that_of_a_search(battle: float, vote: float) -> None:
    found = cheapest_mix(MADE, 60, battle_price=battle, vote_price=vote)
    assert found.half_width <= 60
    grid = [(n, MADE.votes_for(60, n)) for n in range(1, 1001)]
    best = min(n * battle + votes * vote for n, votes in grid)
    assert found.cost <= 1.02 * best + 1e-9


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: MADE.half_width(0), "n_battles is 0"),
        (lambda: MADE.half_width(1, -1), "n_votes is -1"),
        (lambda: MADE.battles_for(0), "half_width is 0"),
        (lambda: cheapest_mix(MADE, 60, battle_price=-1, vote_price=0), "battle_price is -1"),
    ],
)
def test_bad_input_names_the_value(call, told) -> None:
    with pytest.raises(ValueError, match=told):
        call()


def test_votes_alone_count_where_no_interval_of_the_judge_is_finite() -> None:
    """8 voted models at 90 %: their board rates by votes alone, (1.645 347 / 60)^2 of them."""
    frontier = Frontier(
        judge_noise=300.0, excess_sd=40.0, vote_noise=347.0, n_target_votes=100.0,
        threshold=math.inf, reach=1.645, prior=1600.0, n_usual=200.0, design_effect=1.0,
        worth=Worth(50.0, 30.0),
    )  # fmt: skip
    assert frontier.votes_for(60, 200) == 91
    assert frontier.half_width(200, 91) == pytest.approx(60, abs=0.5)
    assert math.isinf(frontier.half_width(200, 19))
    assert frontier.votes_for(300, 200) == 20
    calibrated = frontier._replace(threshold=2.0)
    assert calibrated.votes_for(60, 200) < 91

import math
from typing import Any

import numpy as np
import pytest
from ratings_by_hand import Rated, heldout_of

from judgeline.leaderboard import Leaderboard, rank_models


def rows_of(board: Leaderboard) -> dict[str, dict[str, Any]]:
    return {
        str(row[1]): dict(zip(board._fields, row, strict=True)) for row in zip(*board, strict=True)
    }


def nine_calibrators() -> list[Rated]:
    """Nonconformity 0.1, 0.2, ... 0.9 at ratings 1400 apart from human by that many errors."""
    return [Rated(f"voted{k}", 1400.0 + k, 1400.0, 10.0) for k in range(1, 10)]


def test_a_new_model_gets_the_threshold_of_all_voted_models() -> None:
    new = Rated("new", 1600.0, None, 20.0, flags="no-votes")
    row = rows_of(rank_models(heldout_of([*nine_calibrators(), new]), miscoverage=0.1))["new"]
    # nine scores at 90 %: the ninth smallest, 0.9 standard errors of 20 points
    assert (row["lower"], row["upper"]) == pytest.approx((1582.0, 1618.0))
    assert row["flags"] == "no-votes"
    assert math.isnan(row["human_rating"])


def test_a_voted_model_does_not_calibrate_its_own_interval() -> None:
    board = rows_of(rank_models(heldout_of(nine_calibrators()), miscoverage=0.2))
    # eight others at 80 %: rank ceil(0.8 * 9) = 8, the largest of the others
    assert board["voted9"]["upper"] - board["voted9"]["rating"] == pytest.approx(8.0)
    assert board["voted1"]["upper"] - board["voted1"]["rating"] == pytest.approx(9.0)


def test_too_few_voted_models_give_the_whole_line() -> None:
    board = rank_models(heldout_of(nine_calibrators()), miscoverage=0.1)
    assert np.isneginf(board.lower).all()
    assert np.isposinf(board.upper).all()
    assert set(board.tier.tolist()) == {1}


def test_rows_are_ranked_by_rating_and_ties_by_name() -> None:
    rows = [
        Rated(name, rating, None, 1.0) for name, rating in zip("dbca", (9, 7, 9, 8), strict=True)
    ]
    board = rank_models(heldout_of(rows))
    assert board.rank.tolist() == [1, 2, 3, 4]
    assert board.model.tolist() == ["c", "d", "a", "b"]


def test_tiers_count_the_models_clearly_above() -> None:
    """By hand: threshold 1, so intervals are rating +- std_error."""
    calibrators = [Rated(f"v{k}", 1.0, 0.0, 1.0) for k in range(9)]
    new = [
        Rated("top", 1700.0, None, 20.0),  # 1680..1720
        Rated("near", 1670.0, None, 20.0),  # 1650..1690 overlaps the top
        Rated("below", 1640.0, None, 20.0),  # 1620..1660 below the top only
        Rated("wide", 1640.0, None, 50.0),  # 1590..1690 below nobody
        Rated("low", 1500.0, None, 10.0),  # 1490..1510 below all four
        Rated("touching", 1470.0, None, 20.0),  # 1450..1490 touches low: not clearly below it
    ]
    tier = {
        m: row["tier"] for m, row in rows_of(rank_models(heldout_of([*calibrators, *new]))).items()
    }
    assert {model: int(tier[model]) for model, *_ in new} == {
        "top": 1, "near": 1, "below": 2, "wide": 1, "low": 5, "touching": 5,
    }  # fmt: skip


def test_other_methods_stand_beside_the_ranking_one() -> None:
    rows = [
        *nine_calibrators(),
        Rated("voted1", 1300.0, 1400.0, 7.0, method="hard"),
        Rated("voted1", 1400.0, 1400.0, 3.0, method="human"),
    ]
    rows[0] = rows[0]._replace(beta=0.7)
    row = rows_of(rank_models(heldout_of(rows), method="soft"))["voted1"]
    assert (row["rating"], row["soft_rating"], row["hard_rating"]) == (1401.0, 1401.0, 1300.0)
    assert (row["human_rating"], row["beta"], row["std_error"]) == (1400.0, 0.7, 10.0)
    assert row["method"] == "soft"


def test_a_model_without_a_rating_comes_last_with_its_flag() -> None:
    rows = [*nine_calibrators(), Rated("lost", math.nan, None, math.nan, flags="no-battles")]
    board = rank_models(heldout_of(rows), miscoverage=0.2)
    assert board.model.tolist()[-1] == "lost"
    lost = rows_of(board)["lost"]
    assert lost["flags"] == "no-battles"
    assert all(math.isnan(lost[field]) for field in ("rating", "lower", "upper"))
    assert np.isfinite(board.lower[:-1]).all()

    assert math.isnan(lost["rank"])
    assert math.isnan(lost["tier"])


@pytest.mark.parametrize("std_error", [0.0, math.nan])
def test_a_model_whose_battles_show_no_spread_gets_the_whole_line(std_error: float) -> None:
    new = Rated("new", 1900.0, None, std_error, flags="no-votes")
    row = rows_of(rank_models(heldout_of([*nine_calibrators(), new]), miscoverage=0.1))["new"]
    assert (row["rank"], row["rating"]) == (1, 1900.0)
    assert (row["lower"], row["upper"]) == (-math.inf, math.inf)
    assert row["flags"] == "no-votes;no-spread"


@pytest.mark.parametrize("method", ["human", "Soft", "elo"])
def test_an_unknown_method_is_refused_with_the_known_ones(method: str) -> None:
    rows = [*nine_calibrators(), Rated("voted1", 1400.0, 1400.0, 3.0, method="human")]
    with pytest.raises(ValueError, match=f"'{method}'.* soft"):
        rank_models(heldout_of(rows), method=method)


def test_the_bootstrap_error_can_scale_the_intervals() -> None:
    rows = [row._replace(bootstrap=5.0) for row in nine_calibrators()]
    new = Rated("new", 1600.0, None, 20.0, bootstrap=10.0)
    board = rows_of(rank_models(heldout_of([*rows, new]), std_error="bootstrap"))
    # residual 9 points of 5: 1.8 standard errors of 10 points
    assert board["new"]["upper"] == pytest.approx(1618.0)
    assert board["new"]["std_error"] == 10.0

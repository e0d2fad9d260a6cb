"""A leaderboard whose judge failed: nothing of the judge's is left, and everything else is."""

import numpy as np
import pytest

from judgeline.intervals import Leaderboard, withheld_reason, withhold

REASON = "kappa 0.05 < 0.20, parse_rate 0.40 < 0.90"
JUDGED = {
    "rank", "best_rank", "worst_rank", "rating", "std_error", "lower", "upper", "hard_rating",
    "soft_rating", "beta", "judge_and_votes", "judge_and_votes_lower", "judge_and_votes_upper",
    "vote_std_error", "judge_and_votes_std_error",
}  # fmt: skip
"""What a judge has a say in, by hand."""

BOARD = Leaderboard(
    rank=np.array([1.0, 2.0, np.nan]),
    best_rank=np.array([1.0, 1.0, np.nan]),
    worst_rank=np.array([2.0, 2.0, np.nan]),
    model=np.array(["cat", "ant", "bee"]),
    method=np.array(["soft"] * 3),
    basis=np.array([""] * 3),
    rating=np.array([1600.0, 1400.0, np.nan]),
    std_error=np.array([10.0, 12.0, np.nan]),
    vote_std_error=np.array([9.0, 11.0, np.nan]),
    lower=np.array([1580.0, -np.inf, np.nan]),
    upper=np.array([1620.0, np.inf, np.nan]),
    human_rating=np.array([1590.0, np.nan, 1500.0]),
    judge_and_votes=np.array([1595.0, np.nan, np.nan]),
    judge_and_votes_std_error=np.array([8.0, np.nan, np.nan]),
    judge_and_votes_lower=np.array([1580.0, np.nan, np.nan]),
    judge_and_votes_upper=np.array([1610.0, np.nan, np.nan]),
    hard_rating=np.array([1700.0, 1300.0, np.nan]),
    soft_rating=np.array([1600.0, 1400.0, np.nan]),
    beta=np.array([0.8, 0.9, np.nan]),
    n_battles=np.array([10, 12, 0]),
    n_votes=np.array([10, 0, 7]),
    flags=np.array(["", "no-votes;few-battles", "no-battles-with-anchors"]),
)


def test_every_number_of_the_judge_goes_and_no_other() -> None:
    board = withhold(BOARD, REASON)
    order = [1, 2, 0]  # by name: the order of the ratings would tell them
    assert board.model.tolist() == ["ant", "bee", "cat"]
    for name, column in board._asdict().items():
        if name in JUDGED:
            assert np.isnan(column).all(), name
        elif name != "flags":
            np.testing.assert_array_equal(column, getattr(BOARD, name)[order])


def test_the_reason_comes_before_other_flags() -> None:
    flags = withhold(BOARD, REASON).flags.tolist()
    assert flags == [
        f"withheld: {REASON};no-votes;few-battles",
        f"withheld: {REASON};no-battles-with-anchors",
        f"withheld: {REASON}",
    ]
    assert {withheld_reason(text) for text in flags} == {REASON}


def test_ratings_that_are_shown_have_no_reason() -> None:
    assert [withheld_reason(text) for text in BOARD.flags.tolist()] == ["", "", ""]


@pytest.mark.parametrize("reason", ["", "kappa 0.05 < 0.20; parse_rate 0.40 < 0.90"])
def test_a_reason_that_would_not_be_read_back_is_refused(reason: str) -> None:
    with pytest.raises(ValueError, match="reason without semicolons"):
        withhold(BOARD, reason)

"""A leaderboard whose judge failed: nothing of the judge's is left, and people's votes rank."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from judgeline.intervals import Leaderboard, withheld_reason, withhold

REASON = "kappa 0.05 < 0.20, parse_rate 0.40 < 0.90"
OF_THE_JUDGE = (
    "judge_rating", "judge_lower", "judge_upper", "judge_std_error", "hard_rating", "soft_rating",
    "beta",
)  # fmt: skip
"""What a judge has a say in, by hand."""
CHOSEN = (
    "rank", "best_rank", "worst_rank", "rating", "lower", "upper", "std_error", "evidence", "flags",
)  # fmt: skip

KNOWN = {
    "model": ["cat", "ant", "bee", "dog"],
    "method": ["soft"] * 4,
    "basis": [""] * 4,
    "evidence": ["judge and 25 votes", "judge", "judge and 7 votes", "judge"],
    "human_rating": [1400.0, math.nan, 1600.0, math.nan],
    "human_std_error": [10.0, math.nan, 30.0, math.nan],
    "n_votes": [25, 0, 7, 0],
    "flags": [
        "far-from-people", "no-votes;few-battles;beyond-anchors", "no-battles-with-anchors", "",
    ],
}  # fmt: skip
BOARD = Leaderboard(
    *(np.array(KNOWN.get(name, [2.0, 1.0, np.nan, 3.0])) for name in Leaderboard._fields)
)


def test_every_number_of_the_judge_goes_and_votes_rank() -> None:
    board = withhold(BOARD, REASON, miscoverage=0.1)
    order = [2, 0, 1, 3]  # by votes, then by name: the order of the ratings would tell them
    assert board.model.tolist() == ["bee", "cat", "ant", "dog"]
    for name, column in board._asdict().items():
        if name in OF_THE_JUDGE:
            assert np.isnan(column).all(), name
        elif name not in CHOSEN:
            np.testing.assert_array_equal(column, getattr(BOARD, name)[order])
    np.testing.assert_array_equal(board.rank, [1, 2, np.nan, np.nan])
    np.testing.assert_array_equal(board.rating, [1600, 1400, np.nan, np.nan])
    np.testing.assert_array_equal(board.std_error, [30, 10, np.nan, np.nan])
    assert board.evidence.tolist() == ["7 votes", "25 votes", "", ""]
    # seven votes are too few for an interval, and 25 have a normal one
    reach = 10 * norm.ppf(0.95)
    assert board.lower.tolist()[:2] == [-math.inf, pytest.approx(1400 - reach)]
    assert board.upper.tolist()[:2] == [math.inf, pytest.approx(1400 + reach)]
    assert np.isnan([*board.lower[2:], *board.upper[2:], *board.best_rank[2:]]).all()


def test_the_reason_goes_before_flags_that_are_not_the_judges() -> None:
    flags = withhold(BOARD, REASON, miscoverage=0.1).flags.tolist()
    assert flags == [
        f"withheld: {REASON};no-battles-with-anchors",
        f"withheld: {REASON}",
        f"withheld: {REASON};no-votes;few-battles",
        f"withheld: {REASON}",
    ]
    assert {withheld_reason(text) for text in flags} == {REASON}
    assert [withheld_reason(text) for text in BOARD.flags.tolist()] == [""] * 4


@pytest.mark.parametrize("reason", ["", "kappa 0.05 < 0.20; parse_rate 0.40 < 0.90"])
def test_a_reason_that_would_not_be_read_back_is_refused(reason: str) -> None:
    with pytest.raises(ValueError, match="without a semicolon"):
        withhold(BOARD, reason, miscoverage=0.1)

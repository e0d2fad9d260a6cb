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

TEXTS = {
    "model": ["cat", "ant", "bee"],
    "method": ["soft"] * 3,
    "basis": [""] * 3,
    "flags": ["", "no-votes;few-battles", "no-battles-with-anchors"],
}
BOARD = Leaderboard(
    *(np.array(TEXTS.get(name, [2.0, 1.0, np.nan])) for name in Leaderboard._fields)
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
    flags = board.flags.tolist()
    assert flags == [
        f"withheld: {REASON};no-votes;few-battles",
        f"withheld: {REASON};no-battles-with-anchors",
        f"withheld: {REASON}",
    ]
    assert {withheld_reason(text) for text in flags} == {REASON}
    assert [withheld_reason(text) for text in BOARD.flags.tolist()] == ["", "", ""]


@pytest.mark.parametrize("reason", ["", "kappa 0.05 < 0.20; parse_rate 0.40 < 0.90"])
def test_a_reason_that_would_not_be_read_back_is_refused(reason: str) -> None:
    with pytest.raises(ValueError, match="without a semicolon"):
        withhold(BOARD, reason)

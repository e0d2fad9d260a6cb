import numpy as np
import pandas as pd
import pytest

from assets.pooled import common_battles, compare_pooled, pooled_board
from judgeline.leaderboard import Leaderboard
from resources.corpora.definitions import RatingOptions
from resources.report.judge_tables import COMPARISON_COLUMNS

RATING = RatingOptions(n_resamples=0)


@pytest.fixture
def judges(scored_battles: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Three judges of the same battles in different orders; each sees them a little differently."""
    rng = np.random.default_rng(3)
    return {
        name: scored_battles.assign(
            score_difference=scored_battles["score_difference"]
            + rng.integers(-6, 7, len(scored_battles)) / 6
        ).sample(frac=1, random_state=seed)
        for seed, name in enumerate(("first", "second", "third"))
    }


def test_common_battles_are_those_that_all_scored_in_one_order(judges) -> None:
    judges["second"] = judges["second"].drop(judges["second"].index[:5])
    common = common_battles(judges)
    assert set(common) == {"first", "second", "third"}
    ids = [table["battle_id"].tolist() for table in common.values()]
    assert ids[0] == ids[1] == ids[2]
    assert set(ids[0]) == set(judges["second"]["battle_id"])


def test_a_judge_that_scored_too_few_battles_is_left_out(judges) -> None:
    judges["second"] = judges["second"].head(47)  # of 60: less than 80 %
    assert set(common_battles(judges)) == {"first", "third"}


def test_a_judge_of_other_votes_is_left_out(judges) -> None:
    stale = judges["third"]
    judges["third"] = stale.assign(human_outcome=1 - stale["human_outcome"])
    assert set(common_battles(judges)) == {"first", "second"}
    assert common_battles({}) == {}


def test_the_board_has_a_leaderboards_columns_and_a_row_in_the_comparison(judges) -> None:
    table, said = pooled_board(common_battles(judges), RATING, "tiny")
    assert list(table)[: len(Leaderboard._fields)] == list(Leaderboard._fields)
    assert sorted(table["model"]) == ["ant", "bee", "cat", "dog"]
    assert table["n_scored"].eq(60).all()
    assert "no model with votes has an interval" in said["kept"]  # four models calibrate nothing
    row = compare_pooled(table, RATING)
    assert set(COMPARISON_COLUMNS) <= set(row)
    assert row["mae"].tolist() == pytest.approx([table["residual"].abs().mean()])
    assert row["judge"].tolist() == row["method"].tolist() == ["pooled"]


@pytest.mark.parametrize("n_judges", [0, 1])
def test_fewer_than_two_judges_make_an_empty_board_with_a_note(judges, n_judges: int) -> None:
    one = dict(list(common_battles(judges).items())[:n_judges])
    whole, _ = pooled_board(common_battles(judges), RATING, "tiny")
    table, said = pooled_board(one, RATING, "tiny")
    assert "takes two judges" in said["note"]
    assert table.empty
    assert list(table) == list(whole)
    assert compare_pooled(table, RATING).empty


def test_battles_without_votes_make_an_empty_board_with_a_note(judges) -> None:
    unvoted = {name: table.assign(human_outcome=np.nan) for name, table in judges.items()}
    table, said = pooled_board(common_battles(unvoted), RATING, "tiny")
    assert table.empty
    assert "nobody voted" in said["note"]

"""Rows of one battle: two orders, replicates and several votes are one battle, else refused."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

import judgeline
from judgeline.api import QualityGateError
from judgeline.io import ArgumentError, read_judged_battles
from judgeline.io.one_battle import votes_of

SCORED = ["model_a", "model_b", "score_difference", "human_outcome"]


def battles(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    pairs = np.array([("a", "b"), ("c", "b"), ("c", "d"), ("d", "a")])[np.arange(n) % 4]
    return pd.DataFrame(
        {
            "battle_id": [f"b{row}" for row in range(n)],
            "model_a": pairs[:, 0],
            "model_b": pairs[:, 1],
            "score_difference": rng.integers(-4, 5, n).astype(float),
            "human_outcome": rng.choice([0.0, 0.5, 1.0], n),
        }
    )


def exchanged(table: pd.DataFrame) -> pd.DataFrame:
    """Return the same battles with their models exchanged."""
    turned = table.rename(columns={"model_a": "model_b", "model_b": "model_a"})
    turned["score_difference"] = -table["score_difference"]
    turned["human_outcome"] = 1 - table["human_outcome"]
    if "winner" in table:
        turned["winner"] = table["winner"].replace({"model_a": "model_b", "model_b": "model_a"})
    return turned[table.columns]


def named(table: pd.DataFrame, key: str) -> pd.DataFrame:
    """Return battles under a battle's id, or a question's."""
    return table.rename(columns={"battle_id": key})


@pytest.mark.parametrize("key", ["battle_id", "question_id"])
@pytest.mark.parametrize("voted", ["both", "first", "second", "none"])
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_exchanged_models_are_two_orders_of_one_battle(key, voted, is_shuffled) -> None:
    first = battles()
    first["judge_score_a"], first["judge_score_b"] = first["score_difference"] + 5.0, 5.0
    second = exchanged(first.assign(score_difference=first["score_difference"] + 1))
    second["judge_score_a"], second["judge_score_b"] = second["score_difference"] + 5.0, 5.0
    vote = first["human_outcome"]
    if voted in ("second", "none"):
        first["human_outcome"] = np.nan
    if voted in ("first", "none"):
        second["human_outcome"] = np.nan
    for columns in (["score_difference"], ["judge_score_a", "judge_score_b"]):
        other = {"score_difference", "judge_score_a", "judge_score_b"} - {*columns}
        both = named(pd.concat([first, second], ignore_index=True).drop(columns=[*other]), key)
        if is_shuffled:  # rows of a battle need not be neighbours; the first one's A stays A
            both = pd.concat([both[:60].sample(frac=1, random_state=1), both[60:]])
        read = read_judged_battles(both.reset_index(drop=True), with_votes=False)
        scored = read.scored.sort_values(key, key=lambda ids: ids.str[1:].astype(int))
        expected = first["score_difference"].to_numpy()
        assert read.n_battles == 60
        assert len(read.quarantine) == 0
        assert scored["score_difference"].to_numpy() == pytest.approx(expected + 0.5)
        assert scored["difference_ab"].to_numpy() == pytest.approx(expected)
        assert scored["difference_ba"].to_numpy() == pytest.approx(expected + 1)
        assert scored["model_a"].tolist() == first["model_a"].tolist()
        if voted != "none":
            assert scored["human_outcome"].tolist() == vote.tolist()
        assert "both orders of 60 battles are averaged" in " ".join(read.notes)


def test_whole_numbers_are_averaged_as_others_are() -> None:
    first = battles().astype({"score_difference": int})
    first["human_outcome"] = (first["human_outcome"] > 0).astype(int)
    second = exchanged(first.assign(score_difference=first["score_difference"] + 1))
    first["difference_ab"] = first["difference_ba"] = first["score_difference"]
    second["difference_ab"] = second["difference_ba"] = second["score_difference"] + 0.5
    read = read_judged_battles(pd.concat([first, second], ignore_index=True))
    expected = first["score_difference"] + 0.5
    assert read.scored["score_difference"].tolist() == expected.tolist()
    assert read.scored["difference_ab"].tolist() == (expected - 0.25).tolist()
    assert read.scored["human_outcome"].tolist() == first["human_outcome"].tolist()


def test_orders_by_plain_verdicts_contradict_each_other_as_ties() -> None:
    first = battles().drop(columns="score_difference").assign(judge_winner="A")
    second = exchanged(first.assign(score_difference=0.0)).drop(columns="score_difference")
    second["judge_winner"] = "A"  # the answer shown first, in either order
    read = read_judged_battles(pd.concat([first, second], ignore_index=True))
    assert read.n_battles == 60
    assert read.scored["judge_outcome"].eq(0.5).all()
    assert read.scored["score_difference"].eq(0).all()


@pytest.mark.parametrize("codes", ["numbers", "winner"])
def test_another_vote_on_the_same_verdict_is_another_vote(codes: str) -> None:
    one = battles()
    votes = [one.assign(human_outcome=vote) for vote in (1.0, 1.0, 0.0, 0.5)]
    table = pd.concat(votes, ignore_index=True)
    if codes == "winner":
        names = {1.0: "model_a", 0.0: "model_b", 0.5: "tie"}
        table = table.assign(winner=table["human_outcome"].map(names)).drop(columns="human_outcome")
    read = read_judged_battles(table)
    assert len(read.quarantine) == 0
    by_question = read.scored.groupby("question_id")
    assert len(by_question) == 60
    assert by_question["human_outcome"].agg(sorted).tolist() == [[0.0, 0.5, 1.0, 1.0]] * 60
    assert by_question["score_difference"].nunique().eq(1).all()
    assert read.scored["battle_id"].is_unique
    assert "several votes on 60 battles" in " ".join(read.notes)


def test_exact_repeats_of_a_battle_are_set_aside() -> None:
    one = battles()
    read = read_judged_battles(pd.concat([one, one[:5]], ignore_index=True))
    assert read.n_battles == 60
    assert read.quarantine["reason"].tolist() == ["duplicate-battle"] * 5
    assert read.quarantine["row"].tolist() == [60, 61, 62, 63, 64]
    several = pd.concat([one.assign(human_outcome=1.0), one.assign(human_outcome=0.0)])
    twice = pd.concat([several, several[::-1]], ignore_index=True)  # a file joined to itself
    read = read_judged_battles(twice)
    assert read.n_battles == 120
    assert len(read.quarantine) == 120
    assert {*read.quarantine["reason"]} == {"duplicate-battle"}


def test_other_scores_of_an_order_are_replicates() -> None:
    first = battles().assign(score_difference=lambda table: table["score_difference"] + 0.5)
    again = first.assign(score_difference=first["score_difference"] + 2)
    third = first.assign(score_difference=first["score_difference"] + 4)
    read = read_judged_battles(pd.concat([first, again, third], ignore_index=True))
    assert read.n_battles == 60
    assert read.scored["score_difference"].tolist() == (first["score_difference"] + 2).tolist()
    assert read.scored["human_outcome"].tolist() == first["human_outcome"].tolist()
    assert read.scored["difference_ab"].isna().all()
    assert "several scores of the judge on 60 battles" in " ".join(read.notes)
    by_question = named(pd.concat([first, again], ignore_index=True), "question_id")
    assert read_judged_battles(by_question).n_battles == 60
    other = by_question.copy()
    other.loc[60, "human_outcome"] = (by_question.loc[60, "human_outcome"] + 0.5) % 1.5
    read = read_judged_battles(other)  # a vote says that they are other battles of the question
    assert read.n_battles == 120
    assert "give these one battle_id" in " ".join(read.notes)


def test_orders_and_votes_of_one_battle_are_told_apart() -> None:
    one = battles()
    rows = [
        table.assign(human_outcome=vote if table is one else 1 - vote)
        for table, vote in product((one, exchanged(one).assign(score_difference=1.0)), (1.0, 0.0))
    ]
    read = read_judged_battles(pd.concat(rows, ignore_index=True))
    assert read.n_battles == 120
    means = (one["score_difference"] - 1) / 2
    assert read.scored["score_difference"].tolist() == np.repeat(means, 2).tolist()
    assert read.scored["human_outcome"].tolist() == [0.0, 1.0] * 60


def test_what_rows_of_a_battle_cannot_be_is_refused_by_name() -> None:
    one = battles()
    unclear = one.assign(score_difference=4.5, human_outcome=(one["human_outcome"] + 0.5) % 1.5)
    for n, error in ((60, ValueError), (50, QualityGateError), (6, ArgumentError)):
        with pytest.raises(error, match="rows of battle 'b0' differ in scores and in votes"):
            judgeline.rank(pd.concat([one, unclear[:n]], ignore_index=True))
    strangers = one[:30].assign(model_a="x", model_b="y")
    table = pd.concat([one, strangers], ignore_index=True)
    with pytest.raises(ArgumentError, match="battle 'b0' came before, with the models 'a' and 'b'"):
        judgeline.rank(table)
    read = read_judged_battles(pd.concat([one, unclear[:1]], ignore_index=True))
    assert read.n_battles == 59
    assert read.quarantine["reason"].tolist() == ["unclear-battle"] * 2


@pytest.mark.parametrize(
    ("share", "number", "votes"),
    [
        (0.667, None, [0.0, 1.0, 1.0]),
        (0.333, None, [0.0, 0.0, 1.0]),
        (0.6, None, [0.0, 0.0, 1.0, 1.0, 1.0][:5]),
        (0.25, None, [0.0, 0.5]),
        (0.8, 5, [0.0, 1.0, 1.0, 1.0, 1.0]),
        (0.5, 4, [0.0, 0.0, 1.0, 1.0]),
        (0.7, 5, [0.0, 0.5, 1.0, 1.0, 1.0]),
        (1.0, 3, [1.0, 1.0, 1.0]),
    ],
)
def test_a_share_is_so_many_votes_of_one_question(share, number, votes) -> None:
    table = battles().drop(columns="battle_id")
    table["human_outcome"] = np.where(np.arange(60) == 7, share, table["human_outcome"])
    if number:
        table["n_votes"] = np.where(np.arange(60) == 7, number, 1)
        table.loc[8, ["human_outcome", "n_votes"]] = [0.5, 2]
        table.loc[table["human_outcome"].eq(0.5) & table["n_votes"].eq(1), "human_outcome"] = 1.0
        if share in (0.5, 1.0):  # the column is one of shares by another row
            table.loc[9, ["human_outcome", "n_votes"]] = [0.75, 4]
    read = read_judged_battles(table)
    shared = read.scored.groupby("question_id").filter(lambda rows: len(rows) > 1)
    of_row = shared[shared["question_id"].eq("row 7")]
    assert sorted(of_row["human_outcome"]) == votes
    assert len({*of_row["score_difference"]}) == 1
    assert ("add n_votes" in " ".join(read.notes)) == (number is None)


@pytest.mark.parametrize("first", [1.0, 0.6])
def test_the_number_of_votes_counts_whatever_other_rows_hold(first: float) -> None:
    outcome = pd.Series([first, *[1.0, 0.0] * 4])
    number = pd.Series([5.0, *[5.0, math.nan] * 4])
    votes, wrong, _ = votes_of(outcome, number)
    assert not wrong.any()
    assert votes.sum(axis=1).tolist() == [5, *[5, 1] * 4]


def test_shares_that_no_votes_make_are_refused() -> None:
    table = battles()
    table["human_outcome"] = np.random.default_rng(1).random(60)
    with pytest.raises((QualityGateError, ArgumentError), match="their number in n_votes"):
        judgeline.rank(table)
    table = battles().assign(human_outcome=0.3, n_votes=3)
    with pytest.raises((ArgumentError, ValueError), match="and no whole number of them"):
        judgeline.rank(table)


def test_a_file_without_repeats_is_read_as_it_stands() -> None:
    one = battles().assign(question_id=[f"q{row // 2}" for row in range(60)])
    read = read_judged_battles(one)
    assert read.notes == ()
    pd.testing.assert_frame_equal(
        read.scored[SCORED], one[SCORED], check_dtype=False, check_exact=True
    )

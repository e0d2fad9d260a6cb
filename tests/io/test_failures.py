"""Failed verdicts: a value apart from the scale is no score, and no failure is a tie."""

import numpy as np
import pandas as pd
import pytest

import judgeline
from judgeline.io import ArgumentError, parse_codes, read_judged_battles
from judgeline.io.failures import find_apart

RNG = np.random.default_rng(3)
WHOLE = RNG.integers(1, 11, (400, 2)).astype(float)
SCALES = {
    "1 to 10": WHOLE,
    "halves": WHOLE / 2 + 0.5,
    "0 to 100": WHOLE * 10,
    "shares": np.round(RNG.random((400, 2)), 3),
    "rewards": RNG.normal(0, 3, (400, 2)),
    "logarithms": -RNG.exponential(2, (400, 2)),
}


def battles(scores: np.ndarray, **columns: object) -> pd.DataFrame:
    names = np.array(["a", "b", "c", "d"])
    first = np.arange(len(scores)) % 4
    return pd.DataFrame(
        {
            "model_a": names[first],
            "model_b": names[(first + 1 + np.arange(len(scores)) % 3) % 4],
            "judge_score_a": scores[:, 0],
            "judge_score_b": scores[:, 1],
            "human_outcome": np.arange(len(scores)) % 2.0,
            **columns,
        }
    )


@pytest.mark.parametrize("scale", SCALES)
def test_no_score_of_a_usual_scale_is_apart(scale: str) -> None:
    read = read_judged_battles(battles(SCALES[scale]))
    assert len(read.scored) == 400


@pytest.mark.parametrize("mark", [-1.0, -99.0, 999.0, -999.0])
@pytest.mark.parametrize("scale", ["1 to 10", "halves", "0 to 100", "shares"])
@pytest.mark.parametrize("names", [("judge_score_a", "judge_score_b"), ("score_a", "score_b")])
def test_a_mark_of_failure_is_named_by_model_and_read_as_missing(mark, scale, names) -> None:
    scores = SCALES[scale].copy()
    scores[0:40:4, 0] = mark
    usual = battles(scores)
    table = usual.rename(columns=dict(zip(("judge_score_a", "judge_score_b"), names, strict=True)))
    with pytest.raises(ArgumentError, match=rf"is {mark:g} 10 times \(by model: a 10\)") as refused:
        read_judged_battles(table)
    assert f"--missing {mark:g}" in refused.value.as_option()
    assert "--missing nothing" in refused.value.as_option()
    read = read_judged_battles(table, missing=mark)
    assert len(read.scored) == 390
    assert set(read.quarantine["reason"]) == {"missing-verdict"}
    assert len(read_judged_battles(table, missing=[str(mark), "error"]).scored) == 390
    assert len(read_judged_battles(table, missing="nothing").scored) == 400
    assert len(read_judged_battles(table, missing=()).scored) == 400


def test_differences_hold_marks_too_and_votes_keep_their_codes() -> None:
    table = battles(WHOLE).drop(columns=["judge_score_a", "judge_score_b"])
    table["score_difference"] = WHOLE[:, 0] - WHOLE[:, 1]
    assert len(read_judged_battles(table).scored) == 400
    table.loc[[1, 5], "score_difference"] = -999.0
    with pytest.raises(ArgumentError, match="score_difference is -999 2 times"):
        read_judged_battles(table)
    read = read_judged_battles(table, missing=[-999, 0])  # 0 is B's win in human_outcome
    n_equal = int((WHOLE[:, 0] == WHOLE[:, 1]).sum())
    n_both = int((WHOLE[[1, 5], 0] == WHOLE[[1, 5], 1]).sum())
    assert len(read.scored) == 400 - n_equal - 2 + n_both
    assert read.scored["human_outcome"].notna().all()


def test_whoever_rates_by_missing_values_is_not_asked_for_more() -> None:
    scores = WHOLE.copy()
    scores[::5, 1] = -1.0
    with pytest.raises(ArgumentError, match="is -1 80 times"):
        judgeline.reference_ratings(battles(scores))
    with pytest.raises(ArgumentError, match="is -1 80 times"):
        judgeline.win_rates(battles(scores))
    assert (
        len(judgeline.reference_ratings(battles(scores), missing=-1)) == 3
    )  # beside the reference
    assert "missing=-1" in judgeline.doctor(battles(scores), missing=-1).next


@pytest.mark.parametrize(
    ("values", "counts", "apart"),
    [
        ([-1, 1, 2, 3, 4, 5], [5, 9, 9, 9, 9, 9], -1),
        ([-1, 0, 1], [9, 9, 9], None),  # alike on both sides of 0
        ([-1, 0, 1, 2], [9, 9, 9, 9], -1),  # the only negative one
        ([0, 1, 2, 3, 4, 5], [9, 9, 9, 9, 9, 9], None),  # one step from the next
        ([0, 1, 1.5, 2, 2.5, 3], [9, 9, 9, 9, 9, 9], 0),  # two steps
        ([1, 6, 7, 8, 9], [1, 9, 9, 9, 9], 1),
        ([4, 6, 7, 8, 9], [1, 9, 9, 9, 9], None),  # once, and nearer than the scale is wide
        ([0, 1], [9, 9], None),
        ([1, 2, 3, 99], [19, 9, 9, 1], 99),
        ([*range(0, 95, 5), 100], [*[9] * 19, 50], None),  # a round number above an unused one
        ([1, 2, 3, 99], [5, 5, 5, 1], None),  # too few to say what the scale is
        ([-0.003, 0.1, 0.2, 0.3], [1, 9, 9, 9], None),
    ],
)
def test_values_apart_from_a_scale(values, counts, apart) -> None:
    found = find_apart(values, counts)
    assert (found and found.value) == apart


@pytest.mark.parametrize("text", ["error", "N/A", "garbage", "parse_error", "Invalid", "skip"])
@pytest.mark.parametrize("column", ["judge_winner", "verdict", "judge_verdict"])
def test_verdict_texts_that_failed_are_set_aside_and_are_no_ties(text: str, column: str) -> None:
    verdicts = np.where(np.arange(400) % 10 == 3, text, np.where(np.arange(400) % 3, "A", "B"))
    sides = ["judge_score_a", "judge_score_b"]
    table = battles(WHOLE, **{column: verdicts}).drop(columns=sides)
    with pytest.raises(ArgumentError, match="Verdicts that failed are no ties") as refused:
        read_judged_battles(table)
    assert "--missing" in refused.value.as_option()
    assert "--allow-quarantine" in refused.value.as_option()
    for options in ({"missing": text}, {"lenient": True}, {"lenient": True, "outcomes": "A/B/tie"}):
        read = read_judged_battles(table, **options)
        assert len(read.scored) == 360
        assert read.scored["score_difference"].abs().eq(1).all()
        assert len(read.quarantine) == 40
    with pytest.raises(ArgumentError, match="a failed verdict is no tie") as refused:
        read_judged_battles(table, outcomes=f"A/B/tie/{text}")
    assert "--missing" in refused.value.as_option()


@pytest.mark.parametrize("code", ["error", "none", "n/a", "null", "unknown", "failed", "[[Error]]"])
def test_a_failure_is_no_code_of_ties(code: str) -> None:
    with pytest.raises(ArgumentError, match="missing="):
        parse_codes(f"1/2/0/{code}")
    assert parse_codes("1/2/0/tie")["tie"] == 0.5


@pytest.mark.parametrize("missing", ["tie", True, [None], "A>B", 1.5j])
def test_what_cannot_be_missing_is_refused(missing: object) -> None:
    with pytest.raises(ArgumentError, match="missing"):
        read_judged_battles(battles(WHOLE), missing=missing)


def test_a_vote_that_failed_is_no_vote() -> None:
    winner = np.where(np.arange(400) % 4 == 0, "error", "model_a")
    table = battles(WHOLE, winner=winner).drop(columns="human_outcome")
    table.loc[1, "winner"] = "model_b"
    with pytest.raises(ArgumentError, match="'error'"):
        read_judged_battles(table)
    read = read_judged_battles(table, missing="error")
    assert read.scored["human_outcome"].isna().sum() == 100

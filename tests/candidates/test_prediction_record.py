"""The record of predictions: written once, scored once, and held against those that calibrate."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from assets.candidates.predictions import predictions_cover
from judgeline.elo import RatingSettings, rate
from judgeline.io import as_coded
from judgeline.rating_options import RatingOptions
from judgeline.steps.predictions import (
    JUDGE_AND_VOTES,
    PEOPLE,
    coverage_of,
    further_ratings,
    pool_of,
    score_predictions,
    state_predictions,
    typed_record,
)
from judgeline.tables.candidates import PREDICTIONS

FIRST, THEN = "2031-01-01T00:00:00+00:00", "2031-02-01T00:00:00+00:00"
HASHES = pd.Series({"new": "abc"})


def board(*rows: tuple[str, float, float, int], flags: str = "") -> pd.DataFrame:
    """Rows of model, judge rating, human rating (NaN without) and votes; intervals of 50 points.

    The best rating of a model with votes is by these alone, and no prediction.
    """
    table = pd.DataFrame(rows, columns=["model", "judge_rating", "human_rating", "n_votes"])
    unvoted = table["human_rating"].isna()
    judged = table["judge_rating"]
    best = {"rating": judged.where(unvoted, table["human_rating"]), "std_error": 33.0}
    best |= {"lower": best["rating"] - 77, "upper": best["rating"] + 77}
    alone = {"judge_lower": judged - 50, "judge_upper": judged + 50, "judge_std_error": 20.0}
    evidence = np.where(unvoted, "judge", table["n_votes"].map("{} votes".format))
    no_votes = np.where(unvoted, "candidate;no-votes", "")
    return table.assign(
        method="soft", **best, **alone, vote_std_error=15.0, human_std_error=99.0,
        evidence=evidence,
        flags=flags or no_votes,
    )  # fmt: skip


NO_BATTLES = pd.DataFrame(columns=["battle_id", "model_a", "model_b", "human_outcome"])
NONE_FURTHER = pd.DataFrame(columns=PEOPLE)


def state(record, leaderboard, now=FIRST, battles=NO_BATTLES) -> pd.DataFrame:
    how = {"miscoverage": 0.1, "now": now, "run_id": f"run of {now}"}
    return state_predictions(record, leaderboard, HASHES, battles, **how)


def score(record, leaderboard, further=NONE_FURTHER, *, now=THEN) -> pd.DataFrame:
    return score_predictions(record, leaderboard, further, now=now)


VOTED = [("ant", 1500.0, 1510.0, 90), ("bee", 1400.0, 1390.0, 80)]
NONE = typed_record(None)
NEW = ("new", 1600.0, math.nan, 0)
STATED, SCORED = PREDICTIONS.columns[:13], PREDICTIONS.columns[13:]


def first_record() -> pd.DataFrame:
    return state(NONE, board(*VOTED, NEW))


def test_a_model_without_votes_is_predicted_when_it_is_first_rated():
    record = first_record()
    assert record.dtypes.astype(str).to_dict() == PREDICTIONS.dtypes
    (row,) = record.to_dict("records")
    expected = {
        **{"model": "new", "content_hash": "abc", "predicted_at": FIRST, "method": "soft"},
        **{"rating": 1600.0, "lower": 1550.0, "upper": 1650.0, "std_error": 20.0},
        **{"vote_std_error": 15.0, "miscoverage": 0.1, "run_id": f"run of {FIRST}"},
    }
    assert {name: row[name] for name in expected} == expected
    assert all(pd.isna(row[name]) for name in ["used_votes", *SCORED])
    assert json.loads(row["anchors"]) == {"ant": 1510.0, "bee": 1390.0}
    of_corpus = state(NONE, board(NEW, flags="no-votes"))  # it is predicted, and has no file
    assert of_corpus["content_hash"].isna().tolist() == [True]


def with_votes(leaderboard: pd.DataFrame, model: str, rating: float) -> pd.DataFrame:
    """The board with one model's rating by judge and votes: standard error 20, interval of 40."""
    both = {"rating": rating, "std_error": 20.0, "lower": rating - 40, "upper": rating + 40}
    both |= {"evidence": "judge and 2 votes"}
    row = leaderboard["model"].eq(model)
    return leaderboard.assign(
        **{name: leaderboard[name].mask(row, value) for name, value in both.items()}
    )


@pytest.mark.parametrize(
    "leaderboard",
    [
        board(("new", math.nan, math.nan, 0)),  # withheld, or not rated
        # a hub, without which nobody is connected: its votes are there, and its scale is not
        board(("hub", 1600.0, math.nan, 360), flags="anchors-disconnected"),
        board(*VOTED, NEW).assign(judge_lower=-math.inf, judge_upper=math.inf),
        board(*VOTED, NEW, flags="candidate;no-votes;few-battles"),
        with_votes(board(*VOTED), "ant", 1500.0),  # it came with its votes
    ],
)
def test_a_rating_that_is_not_worth_it_is_not_stated(leaderboard):
    assert state(NONE, leaderboard).empty
    later = state(NONE, board(*VOTED, NEW), now=THEN)
    assert later["predicted_at"].tolist() == [THEN]


def test_the_first_prediction_stays_whatever_comes_later():
    record = state(NONE, board(("new", 1600.0, math.nan, 0)))
    later = board(("new", 1700.0, math.nan, 0), ("other", 1300.0, math.nan, 0))
    again = state(record, later, now=THEN)
    pd.testing.assert_frame_equal(again.head(1), record)
    assert again["model"].tolist() == ["new", "other"]
    pd.testing.assert_frame_equal(state(again, later, now=THEN), again)


@pytest.mark.parametrize(
    ("human", "covered"), [(1550.0, True), (1650.0, True), (1549.9, False), (1700.0, False)]
)
def test_votes_score_a_prediction_once(human, covered):
    record = state(NONE, board(*VOTED, NEW, ("wait", 1.0, math.nan, 0)))
    scored = score(record, board(*VOTED, ("new", 9.0, human, 90)))
    rows = scored.set_index("model")
    row = rows.loc["new"]
    assert (row["scored_at"], row["human_rating"], row["n_votes"]) == (THEN, human, 90)
    assert row["residual"] == pytest.approx(1600 - human)  # of what was predicted
    assert bool(row["covered"]) is covered
    assert row["origin_shift"] == pytest.approx(0, abs=1e-9)
    pd.testing.assert_frame_equal(scored[STATED], record[STATED])
    assert pd.isna(rows.loc["wait", "scored_at"])
    again = score(scored, board(*VOTED, ("new", 9.0, 1.0, 900)), now="later still")
    pd.testing.assert_frame_equal(again, scored)


@pytest.mark.parametrize(
    ("people", "is_scored"),
    [
        ([*VOTED, ("new", 9.0, 1800.0, 80)], False),
        ([*VOTED, ("new", 9.0, 1800.0, 81)], True),  # the lowest decile of 80 and 90
        # none of its anchors is left
        ([("cat", 1.0, 1500.0, 90), ("new", 9.0, 1600.0, 60)], False),
    ],
)
def test_a_prediction_waits_for_votes_enough_and_an_anchor(people, is_scored):
    assert score(first_record(), board(*people))["scored_at"].notna().tolist() == [is_scored]
    pd.testing.assert_frame_equal(score(NONE, board(*VOTED)), NONE)


def left_out(strength: dict[str, float]) -> list[tuple[str, float, float, int]]:
    """Rows of models whose human ratings are relative to the mean of the others, by definition."""
    total, n_others = sum(strength.values()), len(strength) - 1
    return [(name, 0.0, 1500 + s - (total - s) / n_others, 90) for name, s in strength.items()]


OLD = {f"old-{k}": 10.0 * k for k in range(20)}
STRONG = {f"strong-{k}": 250.0 for k in range(4)}


@pytest.mark.parametrize(("then", "now"), [(OLD, OLD | STRONG), (OLD | STRONG, OLD)])
def test_a_zero_that_moved_moves_no_residual(then, now):
    """Four strong models get votes before the model that was predicted right does, or leave."""
    model, zero = 130.0, np.mean(list(then.values()))
    record = state(NONE, board(*left_out(then), ("new", 1500 + model - zero, math.nan, 0)))
    (row,) = score(record, board(*left_out({**now, "new": model}))).to_dict("records")
    assert row["residual"] == pytest.approx(0, abs=1e-9)
    assert row["origin_shift"] == pytest.approx(np.mean(list(now.values())) - zero)
    assert row["human_rating"] + row["origin_shift"] == pytest.approx(row["rating"])


def test_a_record_that_is_older_than_its_column_of_anchors_is_scored_as_before():
    record = typed_record(first_record().drop(columns=["anchors", "origin_shift"]))
    now = board(*VOTED, ("cat", 1.0, 1900.0, 90), ("new", 9.0, 1550.0, 90))
    assert score(record, now)["residual"].tolist() == [50.0]


# judge and votes together


def battles(*rows: tuple[str, str, str, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["battle_id", "model_a", "model_b", "human_outcome"])


SEEN = battles(
    ("b1", "new", "ant", 1.0), ("b2", "bee", "new", 0.5), ("b3", "new", "bee", math.nan),
    ("b4", "ant", "bee", 0.0),
)  # fmt: skip


def both_rows(n_votes: int = 0, human: float = math.nan) -> pd.DataFrame:
    """A record of the new model by the judge (1600), and by judge and votes (1580)."""
    now = with_votes(board(*VOTED, ("new", 1600.0, human, n_votes)), "new", 1580.0)
    return state(first_record(), now, now=THEN, battles=SEEN)


@pytest.mark.parametrize(("n_votes", "human"), [(0, math.nan), (60, 1570.0)])
def test_first_votes_make_a_second_prediction_that_names_them(n_votes, human):
    record = both_rows(n_votes, human)
    assert record["method"].tolist() == ["soft", JUDGE_AND_VOTES]
    row = record.iloc[1]
    assert (row["rating"], row["lower"], row["upper"]) == (1580.0, 1540.0, 1620.0)
    assert (row["predicted_at"], row["std_error"]) == (THEN, 20.0)
    assert json.loads(row["used_votes"]) == ["b1", "b2"]
    assert json.loads(row["anchors"]) == {"ant": 1510.0, "bee": 1390.0}  # never the model itself
    assert pd.isna(row[["content_hash", "vote_std_error", "scored_at"]]).all()
    later = with_votes(board(*VOTED, ("new", 1600.0, 1570.0, 70)), "new", 1500.0)
    pd.testing.assert_frame_equal(state(record, later, now="later still"), record)
    # votes that wait already are predicted with in the run that predicts without them
    at_once = state(NONE, with_votes(board(*VOTED, NEW), "new", 1580.0), battles=SEEN)
    assert at_once["used_votes"].isna().tolist() == [True, False]
    bounded = with_votes(board(*VOTED, ("new", 1600.0, 1570.0, 9)), "new", 1580.0)
    endless = bounded.assign(lower=-math.inf, upper=math.inf)
    by_votes = bounded.assign(evidence="9 votes")
    for unworthy in (endless, by_votes):
        assert len(state(first_record(), unworthy, battles=SEEN)) == 1


def further(rating: float, std_error: float, n_votes: int) -> pd.DataFrame:
    return pd.DataFrame([(rating, std_error, n_votes)], index=["new"], columns=PEOPLE)


@pytest.mark.parametrize(("off", "covered"), [(49.9, True), (-49.9, True), (50.1, False)])
def test_further_votes_score_it_with_their_own_noise(off, covered):
    """Errors of 20 and 15 make 25: 1.25 times the interval of 40 is 50."""
    now = board(*VOTED, ("new", 9.0, 1650.0, 900))
    scored = score(both_rows(), now, further(1580.0 - off, 15.0, 90))
    alone, together = scored.to_dict("records")
    assert together["residual"] == pytest.approx(off)
    assert bool(together["covered"]) is covered
    assert (together["n_votes"], together["human_std_error"]) == (90, 15.0)
    assert (alone["n_votes"], alone["human_rating"], alone["residual"]) == (900, 1650.0, -50.0)
    assert bool(alone["covered"])
    assert pd.isna(alone["human_std_error"])
    again = score(scored, now, further(0.0, 1.0, 999), now="later still")
    pd.testing.assert_frame_equal(again, scored)


@pytest.mark.parametrize("found", [NONE_FURTHER, further(1580.0, 15.0, 78)])
def test_votes_that_it_has_seen_are_no_votes_to_score_it_by(found):
    scored = score(both_rows(), board(*VOTED, ("new", 9.0, 1650.0, 900)), found)
    assert scored["scored_at"].notna().tolist() == [True, False]


@pytest.mark.parametrize(("n_seen", "needed"), [(2, 79), (40, 41), (500, 41)])
def test_votes_that_it_has_seen_make_up_for_up_to_half_of_those_that_calibrate(n_seen, needed):
    """The lowest decile of 80 and 90 is 81, and half of it 40.5."""
    record = both_rows()
    record.loc[1, "used_votes"] = json.dumps([f"b{k}" for k in range(n_seen)])
    for n_votes, is_scored in ((needed - 1, False), (needed, True)):
        scored = score(record, board(*VOTED), further(1580.0, 15.0, n_votes))
        assert scored["scored_at"].notna().tolist() == [False, is_scored]


def test_further_ratings_are_those_of_a_model_on_which_nobody_else_voted():
    """Oracle: the whole rating program over battles without the votes that were seen."""
    rng = np.random.default_rng(5)
    a = rng.integers(0, 6, 900)
    b = (a + rng.integers(1, 6, 900)) % 6
    vote = rng.choice([0.0, 0.5, 1.0], 900)
    names = np.array([f"m{k}" for k in range(6)])
    ids = np.char.add("b", np.arange(900).astype(str))
    table = battles(*zip(ids, names[a], names[b], vote, strict=True))
    own = table["model_a"].eq("m2") | table["model_b"].eq("m2")
    seen = own & (np.arange(900) < 400)

    table = table.assign(
        judge_outcome=(np.sign(b - a) + 1) / 2,
        recorded_outcome=np.nan,
        score_difference=b - a + 0.5 * rng.standard_normal(900),
    )
    used = [json.dumps(table["battle_id"][seen].tolist()), "[]", "[]"]
    record = pd.DataFrame({"model": ["m2", "gone", "m3"], "used_votes": used})
    record = record.assign(
        method=[JUDGE_AND_VOTES, JUDGE_AND_VOTES, "soft"], scored_at=pd.Series(None, dtype="str")
    )
    found = further_ratings(record, table, RatingOptions())
    unseen = table.assign(human_outcome=table["human_outcome"].mask(seen))
    alone = rate(as_coded(unseen, "derived"), RatingSettings(n_resamples=0))
    (oracle,) = alone.human_rating[(alone.model == "m2") & (alone.method == "human")]
    assert found.index.tolist() == ["m2"]
    assert found.loc["m2", "human_rating"] == pytest.approx(oracle, abs=1e-6)
    assert found.loc["m2", "n_votes"] == (own & ~seen).sum()
    lied = table.assign(human_outcome=table["human_outcome"].mask(seen, 1.0))
    again = further_ratings(record, lied, RatingOptions())
    pd.testing.assert_frame_equal(again, found)
    assert further_ratings(record.assign(scored_at=THEN), table, RatingOptions()).empty


# what the record is worth


def scored_record(residuals: list[float], half_width: float = 50.0) -> pd.DataFrame:
    rating = 1500.0 + np.arange(len(residuals))
    table = pd.DataFrame({"model": [f"new-{k}" for k in range(len(residuals))], "rating": rating})
    table = table.assign(
        method="soft", std_error=20.0, vote_std_error=0.0, miscoverage=0.1, scored_at=THEN,
        predicted_at=FIRST, lower=rating - half_width, upper=rating + half_width,
        residual=residuals, human_rating=rating - residuals, n_votes=50,
    )  # fmt: skip
    return typed_record(table.assign(covered=table["residual"].abs().le(half_width)))


def heldout(residuals: list[float], names: str = "voted") -> pd.DataFrame:
    rows = [
        {"model": f"{names}-{k}", "method": method, "residual": r}
        for k, r in enumerate(residuals)
        for method in ("hard", "soft")
    ]
    return pd.DataFrame(rows)


POOL = heldout([-40.0, -30, -20, -15, -10, -5, 0, 4, 8, 12, 16, 22, 28, 35, 45, -25, 18, -8, 3])


def test_coverage_counts_what_promised_something():
    record = scored_record([10.0, -80.0, 20.0])
    record.loc[2, ["lower", "upper"]] = [-math.inf, math.inf]
    coverage = coverage_of(record, POOL)
    assert coverage[["n_predictions", "n_covered"]].to_numpy().tolist() == [[2, 1]]
    assert predictions_cover(record, POOL).passed  # one of two is no surprise
    assert predictions_cover(NONE, POOL).passed
    # models that were predicted do not calibrate their own test
    table = pd.concat([POOL, heldout([300.0, 5.0], names="new")], ignore_index=True)
    pool = pool_of(table, "soft", record)
    assert set(pool["model"]) == {f"voted-{k}" for k in range(19)}
    assert set(pool["method"]) == {"soft"}


def test_the_two_predictions_of_a_model_are_counted_apart():
    together = scored_record([10.0, 20.0, 80.0]).assign(
        method=JUDGE_AND_VOTES, vote_std_error=math.nan
    )
    record = pd.concat([scored_record([10.0, -80.0]), together], ignore_index=True)
    coverage = coverage_of(record, POOL)
    counts = coverage[["method", "n_predictions", "n_covered"]].to_numpy().tolist()
    assert counts == [[JUDGE_AND_VOTES, 3, 2], ["soft", 2, 1]]
    assert coverage["nominal"].tolist() == pytest.approx([0.9, 0.9])  # 18 of 20: 19 calibrate both
    many = predictions_cover(scored_record([90.0] * 6 + [10.0] * 2), POOL)
    assert (many.passed, many.severity.value) == (False, "WARN")
    assert "no fewer predictions held than chance allows" in many.description


def test_a_prediction_of_an_older_version_counts():
    older = typed_record(scored_record([60.0, 75.0]).drop(columns=["vote_std_error", "used_votes"]))
    assert older["used_votes"].isna().all()
    record = pd.concat([older, scored_record([5.0]).assign(model="newer")], ignore_index=True)
    assert coverage_of(record, POOL)["n_predictions"].tolist() == [3]

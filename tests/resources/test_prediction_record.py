"""The record of predictions: written once, scored once, and held against those that calibrate."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from assets.predictions import exchangeable, predictions_cover
from resources.prediction_record import (
    PREDICTION_DTYPES,
    coverage_of,
    pool_of,
    rank_tests,
    score_predictions,
    state_predictions,
    strangeness,
    typed_record,
)

FIRST, THEN = "2031-01-01T00:00:00+00:00", "2031-02-01T00:00:00+00:00"
HASHES = pd.Series({"new": "abc"})


def board(*rows: tuple[str, float, float, int], flags: str = "") -> pd.DataFrame:
    """Rows of model, rating, human rating (NaN without) and votes; intervals of 50 points."""
    table = pd.DataFrame(rows, columns=["model", "rating", "human_rating", "n_votes"])
    return table.assign(
        method="soft",
        lower=table["rating"] - 50,
        upper=table["rating"] + 50,
        std_error=20.0,
        flags=flags or np.where(table["human_rating"].isna(), "candidate;no-votes", ""),
    )


def state(record: pd.DataFrame, leaderboard: pd.DataFrame, now: str = FIRST) -> pd.DataFrame:
    return state_predictions(
        record, leaderboard, HASHES, miscoverage=0.1, now=now, run_id=f"run of {now}"
    )


VOTED = [("ant", 1500.0, 1510.0, 90), ("bee", 1400.0, 1390.0, 80)]
NONE = typed_record(None)


def test_a_model_without_votes_is_predicted_when_it_is_first_rated():
    record = state(NONE, board(*VOTED, ("new", 1600.0, math.nan, 0)))
    assert record.dtypes.astype(str).to_dict() == PREDICTION_DTYPES
    (row,) = record.to_dict("records")
    assert (row["model"], row["content_hash"], row["predicted_at"]) == ("new", "abc", FIRST)
    assert (row["rating"], row["lower"], row["upper"]) == (1600.0, 1550.0, 1650.0)
    assert (row["miscoverage"], row["std_error"], row["run_id"]) == (0.1, 20.0, f"run of {FIRST}")
    assert all(pd.isna(row[name]) for name in list(PREDICTION_DTYPES)[11:])
    assert json.loads(row["anchors"]) == {"ant": 1510.0, "bee": 1390.0}


def test_a_model_of_the_corpus_without_votes_is_predicted_too_and_has_no_file():
    record = state(NONE, board(("new", 1600.0, math.nan, 0), flags="no-votes"))
    assert record["content_hash"].isna().all()
    assert len(record) == 1


@pytest.mark.parametrize("rating", [math.nan])
def test_what_is_withheld_or_not_rated_predicts_nothing(rating):
    assert state(NONE, board(("new", rating, math.nan, 0))).empty


def test_a_model_with_votes_is_no_prediction_even_where_its_fold_gives_no_human_rating():
    """A hub, without whom nobody is connected: its votes are there, and its scale is not."""
    assert state(NONE, board(("hub", 1600.0, math.nan, 360), flags="anchors-disconnected")).empty


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
    record = state(NONE, board(*VOTED, ("new", 1600.0, math.nan, 0), ("wait", 1.0, math.nan, 0)))
    scored = score_predictions(record, board(*VOTED, ("new", 9.0, human, 90)), now=THEN)
    row = scored.set_index("model").loc["new"]
    assert (row["scored_at"], row["human_rating"], row["n_votes"]) == (THEN, human, 90)
    assert row["residual"] == pytest.approx(1600 - human)  # of what was predicted
    assert bool(row["covered"]) is covered
    stated = list(PREDICTION_DTYPES)[:11]
    assert row["origin_shift"] == pytest.approx(0, abs=1e-9)
    pd.testing.assert_frame_equal(scored[stated], record[stated])
    assert pd.isna(scored.set_index("model").loc["wait", "scored_at"])
    again = score_predictions(scored, board(*VOTED, ("new", 9.0, 1.0, 900)), now="later still")
    pd.testing.assert_frame_equal(again, scored)


def test_a_rating_from_fewer_votes_than_calibrate_is_nothing_to_score_by():
    record = state(NONE, board(*VOTED, ("new", 1600.0, math.nan, 0)))
    few = board(*VOTED, ("new", 9.0, 1800.0, 80))
    assert score_predictions(record, few, now=THEN)["scored_at"].isna().all()
    enough = board(*VOTED, ("new", 9.0, 1800.0, 81))  # the lowest decile of 80 and 90
    assert score_predictions(record, enough, now=THEN)["scored_at"].notna().all()


def test_a_promise_without_ends_and_a_guess_are_not_written_down():
    nothing = board(*VOTED, ("new", 1600.0, math.nan, 0)).assign(lower=-math.inf, upper=math.inf)
    assert state(NONE, nothing).empty
    guess = board(*VOTED, ("new", 1600.0, math.nan, 0), flags="candidate;no-votes;few-battles")
    assert state(NONE, guess).empty
    first = state(NONE, board(*VOTED, ("new", 1600.0, math.nan, 0)), now=THEN)
    assert first["predicted_at"].tolist() == [THEN]


def left_out(strength: dict[str, float]) -> list[tuple[str, float, float, int]]:
    """Rows of models whose human ratings are relative to the mean of the others, by definition."""
    total = sum(strength.values())
    n_others = len(strength) - 1
    return [
        (name, 0.0, 1500 + own - (total - own) / n_others, 90) for name, own in strength.items()
    ]


def test_a_zero_that_moved_moves_no_residual():
    """Four strong newcomers get votes before the model that was predicted right does."""
    known = {f"old-{k}": 10.0 * k for k in range(20)}
    strong = {f"strong-{k}": 250.0 for k in range(4)}
    model, zero = 130.0, np.mean(list(known.values()))
    record = state(NONE, board(*left_out(known), ("new", 1500 + model - zero, math.nan, 0)))
    voted = left_out({**known, **strong, "new": model})
    (row,) = score_predictions(record, board(*voted), now=THEN).to_dict("records")
    assert row["residual"] == pytest.approx(0, abs=1e-9)
    assert row["origin_shift"] == pytest.approx(4 * (250 - zero) / 24)  # k d / (A + k)
    assert row["human_rating"] + row["origin_shift"] == pytest.approx(row["rating"])


def test_strong_anchors_that_are_gone_move_no_residual():
    known = {f"old-{k}": 10.0 * k for k in range(20)} | {f"strong-{k}": 400.0 for k in range(3)}
    model, zero = 130.0, np.mean(list(known.values()))
    record = state(NONE, board(*left_out(known), ("new", 1500 + model - zero, math.nan, 0)))
    stayed = {name: own for name, own in known.items() if not name.startswith("strong")}
    voted = left_out({**stayed, "new": model})
    (row,) = score_predictions(record, board(*voted), now=THEN).to_dict("records")
    assert row["residual"] == pytest.approx(0, abs=1e-9)
    assert row["origin_shift"] < -30


def test_a_prediction_none_of_whose_anchors_is_left_waits():
    record = state(NONE, board(*VOTED, ("new", 1600.0, math.nan, 0)))
    others = board(("cat", 1.0, 1500.0, 90), ("new", 9.0, 1600.0, 60))
    assert score_predictions(record, others, now=THEN)["scored_at"].isna().all()


def test_a_record_that_is_older_than_its_column_of_anchors_is_scored_as_before():
    record = typed_record(
        state(NONE, board(*VOTED, ("new", 1600.0, math.nan, 0))).drop(
            columns=["anchors", "origin_shift"]
        )
    )
    now = board(*VOTED, ("cat", 1.0, 1900.0, 90), ("new", 9.0, 1550.0, 90))
    assert score_predictions(record, now, now=THEN)["residual"].tolist() == [50.0]


# what the record is worth


def scored_record(residuals: list[float], half_width: float = 50.0) -> pd.DataFrame:
    rating = 1500.0 + np.arange(len(residuals))
    table = pd.DataFrame({"model": [f"new-{k}" for k in range(len(residuals))], "rating": rating})
    table = table.assign(
        method="soft", std_error=20.0, miscoverage=0.1, scored_at=THEN, predicted_at=FIRST,
        lower=rating - half_width, upper=rating + half_width, residual=residuals,
        human_rating=rating - residuals, n_votes=50,
    )  # fmt: skip
    return typed_record(table.assign(covered=table["residual"].abs().le(half_width)))


def heldout(residuals: list[float], names: str = "voted") -> pd.DataFrame:
    rows = [
        {"model": f"{names}-{k}", "method": method, "residual": r, "std_error_analytic": 20.0,
         "std_error": 10.0, "human_rating": 1.0, "rating": 1.0 + r}
        for k, r in enumerate(residuals)
        for method in ("hard", "soft")
    ]  # fmt: skip
    return pd.DataFrame(rows)


POOL = heldout([-40.0, -30, -20, -15, -10, -5, 0, 4, 8, 12, 16, 22, 28, 35, 45, -25, 18, -8, 3])


def test_models_that_were_predicted_do_not_calibrate_their_own_test():
    table = pd.concat([POOL, heldout([300.0, 5.0], names="new")], ignore_index=True)
    pool = pool_of(table, "soft", scored_record([300.0, 5.0]))
    assert set(pool["model"]) == {f"voted-{k}" for k in range(19)}
    assert set(pool["method"]) == {"soft"}


def test_coverage_counts_what_promised_something():
    record = scored_record([10.0, -80.0, 20.0])
    record.loc[2, ["lower", "upper"]] = [-math.inf, math.inf]
    coverage, n_left_out = coverage_of(record, POOL)
    assert coverage[["n_predictions", "n_covered"]].to_numpy().tolist() == [[2, 1]]
    assert n_left_out == 1
    assert predictions_cover(record, POOL).passed  # one of two is no surprise
    assert predictions_cover(NONE, POOL).passed


def test_too_many_misses_are_told():
    check = predictions_cover(scored_record([90.0] * 6 + [10.0] * 2), POOL)
    assert not check.passed
    assert check.severity.value == "WARN"
    assert "no fewer predictions held than chance allows" in check.description


def test_fresh_residuals_like_the_pools_pass_and_shifted_ones_do_not():
    like = exchangeable(scored_record([-28.0, 14.0, -3.0, 30.0]), POOL, "analytic")
    assert like.passed
    assert "4 fresh against 19" in like.description
    shifted = exchangeable(scored_record([60.0, 75.0, 50.0, 66.0]), POOL, "analytic")
    assert not shifted.passed
    # by hand: four that outrank all 19 are one choice of C(23, 4) = 8855, either way two
    assert "p 0.000226" in shifted.description
    assert "have people vote on models like them" in shifted.description
    assert shifted.metadata["n_scored"].value == 4


def test_nothing_scored_is_nothing_to_test():
    check = exchangeable(NONE, POOL, "analytic")
    assert check.passed
    assert "nothing to test" in check.description
    assert rank_tests(scored_record([5.0]), POOL.head(0), "analytic").empty
    assert strangeness(NONE, POOL, "analytic").empty


def test_the_standard_error_that_intervals_are_made_of_scales_the_pool():
    record = scored_record([30.0])  # 1.5 standard errors
    one = strangeness(record, POOL, "analytic")["p_value"].iloc[0]
    assert one == (1 + 4) / 20  # of sizes 30 and more: 40, 30, 35 and 45
    other = strangeness(record, POOL, "bootstrap")["p_value"].iloc[0]
    assert other == (1 + 11) / 20  # errors of 10: of sizes 15 and more


def test_a_model_without_spread_is_as_strange_as_can_be():
    record = scored_record([1.0]).assign(std_error=np.nan)
    assert strangeness(record, POOL, "analytic")["p_value"].iloc[0] == 1 / 20

import math
from functools import partial

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.intervals import assets as uncertainty
from resources.tables.intervals import LEADERBOARD

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


@pytest.fixture
def conformal() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": ["hard", "soft"],
            "miscoverage": 0.1,
            "threshold": [3.0, 2.0],
            "n_models": 40,
            "n_splits": 5,
            "n_calibration": 20,
            "n_test": 20,
            "coverage": [0.92, 0.88],
            "median_width": [180.0, 120.0],
            "n_structured": 30,
            "structured_below": "",
            "note": "",
        }
    )


@pytest.fixture
def leaderboard() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "rank": [1, 2, 3],
            "model": ["cat", "bee", "ant"],
            "rating": [1600.0, 1500.0, 1400.0],
            "lower": [1550.0, 1450.0, 1350.0],
            "upper": [1650.0, 1550.0, 1450.0],
            "flags": ["", "no-votes", ""],
        }
    )


def test_finite_thresholds(conformal):
    assert uncertainty.finite_thresholds(conformal, "soft").passed
    note = "4 models calibrate, 9 are needed"
    result = uncertainty.finite_thresholds(
        conformal.assign(threshold=[3.0, math.inf], note=["", note]), "hard"
    )
    assert not result.passed
    assert result.severity == ERROR
    assert f"soft {note}" in result.description
    assert not uncertainty.finite_thresholds(conformal.assign(threshold=np.nan), "soft").passed
    assert not uncertainty.finite_thresholds(conformal.head(0), "soft").passed


def test_the_threshold_of_the_method_that_ranks_is_looked_at_even_if_it_leaves_models_out(
    conformal,
):
    partial = conformal.assign(threshold=[3.0, math.inf], n_models=[40, 39])
    assert uncertainty.finite_thresholds(partial, "hard").passed
    result = uncertainty.finite_thresholds(partial, "soft")
    assert not result.passed
    assert "soft" in result.description


def test_first_days_are_those_of_the_first_battle_with_a_time():
    times = ["1970-01-03 23:59", "1970-01-03 00:00", "1970-01-02 12:00", None]
    battles = pd.DataFrame(
        {
            "model_a": ["ant", "bee", "cat", "ant"],
            "model_b": ["bee", "cat", "dog", "eel"],
            "timestamp": pd.to_datetime(times, utc=True),
        }
    )
    assert uncertainty.first_days(battles) == {"ant": 2, "bee": 2, "cat": 1, "dog": 1}
    assert uncertainty.first_days(battles.tail(1)) == {}
    assert uncertainty.first_days(None) == {}


def test_coverage_of_a_group_below_what_chance_allows_is_told(conformal):
    assert uncertainty.coverage_holds_across_groups(conformal).passed
    below = "above the upper third 2 of 12"
    result = uncertainty.coverage_holds_across_groups(
        conformal.assign(structured_below=["", below], n_structured=30)
    )
    assert not result.passed
    assert result.severity == WARN
    assert "soft" in result.description
    untried = conformal.assign(structured_below=below, n_structured=0, note="4 models calibrate")
    result = uncertainty.coverage_holds_across_groups(untried)
    assert result.passed
    assert "Nothing was tested" in result.description
    assert "4 models calibrate" in result.metadata["observed"].value


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": ["cat", "cat", "ant"]}, "a model has one row"),
        ({"rank": [1, 2, 9]}, "rank counts"),
        ({"rank": [2, 1, 3]}, "higher rating"),
        ({"rating": [np.nan, 1500.0, 1400.0]}, "finite number"),
    ],
)
def test_models_in_order(leaderboard, changes, told):
    assert LEADERBOARD.check("models_are_in_order", leaderboard).passed
    result = LEADERBOARD.check("models_are_in_order", leaderboard.assign(**changes))
    assert not result.passed
    assert result.severity == ERROR
    assert told in result.description


def test_a_model_without_a_rating_says_why_and_is_warned_of(leaderboard):
    unrated = leaderboard.assign(
        rank=pd.array([1, 2, None], dtype="Int64"),
        flags=["", "", "anchors-disconnected"],
        **{name: [2.0, 1.0, np.nan] for name in ("rating", "lower", "upper")},
    )
    assert LEADERBOARD.check("models_are_in_order", unrated).passed
    assert LEADERBOARD.check("intervals_hold_their_rating", unrated).passed
    warning = LEADERBOARD.check("ratings_are_well_founded", unrated)
    assert not warning.passed
    assert warning.severity == dg.AssetCheckSeverity.WARN
    assert "ant anchors-disconnected" in warning.description


@pytest.mark.parametrize("flag", ["few-battles", "no-votes;no-spread"])
def test_ratings_on_thin_ice_are_warned_of(leaderboard, flag):
    assert LEADERBOARD.check("ratings_are_well_founded", leaderboard).passed
    assert not LEADERBOARD.check(
        "ratings_are_well_founded", leaderboard.assign(flags=["", flag, ""])
    ).passed


def test_one_model_is_no_leaderboard(leaderboard):
    assert not LEADERBOARD.check("models_are_in_order", leaderboard.head(1)).passed


def test_equal_ratings_may_stand_in_any_order(leaderboard):
    assert LEADERBOARD.check("models_are_in_order", leaderboard.assign(rating=1500.0)).passed


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"lower": [1610.0, 1450.0, 1350.0]}, "begins at or below"),
        ({"upper": [1590.0, 1550.0, 1450.0]}, "ends at or above"),
        ({"lower": [np.nan, 1450.0, 1350.0]}, "lower end is known"),
        ({"upper": [np.nan, 1550.0, 1450.0]}, "upper end is known"),
    ],
)
def test_intervals_hold_their_rating(leaderboard, changes, told):
    check = partial(LEADERBOARD.check, "intervals_hold_their_rating")
    assert check(leaderboard).passed
    result = check(leaderboard.assign(**changes))
    assert not result.passed
    assert result.severity == ERROR
    assert told in result.description


def test_unbounded_intervals_are_told_and_do_not_stop(leaderboard):
    assert LEADERBOARD.check("intervals_are_bounded", leaderboard).passed
    endless = leaderboard.assign(upper=[math.inf, 1550.0, 1450.0])
    result = LEADERBOARD.check("intervals_are_bounded", endless)
    assert not result.passed
    assert result.severity == WARN
    assert "cat" in result.description
    assert LEADERBOARD.check("intervals_hold_their_rating", endless).passed

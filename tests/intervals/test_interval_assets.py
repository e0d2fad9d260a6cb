"""Checks of thresholds and boards, and the days on which structured splits rest."""

import math

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from declared_checks import checked

from assets.intervals import assets as module
from judgeline.rating_options import RatingOptions
from judgeline.steps.intervals import first_days
from judgeline.tables.intervals import LEADERBOARD
from resources.tables.expectations import result_of

CONFORMAL = pd.DataFrame(
    {
        "method": ["hard", "soft"],
        "threshold": [3.0, 2.0],
        "n_models": 40,
        "n_structured": 30,
        "structured_below": "",
        "note": "",
    }
)
WITHOUT_END = [3.0, math.inf]


@pytest.mark.parametrize(
    ("changes", "ranks_by", "told"),
    [
        ({}, "soft", None),
        ({"threshold": WITHOUT_END, "note": ["", "9 are needed"]}, "hard", "soft 9 are needed"),
        ({"threshold": math.nan}, "soft", "soft"),
        # a method that leaves models out is asked only if it ranks
        ({"threshold": WITHOUT_END, "n_models": [40, 39]}, "hard", None),
        ({"threshold": WITHOUT_END, "n_models": [40, 39]}, "soft", "soft"),
    ],
)
def test_finite_thresholds(changes, ranks_by, told):
    check, rating = module.thresholds_are_finite, RatingOptions(method=ranks_by)
    result = checked(check, CONFORMAL.assign(**changes), rating=rating)
    assert result.passed is (told is None)
    assert told is None or told in result.description
    assert result.severity == dg.AssetCheckSeverity.WARN  # votes alone can rank
    assert not checked(check, CONFORMAL.head(0), rating=rating).passed


def test_first_days_are_those_of_the_first_battle_with_a_time():
    times = ["1970-01-03 23:59", "1970-01-03 00:00", "1970-01-02 12:00", None]
    battles = pd.DataFrame(
        {
            "model_a": ["ant", "bee", "cat", "ant"],
            "model_b": ["bee", "cat", "dog", "eel"],
            "timestamp": pd.to_datetime(times, utc=True),
        }
    )
    assert first_days(battles) == {"ant": 2, "bee": 2, "cat": 1, "dog": 1}
    assert first_days(battles.tail(1)) == {}
    assert first_days(None) == {}


def test_coverage_of_a_group_below_what_chance_allows_is_told():
    assert module.coverage_holds_across_groups(CONFORMAL).passed
    below = "above the upper third 2 of 12"
    result = module.coverage_holds_across_groups(CONFORMAL.assign(structured_below=["", below]))
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.WARN
    assert "soft" in result.description
    untried = CONFORMAL.assign(structured_below=below, n_structured=0, note="4 models calibrate")
    result = module.coverage_holds_across_groups(untried)
    assert result.passed
    assert "Nothing was tested" in result.description
    assert "4 models calibrate" in result.metadata["observed"].value


BOARD = pd.DataFrame(
    {
        "rank": pd.array([1, 2, 3], dtype="Int64"),
        "model": ["cat", "bee", "ant"],
        "rating": [1600.0, 1500.0, 1400.0],
        "lower": [1550.0, 1450.0, 1350.0],
        "upper": [1650.0, 1550.0, 1450.0],
        "judge_rating": [1610.0, 1500.0, 1400.0],
        "judge_lower": [1500.0, 1450.0, -math.inf],
        "judge_upper": [1700.0, 1550.0, math.inf],
        "flags": ["", "no-votes", ""],
    }
)
UNRATED = {
    "rank": pd.array([1, 2, None], dtype="Int64"),
    "flags": ["", "", "anchors-disconnected"],
    **{name: [2.0, 1.0, np.nan] for name in ("rating", "lower", "upper")},
}
ENDLESS = {"upper": [math.inf, 1550.0, 1450.0]}


@pytest.mark.parametrize(
    ("check", "changes", "told"),
    [
        ("models_are_in_order", {}, None),
        ("models_are_in_order", {"rank": pd.array([1, 2, 9], dtype="Int64")}, "rank counts"),
        ("models_are_in_order", {"rank": pd.array([2, 1, 3], dtype="Int64")}, "higher rating"),
        ("models_are_in_order", {"rating": 1500.0}, None),  # equals may stand in any order
        ("models_are_in_order", UNRATED, None),
        ("models_are_in_order", {**UNRATED, "flags": ""}, "a flag says why"),
        ("intervals_hold_their_rating", {"lower": [1610.0, 1450.0, 1350.0]}, "begins at or below"),
        ("intervals_hold_their_rating", {"upper": [np.nan, 1550.0, 1450.0]}, "upper end is known"),
        ("intervals_hold_their_rating", {"judge_lower": 1650.0}, "judge's interval begins"),
        ("intervals_hold_their_rating", {"judge_upper": 1450.0}, "judge's interval ends"),
        ("intervals_hold_their_rating", UNRATED, None),
        ("intervals_hold_their_rating", ENDLESS, None),
        ("intervals_are_bounded", ENDLESS, "cat"),
        ("models_stand_among_people", {}, None),
        ("models_stand_among_people", {"flags": ["", "no-votes;beyond-anchors", ""]}, "bee"),
        ("ratings_are_well_founded", {}, None),
        ("ratings_are_well_founded", UNRATED, "ant anchors-disconnected"),
        ("ratings_are_well_founded", {"flags": ["", "no-votes;no-spread", ""]}, "bee no-votes"),
    ],
)
def test_a_board_may_have_gaps_that_it_explains(check, changes, told):
    """The rules themselves are tried in `tests/tables/test_declared.py`."""
    result = result_of(LEADERBOARD, check, BOARD.assign(**changes))
    assert result.passed is (told is None)
    assert told is None or told in result.description

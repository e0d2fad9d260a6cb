"""The judge gate: each criterion around its threshold, its measurements, checks and boards."""

import math
from fractions import Fraction

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.reliability import gate as judge_gate
from judgeline.io import as_table
from judgeline.reliability import (
    CRITERIA,
    WITHHOLD,
    Gate,
    Measurement,
    failures,
    hold_to,
    panel_measurements,
)
from judgeline.steps import reliability
from judgeline.tables.intervals import LEADERBOARD
from judgeline.tables.reliability import RELIABILITY_PANEL
from resources.tables.expectations import result_of

PASSES = {"at least": (False, True, True), "at most": (True, True, False)}
"""Whether a value below, at and above the threshold passes."""
NAN = math.nan


def row_of(gate: Gate, criterion: str) -> dict[str, object]:
    place = gate.criterion.tolist().index(criterion)
    return {name: column[place] for name, column in gate._asdict().items()}


def gate_of(**values: float) -> Gate:
    return hold_to({name: Measurement(value, "by hand") for name, value in values.items()})


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_criterion_is_judged_by_its_threshold_if_it_has_value_and_threshold(criterion):
    direction, threshold = CRITERIA[criterion]
    around = math.nextafter(threshold, -9), threshold, math.nextafter(threshold, 9)
    for value, passes in zip(around, PASSES[direction], strict=True):
        row = row_of(gate_of(**{criterion: value}), criterion)
        assert (row["passed"], row["threshold"], row["note"]) == (passes, threshold, "by hand")
    for measured in ({}, {criterion: Measurement(NAN, "no panel")}):
        gate = hold_to(measured, withhold=list(CRITERIA))
        row = row_of(gate, criterion)
        assert math.isnan(row["passed"])
        assert row["note"] == ("no panel" if measured else "not measured")
        assert failures(gate, withholding=True) == failures(gate, withholding=False) == ""
    free = hold_to({criterion: Measurement(-1.0, "")}, thresholds={criterion: None})
    row = row_of(free, criterion)
    assert row["value"] == -1
    assert np.isnan([row["threshold"], row["passed"]]).all()


def test_failures_are_listed_by_their_consequence() -> None:
    measured = {
        "kappa": Measurement(-0.05, ""),
        "position_flip_rate": Measurement(0.5, ""),
        "icc_average": Measurement(0.8999, ""),
        "parse_rate": Measurement(1.0, ""),
    }
    gate = hold_to(measured, withhold=["kappa", "position_flip_rate", "parse_rate"])
    assert failures(gate, withholding=True) == "kappa -0.05 < 0.20, position_flip_rate 0.50 > 0.35"
    # as many digits as show that it is a failure
    assert failures(gate, withholding=False) == "icc_average 0.8999 < 0.9000"
    assert gate.withholds.sum() == 3
    own = {"kappa": 0.4, "conflict_ratio": 0.4}
    moved = hold_to(dict.fromkeys(own, Measurement(0.3, "")), thresholds=own)
    assert [row_of(moved, name)["passed"] for name in own] == [0, 1]
    # those that withhold by default need no second form
    assert set(WITHHOLD) < set(CRITERIA) - {"conflict_ratio", "non_transitivity_ratio"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measured": {"kapa": Measurement(0.1, "")}}, "'kapa' is no criterion"),
        ({"measured": {}, "thresholds": {"kapa": 0.1}}, "'kapa' is no criterion"),
        ({"measured": {}, "withhold": ["kapa"]}, "'kapa' is no criterion"),
        ({"measured": {}, "thresholds": {"kappa": math.inf}}, "threshold of kappa is infinite"),
    ],
)
def test_wrong_names_and_limits_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hold_to(**arguments)


# ------------------------------------------------------------------ measurements of a panel

OUTCOMES = np.array([[1, 1, 1], [0, 0, 0], [1, 1, 0], [0.5, 0.5, 0.5]])
SCORES = np.array([[2.0, 3.0, 4.0], [-1.0, -1.0, 1.0], [1.0, 2.0, -3.0], [0.0, 0.0, 0.0]])


def test_reliability_is_that_of_the_textbook_in_rational_arithmetic() -> None:
    rows = [[Fraction(int(cell)) for cell in row] for row in SCORES]
    n, k = len(rows), len(rows[0])
    grand = sum(map(sum, rows)) / (n * k)
    by_row = [sum(row) / k for row in rows]
    by_run = [sum(column) / n for column in zip(*rows, strict=True)]
    between = k * sum((mean - grand) ** 2 for mean in by_row) / (n - 1)
    error = sum(
        (rows[i][j] - by_row[i] - by_run[j] + grand) ** 2 for i in range(n) for j in range(k)
    ) / ((n - 1) * (k - 1))
    # two runs that agree throughout, and one that differs from both in one of four battles
    agreement, chance = Fraction(3, 4), Fraction(2 * 1 + 1 * 2 + 1 * 1, 16)
    expected = {
        "icc_average": 1 - error / between,
        "single_run_reliability": (between - error) / (between + (k - 1) * error),
        "run_kappa": (1 + 2 * (agreement - chance) / (1 - chance)) / 3,
    }
    measured = panel_measurements(SCORES, OUTCOMES)
    assert {name: one.value for name, one in measured.items()} == pytest.approx(
        {name: float(value) for name, value in expected.items()}, abs=1e-12
    )
    assert {one.note for one in measured.values()} == {"4 of 4 battles in 3 runs"}
    gap = SCORES.copy()
    gap[1, 2] = NAN
    without = panel_measurements(SCORES[[0, 2, 3]], OUTCOMES[[0, 2, 3]])
    for name, one in panel_measurements(gap, OUTCOMES).items():
        assert one == (without[name].value, "3 of 4 battles in 3 runs")


@pytest.mark.parametrize(
    ("scores", "outcomes", "notes"),
    [
        (SCORES[:1], OUTCOMES[:1], "too few scores"),
        (SCORES[:, :1], OUTCOMES[:, :1], "too few scores"),
        (np.full((4, 3), NAN), OUTCOMES, "too few scores"),
        (np.empty((0, 0)), np.empty((0, 0)), "too few scores"),
        (np.ones((4, 3)), np.ones((4, 3)), "one and the same mean|in one class"),
    ],
)
def test_a_panel_without_a_reliability_says_why(scores, outcomes, notes: str) -> None:
    measured = pd.DataFrame(panel_measurements(scores, outcomes).values())
    assert measured["value"].isna().all()
    assert measured["note"].str.contains(notes).all()


def test_panels_of_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"score_difference \(4, 3\), outcome \(4, 2\)"):
        panel_measurements(SCORES, OUTCOMES[:, :2])


# ------------------------------------------------------------------ measurements of all tables

RUNS = RELIABILITY_PANEL.typed(
    pd.DataFrame(
        {
            "battle_id": ["x", "y", "z"] * 2,
            "judge": "j",
            "replicate": [0] * 3 + [1] * 3,
            "selection_order": [0, 1, 2] * 2,
            "status": "ok",
            "score_difference": [3.0, -3.0, 1.0, 3.0, -3.0, -1.0],
            "judge_outcome": [1.0, 0.0, 1.0, 1.0, 0.0, 0.0],
            "difference_ab": 0.0,
            "difference_ba": 0.0,
        }
    )
)
DIAGNOSTICS = pd.DataFrame(
    [("kappa_both_ways", "", 0.25, 200), ("position_first_score", "", -0.75, 300),
     ("position_flip_rate", "", 0.125, 280), ("beta_by_language", "en", 0.9, 100)],
    columns=["diagnostic", "level", "value", "n"],
)  # fmt: skip
CONSISTENCY = pd.DataFrame(
    [
        ("conflict-ratio", "likelihood", None, "all", "overall", 40, 0.2),
        ("conflict-ratio", "rubric", None, "en", "overall", 10, 0.9),
        ("conflict-ratio", "rubric", None, "all", "overall", 50, 0.1),
        ("non-transitivity", "likelihood", 3, "all", "overall", 70, 0.05),
        ("non-transitivity", "likelihood", 4, "all", "overall", 30, 0.5),
        ("non-transitivity", "rubric", 3, "all", "clarity", 70, 0.6),
        ("non-transitivity", "rubric", 3, "all", "overall", 0, NAN),
    ],
    columns=["measure", "source", "size", "category", "dimension", "n", "ratio"],
)


SKILL = {"skill", "skill_lower"}
"""Criteria of the ratings, which `conformal_calibration` measures."""


def test_skill_is_that_of_the_method_that_ranks() -> None:
    calibration = pd.DataFrame(
        {"method": ["hard", "auto"], "skill": [0.9, -0.2], "skill_lower": [0.7, -1.5],
         "n_models": [12, 11]}
    )  # fmt: skip
    measured = reliability.skill_measurements(calibration, "auto")
    note = "11 models with votes"
    assert measured == {"skill": (-0.2, note), "skill_lower": (-1.5, note)}
    unknown = reliability.skill_measurements(calibration.assign(skill=NAN), "hard")
    assert math.isnan(unknown["skill"].value)


@pytest.mark.parametrize(
    ("skill", "lower", "withheld", "told"),
    [
        (0.8, 0.5, "", ""),
        (0.3, -0.2, "", "skill_lower -0.20 < 0.00"),  # it may add nothing
        (-0.1, -0.9, "skill -0.10 < 0.00", "skill_lower -0.90 < 0.00"),
        (NAN, NAN, "", ""),  # too few models to know
    ],
)
def test_a_judge_without_skill_is_withheld_and_one_of_doubtful_skill_is_told(
    skill: float, lower: float, withheld: str, told: str
) -> None:
    gate = gate_of(skill=skill, skill_lower=lower)
    assert failures(gate, withholding=True) == withheld
    assert failures(gate, withholding=False) == told


def test_each_table_measures_its_criteria(verdicts) -> None:
    verdicts.loc[verdicts["battle_id"].lt("battle-12"), "status"] = "refusal"
    measured = reliability.measure(verdicts, DIAGNOSTICS, RUNS, CONSISTENCY)
    assert set(measured) == set(CRITERIA) - SKILL
    assert measured["kappa"] == Measurement(0.25, "200 battles")
    assert measured["position_effect"] == Measurement(0.75, "300 battles")  # its size
    assert measured["position_flip_rate"] == Measurement(0.125, "280 battles")
    assert measured["parse_rate"] == Measurement(0.5, "48 verdicts")
    # means 3, -3 and 0: MS_battles 2 x 9; gaps 0, 0 and -2: MS_error half of their variance, 4/3
    average = Measurement(pytest.approx(1 - (2 / 3) / 18), "3 of 3 battles in 2 runs")
    assert measured["icc_average"] == average
    assert measured["conflict_ratio"] == (0.1, "50 battles scored and compared, rubric")
    assert measured["non_transitivity_ratio"].value == 0.05  # the rubric's is null
    assert "likelihood" in measured["non_transitivity_ratio"].note


@pytest.mark.parametrize("none", [None, pd.DataFrame()])
def test_tables_that_are_not_there_measure_nothing_and_say_so(verdicts, none) -> None:
    panel = none if none is None else RUNS.head(0)
    valueless = DIAGNOSTICS.assign(value=NAN)
    for diagnostics in (DIAGNOSTICS.head(0), valueless):
        measured = reliability.measure(verdicts, diagnostics, panel, none)
        unknown = {name for name, one in measured.items() if math.isnan(one.value)}
        assert unknown == set(CRITERIA) - SKILL - {"parse_rate"}
        assert "see reliability_panel" in measured["icc_average"].note
        assert "no kappa_both_ways" in measured["kappa"].note
        assert measured["conflict_ratio"].note == "consistency has no rows"
    partial = reliability.measure(verdicts.head(0), valueless, None, CONSISTENCY.head(3))
    assert math.isnan(partial["parse_rate"].value)
    assert "no triples of answers" in partial["non_transitivity_ratio"].note


# ------------------------------------------------------------------ checks and boards


def checked(withholding: bool, **values: float) -> dg.AssetCheckResult:
    check = (
        judge_gate.judge_passed_the_gate
        if withholding
        else judge_gate.judge_meets_the_other_criteria
    )
    return check(as_table(gate_of(**values)).astype({"passed": "boolean"}))


@pytest.mark.parametrize(
    ("values", "stops", "informs"),
    [
        ({"kappa": 0.3, "icc_average": 0.95, "parse_rate": 1.0}, False, False),
        ({"kappa": 0.3, "icc_average": 0.85}, False, True),
        ({"kappa": 0.05}, False, True),  # one vote is noisy, however good the judge
        ({"skill": -0.1, "icc_average": 0.85}, True, True),
        ({}, False, False),
    ],
)
def test_the_gate_fails_only_by_criteria_that_withhold(values, stops: bool, informs: bool) -> None:
    found = [checked(withholding, **values) for withholding in (True, False)]
    assert [not one.passed for one in found] == [stops, informs]
    assert [one.severity.value for one in found] == ["ERROR", "WARN"]
    assert "Not measured: " in found[0].description
    if stops:
        said = "Ratings by this judge are withheld: skill -0.10 < 0.00."
        assert found[0].description.startswith(said)
        assert "corpora.yaml" in found[0].metadata["remedy"].value


WITHHELD = pd.DataFrame(
    {
        "rank": pd.array([1, None], dtype="Int64"),
        "model": ["ant", "bee"],
        "rating": [1500.0, NAN],  # ant by people's votes, and bee has none
        "lower": [1450.0, NAN],
        "upper": [1550.0, NAN],
        **dict.fromkeys(("judge_rating", "judge_lower", "judge_upper"), NAN),
        "flags": ["withheld: kappa 0.05 < 0.20", "withheld: kappa 0.05 < 0.20;few-battles"],
    }
)


def test_withheld_judges_are_read_off_their_leaderboards() -> None:
    boards = {"bad": WITHHELD, "good": WITHHELD.assign(flags=["few-battles", ""])}
    assert reliability.withheld_judges(boards) == {"bad": "kappa 0.05 < 0.20"}
    assert reliability.withheld_judges({"none": WITHHELD.head(0)}) == {}


@pytest.mark.parametrize(
    ("check", "flags"),
    [
        ("models_are_in_order", ""),
        ("ratings_are_well_founded", "no-votes"),
        ("intervals_hold_their_rating", None),
        ("intervals_are_bounded", None),
    ],
)
def test_a_missing_rating_needs_a_reason_unless_it_is_withheld(check: str, flags) -> None:
    assert result_of(LEADERBOARD, check, WITHHELD).passed
    assert flags is None or not result_of(LEADERBOARD, check, WITHHELD.assign(flags=flags)).passed

"""The judge gate: every criterion around its threshold, and what is not measured."""

import math
from fractions import Fraction

import numpy as np
import pytest

from judgeline.reliability.gate import (
    AT_LEAST,
    CRITERIA,
    WITHHOLD,
    Gate,
    Measurement,
    failures,
    hold_to,
    panel_measurements,
)

PASSES = {AT_LEAST: (False, True, True), "at most": (True, True, False)}
"""Whether a value below, at and above the threshold passes."""


def _row(gate: Gate, criterion: str) -> dict[str, object]:
    place = gate.criterion.tolist().index(criterion)
    return {name: column[place] for name, column in gate._asdict().items()}


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_value_passes_on_its_threshold_and_on_the_good_side_of_it(criterion: str) -> None:
    direction, threshold = CRITERIA[criterion]
    for value, passes in zip(
        (math.nextafter(threshold, -9), threshold, math.nextafter(threshold, 9)),
        PASSES[direction],
        strict=True,
    ):
        row = _row(hold_to({criterion: Measurement(value, "by hand")}), criterion)
        assert (row["passed"], row["threshold"], row["note"]) == (passes, threshold, "by hand")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_what_is_not_measured_neither_passes_nor_fails(criterion: str) -> None:
    for measured in ({}, {criterion: Measurement(math.nan, "no panel")}):
        gate = hold_to(measured, withhold=list(CRITERIA))
        row = _row(gate, criterion)
        assert math.isnan(row["passed"])
        assert row["note"] == ("no panel" if measured else "not measured")
        assert failures(gate, withholding=True) == failures(gate, withholding=False) == ""


@pytest.mark.parametrize("criterion", CRITERIA)
def test_without_a_threshold_a_value_is_shown_and_not_judged(criterion: str) -> None:
    gate = hold_to({criterion: Measurement(-1.0, "")}, thresholds={criterion: None})
    row = _row(gate, criterion)
    assert row["value"] == -1
    assert math.isnan(row["threshold"])
    assert math.isnan(row["passed"])


def test_a_threshold_can_be_set_and_says_which_side_it_is_of() -> None:
    measured = {"kappa": Measurement(0.3, ""), "conflict_ratio": Measurement(0.3, "")}
    gate = hold_to(measured, thresholds={"kappa": 0.4, "conflict_ratio": 0.4})
    assert _row(gate, "kappa")["passed"] == 0
    assert _row(gate, "conflict_ratio")["passed"] == 1


def test_failures_are_told_apart_by_what_they_do() -> None:
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


def test_what_withholds_by_default_are_criteria_that_need_no_second_form() -> None:
    assert set(WITHHOLD) < set(CRITERIA)
    assert not set(WITHHOLD) & {"conflict_ratio", "non_transitivity_ratio"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measured": {"kapa": Measurement(0.1, "")}}, "'kapa' is no criterion"),
        ({"measured": {}, "thresholds": {"kapa": 0.1}}, "'kapa' is no criterion"),
        ({"measured": {}, "withhold": ["kapa"]}, "'kapa' is no criterion"),
        ({"measured": {}, "thresholds": {"kappa": math.inf}}, "threshold of kappa is infinite"),
    ],
)
def test_wrong_names_and_limits_are_told(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hold_to(**arguments)


# what a panel says

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
    measured = panel_measurements(SCORES, OUTCOMES)
    assert measured["icc_average"].value == pytest.approx(float(1 - error / between), abs=1e-12)
    single = (between - error) / (between + (k - 1) * error)
    assert measured["single_run_reliability"].value == pytest.approx(float(single), abs=1e-12)
    # two runs that agree throughout, and one that differs from both in one of four battles
    agreement, chance = Fraction(3, 4), Fraction(2 * 1 + 1 * 2 + 1 * 1, 16)
    kappa = (1 + 2 * (agreement - chance) / (1 - chance)) / 3
    assert measured["run_kappa"].value == pytest.approx(float(kappa), abs=1e-12)
    assert measured["run_kappa"].note == "4 of 4 battles in 3 runs"


def test_a_battle_that_a_run_did_not_score_is_left_out_and_counted() -> None:
    gap = SCORES.copy()
    gap[1, 2] = np.nan
    measured = panel_measurements(gap, OUTCOMES)
    kept = panel_measurements(SCORES[[0, 2, 3]], OUTCOMES[[0, 2, 3]])
    assert [m.value for m in measured.values()] == [m.value for m in kept.values()]
    assert measured["icc_average"].note == "3 of 4 battles in 3 runs"


@pytest.mark.parametrize(
    ("scores", "outcomes"),
    [
        (SCORES[:1], OUTCOMES[:1]),
        (SCORES[:, :1], OUTCOMES[:, :1]),
        (np.full((4, 3), np.nan), OUTCOMES),
        (np.empty((0, 0)), np.empty((0, 0))),
    ],
)
def test_too_few_scores_are_no_measurement(scores: np.ndarray, outcomes: np.ndarray) -> None:
    for value, note in panel_measurements(scores, outcomes).values():
        assert math.isnan(value)
        assert note.startswith("too few scores")


def test_a_judge_that_always_says_the_same_has_no_reliability_and_the_note_says_why() -> None:
    measured = panel_measurements(np.ones((4, 3)), np.ones((4, 3)))
    assert all(math.isnan(one.value) for one in measured.values())
    assert "one and the same mean" in measured["icc_average"].note
    assert "in one class" in measured["run_kappa"].note


def test_panels_of_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"got \(4, 3\) and \(4, 2\)"):
        panel_measurements(SCORES, OUTCOMES[:, :2])

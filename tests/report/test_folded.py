"""Findings in the summaries of folded sections: each follows its table, whichever way that goes."""

import math

import numpy as np
import pandas as pd
import pytest
from report_examples import example_battles, example_judge

from judgeline.report import folded
from judgeline.report.companions import COMPANIONS, SECTIONS, companions_of


def table(columns: str, *rows: tuple[object, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns.split())


GATE = "criterion passed"
RATES = "model headline win_rate status estimator"
PLAIN = "source grouping model rating"
REFERENCE = "model reference_model gap"
LEARNT = "method metric value n_train base"
CONTROLS = "control rise bound"
DRIFT = "epoch moved"
CONSISTENCY = "category dimension ratio measure source n"


@pytest.mark.parametrize(
    ("asset", "rows", "said"),
    [
        ("judge_gate", table(GATE, ("kappa", True), ("skill", pd.NA)), "0 of 1 measured"),
        (
            "judge_gate",
            table(GATE, ("kappa", True), ("run_kappa", False)),
            "1 of 2 measured criteria failed: run kappa.",
        ),
        ("judge_gate", table(GATE, ("kappa", None)), "No criterion could be measured."),
        (
            "adjusted_win_rates",
            table(
                RATES,
                ("a", True, 0.4, "ok", "difference"),
                ("b", True, 0.7, "ok", "difference"),
                ("b", False, 0.9, "ok", "binary"),
                ("c", True, None, "refuted", "difference"),
            ),
            "b has the highest, 0.700; 2 of 3 models have one.",
        ),
        (
            "adjusted_win_rates",
            table(RATES, ("a", True, np.nan, "refuted", "difference")),
            "None of 1 models",
        ),
        (
            "plain_ratings",
            table(
                PLAIN,
                ("people", "all", "a", 1600.0),
                ("judge", "all", "b", 1500.0),
                ("judge", "all", "a", 1400.0),
                ("judge", "language", "c", 1900.0),
            ),
            "Highest: b by outcomes of judge, a by outcomes of people.",
        ),
        (
            "reference_ratings",
            table(REFERENCE, ("a", "hub", -61.0), ("b", "hub", -7.0)),
            "b stands highest, −7 Elo from hub.",
        ),
        ("reference_ratings", table(REFERENCE, ("a", "hub", np.nan)), "None of 1 models has"),
        (
            "consistency",
            table(
                CONSISTENCY,
                ("all", "overall", 0.1, "conflict-ratio", "rubric", 9),
                ("all", "overall", 0.3, "non-transitivity", "choice", 9),
                ("fr", "overall", 0.9, "conflict-ratio", "rubric", 9),
            ),
            "is 0.300: non transitivity, comparisons by choice.",
        ),
        (
            "quantitative_judges",
            table(LEARNT, ("btl", "accuracy", 0.6, 100, 0.7), ("btl", "mse", 0.9, 100, 0.7)),
            "The highest accuracy is 0.600, by quantitative judge (BTL) from 100 battles; "
            "its base judge has 0.700.",
        ),
        (
            "candidate_ratings",
            table(CONTROLS, ("null", 3.0, 1), ("bribe", -3.0, 1), (None, 9.0, 1)),
            "1 of 2 controls with a bound rose above it.",
        ),
        ("candidate_ratings", table(CONTROLS, ("null", None, 1)), "No control has a bound."),
        ("judge_drift", table(DRIFT, (1, True), (2, None)), "No statistic could be compared."),
        ("judge_drift", table(DRIFT, (1, None), (2, True), (2, False)), "1 of 2 statistics moved."),
        (
            "predictions",
            table("method covered miscoverage", ("soft", None, 0.1)),
            "By soft (calibrated): none of 1 predictions could be held against votes yet.",
        ),
    ],
)
def test_the_finding_of_a_companion_is_that_of_its_rows(asset, rows, said) -> None:
    assert said in folded.companion_finding([asset], {asset: rows})
    shown = companions_of({asset: rows}, "j1")
    assert [said in part.finding for part in shown] == [True] * len(shown) != []
    assert folded.companion_finding([asset], {asset: rows.iloc[:, :0]}) == ""  # earlier versions


def test_nothing_is_counted_of_which_there_is_none() -> None:
    unbribed = table(CONTROLS, (None, 9.0, 1))
    assert folded.companion_finding(["candidate_ratings"], {"candidate_ratings": unbribed}) == ""


def test_every_companion_section_has_a_finding_of_its_first_table() -> None:
    assert {one.parts[0].asset for one in SECTIONS} <= folded._FINDINGS.keys() <= {*COMPANIONS}


def test_the_farthest_model_and_the_nearest_method_are_named() -> None:
    tables = example_judge()
    heldout = tables.heldout_ratings
    first = heldout.assign(residual=np.where(heldout["model"].eq("borealis-70b-instruct"), -90, 1))
    assert "on borealis-70b-instruct: −90 Elo" in folded.residual_finding(first, "auto")
    assert folded.residual_finding(first.assign(residual=math.nan), "auto") == ""
    summary = tables.summary.assign(mae=[57.6, 19.5, 19.0])
    methods = summary["method"].tolist()
    assert folded.methods_finding(summary, methods[2]).endswith("19.0 Elo, and ranks.")
    assert ", which ranks, has 57.6." in folded.methods_finding(summary, methods[0])


def test_coverage_is_that_of_groups_set_apart_never_of_random_halves() -> None:
    known = example_judge().conformal_calibration
    for held, said in ((0.61, "61 % held of models unlike"), (math.nan, "not tried on models")):
        table = known.assign(structured_coverage=held, coverage=0.9, median_width=88.0)
        finding = folded.coverage_finding(table, "auto")
        assert finding.startswith("Median width 88 Elo by auto (headline); ")
        assert said in finding
    wide = known.assign(threshold=math.inf)
    assert folded.coverage_finding(wide, "auto") == "Intervals by auto (headline) are unbounded."


def test_battles_diagnostics_costs_and_judges_say_their_numbers() -> None:
    battles = example_battles(models=1)
    assert folded.battles_finding(battles).startswith("4 battles; the strongest moves ")
    assert folded.battles_finding(battles).endswith(" by −1.75 Elo.")
    numbers = table("diagnostic value", ("cohen_kappa", 0.31), ("other", 1.0))
    assert folded.diagnostics_finding(numbers) == (
        "2 numbers; Cohen's kappa of judge and human votes is 0.31."
    )
    assert folded.diagnostics_finding(numbers.iloc[1:]).endswith("is unknown.")
    bought = table("n_calls n_failed price currency", (9, 1, 1.5, "USD"), (3, 0, None, None))
    assert folded.costs_finding(bought) == (
        "12 calls were made, 1 of them without a verdict; price 1.50 USD."
    )
    assert folded.costs_finding(bought.iloc[1:]).endswith("no price is configured.")
    errors = table("method mae n_models", ("gap", 20.0, 12), ("soft", None, 0))
    assert folded.section_finding(errors, "gap", 0, "") == (
        "20.0 Elo from people on average over 12 models; 0 quality checks failed."
    )
    assert folded.section_finding(errors, "soft", 1, "") == "1 quality check failed."
    withheld = folded.section_finding(errors, "gap", 2, "kappa 0.05 < 0.20")
    assert withheld == "Ratings are withheld: kappa 0.05 < 0.20. 2 quality checks failed."


def test_boards_and_smoothed_methods_are_compared() -> None:
    boards = pd.DataFrame({"x": [1.0, 5.0], "y": [2.0, 45.0]}, index=["a", "b"])
    assert folded.boards_finding(boards, ["x", "y"]).endswith("most on b, by 40 Elo.")
    smoothed = table("judge method mae", ("J", "smoothed-0.55", 9.0), ("K", "smoothed-0.95", 8.0))
    assert "8.0 Elo, by K and " in folded.smoothed_finding(smoothed)
    rated = table("named method mae", ("J", "soft", 9.0), ("K", "hard", 80.0))
    assert folded.scoring_finding(rated) == (
        "J by soft (calibrated) is nearest to people, 9.0 Elo off on average; the farthest of 2 "
        "is 80.0 off."
    )
    assert folded.scoring_finding(rated.iloc[:0]) == "No scoring method could be rated."
    board = example_judge().leaderboard
    assert folded.board_finding(board.iloc[1:]).startswith(f"{board['model'].iloc[1]} stands first")

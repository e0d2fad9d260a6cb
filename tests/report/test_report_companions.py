"""Companion sections: what a judge has tables of, and what a withheld one may not show."""

import pandas as pd
import pytest

from judgeline.report.companion_sections import COMPANIONS, SECTIONS, companions_of


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    gate = {"criterion": "kappa", "value": 0.1, "direction": "at least", "threshold": 0.2}
    placed = {
        "rank": 1,
        "model": "ant",
        "reference_model": "hub",
        "gap": 61.0,
        "lower": 10.0,
        "upper": 99.0,
    }
    reach = {"diagnostic": "models_within_reach", "value": 0.5, "passed": pd.NA}
    won = {"model": "ant", "estimator": "difference", "win_rate": 0.875, "status": "ok"}
    shared = {"category": "all", "dimension": "overall", "measure": "conflict-ratio", "n": 9}
    return {
        "judge_gate": pd.DataFrame([{**gate, "passed": False, "withholds": True}]),
        "reference_ratings": pd.DataFrame([placed]),
        "reference_diagnostics": pd.DataFrame([reach]),
        "adjusted_win_rates": pd.DataFrame([won | {"headline": True}]),
        "adjustment_coverage": pd.DataFrame([{"grouping": "all", "estimator": "naive"}]),
        "label_plan": pd.DataFrame([{"level": "ant", "plan": "label 10 more"}]),
        "consistency": pd.DataFrame([shared]),
    }


def test_everything_there_is_has_a_section_in_the_order_of_the_page(tables) -> None:
    shown = [part.title for part in companions_of(tables, "j1")]
    assert shown == ["Judge gate", "Adjusted win rates", "Against a reference", "Consistency"]


def test_coverage_over_splits_that_an_earlier_release_stored_is_shown_as_a_whole() -> None:
    stored = pd.DataFrame({"grouping": ["all", "model"], "estimator": ["naive", "difference"]})
    (section,) = companions_of({"adjustment_coverage": stored}, "j1")
    assert [len(table.grid.rows) for table in section.tables] == [1]


def test_gaps_come_with_the_name_of_their_reference(tables) -> None:
    said = [" ".join(part.sentences) for part in companions_of(tables, "j1")]
    assert "The reference is hub" in said[2]


def test_a_withheld_judge_keeps_what_places_no_model(tables) -> None:
    shown = companions_of(tables, "j1", withheld=True)
    assert [part.title for part in shown] == ["Judge gate", "Consistency"]
    cells = [
        cell.text for part in shown for t in part.tables for r in t.grid.rows for cell in r.cells
    ]
    assert "ant" not in cells


def test_a_table_with_a_row_for_each_model_is_of_a_section_that_places_models() -> None:
    by_model = {"adjusted_win_rates", "label_plan", "reference_ratings", "predictions"}
    placing = {part.asset for one in SECTIONS if one.places_models for part in one.parts}
    assert by_model <= placing < set(COMPANIONS)
    named = {
        part.asset
        for one in SECTIONS
        for part in one.parts
        if any(column.label == "Model" for column in part.columns)
    }
    assert named == by_model

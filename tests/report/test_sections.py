"""Sections of the page: battles behind a rating, missing verdicts, companion methods."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_examples import SCRIPT, Page, example_battles, example_judge, example_judges, write

from assets.diagnostics.missing import width_result
from judgeline.report.battles import browser_of, evidence_of, strongest
from judgeline.report.companions import COMPANIONS, SECTIONS, companions_of, missing_section
from judgeline.report.escaping import shortened
from judgeline.report.grid import columns
from judgeline.report.sections import boards_beside
from judgeline.verdict.outcomes import CRITERIA

# Battles behind a rating

INFLUENCES = pd.DataFrame(
    {
        "model": ["ant"] * 5 + ["bee"],
        "battle_id": ["b1", "b2", "b3", "b4", "b5", "b1"],
        "opponent": ["bee"] * 5 + ["ant"],
        "outcome": [0.9, 0.8, 0.1, 0.5, 0.5, 0.2],
        "expected": 0.5,
        "influence": [3.0, 2.0, -4.0, 1.0, 0.0, -3.0],
        "is_candidate": False,
    }
)


def scores(a: float, b: float) -> dict[str, float]:
    return {f"{name}_{side}": mark for side, mark in (("a", a), ("b", b)) for name in CRITERIA}


def test_the_strongest_each_way_come_first_and_those_without_influence_never() -> None:
    chosen = strongest(INFLUENCES, 2)
    assert chosen["battle_id"].tolist() == ["b1", "b2", "b3", "b1"]
    assert chosen["model"].tolist() == ["ant", "ant", "ant", "bee"]


def test_evidence_is_told_from_the_models_side() -> None:
    battle = {"battle_id": "b1", "model_a": "ant", "model_b": "bee", "human_outcome": 1.0}
    battle |= {"instruction": "Say it.", "completion_a": "It.", "completion_b": "Else."}
    verdicts = pd.DataFrame(
        [
            {"battle_id": "b1", "order": "BA", "status": "refusal", "answer": None},
            {"battle_id": "b1", "order": "AB", "status": "ok", "answer": "{}", **scores(9, 4)},
        ]
    ).assign(replicate=0, identity="f" * 64, prompt_tokens=pd.NA, completion_tokens=7)
    verdicts["reasoning"] = [None, "Hm."]
    both = INFLUENCES.iloc[[0, 5]]
    ant, bee = evidence_of(both, pd.DataFrame([{**battle, "language": "en"}]), verdicts)
    assert (ant.completion, ant.opponent_completion, ant.human_outcome) == ("It.", "Else.", 1.0)
    assert (bee.completion, bee.opponent_completion, bee.human_outcome) == ("Else.", "It.", 0.0)
    assert [r.difference for r in ant.readings] == [5.0, None]
    assert [r.difference for r in bee.readings] == [-5.0, None]
    assert [r.shown_first for r in (*ant.readings, *bee.readings)] == ["ant", "bee"] * 2
    assert ant.readings[1].status == "refusal"
    assert [r.reasoning for r in ant.readings] == ["Hm.", None]
    assert (ant.readings[0].prompt_tokens, ant.readings[0].completion_tokens) == (None, 7)
    counted = pd.DataFrame({"battle_id": [battle["battle_id"]], "human_outcome": [0.5]})
    voted, _ = evidence_of(
        both, pd.DataFrame([{**battle, "human_outcome": None}]), verdicts, counted
    )
    assert voted.human_outcome == 0.5
    (bare,) = evidence_of(INFLUENCES.iloc[[0]], INFLUENCES.head(0), INFLUENCES.head(0))
    assert (bare.instruction, bare.readings) == (None, ())


def test_every_model_has_its_strongest_battle_before_any_has_a_second() -> None:
    battles = example_battles(models=3)
    whole = browser_of(battles)
    assert len(whole.battles) == len(battles) == 12
    assert len(whole.sentences) == 1
    room = sum(one.size for one in whole.battles) // 2
    half = browser_of(battles, room=room)
    assert half.models == whole.models
    assert {one.influence for one in half.battles} == {1.5, -1.75}
    assert f"{len(half.battles)} of 12 such battles are shown" in half.sentences[1]
    assert sum(one.size for one in half.battles) <= room
    assert browser_of([]) is None
    assert shortened("abc", 3) == "abc"


# Missing verdicts


def account(*rows: tuple[str, str, str, int, int]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["grouping", "level", "status", "n_battles", "n_verdicts"])
    total = table.groupby(["grouping", "level"])["n_battles"].transform("sum")
    return table.assign(share=table["n_battles"] / total)


MISSINGNESS = account(
    ("all", "", "ok", 990, 1988),
    ("all", "", "refusal", 2, 2),
    ("all", "", "parse_error", 8, 10),
    ("model", "aurora-large-2", "ok", 100, 200),
    ("model", SCRIPT, "ok", 92, 188),
    ("model", SCRIPT, "parse_error", 6, 8),
    ("model", SCRIPT, "refusal", 2, 2),
    ("language", "fr", "ok", 40, 81),
    ("language", "fr", "parse_error", 0, 1),
)
BOUNDS = pd.DataFrame(
    {
        "model": [SCRIPT, "aurora-large-2", "never-scored", "borealis"],
        "method": ["hard", "soft", "soft", "soft"],
        "rating": [1588.0, 1672.0, np.nan, 1500.0],
        "worst_rating": [1540.0, 1670.0, np.nan, 1500.0],
        "best_rating": [1601.5, 1675.0, np.nan, 1500.0],
        "half_width": [45.0, 45.0, np.nan, 45.0],
        "n_battles": [98, 120, 0, 120],
        "n_missing": [8, 1, 3, 0],
        "n_missing_other": 0,
    }
)
WHOLE = account(("all", "", "ok", 4000, 8000))


def cells(grid) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in grid.rows]


@pytest.mark.parametrize(
    ("missingness", "said"),
    [
        (WHOLE, "Every one of the 4\u2009000 sampled battles has a score."),
        (
            account(("all", "", "ok", 10, 38), ("all", "", "refusal", 0, 2)),
            "Every one of the 10 sampled battles has a score; 2 verdicts failed and another "
            "replicate stood in.",
        ),
    ],
)
def test_nothing_missing_is_one_sentence_and_no_table(missingness, said) -> None:
    [section] = missing_section(missingness, None, "j1")
    assert section.sentences == [said]
    assert not section.tables
    assert missing_section(None, None, "j1") == []


def test_totals_groups_and_bounds_are_those_of_the_account() -> None:
    [section] = missing_section(MISSINGNESS, BOUNDS, "j1")
    of_classes, of_bounds, of_levels = (table.grid for table in section.tables)
    said = " ".join([section.finding, *section.sentences])
    for words in (
        "10 of 1\u2009000 sampled battles (1.0 %) have no score.",
        "The corpus publishes no length to count them by.",
        f"The widest such range is 61.5 Elo, of {SCRIPT} (hard).",
        "No rating to bound: never-scored.",
        "such as auto, has none of its own",
        "the range holds, and may be wider than needed",
    ):
        assert words in said
    classes = [["parse error", "8", "0.8 %", "10"], ["refusal", "2", "0.2 %", "2"]]
    assert cells(of_classes) == classes
    levels = [["model", SCRIPT, "100", "8", "8.0 %", "parse error 6, refusal 2"]]
    assert cells(of_levels) == levels
    shown = [(row.cells[0].text, row.cells[5].text, row.marked) for row in of_bounds.rows]
    assert shown == [
        ("never-scored", "–", True),
        (SCRIPT, "61.5", True),
        ("aurora-large-2", "5.0", False),
    ]
    for none in (None, BOUNDS.iloc[3:]):
        [section] = missing_section(MISSINGNESS, none, "j1")
        assert [table.key for table in section.tables] == ["j1-missing", "j1-missing-levels"]
        assert len(section.tables[0].grid.rows) == 2


def test_the_page_marks_the_rows_that_the_check_warns_of() -> None:
    for half_width in (np.inf, np.nan, 45.0):
        for width in (44.0, 46.0, 99.0, 101.0, np.nan):
            one = BOUNDS.iloc[:1].assign(worst_rating=1500.0, half_width=half_width)
            one = one.assign(best_rating=1500.0 + width)
            (row,) = missing_section(MISSINGNESS, one, "j1")[0].tables[1].grid.rows
            assert row.marked != width_result(one).passed, (half_width, width)


def test_the_page_shows_the_section_with_every_name_escaped(tmp_path: Path) -> None:
    judges = [
        replace(example_judge(), missingness=MISSINGNESS, missing_bounds=BOUNDS),
        replace(example_judge("noisy", "Noisy"), missingness=WHOLE, missing_bounds=BOUNDS.iloc[3:]),
    ]
    page = Page(write(tmp_path / "report.html", judges))
    assert page.texts.count("Missing verdicts") == 2
    assert page.tags.count("script") == 1  # ours
    assert f"The widest such range is 61.5 Elo, of {SCRIPT} (hard)." in page.texts
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {"j1-missing", "j1-bounds", "j1-missing-levels"} <= set(ids)
    assert not {"j2-missing", "j2-bounds"} & set(ids)


# Companion methods

COMPANION_TABLES = {
    name: pd.DataFrame([row])
    for name, row in {
        "judge_gate": {"criterion": "kappa", "value": 0.1, "passed": False, "withholds": True},
        "reference_ratings": {"rank": 1, "model": "ant", "reference_model": "hub", "gap": 61.0},
        "reference_diagnostics": {"diagnostic": "reach", "value": 0.5, "passed": pd.NA},
        "adjusted_win_rates": {"model": "ant", "estimator": "difference", "status": "ok"}
        | {"win_rate": 0.875, "headline": True},
        "adjustment_coverage": {"grouping": "all", "estimator": "naive"},
        "plain_ratings": {"source": "judge", "grouping": "all", "model": "ant", "rating": 1510.0},
        "style_effects": {"source": "judge", "grouping": "all", "covariate": "length"}
        | {"effect": 9.0, "lower": 1.0, "upper": 17.0},
        "label_plan": {"level": "ant", "plan": "label 10 more"},
        "consistency": {"category": "all", "dimension": "overall", "measure": "x", "n": 9},
    }.items()
}


def test_what_there_is_has_a_section_and_of_a_withheld_judge_what_places_no_model() -> None:
    shown = companions_of(COMPANION_TABLES, "j1")
    assert [part.title for part in shown] == [
        "Judge gate", "Adjusted win rates", "Plain ratings", "Against a reference", "Consistency",
    ]  # fmt: skip
    assert "The reference is hub" in " ".join(shown[3].sentences)
    assert [row.marked for row in shown[0].tables[0].grid.rows] == [True]
    withheld = companions_of(COMPANION_TABLES, "j1", withheld=True)
    assert [part.title for part in withheld] == ["Judge gate", "Consistency"]
    assert "ant" not in [
        c for one in withheld for t in one.tables for r in cells(t.grid) for c in r
    ]


@pytest.mark.parametrize("section", [one for one in SECTIONS if len({*one.parts}) > 1])
def test_a_section_without_one_of_its_tables_says_which(section) -> None:
    assets = {part.asset for part in section.parts} & COMPANION_TABLES.keys()
    for missing in assets if len(assets) > 1 else ():
        left = {name: table for name, table in COMPANION_TABLES.items() if name != missing}
        (shown,) = (one for one in companions_of(left, "j1") if one.title == section.title)
        assert any(missing in sentence for sentence in shown.sentences[1:])
        assert shown.tables
    (whole,) = (one for one in companions_of(COMPANION_TABLES, "j1") if one.title == section.title)
    assert not any("Not here" in sentence for sentence in whole.sentences)


def test_coverage_over_splits_that_an_earlier_release_stored_is_shown_as_a_whole() -> None:
    stored = pd.DataFrame({"grouping": ["all", "model"], "estimator": ["naive", "difference"]})
    (section,) = companions_of({"adjustment_coverage": stored}, "j1")
    assert [len(table.grid.rows) for table in section.tables] == [1]


def test_a_table_with_a_row_for_each_model_is_of_a_section_that_places_models() -> None:
    by_model = {
        "adjusted_win_rates", "label_plan", "plain_ratings", "predictions", "reference_ratings",
    }  # fmt: skip
    placing = {part.asset for one in SECTIONS if one.places_models for part in one.parts}
    assert by_model <= placing < set(COMPANIONS)
    parts = [part for one in SECTIONS for part in one.parts]
    named = {p.asset for p in parts if "Model" in [c.label for c in columns(p.columns)]}
    assert named == by_model


def test_of_a_watch_the_latest_answers_are_shown_and_of_predictions_how_many_held() -> None:
    drift = pd.DataFrame(
        {"statistic": ["beta"] * 3, "epoch": [1, 2, 2], "moved": [True, pd.NA, True]}
    )
    kept = pd.DataFrame(
        {"method": "soft", "model": ["a", "b", "c"], "covered": [True, False, None]}
    ).assign(miscoverage=0.1)
    predictions, watch = companions_of({"judge_drift": drift, "predictions": kept}, "j1")
    assert [row.marked for row in watch.tables[0].grid.rows] == [False, True]
    assert [row.marked for row in predictions.tables[0].grid.rows] == [False, True, False]
    assert "2 of 3 predictions could be held against votes: 50 %" in predictions.finding
    assert watch.finding == "1 of 1 statistics moved."


def test_boards_stand_side_by_side_where_two_judges_have_ratings() -> None:
    first, second = example_judges()
    pooled = first.leaderboard.assign(judge_rating=first.leaderboard["judge_rating"] + 1)
    grid, finding = boards_beside([first, second], pooled)
    assert finding.startswith("Board against board: they differ most on ")
    names = ["Model", "Careful judge", "Noisy judge <b>", "All judges", "People"]
    assert [column.label for column in grid.columns] == names
    assert len(grid.rows) == first.leaderboard["model"].nunique()
    best = first.leaderboard.sort_values("judge_rating").iloc[-1]
    shown = [float(cell.key) for cell in grid.rows[0].cells[1:4]]
    of_second = second.leaderboard.set_index("model")["judge_rating"]
    assert shown == [best["judge_rating"], of_second[best["model"]], best["judge_rating"] + 1]
    assert boards_beside([first], pooled) is None

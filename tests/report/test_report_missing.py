from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_report_page import Page, write
from test_report_tables import SCRIPT, example_judge

from assets.diagnostics.missing_bounds import missing_battles_matter_little
from judgeline.report import JudgeTables
from judgeline.report.missing import missing_section

COLUMNS = ["grouping", "level", "status", "n_battles", "n_verdicts"]


def account(*rows: tuple[str, str, str, int, int]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=COLUMNS)
    total = table.groupby(["grouping", "level"])["n_battles"].transform("sum")
    return table.assign(share=table["n_battles"] / total)


@pytest.fixture
def missingness() -> pd.DataFrame:
    return account(
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


@pytest.fixture
def bounds() -> pd.DataFrame:
    return pd.DataFrame(
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


def test_nothing_missing_is_one_sentence_and_no_table() -> None:
    section = missing_section(account(("all", "", "ok", 4000, 8000)), None)
    assert section.sentences == ["Every one of the 4\u2009000 sampled battles has a score."]
    assert section.classes is section.levels is section.bounds is None


def test_verdicts_that_a_replicate_stood_in_for_are_said() -> None:
    saved = account(("all", "", "ok", 10, 38), ("all", "", "refusal", 0, 2))
    section = missing_section(saved, None)
    assert section.sentences == [
        "Every one of the 10 sampled battles has a score; 2 verdicts failed and another "
        "replicate stood in."
    ]


def test_totals_and_groups_are_those_of_the_account(missingness, bounds) -> None:
    section = missing_section(missingness, bounds)
    assert section.sentences[0].startswith(
        "10 of 1\u2009000 sampled battles (1.0 %) have no score."
    )
    assert "The corpus publishes no length to count them by." in section.sentences
    classes = [[cell.text for cell in row.cells] for row in section.classes.rows]
    assert classes == [["parse error", "8", "0.8 %", "10"], ["refusal", "2", "0.2 %", "2"]]
    levels = [[cell.text for cell in row.cells] for row in section.levels.rows]
    assert levels == [["model", SCRIPT, "100", "8", "8.0 %", "parse error 6, refusal 2"]]


def test_bounds_are_of_models_with_missing_battles_and_marked_where_they_outweigh(
    missingness, bounds
) -> None:
    section = missing_section(missingness, bounds)
    shown = [(row.cells[0].text, row.cells[5].text, row.marked) for row in section.bounds.rows]
    assert shown == [
        ("never-scored", "–", True),
        (SCRIPT, "61.5", True),
        ("aurora-large-2", "5.0", False),
    ]
    assert f"The widest such range is 61.5 Elo, of {SCRIPT} (hard)." in section.sentences
    assert "No rating to bound: never-scored." in section.sentences
    assert "by hard and by soft ratings" in section.bounds.caption
    assert "such as auto, has none of its own" in " ".join(section.sentences)


def test_a_range_that_may_be_wider_than_needed_is_said_to_be(missingness, bounds) -> None:
    told = " ".join(missing_section(missingness, bounds).sentences)
    assert (
        "Where one order of a battle was read, that verdict is not used: the range holds, and may "
        "be wider than needed." in told
    )


@pytest.mark.parametrize("half_width", [np.inf, np.nan, 45.0])
@pytest.mark.parametrize("width", [44.0, 46.0, 99.0, 101.0, np.nan])
def test_the_page_marks_the_rows_that_the_check_warns_of(
    missingness, bounds, half_width, width
) -> None:
    one = bounds.iloc[:1].assign(worst_rating=1500.0, half_width=half_width)
    one = one.assign(best_rating=1500.0 + width)
    (row,) = missing_section(missingness, one).bounds.rows
    assert row.marked != missing_battles_matter_little(one).passed


def test_missing_battles_without_bounds_are_still_counted(missingness, bounds) -> None:
    for none in (None, bounds.iloc[3:]):
        section = missing_section(missingness, none)
        assert section.bounds is None
        assert len(section.classes.rows) == 2


def test_the_page_shows_the_section_with_every_name_escaped(
    missingness, bounds, tmp_path: Path
) -> None:
    told = [
        replace(example_judge(), missingness=missingness, missing_bounds=bounds),
        replace(
            example_judge("noisy", "Noisy"),
            missingness=account(("all", "", "ok", 4000, 8000)),
            missing_bounds=bounds.iloc[3:],
        ),
    ]
    html = write(tmp_path / "report.html", told)
    page = Page(html)
    assert page.texts.count("Missing verdicts") == 2
    assert page.tags.count("script") == 1  # ours
    assert f"The widest such range is 61.5 Elo, of {SCRIPT} (hard)." in page.texts
    assert "Every one of the 4 000 sampled battles has a score." in page.texts
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {"j1-missing", "j1-bounds", "j1-missing-levels"} <= set(ids)
    assert not {"j2-missing", "j2-bounds"} & set(ids)


def test_a_judge_from_before_there_was_an_account_has_no_section(tmp_path: Path) -> None:
    old: JudgeTables = example_judge()
    assert "Missing verdicts" not in write(tmp_path / "report.html", [old], comparison=None)


def test_a_column_that_lacks_is_named(missingness) -> None:
    with pytest.raises(ValueError, match="missingness of judge 'careful' lacks status"):
        replace(example_judge(), missingness=missingness.drop(columns="status"))

"""Leaderboards in the terminal: ranks with their reach, the evidence, and what it is worth."""

import io
import re

import numpy as np
import pandas as pd
from sources import LAYERS, files

from judgeline.report.wording import surrogacy_text
from judgeline.tables.intervals import with_judge_columns
from judgeline.terminal import (
    _notes,
    machine_readable,
    open_console,
    plain_table,
    printable,
    show_leaderboard,
)
from pipelines.commands.console import progress_bar

BOARD = pd.DataFrame(
    {
        "rank": [1, 2, 3],
        "best_rank": [1, 1, 2],
        "worst_rank": [2, 3, 3],
        "model": ["held", "off", "new"],
        "method": "auto",
        "basis": ["average: 54 other models have votes"] * 2
        + ["average: 55 other models have votes"],
        "rating": [1600.0, 1500.0, 1400.0],
        "lower": [1550.0, 1450.0, 1350.0],
        "upper": [1650.0, 1550.0, 1450.0],
        "evidence": ["judge and 90 votes", "80 votes", "judge"],
        "judge_rating": [1611.0, np.nan, 1400.0],
        "judge_upper": [1700.0, np.nan, 1500.0],
        "human_rating": [1650.0, 1449.0, np.nan],
        "n_battles": 90,
        "n_votes": [90, 80, 0],
        "flags": ["", "few-battles", "no-votes"],
    }
)


def shown(board: pd.DataFrame, *tables: pd.DataFrame) -> str:
    out = io.StringIO()
    show_leaderboard(
        open_console(file=out, width=130, force_terminal=False), board, "title", *tables
    )
    return out.getvalue()


def cells_of(text: str) -> dict[str, list[str]]:
    """Cells of the table by model."""
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]
    return {row[1]: row for row in rows if row}


def test_a_rank_stands_with_the_ranks_that_chance_allows() -> None:
    assert "2 (1 to 3)" in shown(BOARD)
    assert "tier" not in shown(BOARD)


def test_the_basis_is_said_once_and_by_models_where_it_differs() -> None:
    voted = shown(BOARD[:2]).splitlines()
    alone = "The judge alone: rated by auto, average: 54"
    assert voted.count(f"{alone} other models have votes") == 1
    assert f"{alone} to 55 other models have votes\n" in shown(BOARD)
    mixed = BOARD.assign(basis=["gap: 19 others, fewer than 20"] * 2 + ["average: 20 others"])
    assert "rated by auto, gap for 2 of 3 models (19 others, fewer than 20); ave" in shown(mixed)
    assert "rated by soft\n" in shown(BOARD.assign(method="soft", basis=""))


def test_a_model_stands_with_its_evidence_and_what_judge_and_votes_say_alone() -> None:
    cells = cells_of(shown(BOARD))
    assert cells["held"][2:7] == ["1600", "1550 to 1650", "judge and 90 votes", "1611", "1650"]
    assert cells["off"][4:] == ["80 votes", "-", "1449", "90", "few-battles"]
    assert cells["new"][4:] == ["judge", "1400", "-", "90", "no-votes"]


def test_a_usual_window_cuts_no_number_and_no_name() -> None:
    out = io.StringIO()
    show_leaderboard(
        open_console(file=out, width=100), BOARD.assign(model=["gpt-4", "b", "c"]), "title"
    )
    cells = cells_of(out.getvalue())
    assert cells["gpt-4"][2:4] == ["1600", "1550 to 1650"]
    assert cells["gpt-4"][5:7] == ["1611", "1650"]
    assert "…" not in out.getvalue()


def test_what_votes_say_of_the_judge_follows_with_a_note_where_it_warns() -> None:
    row = {
        "method": "auto",
        "miscoverage": 0.1,
        "n_models": 16,
        "structured": "",
        "structured_below": "",
    }
    row |= {"skill": 0.4, "skill_lower": -0.1, "skill_upper": 0.7, "floor": 12.0}
    summary = pd.DataFrame({"method": ["auto"], "mae": [40.0]})
    above = BOARD.assign(
        judge_rating=[1611.0, 1500.0, 1700.0], flags=["", "", "no-votes;beyond-anchors"]
    )
    text = shown(above, pd.DataFrame([row]), summary)
    assert "\n2 of 3 models may be the best.\n" in text
    assert "the judge is 40 Elo from people on average; a perfect judge would show 12.\n" in text
    assert "\nNote: Skill 0.40 (−0.10 to 0.70): " in text
    assert "\nNote: new stands above all 2 models that people have rated (1700, " in text
    sure = pd.DataFrame([{**row, "skill_lower": 0.1}])
    assert "Note: " not in shown(BOARD, sure, summary)
    assert "Skill" not in shown(above)  # of which nothing is stored
    assert "Note: new stands above" in shown(above)


def test_a_withheld_judge_is_named_with_the_reason_and_votes_stay() -> None:
    reason = "withheld: skill -0.10 < 0.00"
    text = shown(BOARD.assign(judge_rating=np.nan, flags=[reason, f"{reason};few-battles", reason]))
    assert "\nJudge withheld: skill -0.10 < 0.00\n" in text
    assert "rated by" not in text
    assert cells_of(text)["off"][4:] == ["80 votes", "-", "1449", "90", "few-battles"]


def test_a_model_without_a_rating_has_one_dash_for_an_interval() -> None:
    numbers = ["rank", "best_rank", "worst_rank", "rating", "lower", "upper"]
    unrated = BOARD.astype(dict.fromkeys(numbers, float))
    unrated.loc[2, numbers] = np.nan
    assert "- to -" not in shown(unrated)
    assert "1350 to 1450" in shown(BOARD)


def test_a_table_of_an_earlier_version_is_shown() -> None:
    new = ["best_rank", "worst_rank", "basis", "evidence", "judge_rating"]
    old = with_judge_columns(BOARD.drop(columns=new).assign(method="soft", tier=1))
    assert "The judge alone: rated by soft\n" in shown(old)
    assert cells_of(shown(old))["held"][4:7] == ["judge", "1600", "1650"]
    assert with_judge_columns(BOARD) is BOARD


def test_surrogacy_is_said_where_it_is_significant() -> None:
    def found(gamma: float) -> str:
        names = ["surrogacy_gamma", "surrogacy_gamma_std_error"]
        return surrogacy_text(pd.DataFrame({"diagnostic": names, "value": [gamma, 0.2]}))

    assert "too close together" in found(0.5)
    assert "too far apart" in found(-0.5)
    assert [found(0.39), found(np.nan)] == ["", ""]
    assert surrogacy_text(pd.DataFrame({"diagnostic": ["kappa"], "value": [0.3]})) == ""


def test_a_missing_number_is_a_dash_in_markdown_and_a_name_stays() -> None:
    board = BOARD.assign(model=["held", "nan", "new"], beta=np.nan)
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in machine_readable(board, "md").splitlines()
    ]
    new = dict(zip(rows[0], rows[4], strict=True))
    assert (new["human_rating"], new["beta"], new["rating"]) == ("–", "–", "1400.0")
    assert [cell for row in rows for cell in row].count("nan") == 1


def test_a_name_with_colons_or_brackets_is_shown_as_it_is() -> None:
    name, out = "[red]q:100:7b :x: \x1b", io.StringIO()
    console = open_console(file=out, width=130)
    show_leaderboard(console, BOARD.assign(model=name), "title")
    console.print(plain_table("title", [name], [[name]]))
    with progress_bar(open_console(file=out, width=130, force_terminal=True)) as bar:
        bar.add_task(printable(name))
        bar.refresh()
    assert out.getvalue().count("[red]q:100:7b :x: \N{REPLACEMENT CHARACTER}") >= 5


def test_notes_on_methods_that_do_not_rank_are_one_line() -> None:
    notes = pd.DataFrame(
        {"method": ["auto", "soft", "hard", "score"], "note": ["a", "a", "b", "c"]}
    )
    others = "(other methods; no rating above is theirs): hard: b; score: c"
    assert _notes(notes, "auto") == ["(auto, soft): a", others]
    assert _notes(notes[:2], "auto") == ["(every method): a"]
    assert _notes(notes.assign(note=""), "auto") == []


def test_one_maker_makes_the_consoles() -> None:
    made = [path.name for path in files(*LAYERS) if re.search(r"Console\(", path.read_text())]
    assert made == ["terminal.py"]

"""Leaderboards in the terminal: ranks with their reach, the basis, and intervals that missed."""

import io

import numpy as np
import pandas as pd
from rich.console import Console

from judgeline.report.wording import surrogacy_text
from judgeline.terminal import machine_readable, show_leaderboard

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
        "human_rating": [1650.0, 1449.0, np.nan],
        "n_battles": 90,
        "n_votes": [90, 80, 0],
        "flags": ["", "few-battles", "no-votes"],
    }
)


def shown(board: pd.DataFrame, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=colour)
    show_leaderboard(console, board, "title", 0.1)
    return out.getvalue()


def test_a_rank_stands_with_the_ranks_that_chance_allows() -> None:
    assert "2 (1 to 3)" in shown(BOARD)
    assert "tier" not in shown(BOARD)


def test_the_basis_is_said_once_and_by_models_where_it_differs() -> None:
    voted = shown(BOARD[:2]).splitlines()
    assert voted.count("rated by auto, average: 54 other models have votes") == 1
    assert "rated by auto, average: 54 to 55 other models have votes\n" in shown(BOARD)
    mixed = BOARD.assign(basis=["gap: 19 others, fewer than 20"] * 2 + ["average: 20 others"])
    assert "rated by auto; gap: 19 others, fewer than 20 (2 of 3 models); ave" in shown(mixed)
    assert "rated by soft\n" in shown(BOARD.assign(method="soft", basis=""))


def test_a_missed_interval_is_counted_and_marked_in_red() -> None:
    text = shown(BOARD)
    assert "1 of 2 intervals hold the human rating (90 % promised)\n" in text
    rows = {line.split("│")[2].strip(): line for line in text.splitlines() if "│" in line}
    assert {name for name, line in rows.items() if "missed" in line} == {"off"}
    assert "\x1b[1;31mmissed" in shown(BOARD, colour=True)


def test_a_model_without_a_rating_has_one_dash_for_an_interval() -> None:
    numbers = ["rank", "best_rank", "worst_rank", "rating", "lower", "upper"]
    unrated = BOARD.astype(dict.fromkeys(numbers, float))
    unrated.loc[2, numbers] = np.nan
    assert "- to -" not in shown(unrated)
    assert "1350 to 1450" in shown(BOARD)


def test_a_table_of_an_earlier_version_is_shown() -> None:
    old = BOARD.drop(columns=["best_rank", "worst_rank", "basis"]).assign(method="soft", tier=1)
    assert "rated by soft\n1 of 2 intervals" in shown(old)


def test_surrogacy_is_said_where_it_is_significant() -> None:
    def found(gamma: float) -> str:
        names = ["surrogacy_gamma", "surrogacy_gamma_std_error"]
        return surrogacy_text(pd.DataFrame({"diagnostic": names, "value": [gamma, 0.2]}))

    assert "too close together" in found(0.5)
    assert "too far apart" in found(-0.5)
    assert [found(0.39), found(np.nan)] == ["", ""]
    assert surrogacy_text(pd.DataFrame({"diagnostic": ["kappa"], "value": [0.3]})) == ""


def test_a_missing_number_is_a_dash_in_markdown_and_a_name_stays() -> None:
    board = BOARD.assign(model=["held", "nan", "new"], judge_and_votes=np.nan)
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in machine_readable(board, "md").splitlines()
    ]
    new = dict(zip(rows[0], rows[4], strict=True))
    assert (new["human_rating"], new["judge_and_votes"], new["rating"]) == ("–", "–", "1400.0")
    assert [cell for row in rows for cell in row].count("nan") == 1

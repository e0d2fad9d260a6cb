"""Sentences on a board that can fail, each in both of its states."""

import math
import re

import pandas as pd
import pytest
from report_examples import HOSTILE

from judgeline.report import beyond_lines, changes_text, evidence_lines

NAN = math.nan
GOOD = {"miscoverage": 0.1, "skill": 0.81, "skill_lower": 0.4, "skill_upper": 0.95, "floor": 10.4}


def board(*rows: tuple[str, float, float, float, str]) -> pd.DataFrame:
    """Rows of model, best rank, judge rating (the rating, too), human rating and flags."""
    columns = ["model", "best_rank", "judge_rating", "human_rating", "flags"]
    table = pd.DataFrame(rows, columns=columns).assign(method="auto", judge_upper=1700.0)
    rating = table["judge_rating"]
    return table.assign(rating=rating, lower=rating - 60, upper=rating + 60)


VOTED = [("ant", 1.0, 1610.0, 1600.0, ""), ("bee", 1.0, 1500.0, 1490.0, ""),
         ("cat", 3.0, 1400.0, 1410.0, "")]  # fmt: skip
NEW = ("newt", 1.0, 1580.0, NAN, "no-votes")


def lines(
    table: pd.DataFrame,
    error: float = 31.6,
    predictions: pd.DataFrame | None = None,
    **changes: object,
) -> list[tuple[str, bool]]:
    known = {"n_models": 16, "structured": "upper third 5 of 6", "structured_below": ""}
    row = {"method": "auto", **known, **GOOD, **changes}
    others = {**row, "method": "hard", "skill": -9.0, "structured_below": "everything"}
    summary = pd.DataFrame({"method": ["hard", "auto"], "mae": [999.0, error]})
    return evidence_lines(table, pd.DataFrame([others, row]), summary, predictions)


def test_a_good_judge_has_five_sentences_and_no_warning() -> None:
    said = lines(board(*VOTED, NEW))
    assert [text for text, warns in said if not warns] == [
        "Not voted on: newt 1580 (1520 to 1640).",
        "3 of 4 models may be the best.",
        "Each model rated as if nobody had voted on it, the judge is 32 Elo from people on average;"
        " a perfect judge would show 10.",
        "Skill 0.81 (0.40 to 0.95): the share of what tells the models apart in people's votes that"
        " the judge knows without these.",
        "Tried on models unlike those that calibrate: upper third 5 of 6.",
    ]
    assert len(said) == 5
    # a count of intervals that calibrated one another is n less a tenth of n for any judge
    assert not [text for text, _ in said if re.search("interval.*hold|hold.*interval", text)]


def test_a_board_says_what_its_ratings_rest_on_since_the_one_before() -> None:
    now = board(*VOTED, NEW).assign(evidence="judge and 30 votes", basis="average: 20 others")
    was = now.assign(evidence="judge and 12 votes", basis="average: 21 others", rating=1.0)
    assert changes_text(was, now) == ""  # more votes, other ratings, the same method
    assert changes_text(None, now) == ""
    by_votes = was.assign(evidence=["12 votes", "12 votes", "judge and 1 vote", "judge"])
    by_votes["rating"] = now["rating"] - [3.0, -8.0, 2.0, 1.0]
    assert changes_text(by_votes, now) == (
        "Since the board before: 2 of 4 models are rated by judge and votes, before by votes; "
        "1 of 4 models are rated by judge and votes, before by judge. bee moves most: "
        "1508 before, 1500 now (-8 Elo)."
    )
    gap = was.assign(basis="gap: 19 others", rating=now["rating"]).iloc[1:]
    assert "the judge rates 3 of 3 models by average, before by gap" in changes_text(gap, now)


def test_the_ledger_counts_scored_predictions_of_the_method_with_ends() -> None:
    rows = [
        ("auto", 1.0, "2026-01-01", True), ("auto", 1.0, "2026-01-01", False),
        ("auto", math.inf, "2026-01-01", True), ("auto", 1.0, None, None),
        ("judge_and_votes", 1.0, "2026-01-01", True),
    ]  # fmt: skip
    ledger = pd.DataFrame(rows, columns=["method", "upper", "scored_at", "covered"])
    ledger = ledger.assign(lower=0.0, miscoverage=0.1)
    said = [text for text, _ in lines(board(*VOTED), predictions=ledger)]
    assert "Of 2 predictions made before people voted, 1 held (90 % promised)." in said
    none = [text for text, _ in lines(board(*VOTED), predictions=ledger.iloc[2:])]
    assert not [text for text in none if "predictions" in text]


@pytest.mark.parametrize(
    ("best", "words"),
    [
        ([1, 2, 2], "ant alone may be the best of the 3 models."),
        ([1, 1, 2], "2 of 3 models may be the best."),
        ([NAN, NAN, NAN], ""),
        ([1], ""),
    ],
)
def test_the_first_place_is_one_models_or_of_several(best: list[float], words: str) -> None:
    table = board(*VOTED).head(len(best)).assign(best_rank=best)
    said = [text for text, _ in lines(table) if "may be the best" in text]
    assert said == [words] * bool(words)


@pytest.mark.parametrize(
    ("error", "floor", "words"),
    [
        (31.6, 10.4, "32 Elo from people on average; a perfect judge would show 10."),
        (4.4, NAN, "4 Elo from people on average."),
        (NAN, 10.4, ""),
    ],
)
def test_the_error_stands_beside_that_of_a_perfect_judge(error, floor, words: str) -> None:
    said = [text for text, _ in lines(board(*VOTED), error, floor=floor) if " Elo from " in text]
    assert len(said) == bool(words)
    assert "".join(said).endswith(words)


@pytest.mark.parametrize(
    ("changes", "words", "warns"),
    [
        ({"skill_lower": 0.001}, "knows without", False),
        ({"skill_lower": 0.0}, "The interval reaches 0: this judge may add nothing.", True),
        ({"skill": -0.2, "skill_lower": -1.4}, "Skill −0.20 (−1.40 to 0.95): ", True),
        ({"skill": NAN, "n_models": 2}, "Skill: not measured, with 2 models that have vot", False),
        ({"skill": NAN, "n_models": 0}, None, False),
    ],
)
def test_skill_warns_where_its_interval_reaches_nothing(changes, words, warns: bool) -> None:
    said = [(text, flag) for text, flag in lines(board(*VOTED), **changes) if "Skill" in text]
    assert len(said) == (words is not None)
    for text, flag in said:
        assert words in text
        assert flag is warns


@pytest.mark.parametrize(
    ("changes", "words", "warns"),
    [
        ({}, "Tried on models unlike those that calibrate: upper third 5 of 6.", False),
        ({"structured_below": "upper third 1 of 6"}, "for models unlike those that calibrate them: "
         "upper third 1 of 6.", True),
        ({"structured": "", "n_models": 12}, "Not tested on models unlike those that calibrate: "
         "12 models with votes, 14 are needed at 90 %.", False),
    ],
)  # fmt: skip
def test_splits_of_unlike_models_hold_or_fail_or_were_not_tried(changes, words, warns) -> None:
    (said,) = [one for one in lines(board(*VOTED), **changes) if "unlike those" in one[0]]
    assert said[0].endswith(words)
    assert said[1] is warns


@pytest.mark.parametrize(
    ("rating", "words"),
    [
        (1640.0, "newt stands above all 3 models that people have rated (1640, best of them 1600)"),
        (1266.0, "newt stands below all 3 models that people have rated (1266, worst of them 1410"),
        (None, None),
    ],
)
def test_a_newcomer_beyond_all_that_people_have_rated_is_told_what_to_do(rating, words) -> None:
    new = NEW if rating is None else ("newt", 1.0, rating, NAN, "no-votes;beyond-anchors")
    said = beyond_lines(board(*VOTED, new))
    assert said == [one for one in lines(board(*VOTED, new)) if one[1]]
    assert len(said) == (rating is not None)
    for text, warns in said:
        assert warns
        assert text.startswith(words)
        assert "holds less often than promised" in text
        assert text.endswith("have people vote on its battles first.")


def test_where_people_have_rated_nobody_nothing_is_beyond_them() -> None:
    table = board(("newt", 1.0, 1640.0, NAN, "no-votes;beyond-anchors"))
    assert beyond_lines(table) == []


def test_of_a_withheld_judge_nothing_but_the_board_is_told() -> None:
    reason = "withheld: skill -0.10 < 0.00;beyond-anchors"
    table = board(*VOTED, NEW).assign(flags=reason, judge_rating=NAN)
    assert lines(table) == [("3 of 4 models may be the best.", False)]


def test_names_are_told_as_they_are() -> None:
    (said,) = beyond_lines(board(*VOTED, (HOSTILE[2], 1.0, 1900.0, NAN, "beyond-anchors")))
    assert said[0].startswith(f"{HOSTILE[2]} stands above")

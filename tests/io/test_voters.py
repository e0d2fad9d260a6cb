"""Votes: a winner that a column calls a judge's is refused, or told apart row by row."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judgeline
from judgeline.cli import main
from judgeline.io import ArgumentError, read_judged_battles
from judgeline.io.voters import says_machine

WHO = ["source", "annotator", "Annotator Type", "judged-by", "labeled_by", "evaluator"]


def battles(n: int = 240, agreed: float = 0.75) -> pd.DataFrame:
    """Return battles of four models whose winner agrees with the scores in a share of them."""
    rng = np.random.default_rng(7)
    pairs = np.array([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])[np.arange(n) % 4]
    gap = rng.choice([-2.0, -1.0, 1.0, 2.0], n)
    first = (gap > 0) == (np.arange(n) < agreed * n)
    return pd.DataFrame(
        {
            "question_id": [f"q{row}" for row in range(n)],
            "model_a": pairs[:, 0],
            "model_b": pairs[:, 1],
            "score_difference": gap,
            "winner": np.where(first, "model_a", "model_b"),
        }
    )


@pytest.mark.parametrize("column", WHO)
@pytest.mark.parametrize(
    "value", ["llm", "llm-judge", "GPT-4", "openai/gpt-4o", "auto", "Claude 3"]
)
def test_a_winner_that_a_column_calls_a_machines_is_no_vote(column: str, value: str) -> None:
    for table in (battles(), battles().drop(columns="score_difference")):
        with pytest.raises(ArgumentError, match=r"is no vote of people") as refused:
            read_judged_battles(table.assign(**{column: value}), with_votes=False)
        assert f"column {column!r} says {value!r} in 240 rows" in str(refused.value)
        assert "--columns 'judge_winner=winner'" in refused.value.as_option()
        assert "--columns 'human_outcome=winner'" in refused.value.as_option()


@pytest.mark.parametrize(
    "column", ["judge_model", "jury", "judge_votes", "majority_verdict", "Judge Name"]
)
def test_a_winner_alone_beside_what_a_judge_has_is_the_judges(column: str) -> None:
    table = battles().assign(**{column: "a judge"})
    assert len(read_judged_battles(table).scored) == 240  # scores beside it make it people's
    alone = table.drop(columns="score_difference")
    with pytest.raises(ArgumentError, match=rf"column '{column}' \(such as 'a judge'\)"):
        judgeline.doctor(alone)
    judged = read_judged_battles(alone, columns={"judge_winner": "winner"}, with_votes=False)
    assert judged.scored["score_difference"].abs().eq(1).all()
    assert judged.scored["human_outcome"].isna().all()


@pytest.mark.parametrize("value", ["human", "human-judge", "user_12", "arena", "expert", "A3XYZ"])
def test_people_and_origins_of_questions_are_no_machines(value: str) -> None:
    read = read_judged_battles(battles().assign(source=value, annotator=value))
    assert read.scored["human_outcome"].notna().all()
    assert not says_machine(value)


@pytest.mark.parametrize(
    "values",
    [["mt_bench", "alpaca_eval", "arena_hard"], ["ai2_arc", "gsm8k"], ["alpaca_eval"],
     ["Claude", "Anna"], ["b@llm-lab.org", "c@b.org"]],
)  # fmt: skip
def test_sources_and_names_of_people_are_no_machines(values: list[str]) -> None:
    table = battles()
    table["source"] = np.resize(values, len(table))
    read = read_judged_battles(table)
    assert read.scored["human_outcome"].notna().all()
    assert not [note for note in read.notes if "source" in note]


def test_a_statement_that_people_voted_is_heeded() -> None:
    table = battles().assign(source="llm-judge")
    read = read_judged_battles(table, columns={"human_outcome": "winner"})
    expected = table["winner"].map({"model_a": 1.0, "model_b": 0.0})
    assert read.scored["human_outcome"].tolist() == expected.tolist()


def test_rows_of_a_mixed_file_are_told_apart(tmp_path: Path) -> None:
    usual = battles()
    judged = np.where(usual["score_difference"] > 0, "model_a", "model_b")
    shared = usual.drop(columns=["score_difference", "winner"])
    verdicts = shared.assign(winner=judged, source="llm-judge", judge_model="j")
    votes = shared.assign(winner=usual["winner"], source="human", judge_model=None)
    exchanged = votes.rename(columns={"model_a": "model_b", "model_b": "model_a"}).assign(
        winner=votes["winner"].map({"model_a": "model_b", "model_b": "model_a"})
    )
    path = tmp_path / "battles.jsonl"
    for people in (votes, exchanged):
        mixed = pd.concat([verdicts, people])
        mixed.to_json(path, orient="records", lines=True)
        read = read_judged_battles(path)
        assert read.judge == "j"
        expected = usual["winner"].map({"model_a": 1.0, "model_b": 0.0})
        assert read.scored["human_outcome"].tolist() == expected.tolist()
        assert (
            read.scored["score_difference"].tolist() == np.sign(usual["score_difference"]).tolist()
        )
        assert "in 240 ('llm-judge'), people's vote in 240 ('human')" in read.notes[0]
    lacking = pd.concat([verdicts, votes.iloc[:5], votes.iloc[:1].assign(question_id="other")])
    read = read_judged_battles(lacking.reset_index(drop=True))
    assert read.scored["human_outcome"].notna().sum() == 5
    assert "1 of 6 votes are on battles that no judge saw" in " ".join(read.notes)
    with pytest.raises(ValueError, match="source is empty in 1 rows"):
        read_judged_battles(pd.concat([verdicts, votes.assign(source=["human"] * 239 + [None])]))


@pytest.mark.parametrize(("agreed", "is_asked"), [(0.95, True), (1.0, True), (0.86, False)])
def test_votes_that_agree_too_often_are_asked_about(agreed: float, is_asked: bool) -> None:
    table = battles(agreed=agreed)
    notes = " ".join(read_judged_battles(table).notes)
    assert ("are these votes people's?" in notes) == is_asked
    assert ("--columns judge_winner=winner" in notes) == is_asked
    assert ("people's?" in " ".join(judgeline.doctor(table).concerns)) == is_asked
    few = read_judged_battles(battles(n=96, agreed=agreed))
    assert "people's?" not in " ".join(few.notes)


def test_the_report_of_a_board_carries_the_question(tmp_path: Path) -> None:
    board = judgeline.rank(battles(agreed=0.95), judgeline.Settings(n_resamples=0))
    assert any("people's?" in note for note in board.battles.notes)
    board.to_html(tmp_path / "report.html")
    assert "are these votes people" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_hundreds_of_votes_are_never_called_too_few() -> None:
    gate = judgeline.doctor(battles(agreed=1.0)).gate
    assert "separable" in gate
    assert "too few human votes" not in gate
    assert "--columns judge_winner=winner" in gate
    assert "too few human votes" in judgeline.doctor(battles(n=24, agreed=1.0)).gate


def test_a_column_of_many_judges_names_five_and_says_voters(tmp_path: Path, capsys) -> None:
    table = battles().assign(judge=[f"user_{row}" for row in range(240)])
    table.to_csv(tmp_path / "b.csv", index=False)
    assert main(["rank", str(tmp_path / "b.csv"), "--out", str(tmp_path / "out")]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "verdicts of 240 judges; choose one with --judge: user_0, user_1, user_10" in said
    assert said.count("user_") == 5
    assert "So many look like voters: if people voted, leave the column judge out" in said

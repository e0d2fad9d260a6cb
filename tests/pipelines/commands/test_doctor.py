"""`judgeline doctor`: what it finds of good and broken files, and its exit codes."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_rank import simulated_battles

import judgeline
from judgeline.api import Settings
from judgeline.cli import main

BATTLES = simulated_battles()
ISLAND = pd.DataFrame(
    {
        "model_a": ["island-1"],
        "model_b": ["island-2"],
        "score_difference": [1.0],
        "human_outcome": [1.0],
    }
)
SCALE = "ratings on the human scale"
FINITE = "finite 90% intervals"
VERDICTS = BATTLES.assign(verdict=["A", "B", "tie"] * 300).drop(columns="score_difference")


@pytest.mark.parametrize(
    ("table", "code", "supported", "lacking", "missing"),
    [
        (BATTLES, 0, [SCALE, FINITE], [], "Position bias: judge both orders"),
        (
            BATTLES.assign(human_outcome=None),
            2,
            ["by the judge alone"],
            [SCALE],
            "votes of people on some",
        ),
        (
            BATTLES.assign(score_difference=-BATTLES["score_difference"]),
            2,
            ["by the judge alone", "by people"],
            [SCALE, FINITE],
            "contradicts-humans",
        ),
        (pd.concat([BATTLES, ISLAND]), 2, [], [SCALE, "by people"], "island-1, island-2"),
        (
            simulated_battles(n_models=6),
            0,
            [SCALE],
            [FINITE],
            "9 models with votes that count calibrate them, and there are 6; add votes on 3 more",
        ),
        (
            pd.concat([BATTLES, ISLAND.assign(model_b="island-1")]).assign(
                difference_ab=1.0, difference_ba=1.0
            ),
            0,
            ["position bias"],
            [],
            "rows cannot be used, such as: 'island-1' is compared with itself",
        ),
    ],
)
def test_a_file_is_told_what_it_supports(
    tmp_path: Path, capsys, table: pd.DataFrame, code: int, supported, lacking, missing: str
) -> None:
    path = tmp_path / "my battles.csv"
    table.to_csv(path, index=False)
    assert main(["doctor", str(path), "--format", "json"]) == code
    found = json.loads(capsys.readouterr().out)
    supports = "; ".join(found["supports"])
    assert all(words in supports for words in supported)
    assert not [words for words in lacking if words in supports]
    assert missing in " ".join(found["missing"] + found["concerns"])
    by_itself = "votes of people" in missing
    following = "judgeline plain" if by_itself else "judgeline doctor" if code else "judgeline rank"
    assert found["next"].startswith(following)
    assert str(path) in found["next"]
    assert bool(found["gate"]) is bool(code)
    # what the doctor says is what `rank` does
    assert (
        main(["rank", str(path), "--out", str(tmp_path / "out"), "--no-report"])
        in {0: [0], 2: [1, 2]}[code]
    )
    assert main(["doctor", str(path)]) == code
    printed = capsys.readouterr().out
    assert missing in printed
    assert ("When that is mended: " in printed) is (following == "judgeline doctor")


def test_counts_of_a_table_and_options_in_the_command() -> None:
    table = BATTLES.assign(judge=["one", "two"] * 450, human_outcome=[1, -1, None] * 300)
    found = judgeline.doctor(table, judge="two", outcomes="1/-1")
    assert (found.judge, found.n_battles, found.n_votes, found.n_voted_models) == (
        "two",
        450,
        300,
        12,
    )
    assert (found.judge_connected, found.people_connected) == (True, True)
    assert found.next == "judgeline.plain(battles, judge='two', outcomes='1/-1')"
    assert repr(found).splitlines()[1].startswith("450 battles of 12 models, judged by two; 300")
    plain = judgeline.doctor(VERDICTS)
    assert plain.layout.startswith("the file holds plain verdicts")


def test_what_looks_wrong_is_said_and_what_chance_explains_is_not() -> None:
    def concerns(**columns: object) -> str:
        battles = BATTLES.assign(battle_id=range(len(BATTLES)), **columns)
        return " ".join(judgeline.doctor(battles).concerns)

    score, chance = BATTLES["score_difference"], np.random.default_rng(1)
    alike = {"difference_ab": score, "difference_ba": score}
    assert concerns(**alike, length_a=9.0, length_b=9.0) == ""
    leaning = {"difference_ab": score + 9, "difference_ba": score - 9}
    assert "shown first in 100% of 1,800 presentations" in concerns(**leaning)
    side = np.where(score > 0, 2.0, 1.0)
    near = {"score_difference": score / 100, "length_a": side, "length_b": 3.0 - side}
    assert "prefers the longer response in 100%" in concerns(**near)
    votes = chance.integers(0, 2, len(BATTLES)).astype(float)
    assert "no better than chance" in concerns(human_outcome=votes)
    few = np.where(np.arange(len(BATTLES)) < 5, votes, np.nan)
    assert "too few to tell from chance" in concerns(human_outcome=few)
    named = BATTLES.replace("model-00", "\x1b[2Jm")
    assert "\x1b" not in repr(judgeline.doctor(named)) + repr(judgeline.rank(named))
    with pytest.raises(ValueError, match="miscoverage is 0; it lies between 0 and 1"):
        judgeline.doctor(BATTLES, miscoverage=0)
    absurd = score.where(np.arange(len(score)) != 7, 999_999.0)
    assert "score_difference is 999999.0 between" in concerns(score_difference=absurd)
    sides = {"judge_score_a": score + 1, "judge_score_b": np.where(np.arange(len(score)) < 9, 5, 1)}
    assert "differ in 9 rows, the first is row 0" in concerns(**sides)
    rounded = {"judge_score_a": (score + 1).round(1), "judge_score_b": 1.0}
    assert "differ in" not in concerns(**rounded)
    winner = np.where(BATTLES["human_outcome"] == 1, "model_a", "model_b")
    assert "human_outcome and winner differ" not in concerns(winner=winner)
    assert "human_outcome and winner differ" in concerns(winner=winner[::-1])
    repeats = int(BATTLES.duplicated().sum())
    assert f"{repeats} rows equal an earlier row and" in str(judgeline.doctor(BATTLES))
    assert "rows equal an earlier row, as plain verdicts may" in str(judgeline.doctor(VERDICTS))


def test_votes_of_few_models_bear_no_scale_and_are_not_called_a_contradiction() -> None:
    of_one = [BATTLES[side].eq("model-00") for side in ("model_a", "model_b")]
    against = BATTLES["human_outcome"].where(of_one[0] | of_one[1], 0.5)
    lone = BATTLES["score_difference"].where(of_one[0] | of_one[1], 0.01)
    some = against.where(BATTLES.index % 97 > 0, 0.0)  # few others', against the judge
    found = judgeline.doctor(BATTLES.assign(human_outcome=some, score_difference=lone))
    assert "with model-00 held out, the other models' " in found.gate
    assert "too few votes bear its scale. Add battles that people voted on" in found.gate
    assert "must not rate" not in found.gate
    fewer = against.where(BATTLES.index % 230 > 0, 0.0)  # too few to say that people disagree
    found = judgeline.doctor(BATTLES.assign(human_outcome=fewer, score_difference=lone))
    assert "without model-00 votes cannot tell: all " in found.gate
    assert "About 6 decisive votes such as these would tell" in found.gate


def test_a_name_that_is_nearly_another_is_shown_and_versions_are_not() -> None:
    def look(**names: str) -> str:
        battles = BATTLES.copy()
        battles["model_a"] = battles["model_a"].replace({"model-02": "mistral-large"})
        battles["model_b"] = battles["model_b"].replace({"model-02": "mistral-large"})
        row = int(battles["model_a"].eq(names["of"]).to_numpy().argmax())
        battles.loc[row, "model_a"] = names["rare"]
        return " ".join(judgeline.doctor(battles).concerns)

    said = look(of="mistral-large", rare="mistral-lagre")
    assert "few battles whose names are nearly those of others are rated apart: 'mistral-l" in said
    assert "nearly" not in look(of="model-01", rare="model-77")


def test_five_models_have_wider_intervals_than_asked_for() -> None:
    found = judgeline.doctor(simulated_battles(n_models=5))
    assert "83% is finite now (miscoverage 0.17)" in " ".join(found.missing)  # 1 in 5 + 1
    board = judgeline.rank(simulated_battles(n_models=5), Settings(miscoverage=0.17))
    assert np.isfinite(board.leaderboard["judge_lower"]).all()
    assert len(repr(board)) < 200


@pytest.mark.parametrize("n_models", [8, 9])
def test_finite_intervals_are_told_where_rank_finds_them(n_models: int) -> None:
    """Nine models calibrate a tenth; two votes on it do not count yet."""
    table = simulated_battles(n_models=n_models)
    newcomer = table.head(2).assign(model_a="newcomer")
    table = pd.concat([table, newcomer], ignore_index=True)
    board = judgeline.rank(table, Settings(n_resamples=0)).leaderboard
    voted = board[board["human_rating"].notna()]
    assert len(voted) == n_models
    finite = bool(np.isfinite(voted["judge_lower"]).all())
    assert finite is (n_models == 9)
    found = judgeline.doctor(table)
    assert (FINITE in found.supports) is finite
    assert any("add votes on 1 more" in words for words in found.missing) is not finite


def test_files_that_rank_does_not_read(tmp_path: Path, capsys) -> None:
    path = tmp_path / "bench.jsonl"
    game = {"question_id": 1, "model_1": "a", "model_2": "b", "judge": "j"}
    path.write_text(json.dumps({**game, "g1_winner": "tie", "g2_winner": "tie"}))
    assert main(["doctor", str(path)]) == 2
    assert "(judgeline verdicts import FILE --format mt-bench --out DIR)" in capsys.readouterr().out
    votes = tmp_path / "votes.csv"
    BATTLES[["model_a", "model_b", "human_outcome"]].to_csv(votes, index=False)
    assert main(["doctor", str(votes)]) == 2
    assert f"Next: judgeline plain {votes}" in capsys.readouterr().out
    assert main(["doctor", str(tmp_path / "nothing.csv")]) == 1
    BATTLES.assign(judge=["one", "two"] * 450).to_csv(tmp_path / "two.csv", index=False)
    assert main(["doctor", str(tmp_path / "two.csv")]) == 0
    told = capsys.readouterr().out
    assert "this is of judge 'one', one of 2: --judge names another (two)." in told
    assert "--out ratings --judge one" in told

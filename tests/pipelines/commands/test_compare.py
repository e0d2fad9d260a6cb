"""`judgeline compare` and `Board.compare`: by file and by stored tables, answers and refusals."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_rank import simulated_battles

import judgeline
from judgeline.api import Settings
from judgeline.cli import main
from judgeline.comparing import compare_on

FAST = Settings(n_resamples=0)


def hand_made_board(n_voted: int = 10) -> pd.DataFrame:
    """Voted models 100 Elo apart without residuals, and three that only the judge has rated."""
    names = [*(f"voted-{k}" for k in range(n_voted)), "new-one", "new-two", "unrated"]
    voted = np.arange(len(names)) < n_voted
    rating = np.r_[1000 + 100.0 * np.arange(n_voted), 1700.0, 1690.0, np.nan]
    half = np.where(voted, 30.0, 90.0)
    return pd.DataFrame(
        {
            "model": names, "rating": rating, "lower": rating - half, "upper": rating + half,
            "evidence": np.where(voted, "judge and 325 votes", "judge"),
            "std_error": np.where(voted, 15.0, 40.0), "judge_rating": rating,
            "judge_upper": rating + half, "judge_std_error": 3.0, "vote_std_error": 10.0,
            "human_rating": np.where(voted, rating, np.nan),
            "human_std_error": np.where(voted, 20.0, np.nan), "n_battles": 200,
            "n_votes": np.where(voted, 325, 0), "flags": np.where(voted, "", "no-votes"),
        }
    )  # fmt: skip


@pytest.fixture
def stored(home: Path) -> pd.DataFrame:
    board = hand_made_board()
    folder = home / "tables" / "leaderboard" / "arena"
    folder.mkdir(parents=True)
    board.to_parquet(folder / "careful.parquet")
    return board


@pytest.mark.parametrize(
    ("pair", "code", "told"),
    [
        (("voted-3", "voted-2"), 0, "voted-3 is above voted-2: +100 Elo (90 % interval: +58 to"),
        (("voted-2", "voted-3"), 0, "voted-3 is above voted-2: +100 Elo (90 % interval: +58 to"),
        (("new-one", "new-two"), 3, "Cannot tell which of new-one and new-two is above: +10 Elo"),
        (("new-two", "voted-7"), 3, "more votes on new-two"),
    ],
)
def test_stored_models_are_compared(stored, capsys, pair, code, told) -> None:
    assert main(["compare", *pair, "--corpus", "arena", "--judge", "careful"]) == code
    assert told in capsys.readouterr().out
    assert main(["compare", *pair, "--corpus", "arena", "--format", "json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert (found["model_a"], found["model_b"]) == pair
    assert (found["answer"] == "cannot tell") == (code == 3)
    assert (found["votes_a"] + found["votes_b"] > 0) == (code == 3)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("VOTED-3 voted-2 --corpus arena", "unknown model 'VOTED-3'; did you mean 'voted-3'"),
        ("elsewhere voted-2 --corpus arena", "the leaderboard has voted-0, voted-1"),
        ("voted-2 voted-2 --corpus arena", "expected another model than the first"),
        ("unrated voted-2 --corpus arena", "'unrated' has no rating to compare (no-votes)"),
        ("voted-2 --corpus arena", "takes two models, got 1"),
        ("voted-2 voted-3", "two models of a file are compared, got 2 words"),
        ("voted-2 voted-3 --corpus arena --columns a=b", "--columns is for files"),
        ("voted-2 voted-3 --corpus areno", "areno"),
    ],
)
def test_refusals_say_what_to_do(stored, capsys, arguments, told) -> None:
    assert main(["compare", *arguments.split()]) == 1
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_judge_is_named_where_a_corpus_has_several(stored, home, capsys) -> None:
    stored.to_parquet(home / "tables" / "leaderboard" / "arena" / "hasty.parquet")
    assert main(["compare", "voted-2", "voted-3", "--corpus", "arena"]) == 1
    assert "leaderboards of careful, hasty; name one with --judge" in capsys.readouterr().err


def test_an_older_leaderboard_is_made_again() -> None:
    older = hand_made_board().drop(columns="evidence")
    with pytest.raises(ValueError, match=r"no column 'evidence': an earlier version made it"):
        compare_on(older, "voted-1", "voted-2", miscoverage=0.1)


def test_flags_of_the_two_models_are_said() -> None:
    board = hand_made_board()
    board.loc[board["model"].eq("new-one"), "flags"] = "no-votes;beyond-anchors"
    board["judge_rating"] = board["judge_rating"].mask(board["model"].eq("new-one"), 900.0)
    found = compare_on(board, "new-one", "voted-0", miscoverage=0.1)
    assert found.lines()[-1].startswith("new-one stands below all 10 models that people have rated")
    assert compare_on(board, "new-two", "voted-0", miscoverage=0.1).note == ""
    board["flags"] = "withheld: kappa 0.05 < 0.20"
    found = compare_on(board, "voted-1", "voted-0", miscoverage=0.1)
    assert found.note.startswith("Ratings by this judge are withheld (kappa 0.05 < 0.20)")


def test_a_file_is_ranked_and_two_of_its_models_compared(tmp_path, capsys) -> None:
    path = tmp_path / "battles.csv"
    battles = simulated_battles()
    battles.to_csv(path, index=False)
    assert main(["compare", str(path), "model-11", "model-00"]) == 0
    assert capsys.readouterr().out.startswith("model-11 is above model-00: +")
    assert main(["compare", str(path), "model-05", "model-06"]) == 3
    assert "would tell, if the difference stays." in capsys.readouterr().out
    assert main(["compare", str(path), "model-5", "model-06"]) == 1
    assert "did you mean 'model-05'" in capsys.readouterr().err
    # the same difference as on the board, and a shorter interval than both together
    board = judgeline.rank(battles, FAST)
    found, rows = board.compare("model-05", "model-06"), board.leaderboard.set_index("model")
    of_two = rows.loc[["model-05", "model-06"]]
    assert found.difference == pytest.approx(-np.diff(of_two["rating"])[0])
    assert found.upper - found.lower < (of_two["upper"] - of_two["lower"]).sum()
    assert found.evidence_a == of_two["evidence"].iloc[0]


def test_newcomers_are_compared_by_what_the_judge_does_to_voted_pairs() -> None:
    """The spread on the board is the one that the board's own intervals have."""
    battles = simulated_battles()
    new = ["model-03", "model-08"]
    hidden = battles["model_a"].isin(new) | battles["model_b"].isin(new)
    board = judgeline.rank(
        battles.assign(human_outcome=battles["human_outcome"].mask(hidden)), FAST
    )
    found = board.compare(*new)
    assert (found.n_calibrating, found.evidence_a, found.evidence_b) == (10, "judge", "judge")
    spread = board.leaderboard.set_index("model").loc[new, "std_error"].to_numpy()
    assert found.upper - found.difference == pytest.approx(found.threshold * np.hypot(*spread))

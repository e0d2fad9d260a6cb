"""`judgeline vote` and `rank --votes`: from a file to a page, and from its votes to a rating."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from voters import embedded, voted

import judgeline
from judgeline.api import Settings, rank_file
from judgeline.cli import VOTED, app, main
from judgeline.paths import ROOT
from judgeline.planning import Rated
from judgeline.usable import readable
from judgeline.voting import (
    OUTCOMES,
    Goal,
    join_votes,
    last_votes,
    parse_goal,
    read_votes,
    vote_key,
    vote_rows,
    write_page,
)

FAST = Settings(n_resamples=0)
NEW = "model-11"


@pytest.fixture(scope="module")
def battles() -> pd.DataFrame:
    """Battles of 12 models by a judge that likes some of them; nobody has voted on the last."""
    rng = np.random.default_rng(5)
    strength, liking, size = rng.normal(0, 0.7, 12), rng.normal(0, 0.4, 12), 1200
    a = rng.integers(12, size=size)
    b = (a + rng.integers(1, 12, size=size)) % 12
    gap = strength[a] - strength[b]
    vote = (rng.random(size) < 1 / (1 + np.exp(-gap))).astype(float)
    names = np.array([f"model-{k:02d}" for k in range(12)])
    question = rng.integers(150, size=size)
    return pd.DataFrame(
        {
            "battle_id": [f"{names[a[n]]}-{names[b[n]]}-{n}" for n in range(size)],
            "question_id": [f"q{q}" for q in question],
            "model_a": names[a], "model_b": names[b],
            "human_outcome": np.where((a == 11) | (b == 11), np.nan, vote),
            "score_difference": np.round(
                12 * np.clip(gap + liking[a] - liking[b] + rng.normal(0, 1, size), -9, 9)
            ) / 12,
            "instruction": [f"Question {q}" for q in question],
            "completion_a": [f"one {n}" for n in range(size)],
            "completion_b": [f"two {n}" for n in range(size)],
        }
    )  # fmt: skip


@pytest.fixture
def file(battles: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "battles.csv"
    battles.to_csv(path, index=False)
    return path


def test_votes_of_a_page_bring_the_model_within_its_goal(file, battles, tmp_path, capsys) -> None:
    page, out = tmp_path / "vote.html", tmp_path / "out"
    goal = f"place {NEW} within 55"
    assert main(["vote", str(file), "--goal", goal, "--raters", "3", "--out", str(page)]) == 0
    said = capsys.readouterr().out
    assert f"bring {NEW} within 55 Elo" in said
    text = page.read_text("utf-8")
    assert "model-" not in text  # blind
    data = embedded(page)
    assert sorted({one["first"] for one in data["raters"][0]}) == ["a", "b"]
    shared = set.intersection(*({one["key"] for one in order} for order in data["raters"]))
    assert 5 <= len(shared) <= 20
    won = set(battles.loc[battles["model_a"].eq(NEW), "completion_a"])
    won |= set(battles.loc[battles["model_b"].eq(NEW), "completion_b"])
    rng = np.random.default_rng(1)

    def fair(_number: int, sides: list[str]) -> str:
        is_first = (sides[0] in won) == (rng.random() < 0.5)  # as strong as its opponents
        return "first" if is_first else "second"

    files = voted(page, fair, tmp_path / "votes")
    told = ["rank", str(file), "--votes", str(tmp_path / "votes"), "--out", str(out)]
    assert main([*told, "--no-report", "--n-resamples", "0"]) == 0
    said = capsys.readouterr().out
    assert "votes of 3 raters joined" in said
    assert "judged by the judge of battles.csv" in said
    row = pd.read_csv(out / "leaderboard.csv").set_index("model").loc[NEW]
    n_votes = sum(len(order) for order in data["raters"])
    n_counted = len({one["key"] for order in data["raters"] for one in order})
    assert row["evidence"] == f"judge and {n_counted} votes"
    assert (row["upper"] - row["lower"]) / 2 <= 55
    kept = pd.read_csv(out / "votes.csv")
    assert len(kept) == n_votes
    assert kept["weight"].between(0.5, 5).all()
    assert set(kept["battle_id"]) <= set(battles["battle_id"])
    gate = ["gate", str(file), "--new", NEW, "--current", "model-00", "--margin", "400"]
    assert main([*gate, "--votes", str(tmp_path / "votes")]) in (0, 2, 3)
    assert f"{NEW}: judge and {n_counted} votes" in capsys.readouterr().out
    same = judgeline.rank(file, FAST, votes=files).leaderboard.set_index("model").loc[NEW]
    assert same["rating"] == pytest.approx(row["rating"])


def test_votes_of_a_page_score_what_was_sealed_before_them(file, tmp_path, capsys) -> None:
    sealed, page = tmp_path / "a.seal.json", tmp_path / "vote.html"
    assert main(["seal", str(file), "--out", str(sealed), "--n-resamples", "0"]) == 0
    goal = f"place {NEW} within 55"
    assert main(["vote", str(file), "--goal", goal, "--out", str(page)]) == 0
    voted(page, lambda number, _: "first" if number % 2 else "second", tmp_path / "votes")
    rank_file(file, tmp_path / "out", FAST, votes=sorted((tmp_path / "votes").iterdir()))
    row = pd.read_csv(tmp_path / "out" / "leaderboard.csv").set_index("model").loc[NEW]
    stated = pd.DataFrame(json.loads(sealed.read_text())["predictions"]).set_index("model").loc[NEW]
    is_held = stated["lower"] <= row["human_rating"] <= stated["upper"]
    capsys.readouterr()
    assert main(["score", str(sealed), "--votes", str(tmp_path / "votes")]) == 0
    assert f"{int(is_held)} of 1 held" in capsys.readouterr().out
    file.write_text(file.read_text("utf-8") + "\n", "utf-8")
    other = ["--ledger", str(tmp_path / "other.jsonl")]
    assert main(["score", str(sealed), "--votes", str(tmp_path / "votes"), *other]) == 2
    assert "is not what" in capsys.readouterr().err


def test_one_column_may_be_question_and_its_text(battles, tmp_path) -> None:
    table = battles.drop(columns="question_id").rename(columns={"instruction": "question"})
    columns = {"question_id": "question", "instruction": "question"}
    page = judgeline.vote(
        table, f"place {NEW} within 55", tmp_path / "v.html", FAST, columns=columns
    )
    whole = judgeline.vote(battles, f"place {NEW} within 55", tmp_path / "w.html", FAST)
    assert embedded(page.path) == embedded(whole.path)


def test_right_answers_of_the_example_bring_its_new_model_to_the_truth(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["example", "--out", "battles.csv"]) == 0
    assert Path("battles.csv").stat().st_size < 2e6
    goal = ["--goal", "place model-22 within 30", "--out", "vote.html"]
    assert main(["vote", "battles.csv", *goal]) == 0
    data = embedded(Path("vote.html"))
    sums = {f"It is {sum(map(int, re.findall(r'[0-9]+', one['question'])))}."
            for one in data["battles"].values()}  # fmt: skip

    def right(_number: int, sides: list[str]) -> str:
        return "first" if sides[0] in sums and sides[1] not in sums else "second"

    files = voted(Path("vote.html"), right, tmp_path / "votes")
    board = judgeline.rank("battles.csv", FAST, votes=files).leaderboard.set_index("model")
    assert board.loc["model-22", "lower"] < 1423 < board.loc["model-22", "upper"]
    assert board.loc["model-22", "upper"] - board.loc["model-22", "lower"] < 60


def test_votes_reach_every_command_that_reads_battles(file, tmp_path, capsys) -> None:
    page = judgeline.vote(file, f"place {NEW} within 55", tmp_path / "vote.html", FAST)
    (votes,) = voted(page.path, lambda *_: "first", tmp_path / "votes")
    lines = votes.read_text("utf-8").splitlines(keepends=True)[:30]
    votes.write_text("".join(lines), encoding="utf-8")
    joined = ["--votes", str(tmp_path / "votes")]
    for more, n_models in ([], 11), (joined, 12):
        assert main(["plan", str(file), *more]) == 0
        assert f"by {n_models} models with votes" in " ".join(capsys.readouterr().out.split())
    again = ["vote", str(file), "--goal", f"place {NEW} within 30", "--out"]
    assert main([*again, str(tmp_path / "again.html"), *joined]) == 0
    asked = {*embedded(tmp_path / "again.html")["battles"]}
    assert asked
    assert not asked & {json.loads(line)["key"] for line in lines}
    seal = tmp_path / "sealed" / "a.json"
    seal.parent.mkdir()
    assert main(["seal", str(file), "--out", str(seal), *joined]) == 0
    assert "0 of them without votes" in capsys.readouterr().out
    assert main(["verify", str(seal)]) == 0
    assert "1 of votes, byte by byte" in " ".join(capsys.readouterr().out.split())
    votes.write_text("")
    capsys.readouterr()
    assert main(["verify", str(seal)]) == 2
    assert "votes-1.jsonl are not what was sealed" in " ".join(capsys.readouterr().out.split())


def test_what_votes_on_one_more_model_do_to_the_others_is_told(battles, tmp_path, capsys) -> None:
    def hidden(first: int) -> pd.DataFrame:
        """Return the battles with votes between the first models alone."""
        late = battles[["model_a", "model_b"]].ge(f"model-{first:02d}").any(axis=1)
        return battles.assign(human_outcome=battles["human_outcome"].mask(late))

    file, out = tmp_path / "battles.csv", tmp_path / "out"
    told, boards = [], []
    for first in (9, 10, 10):
        hidden(first).to_csv(file, index=False)
        arguments = ["--out", str(out), "--no-report", "--n-resamples", "0", "--force"]
        assert main(["rank", str(file), *arguments]) == 0
        told.append(" ".join(capsys.readouterr().out.split()))
        boards.append(pd.read_csv(out / "leaderboard.csv").set_index("model"))
    assert "moves most" not in told[0]  # no board before
    moved = boards[1]["rating"] - boards[0]["rating"]
    name = moved.abs().idxmax()
    assert "9 of 12 models are rated by judge and votes, before by votes" in told[1]
    assert "1 of 12 models are rated by judge and votes, before by judge" in told[1]
    assert f"{name} moves most: {boards[0].loc[name, 'rating']:.0f} before" in told[1]
    assert f"({moved[name]:+.0f} Elo)" in told[1]
    assert "moves most" not in told[2]  # the same board again
    hidden(9).to_csv(file, index=False)
    late = battles["model_a"].eq("model-09") | battles["model_b"].eq("model-09")
    votes = tmp_path / "votes.jsonl"
    lines = [
        {
            "page": "p", "key": vote_key(row.battle_id), "rater": "r", "rater_number": 1,
            "shown_first": "a", "choice": "first" if row.human_outcome else "second",
            "probability": 0.5, "place": place, "n_possible": 99999,
            "time": "2026-11-28T01:00:00Z", "seconds": 4.0,
        }
        for place, row in enumerate(battles[late].dropna().itertuples(), 1)
    ]  # fmt: skip
    votes.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    more = ["--out", str(tmp_path / "joined"), "--no-report", "--n-resamples", "0"]
    assert main(["rank", str(file), "--votes", str(votes), *more]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "With these votes: " in said
    assert "9 of 12 models are rated by judge and votes, before by votes" in said


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"std_error": "analytic"},
        {"n_resamples": 0},
        {"n_resamples": 50, "method": "soft"},
        {"methods": ("gap", "hard")},
        {"withhold": ("kappa",), "thresholds": {"kappa": 0.99}},
        {"thresholds": {"skill": 0.99}},
    ],
)
def test_the_board_before_costs_no_diagnosis_and_has_the_ratings_of_a_whole_ranking(
    battles, tmp_path, monkeypatch, named
) -> None:
    settings = Settings(**named)
    late = battles[["model_a", "model_b"]].ge("model-09").any(axis=1)
    few = battles.assign(human_outcome=battles["human_outcome"].mask(late))
    cast = [
        json.dumps({
            "page": "p", "key": vote_key(row.battle_id), "rater": "r", "rater_number": 1,
            "shown_first": "a", "choice": "first" if row.human_outcome else "second",
            "probability": 0.5, "place": place, "n_possible": 99999,
            "time": "2026-11-28T01:00:00Z", "seconds": 4.0,
        })
        for place, row in enumerate(battles[late].dropna().itertuples(), 1)
    ]  # fmt: skip
    file, votes = tmp_path / "battles.csv", tmp_path / "votes.jsonl"
    few.to_csv(file, index=False)
    votes.write_text("\n".join(cast) + "\n", "utf-8")
    diagnosed, compared = [], []
    diagnose = judgeline.steps.diagnostics.diagnose_judge
    monkeypatch.setattr(
        "judgeline.steps.diagnostics.diagnose_judge",
        lambda *given, **options: diagnosed.append(1) or diagnose(*given, **options),
    )
    monkeypatch.setattr(
        "judgeline.api.changes_text", lambda *boards: compared.append(boards[0]) or ""
    )
    rank_file(file, tmp_path / "out", settings, report=False, votes=[votes])
    assert len(diagnosed) == (2 if "kappa" in settings.withhold else 1)
    whole = judgeline.rank(few, settings).leaderboard
    names = ["model", "method", "basis", "rating", "evidence"]
    pd.testing.assert_frame_equal(compared[0][names], whole[names], check_exact=True)


def test_commands_on_a_file_of_battles_share_the_options_that_read_it() -> None:
    commands = typer.main.get_command(app).commands
    reading = {one.name for one in VOTED}
    for name in ("rank", "compare", "gate", "seal", "plan", "vote"):
        assert reading <= {one.name for one in commands[name].params}, name


def test_a_page_is_the_same_for_a_seed_and_sides_are_even(battles, tmp_path) -> None:
    pages = [tmp_path / f"{name}.html" for name in "xyz"]
    for page, seed in zip(pages, (0, 0, 1), strict=True):
        options = Settings(n_resamples=0, seed=seed)
        judgeline.vote(battles, f"place {NEW} within 40", page, options)
    assert pages[0].read_bytes() == pages[1].read_bytes() != pages[2].read_bytes()
    first = [one["first"] == "a" for page in pages for one in embedded(page)["raters"][0]]
    assert abs(np.mean(first) - 0.5) < 4 * 0.5 / np.sqrt(len(first))


def test_a_voted_model_needs_votes_until_its_interval_is_as_narrow_as_asked(battles, tmp_path):
    scored = battles.copy()
    own = scored.index[(scored["model_a"] == NEW) | (scored["model_b"] == NEW)][:20]
    scored.loc[own, "human_outcome"] = np.arange(20) % 2
    row = judgeline.rank(scored, FAST).leaderboard.set_index("model").loc[NEW]
    now = (row["upper"] - row["lower"]) / 2
    needed = []
    for wanted in (now + 0.01, now - 0.01, 0.95 * now, 0.9 * now):
        page = judgeline.vote(
            scored, f"place {NEW} within {wanted}", tmp_path / f"{wanted}.html", FAST
        )
        assert page.half_width == pytest.approx(now)
        needed.append(page.n_needed)
    assert needed[0] == 0
    assert 1 <= needed[1] <= 2
    assert needed[1] < needed[2] < needed[3]
    assert "About 1 vote brings" in page._replace(n_needed=1).lines()[0]


def arena(seed: int, n_models: int) -> tuple[pd.DataFrame, str]:
    """Return battles with texts and all their votes, and a model to hide the votes of."""
    rng, size = np.random.default_rng(seed), 2000
    strength, liking = rng.normal(0, 0.7, n_models), rng.normal(0, 0.4, n_models)
    a = rng.integers(n_models, size=size)
    b = (a + rng.integers(1, n_models, size=size)) % n_models
    gap = strength[a] - strength[b]
    names = np.array([f"m{k:02d}" for k in range(n_models)])
    table = pd.DataFrame({
        "battle_id": [f"b{k}" for k in range(size)], "model_a": names[a], "model_b": names[b],
        "human_outcome": (rng.random(size) < 1 / (1 + np.exp(-gap))).astype(float),
        "score_difference": np.round(gap + liking[a] - liking[b] + rng.normal(0, 1, size), 2),
    })  # fmt: skip
    return table.assign(instruction="q", completion_a="one", completion_b="two"), str(names[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_models", "seeds"),
    [(14, range(4)), (9, [1])],  # of nine the board rates by votes alone
)
def test_as_many_votes_as_a_page_asks_for_bring_the_board_within_the_goal(
    n_models, seeds, tmp_path
) -> None:
    ratios = []
    for seed in seeds:
        every, new = arena(seed, n_models)
        own = every["model_a"].eq(new) | every["model_b"].eq(new)
        few = every.assign(human_outcome=every["human_outcome"].mask(own))
        key = every["battle_id"].map(vote_key)

        def half_width(table: pd.DataFrame, of: str = new) -> float:
            row = judgeline.rank(table, FAST).leaderboard.set_index("model").loc[of]
            return float(row["upper"] - row["lower"]) / 2

        now = half_width(few)
        for share in (0.98, 0.9, 0.8, 0.65):
            goal = share * (now if np.isfinite(now) else 150)
            page = judgeline.vote(few, f"place {new} within {goal}", tmp_path / "v.html", FAST)
            np.testing.assert_equal(page.half_width, now)
            assert page.n_needed <= page.n_battles
            assert page.expected <= goal
            order = [one["key"] for one in embedded(page.path)["raters"][0]][: page.n_needed]
            cast = few["human_outcome"].mask(key.isin(order), every["human_outcome"])
            ratios.append(half_width(few.assign(human_outcome=cast)) / goal)
    assert np.mean(np.array(ratios) <= 1.01) >= 0.8
    assert max(ratios) < 1.1  # votes on one model move the others a little


def test_a_goal_that_is_reached_says_by_what_and_one_that_is_not_is_below(battles, tmp_path):
    row = judgeline.rank(battles, FAST).leaderboard.set_index("model").loc[NEW]
    now = (row["upper"] - row["lower"]) / 2
    page = judgeline.vote(battles, f"place {NEW} within {now + 1}", tmp_path / "v.html", FAST)
    assert page.lines() == [
        f"{NEW} is within {now + 1:g} Elo already ({now:.1f} by judge): no vote is needed."
    ]
    assert not page.path.exists()
    page = judgeline.vote(battles, f"place {NEW} within {now - 0.1}", tmp_path / "v.html", FAST)
    assert f"it is within {np.ceil(now):.0f} now by judge alone, the noise" in page.lines()[0]
    few = page._replace(n_needed=20, n_battles=9, expected=np.inf)
    assert "they are too few for an interval with ends" in few.lines()[1]


def test_more_raters_than_a_page_can_hold_are_refused(file, tmp_path, capsys) -> None:
    page = tmp_path / "vote.html"
    told = ["vote", str(file), "--goal", f"place {NEW} within 55", "--out", str(page), "--raters"]
    assert main([*told, "100000"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "100000; expected 1 to 1,000: for more people write several pages, each with" in said
    assert not page.exists()
    assert main([*told, "1000"]) == 0
    assert page.stat().st_size < 4e6


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--votes", "gone.jsonl"], "no file at gone.jsonl; did you mean zero.jsonl?"),
        (["--votes", "gone/v.jsonl"], "no folder at gone; make it, or name another"),
        (["--votes", "zero.jsonl"], "no vote in zero.jsonl; save the votes again"),
        (["--out", "folder"], "folder is a folder; name a file"),
    ],
)
def test_files_that_cannot_be_read_or_written_are_named_with_the_remedy(
    file, tmp_path, monkeypatch, capsys, options, told
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("zero.jsonl").touch()
    goal = ["--goal", f"place {NEW} within 40", "--out", "vote.html"]
    assert main(["vote", str(file), *goal, *options]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert told in said
    assert "Errno" not in said


def test_a_folder_without_votes_is_told(file, tmp_path, capsys) -> None:
    (tmp_path / "none").mkdir()
    read = [str(file), "--votes", str(tmp_path / "none")]
    for command in (["rank", "--out", str(tmp_path / "o")], ["compare", "model-00", NEW]):
        assert main([command[0], *read, *command[1:]]) == 1
        told = " ".join(capsys.readouterr().err.split())
        assert "no file of votes (*.jsonl) in" in told
        assert "move what the page saved there, or name the file with --votes" in told
    assert main(["rank", str(file), "--votes", str(tmp_path / "gone"), "--out", "o"]) == 1
    assert "gone; did you mean" in " ".join(capsys.readouterr().err.split())
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "v.jsonl").write_text(json.dumps(LINE), "utf-8")
    both = ["--votes", str(tmp_path / "some"), "--votes", str(tmp_path / "none")]
    assert main(["rank", str(file), "--out", str(tmp_path / "o"), *both]) == 1
    told = "".join(capsys.readouterr().err.split())
    assert told.count("".join(str(tmp_path).split())) == 1
    assert "none" in told
    corpus = ["gate", "--corpus", "c", "--new", NEW, "--current", "model-00", "--margin", "1"]
    assert main([*corpus, "--votes", str(tmp_path)]) == 1
    assert "--votes is for files" in " ".join(capsys.readouterr().err.split())


def test_hidden_files_and_folders_beside_votes_are_passed_over(file, tmp_path) -> None:
    page, votes = tmp_path / "p.html", tmp_path / "votes"
    assert main(["vote", str(file), "--goal", f"place {NEW} within 55", "--out", str(page)]) == 0
    (saved,) = voted(page, lambda *_: "tie", votes)
    saved.rename(votes / "VOTES.JSONL")
    (votes / "._votes-1.jsonl").write_bytes(b"\0\5\x16\7\xff")  # as an archive of macOS has it
    (votes / ".jsonl").write_text("no vote", "utf-8")
    (votes / "older.jsonl").mkdir()
    out = tmp_path / "o"
    assert main(["rank", str(file), "--votes", str(votes), "--out", str(out), "--no-report"]) == 0
    assert len(pd.read_csv(out / "votes.csv")) == len(embedded(page)["raters"][0])


def test_a_page_never_replaces_its_battles(file, tmp_path, capsys) -> None:
    before, goal = file.read_bytes(), ["--goal", f"place {NEW} within 40"]
    assert main(["vote", str(file), *goal, "--out", str(file)]) == 1
    assert "which has the battles; name a page to write" in " ".join(
        capsys.readouterr().err.split()
    )
    assert file.read_bytes() == before
    assert main(["vote", str(file), *goal, "--out", str(tmp_path)]) == 1
    assert "is a folder; name a file" in " ".join(capsys.readouterr().err.split())


def test_who_votes_at_random_is_told(battles, tmp_path) -> None:
    page = judgeline.vote(battles, f"place {NEW} within 35", tmp_path / "p.html", FAST, n_raters=3)
    rng = np.random.default_rng(2)
    order = battles.assign(one=battles["completion_a"], two=battles["completion_b"])
    better = set(order["one"].where(order["score_difference"] > 0, order["two"]))

    def choose(number: int, sides: list[str]) -> str:
        if number == 2 or rng.random() < 0.1:
            return ("first", "second")[int(rng.integers(2))]
        return "first" if sides[0] in better else "second"

    board = judgeline.rank(battles, FAST, votes=voted(page.path, choose, tmp_path / "v"))
    notes = " ".join(board.battles.notes)
    assert "r2 votes as if at random" in notes
    assert "r1 votes as if" not in notes
    assert "raters agree on" in notes


def test_ids_made_of_content_join_too(battles, tmp_path) -> None:
    bare = battles.drop(columns="battle_id").rename(columns={"completion_a": "left"})
    named = {"columns": {"completion_a": "left"}}
    page = judgeline.vote(bare, f"place {NEW} within 40", tmp_path / "p.html", FAST, **named)
    files = voted(page.path, lambda *_: "tie", tmp_path / "v")
    board = judgeline.rank(bare, FAST, votes=files, **named).leaderboard.set_index("model")
    assert board.loc[NEW, "n_votes"] == page.n_battles


@pytest.mark.parametrize(
    ("goal", "told"),
    [
        ("rank everything", "expected such as 'place some-model within 40'"),
        ("place x within 0", "Error: --goal is 'place x within 0'"),
        ("place model-1l within 40", "did you mean 'model-1"),
    ],
)
def test_a_wrong_goal_is_told(file, tmp_path, capsys, goal, told) -> None:
    assert main(["vote", str(file), "--goal", goal, "--out", str(tmp_path / "p.html")]) == 1
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("compare a b --corpus arena --votes v.jsonl", "--votes is for files"),
        ("gate --corpus arena --new a --current b --margin 9 --votes v", "--votes is for files"),
        ("plan --corpus arena --miscoverage 0", "--miscoverage is for files"),
        ("vote --corpus arena --goal g --out p --outcomes 1/0", "--outcomes is for files"),
        ("vote --corpus arena --goal g --out p --same-names", "--same-names is for files"),
        ("vote --goal g --out p", "vote takes a file or --corpus SLUG"),
    ],
)
def test_a_corpus_takes_no_options_of_files(capsys, command, told) -> None:
    assert main(command.split()) == 1
    assert told in capsys.readouterr().err


def test_goals_may_name_any_model() -> None:
    assert parse_goal("Place 'a within 3 b' within 40 Elo") == ("a within 3 b", 40.0)


def test_a_file_without_texts_or_battles_is_told(battles, tmp_path, capsys) -> None:
    goal, page = f"place {NEW} within 40", tmp_path / "p.html"
    with pytest.raises(ValueError, match="no column completion_b"):
        judgeline.vote(battles.drop(columns="completion_b"), goal, page, FAST)
    with pytest.raises(ValueError, match="no battle of 'model-02' is left"):
        judgeline.vote(battles, "place model-02 within 10", page, FAST)
    assert not page.exists()
    path = tmp_path / "texts.csv"
    battles.drop(columns="completion_b").to_csv(path, index=False)
    assert main(["vote", str(path), "--goal", goal, "--out", str(page)]) == 1
    assert "--columns completion_b=NAME" in " ".join(capsys.readouterr().err.split())


def test_a_candidate_is_told_what_to_do(battles, tmp_path) -> None:
    board = judgeline.rank(battles, FAST)
    other = board.leaderboard.iloc[[-1]].assign(model="newcomer")
    rated = Rated(board.ranking.heldout_ratings, pd.concat([board.leaderboard, other]))
    with pytest.raises(ValueError, match=r"'newcomer' is a candidate, .*judgeline vote FILE"):
        write_page(
            tmp_path / "p.html", battles, board.battles.scored, rated, FAST,
            Goal("newcomer", 40.0), n_raters=1, seed=1,
        )  # fmt: skip


def test_a_plan_of_what_is_no_battles_is_refused_in_a_sentence(battles) -> None:
    with pytest.raises(ValueError, match="battles is of type Board; expected a path, a DataFrame"):
        judgeline.plan(judgeline.rank(battles, FAST))


def test_the_documented_line_is_what_a_page_saves(tmp_path) -> None:
    text = (ROOT / "docs" / "voting.md").read_text("utf-8").split("### A file of votes")[1]
    text = text.split("### ")[0]
    line = re.search(r"```json\n(.*)\n```", text)[1]
    [vote] = vote_rows(line.encode(), "docs")
    documented = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert {*json.loads(line)} == {*documented} == {*vote}
    script = (ROOT / "judgeline" / "report" / "templates" / "vote.js").read_text("utf-8")
    saved = script.split("votes.push({")[1].split("});")[0]
    assert re.findall(r"(\w+)(?=:|, time)", saved) == documented
    [choices] = re.findall(r"^\| `choice` \| (.*?);", text, re.MULTILINE)
    assert re.findall(r"`(\w+)`", choices) == [*OUTCOMES]
    assert last_votes([vote])["share"].tolist() == [0.0]  # B was shown first, and chosen


LINE = {"key": "k", "rater": "r", "shown_first": "a", "choice": "tie", "probability": 0.5,
        "place": 1, "n_possible": 3, "time": "2026-11-28T01:00:00Z"}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"choice": "A"}, "line 2: choice is 'A'; expected first"),
        ({"probability": 0}, "line 2: probability is 0; expected 1e-09 to 1"),
        ({"probability": 5e-324}, "line 2: probability is 4.94066e-324; expected 1e-09 to 1"),
        ({"rater": "r" * 101}, "line 2: rater is 'rrr.{1,80}', of 101 characters"),
        ({"choice": "x" * 10**6}, "^.{1,300}$"),
        ({"rater_number": ["x" * 10**6]}, "^.{1,300}$"),
        ({"probability": None}, "line 2: probability is None"),
        ({"place": 4}, "line 2: place is 4; expected 1 to 3"),
        ({"rater": 7}, "line 2: rater is 7"),
        ({"time": "yesterday"}, "line 2: time is 'yesterday'; expected UTC, such as 2026-05-04T"),
        ({"time": "2026-11-28T01:00:00+02:00"}, "line 2: time is '2026-11-28T01:00:00.02:00'"),
        ({"time": "2026-11-28T01:00:00"}, "line 2: time is '2026-11-28T01:00:00'; expected UTC"),
    ],
)
def test_a_line_that_is_no_vote_is_told_by_its_place(tmp_path, changed, told) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(json.dumps(LINE) + "\n" + json.dumps(LINE | changed) + "\n", "utf-8")
    with pytest.raises(ValueError, match=told):
        read_votes([path])
    path.write_text("{", "utf-8")
    with pytest.raises(ValueError, match="line 1: no JSON"):
        read_votes([path])


def test_the_last_vote_of_a_rater_counts_and_strange_battles_are_refused(battles, tmp_path) -> None:
    key = vote_key(battles["battle_id"].iloc[0])
    told = (("second", "2026-11-28T02:00:00Z"), ("first", "2026-11-28T01:00:00Z"))
    lines = [LINE | {"key": key, "choice": choice, "time": time} for choice, time in told]
    path = tmp_path / "v.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    votes = read_votes([path, path])
    assert votes[["choice", "share"]].to_numpy().tolist() == [["second", 0.0]]
    path.write_text(json.dumps(LINE), "utf-8")
    with pytest.raises(ValueError, match="1 of 1 votes are on battles that this file does not"):
        judgeline.rank(battles, FAST, votes=[path])


def test_the_first_vote_on_a_battle_counts_and_others_tell_agreement(battles, tmp_path) -> None:
    page = judgeline.vote(battles, f"place {NEW} within 45", tmp_path / "p.html", FAST, n_raters=3)
    files = voted(page.path, lambda number, sides: "first" if number == 2 else "tie", tmp_path)
    second = files[1].read_text("utf-8")
    files[1].write_text(second.replace("T01:00:00Z", "T00:59:00Z"), "utf-8")  # saved first
    read = readable(battles, None, None, None, allow_quarantine=False, with_votes=False)
    counted = join_votes(read, read_votes(files))
    joined = counted.battles.scored.set_index("battle_id")
    assert joined.index.tolist() == read.scored["battle_id"].tolist()
    votes = counted.votes
    of_second = votes[votes["rater"].eq("r2")].set_index("battle_id")["human_outcome"]
    assert (joined.loc[of_second.index, "human_outcome"] == of_second).all()
    by_others = set(votes["battle_id"]) - set(of_second.index)
    assert joined.loc[sorted(by_others), "human_outcome"].eq(0.5).all()
    told = f"{2 * page.n_shared} of them on battles with a vote"
    assert [note for note in counted.battles.notes if told in note]


def test_votes_leave_the_judge_s_rating_as_it_was(file, battles, tmp_path) -> None:
    page = judgeline.vote(battles, f"place {NEW} within 45", tmp_path / "p.html", FAST, n_raters=3)
    files = voted(page.path, lambda number, sides: "first", tmp_path / "votes")
    alone, all_three = (judgeline.rank(file, FAST, votes=some) for some in (files[:1], files))
    own = [board.leaderboard.set_index("model").loc[NEW] for board in (alone, all_three)]
    assert own[0]["n_battles"] == own[1]["n_battles"]
    again = judgeline.rank(file, FAST, votes=[*files, *files])
    pd.testing.assert_frame_equal(again.leaderboard, all_three.leaderboard)


def test_two_people_of_one_name_are_two_raters(battles, tmp_path) -> None:
    page = judgeline.vote(battles, f"place {NEW} within 45", tmp_path / "p.html", FAST, n_raters=2)
    files = voted(page.path, lambda number, sides: "first", tmp_path)
    for file in files:
        file.write_text(re.sub(r'"rater": "r\d"', '"rater": "Anna"', file.read_text()))
    votes = read_votes(files)
    assert votes["rater"].nunique() == 2
    assert len(votes) == sum(len(file.read_text().splitlines()) for file in files)


def test_a_model_without_a_rating_is_told(battles, tmp_path) -> None:
    board = judgeline.rank(battles, FAST).leaderboard
    rated = Rated(pd.DataFrame(), board.assign(rating=float("nan")))
    with pytest.raises(ValueError, match="has no rating to start from"):
        write_page(
            tmp_path / "p.html", battles, battles, rated, FAST,
            parse_goal(f"place {NEW} within 40"), n_raters=1, seed=0,
        )  # fmt: skip


def test_gate_and_compare_count_votes_as_rank_does(file, battles, tmp_path, capsys) -> None:
    page = judgeline.vote(battles, f"place {NEW} within 45", tmp_path / "p.html", FAST, n_raters=2)
    files = voted(page.path, lambda number, sides: "first", tmp_path / "votes")
    board = judgeline.rank(file, votes=files)
    votes, answer = ["--votes", str(tmp_path / "votes")], tmp_path / "gate.json"
    gate = ["gate", str(file), "--new", NEW, "--current", "model-03", "--margin", "50"]
    assert main([*gate, *votes, "--json", str(answer)]) in (0, 2, 3)
    found = json.loads(answer.read_text("utf-8"))["comparison"]
    own = board.compare(NEW, "model-03")
    assert found["evidence_a"] == own.evidence_a == f"judge and {page.n_battles} votes"
    assert found["difference"] == pytest.approx(own.difference)
    by_api = judgeline.gate(board, new=NEW, current="model-03", margin=50).comparison
    assert by_api.difference == pytest.approx(own.difference)
    capsys.readouterr()
    assert main(["compare", str(file), NEW, "model-03", *votes, "--format", "json"]) in (0, 3)
    assert json.loads(capsys.readouterr().out)["difference"] == pytest.approx(own.difference)

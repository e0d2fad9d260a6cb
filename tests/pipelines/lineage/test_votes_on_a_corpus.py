"""Files of votes in a corpus' folder: counted as `rank --votes` counts them, and withdrawn."""

import json
import os
import shutil
import time
from html import unescape
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from upath import UPath
from voters import embedded, voted

import judgeline
from assets.messages import CHANGES
from assets.voting.assets import read_files
from judgeline.cli import main
from judgeline.tables.corpus import VOTES
from judgeline.voting import join_votes, last_votes, of_battles, read_votes, vote_key, vote_rows
from pipelines.sensors.candidates import new_votes
from resources.candidates.folder import list_files, list_votes

ASKED = ("verdicts", "choice_verdicts", "score_verdicts", "reliability_panel", "sampled_battles")


def unvoted(board: pd.DataFrame) -> str:
    return str(board.loc[board["human_rating"].isna(), "model"].iloc[0])


def drop(workshop, *files: Path) -> Path:
    """Have files lie in the folder of votes for a while."""
    folder = workshop.home / "votes" / "tiny"
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, folder)
    for file in folder.iterdir():
        os.utime(file, (time.time() - 1000,) * 2)
    return folder


def changes(capsys) -> str:
    """Return what the command says of the leaderboard before the newest one; empty for nothing."""
    assert main(["leaderboard", "--corpus", "tiny", "--judge", "careful"]) == 0
    lines = capsys.readouterr().out.splitlines()
    of_boards = [line for line in lines if line.startswith("Note: Since the board before: ")]
    assert len(of_boards) < 2
    return of_boards[0].removeprefix("Note: ") if of_boards else ""


def logged(workshop) -> list[str]:
    """Return what runs have logged of the leaderboards before theirs."""
    runs = workshop.instance.get_runs()
    entries = (entry for run in runs for entry in workshop.instance.all_logs(run.run_id))
    return [entry.user_message for entry in entries if "Since the board" in entry.user_message]


def requested(workshop, monkeypatch) -> list[str]:
    """Return the corpora whose folder of votes the sensor has read."""
    monkeypatch.setenv("JUDGELINE_HOME", str(workshop.home))
    with dg.build_sensor_context(instance=workshop.instance) as context:
        found = new_votes(context, catalog=workshop.catalog)
    return [one.partition_key for one in found.run_requests or []]


def as_ranked(scored: pd.DataFrame, workshop, files: list[Path]) -> judgeline.Board:
    rating = workshop.catalog.corpus("tiny").rating
    settings = judgeline.Settings(
        n_resamples=rating.n_resamples, std_error=rating.std_error, stream="tiny"
    )
    return judgeline.rank(scored, settings, votes=files)


def test_dropped_votes_count_as_in_rank_and_are_withdrawn_with_their_file(
    finished_workshop, tmp_path, monkeypatch, capsys, shown
) -> None:
    workshop = finished_workshop
    workshop.install(monkeypatch)
    before, page = workshop.files(), tmp_path / "vote.html"
    scored = workshop.stored("scored_battles", "tiny", "careful")
    was = workshop.stored("leaderboard", "tiny", "careful")
    assert changes(capsys) == ""
    new = unvoted(was)
    ask = ["vote", "--corpus", "tiny", "--goal", f"place {new} within 60", "--out", str(page)]
    assert main([*ask, "--raters", "3"]) == 1
    assert "careful, hasty; name one with --judge" in capsys.readouterr().err
    assert main([*ask, "--raters", "3", "--judge", "careful"]) == 0
    assert f"bring {new} within 60 Elo" in capsys.readouterr().out
    assert new not in page.read_text("utf-8")
    texts = workshop.stored("battles", "tiny").set_index("battle_id")
    own = scored.set_index("battle_id")["score_difference"]
    better = {
        texts.loc[one, "completion_a" if own[one] > 0 else "completion_b"] for one in own.index
    }
    rng = np.random.default_rng(3)

    def choose(number: int, sides: list[str]) -> str:
        if number == 2:
            return ("first", "second")[int(rng.integers(2))]
        return "first" if sides[0] in better else "second"

    files = voted(page, choose, tmp_path / "saved")
    assert requested(workshop, monkeypatch) == []
    folder = drop(workshop, *files)
    shutil.copy(files[0], folder / "again.jsonl")
    (folder / "broken.jsonl").write_text(files[1].read_text("utf-8")[:-9] + "\n", "utf-8")
    (folder / "growing.jsonl.part").write_text("{", "utf-8")
    (folder / "README.txt").write_text("what raters saved", "utf-8")
    drop(workshop)
    assert requested(workshop, monkeypatch) == ["tiny"]

    outcome = workshop.run("careful")
    assert outcome.errors == []
    assert not any(one.is_gate for one in outcome.failed_checks)
    (left_out,) = [one for one in outcome.failed_checks if one.check == "vote_files_are_readable"]
    assert "broken.jsonl, line" in left_out.description
    (warned,) = [one for one in outcome.failed_checks if one.check == "raters_vote_with_care"]
    assert "r2 votes as if at random" in warned.description
    assert "r1 votes" not in warned.description
    assert requested(workshop, monkeypatch) == []
    assert shown == []  # nobody was asked
    after = workshop.files()
    assert {
        name for name in before if name.startswith(ASKED) and before[name] != after[name]
    } == set()
    ranked = as_ranked(scored, workshop, files)
    board = workshop.stored("leaderboard", "tiny", "careful")
    changed = changes(capsys)
    assert logged(workshop).count(f"{CHANGES}{changed}") == 1
    assert "models are rated by judge and votes, before by judge" in changed
    moved = board.set_index("model")["rating"] - was.set_index("model")["rating"]
    assert f"{moved.abs().idxmax()} moves most: " in changed
    page_of_judges = (workshop.home / "reports" / "tiny.html").read_text("utf-8")
    assert changed in unescape(page_of_judges)
    n_votes = len({one["key"] for order in embedded(page)["raters"] for one in order})
    assert board.set_index("model").loc[new, "evidence"] == f"judge and {n_votes} votes"
    pd.testing.assert_frame_equal(
        ranked.leaderboard, board, check_dtype=False, check_exact=False, rtol=1e-12
    )
    joined = join_votes(ranked.battles._replace(scored=scored), read_votes(files)).votes
    pd.testing.assert_frame_equal(workshop.stored("votes", "tiny"), VOTES.typed(joined))
    told = workshop.stored("scored_battles", "tiny", "careful")
    assert told["battle_id"].tolist() == scored["battle_id"].tolist()
    exported = ["verdicts", "export", "--corpus", "tiny", "--judge", "careful"]
    assert main([*exported, "--out", str(tmp_path / "careful.csv")]) == 0
    assert f"{len(joined):,} votes of pages" in capsys.readouterr().out

    for file in folder.iterdir():
        file.unlink()
    assert requested(workshop, monkeypatch) == ["tiny"]
    outcome = workshop.run("careful", select=["+leaderboard"])
    assert outcome.errors == []
    assert not any(one.is_gate for one in outcome.failed_checks)
    unchanged = workshop.stored("scored_battles", "tiny", "careful")
    pd.testing.assert_frame_equal(unchanged, scored)
    again = workshop.files()
    boards = [name for name in before if name.startswith(("leaderboard", "heldout", "conformal"))]
    assert {name for name in boards if again[name] != before[name]} == set()
    told = changes(capsys)
    assert "models are rated by judge, before by judge and votes" in told
    assert workshop.run("careful", select=["leaderboard"], force=True).errors == []
    assert changes(capsys) == told  # the same board again, and the same one before it


LINE = {"page": "p", "rater": "r", "shown_first": "b", "choice": "first", "probability": 0.5,
        "n_possible": 4, "time": "2026-11-28T01:00:00Z", "seconds": "long"}  # fmt: skip


def test_only_whole_files_on_battles_of_the_corpus_count(tmp_path) -> None:
    def save(name: str, *battles: str, age: float = 1000, **changed: object) -> None:
        lines = [
            json.dumps({**LINE, "key": vote_key(battle), "place": place, **changed})
            for place, battle in enumerate(battles, start=1)
        ]
        (tmp_path / name).write_text("\n".join(lines) + "\n", "utf-8")
        os.utime(tmp_path / name, (time.time() - age,) * 2)

    save("own.jsonl", "b1", "b2", "left the corpus")
    save("foreign.jsonl", "elsewhere")
    save("just-now.jsonl", "b3", age=0)
    save("half.jsonl", "b3", rater="\ud800")
    save("later.jsonl", "b1", choice="second", time="2026-11-29T00:00:00Z")
    found = read_files(UPath(tmp_path), list_files(UPath(tmp_path)), pd.Series(["b1", "b2", "b3"]))
    assert found.n_foreign == 1
    assert sorted(found.refused) == ["foreign.jsonl", "half.jsonl", "just-now.jsonl"]
    assert "just-now.jsonl: it is not complete yet" in found.refused["just-now.jsonl"]
    assert "none of its 1 votes is on a battle of this corpus" in found.refused["foreign.jsonl"]
    rows = found.votes.set_index("battle_id")
    assert rows["human_outcome"].to_dict() == {"b1": 1.0, "b2": 0.0}
    assert rows["weight"].notna().all()
    assert rows["seconds"].isna().all()


def test_a_file_in_the_place_of_the_folder_stops_no_run(
    finished_workshop, monkeypatch, shown
) -> None:
    workshop = finished_workshop
    workshop.install(monkeypatch)
    (workshop.home / "votes").mkdir()
    (workshop.home / "votes" / "tiny").write_text("{}\n", "utf-8")
    outcome = workshop.run("careful", select=["+leaderboard"])
    assert (outcome.exit_code, outcome.errors, shown) == (0, [], [])
    assert "is a file, and should be the folder of votes on tiny" in " ".join(
        workshop.printed.split()
    )


def test_a_folder_that_is_not_mounted_withdraws_nothing(finished_workshop, monkeypatch) -> None:
    workshop = finished_workshop
    workshop.install(monkeypatch)
    store = workshop.tables.create_io_manager(None)
    lines = [{**LINE, "key": vote_key("b1"), "place": 1, "rater_number": 1}]
    told = "".join(json.dumps(one) + "\n" for one in lines).encode()
    known = of_battles(last_votes(vote_rows(told, "v")), pd.Series(["b1"]))
    path = store._path_of("votes", "tiny")
    path.parent.mkdir(parents=True)
    VOTES.typed(known).to_parquet(path.path)
    before = workshop.files()
    outcome = workshop.run("careful", select=["votes"])
    assert "Nothing is withdrawn" in " ".join(outcome.errors)
    assert workshop.files() == before


def test_only_names_of_votes_are_read_and_a_byte_order_mark_is_none_of_them(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("JUDGELINE_VOTES", str(tmp_path))
    folder = tmp_path / "tiny"
    folder.mkdir()
    line = json.dumps({**LINE, "key": vote_key("b1"), "place": 1}) + "\n"
    (folder / "v.jsonl").write_text(line, "utf-8-sig")
    (folder / "README.txt").write_text("what raters saved\n", "utf-8")
    os.utime(folder / "v.jsonl", (time.time() - 1000,) * 2)
    found = read_files(UPath(folder), list_votes("tiny"), pd.Series(["b1"]))
    assert (len(found.votes), found.refused) == (1, {})


def test_a_corpus_without_a_folder_of_votes_makes_no_table_of_them(finished) -> None:
    assert not any(name.startswith("votes") for name in finished.files())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"key": 1}\n', "line 1: key is 1; expected"),
        (b"\xff\n", "byte 0 is not UTF-8"),
        (b"[" * 100_000 + b"\n", "line 1: no JSON"),
    ],
)
def test_a_broken_file_is_named(tmp_path, line, told) -> None:
    path = tmp_path / "v.jsonl"
    path.write_bytes(line)
    with pytest.raises(ValueError, match=f"{path}.*{told}"):
        read_votes([path])

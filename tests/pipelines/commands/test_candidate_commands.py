"""`judgeline candidates`, and candidates in a run of the lineage, on a tiny arena."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from newcomers import drop, newcomer

from assets.candidates.choosing import battles_per_question
from judgeline.cli import COULD_NOT_RUN, GATE_FAILED, OK, main


@pytest.fixture(scope="module")
def judged(go_on: Callable[[], Any]) -> Iterator[Any]:
    """A corpus that judges have rated, with one new model, one broken file and one control."""
    workshop = go_on()
    workshop.tiny["candidates"] = {"controls": ["null-model"], "max_battles": 40}
    folder = workshop.home / "candidates" / "tiny"
    drop(folder, newcomer(workshop.tiny["arena"]))
    (folder / "broken.jsonl").write_text("[]\n")
    workshop.rest()
    with pytest.MonkeyPatch.context() as patch:
        workshop.install(patch)
        selected = ["group:candidates", "leaderboard", "battle_influences"]
        assert workshop.run("careful", select=selected).exit_code == GATE_FAILED  # the broken file
        yield workshop


def battles_each(judged: Any) -> int:
    """As many as are asked for, and no more than the models that calibrate have."""
    heldout = judged.stored("heldout_ratings", "tiny", "careful")
    pool = heldout[heldout["method"].eq("soft") & heldout["residual"].notna()]
    return min(40, int(pool["n_battles"].median()))


def check(capsys: pytest.CaptureFixture[str], file: Path) -> tuple[int, str]:
    """Check a file; return the exit code and what was printed, in one line."""
    capsys.readouterr()
    code = main(["candidates", "check", str(file), "--corpus", "tiny"])
    return code, " ".join(capsys.readouterr().out.split())


def answered(folder: Path, n: int) -> Path:
    """Answer as many of the questions that the command writes."""
    out, answers = folder / "q.jsonl", folder / "another.jsonl"
    main(["candidates", "questions", "--corpus", "tiny", "--out", str(out), "--n", str(n)])
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    answers.write_text("".join(json.dumps({**row, "completion": "42"}) + "\n" for row in rows))
    return answers


def test_a_run_takes_candidates_along(judged: Any) -> None:
    assert "candidate job tiny" in judged.printed
    assert "broken.jsonl (broken-json)" in judged.printed
    battles = judged.stored("candidate_battles", "tiny")
    assert battles["candidate"].value_counts().to_dict() == {
        "sim-cedar-3": battles_each(judged),
        "control:null-model": battles_each(judged),
    }


def test_questions_are_those_of_the_corpus(judged: Any, tmp_path: Path, capsys) -> None:
    for out in (tmp_path / "q.jsonl", tmp_path / "q.parquet"):
        command = ["candidates", "questions", "--corpus", "tiny", "--out", str(out), "--n", "10"]
        assert main(command) == OK
        assert "10 of 40 questions" in capsys.readouterr().out
        assert main(command) == COULD_NOT_RUN
        assert "is there already" in capsys.readouterr().err
        assert main([*command, "--force"]) == OK
    lines = (tmp_path / "q.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    asked = pd.read_parquet(tmp_path / "q.parquet")
    assert rows == asked.to_dict("records")
    battles = judged.stored("battles", "tiny").set_index("question_id")["instruction"]
    assert all(battles.loc[[row["question_id"]]].iloc[0] == row["instruction"] for row in rows)


def test_the_questions_that_were_written_can_be_answered(judged: Any, tmp_path, capsys) -> None:
    code, told = check(capsys, answered(tmp_path, 40))
    assert code == OK
    assert "would be taken: 40 answers of 'another'" in told
    assert f"{battles_each(judged)} battles; expected half-width about" in told
    assert f"{2 * battles_each(judged)} calls per replicate" in told


@pytest.mark.parametrize(
    ("name", "content", "code", "says"),
    [
        ("broken.jsonl", None, GATE_FAILED, "set aside (broken-json)"),
        ("sim-cedar-3.jsonl", None, OK, "nothing would happen"),
        ("other.jsonl", '{"question_id": "q0001", "completion": "1", "model": "sim-cedar-3"}\n',
         GATE_FAILED, "second-file"),
        ("new.jsonl.part", "", GATE_FAILED, "passed over"),
        ("no", None, COULD_NOT_RUN, ""),
    ],
)  # fmt: skip
def test_check_says_what_would_be_set_aside(judged, tmp_path, capsys, name, content, code, says):
    there = judged.home / "candidates" / "tiny" / name
    file = there if there.exists() else tmp_path / name
    if content is not None:
        file.write_text(content)
    done, told = check(capsys, file)
    assert done == code
    assert says in told


def test_check_says_that_a_new_version_replaces_the_file_of_its_name(judged, tmp_path, capsys):
    folder = judged.home / "candidates" / "tiny"
    version = tmp_path / "sim-cedar-3.jsonl"
    row = {"question_id": "q0001", "completion": "another answer", "model": "sim-cedar-3"}
    version.write_text(json.dumps(row) + "\n")
    code, told = check(capsys, version)
    assert code == OK
    assert "would be taken: 1 answers of 'sim-cedar-3'. It would replace" in told
    copy = folder / "copy-of-the-first.jsonl"
    shutil.copy2(folder / "sim-cedar-3.jsonl", copy)  # stays, whatever replaces the other
    try:
        code, told = check(capsys, version)
    finally:
        copy.unlink()
    assert code == GATE_FAILED
    assert "second-file" in told


def test_list_says_what_became_of_each_and_withholds_as_the_board(judged, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["candidates", "list", "--corpus", "tiny"]) == OK
    shown = capsys.readouterr().out
    assert "set aside: broken-json" in shown
    assert "control:null-model" in shown
    assert str(judged.home / "candidates" / "tiny") in shown.replace("\n", "")
    ratings = judged.stored("candidate_ratings", "tiny", "careful").set_index("model")["rating"]
    numbers = [f"{rating:.0f} (" for rating in ratings]
    assert all(number in shown for number in numbers)
    path = judged.home / "tables" / "leaderboard" / "tiny" / "careful.parquet"
    before = path.read_bytes()
    board = pd.read_parquet(path)
    flags = "withheld: kappa 0.05 < 0.20;" + board["flags"]
    board.assign(flags=flags).to_parquet(path, index=False)
    try:
        assert main(["candidates", "list", "--corpus", "tiny"]) == OK
    finally:
        path.write_bytes(before)
    told = capsys.readouterr().out
    assert told.count("withheld by careful") == len(ratings)
    assert "Ratings by careful are withheld: kappa 0.05 < 0.20" in told
    assert not any(number in told for number in numbers)


def test_a_file_with_few_answers_is_told_what_more_would_give(judged, tmp_path, capsys):
    code, told = check(capsys, answered(tmp_path, 3))
    assert code == OK
    sampled = judged.stored("sampled_battles", "tiny")
    heldout = judged.stored("heldout_ratings", "tiny", "careful")
    voted = frozenset(heldout.query("method == 'human'")["model"])
    n_battles = 3 * int(battles_per_question(sampled, voted))
    assert n_battles < battles_each(judged)
    assert f"{n_battles} battles; expected half-width" in told
    assert f"{battles_each(judged)} battles would be taken if it answered more" in told


def test_a_corpus_that_was_not_read_says_what_to_run(judged: Any, tmp_path, capsys) -> None:
    assert main(["candidates", "list", "--corpus", "tinyy"]) == COULD_NOT_RUN
    assert "did you mean 'tiny'" in capsys.readouterr().err
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGELINE_HOME", str(tmp_path))
        assert main(["candidates", "list", "--corpus", "tiny"]) == COULD_NOT_RUN
    assert "--select group:corpus" in capsys.readouterr().err


def test_a_dry_run_counts_the_battles_of_candidates(judged: Any) -> None:
    from judgeline.judges.buying import Buyer
    from pipelines.commands.plan import plan_run
    from resources.stores import StoredVerdicts

    catalog = judged.catalog
    n_battles, plan = plan_run(
        catalog.corpus("tiny"),
        [catalog.judge("careful"), catalog.judge("recorded")],
        judged.tables.create_io_manager(None),
        Buyer(StoredVerdicts().open()),
        asks=["candidate_verdicts"],
    )
    each = battles_each(judged)
    assert n_battles == 300 + 2 * each
    calls = [step.n_calls + step.n_stored for step in plan]
    assert calls == [4 * each, 0]


def test_a_dry_run_waits_for_a_file_that_changed_just_now_as_the_run_does(judged: Any, monkeypatch):
    from pipelines.commands import plan
    from resources.candidates import folder

    monkeypatch.setattr(folder, "SETTLED_SECONDS", 1.0)
    file = judged.home / "candidates" / "tiny" / "just-now.jsonl"
    corpus, tables = judged.catalog.corpus("tiny"), judged.tables.create_io_manager(None)
    known = (judged.stored("battles", "tiny"), judged.stored("sampled_battles", "tiny"))
    text = '{"question_id": "q0001", "completion": "42"}\n'
    file.write_text(text)
    try:
        further = plan._battles_of_candidates(corpus, *known, [], tables)
    finally:
        file.unlink()
    assert "just-now" in set(further["candidate"])


@pytest.mark.parametrize(("budget", "stops"), [("30calls", True), ("3000calls", False)])
def test_a_dry_run_says_where_the_budget_of_candidates_stops_it(judged, budget, stops, capsys):
    """Also where --budget covers everything: both hold, and the smaller one ends the run."""
    run = ["run", "--corpus", "tiny", "--judge", "hasty", "--budget", "9000calls", "--dry-run"]
    before = judged.tiny["candidates"]
    judged.tiny["candidates"] = {**before, "budget": budget}
    try:
        assert judged.catalog.corpus("tiny").candidates.budget == [budget]
        assert main(run) == OK
    finally:
        judged.tiny["candidates"] = before
        assert judged.catalog.corpus("tiny").candidates.budget == ["2000calls"]
    told = " ".join(capsys.readouterr().out.split())
    n_calls = 4 * battles_each(judged)
    says = f"about {n_calls} calls of this are about new models, where candidates.budget stops"
    assert (says in told) == stops
    covered = "The budget of 9,000 calls covers what is expected"
    assert (f"{covered}, but candidates.budget stops the run before." in told) == stops
    assert (f"{covered}." in told) != stops

"""`judgeline gate`: answers, looks, refusals, and the files and fixture that others read."""

import json
import os
import subprocess
import sys
from codecs import BOM_UTF8
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from scipy.stats import t
from sources import ROOT
from test_compare import hand_made_board
from test_rank import simulated_battles

import judgeline
from judgeline.cli import main
from judgeline.gating import gate_on
from judgeline.io.ledgers import extend_ledger, read_ledger

PAIR = {"new": "voted-3", "current": "voted-2"}
LEVEL = {"miscoverage": 0.1, "error": 0.05}


def stored(home: Path, n_voted: int = 14, judge: str = "careful") -> None:
    folder = home / "tables" / "leaderboard" / "arena"
    folder.mkdir(parents=True)
    hand_made_board(n_voted).to_parquet(folder / f"{judge}.parquet")


def half_of(look_level: float, n_others: int) -> float:
    """Half-width of two ratings +-30 at 90 %, by hand."""
    return np.hypot(30, 30) * t.ppf(1 - look_level, n_others - 1) / t.ppf(0.95, n_others - 1)


@pytest.mark.parametrize(
    ("new", "current", "margin", "code", "told"),
    [
        ("voted-3", "voted-2", "20", 0, "Passes: voted-3 is better than voted-2 minus 20 Elo: +"),
        ("voted-2", "voted-3", "20", 2, "Worse: voted-2 is more than 20 Elo below voted-3: -100"),
        ("voted-2", "voted-3", "100", 3, "Votes will not tell: at 0.0 Elo from the margin"),
        ("new-two", "voted-7", "20", 3, "more votes on new-two"),
        ("new-two", "new-one", "30", 3, "Cannot tell yet whether new-two is better than new-one"),
    ],
)  # fmt: skip
def test_three_answers_have_three_codes(home, capsys, new, current, margin, code, told) -> None:
    stored(home)
    gate = ["gate", "--corpus", "arena", "--judge", "careful", "--margin", margin]
    assert main([*gate, "--new", new, "--current", current]) == code
    shown = capsys.readouterr().out
    assert told in shown
    assert "Look 1 of any number" in shown
    assert f"a new ledger: {home / 'arena.gate.jsonl'}" in " ".join(shown.split())


def test_beyond_the_votes_of_a_board_margins_are_named_that_can_be_told(tmp_path) -> None:
    board, ledger = hand_made_board(14), tmp_path / "looks.jsonl"
    pair = {"new": "voted-2", "current": "voted-3"}

    def look(margin: float, book=ledger):
        return gate_on(board, **pair, margin=margin, ledger=book, **LEVEL)

    near = look(101.0)  # 1 Elo from the difference
    found = near.comparison
    assert sum((found.votes_a, found.votes_b)) > found.n_cast == board["n_votes"].sum() / 2
    said = " ".join(near.lines())
    assert f"would pass a margin of {found.margin_then:g} Elo, if the difference stays" in said
    assert f"the next look would pass one of {found.margin_now:g}." in said
    for margin, is_within in ((found.margin_then, True), (found.margin_then - 1, False)):
        other = look(margin, tmp_path / f"{margin}.jsonl").comparison
        assert (other.votes_a + other.votes_b <= other.n_cast) is is_within
    assert look(found.margin_now).look == 2
    assert look(found.margin_now).passes
    again = tmp_path / "again.jsonl"
    look(101.0, again)
    assert not look(found.margin_now - 1.1, again).passes
    assert "The whole board has" not in " ".join(look(100 + 35.0, again).lines())


def test_the_interval_is_that_of_the_look() -> None:
    found = gate_on(hand_made_board(14), **PAIR, margin=20, **LEVEL)
    half = half_of(0.05, 12)  # no ledger: one look
    assert found.comparison.lower == pytest.approx(100 - half)
    edge = gate_on(hand_made_board(14), **PAIR, margin=0, **LEVEL)
    assert edge.passes
    assert "this holds for a single one" in edge.lines()[-1]
    reverse = {"new": "voted-2", "current": "voted-3", "miscoverage": 0.1}
    assert gate_on(hand_made_board(14), **reverse, margin=100 + half + 0.1).passes
    assert not gate_on(hand_made_board(14), **reverse, margin=100 + half - 0.1).passes
    assert gate_on(hand_made_board(14), **reverse, margin=100 - half - 0.1).decision == "worse"


def test_looks_are_counted_and_the_same_board_is_no_new_look(tmp_path) -> None:
    board, ledger = hand_made_board(14), tmp_path / "looks.jsonl"

    def look(margin: float = 20.0, **options):
        return gate_on(board, **PAIR, margin=margin, ledger=ledger, **LEVEL, **options)

    first, again = look(), look()
    assert (first.look, first.level, first.is_new_ledger) == (1, 0.025, True)
    assert (again.look, again.level, again.is_new_ledger) == (1, 0.025, False)
    assert (look(margin=30).look, look(margin=30).level) == (2, pytest.approx(0.05 / 6))
    board.loc[board["model"].eq("voted-3"), "rating"] += 1
    third = look()
    assert (third.look, third.level) == (3, pytest.approx(0.05 / 12))
    assert third.comparison.lower == pytest.approx(101 - np.hypot(31, 30) / np.hypot(30, 30)
                                                   * half_of(0.05 / 12, 12))  # fmt: skip
    assert [json.loads(line)["look"] for line in ledger.read_text().splitlines()] == [1, 2, 3]
    with pytest.raises(ValueError, match=r"looks is 9, and .* was begun without: leave it out, or"):
        look(looks=9)
    lines = ledger.read_text().splitlines(keepends=True)
    for damaged, told in (
        ("".join(lines[1:]), "line 1: look 2, where look 1 belongs"),
        ("".join(lines)[:-9], "line 3: .* is no entry of this ledger"),
        ("".join(lines).replace('"level": 0.025', '"level": null'), "line 1: .* is no entry"),
        ("".join(lines) + "\xff\n", "jsonl, line 4: .* is no entry of this ledger"),
    ):
        ledger.write_bytes(damaged.encode("latin-1"))
        with pytest.raises(ValueError, match=told):
            look()
        assert ledger.read_bytes() == damaged.encode("latin-1")
    ledger.write_text("".join(lines)[:-1])  # an editor dropped the last end of a line
    assert [look(margin=40).look, look(margin=50).look] == [4, 5]
    assert look(margin=0.0).lines() == look(margin=-0.0).lines()
    with pytest.raises(ValueError, match=r"looks is not stated, and .* was begun with 9: state"):
        gate_on(board, **PAIR, margin=1.0, ledger=_begun(tmp_path / "nine", looks=9), **LEVEL)


def _begun(ledger: Path, looks: int) -> Path:
    gate_on(hand_made_board(14), **PAIR, margin=1.0, ledger=ledger, looks=looks, **LEVEL)
    return ledger


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text,
        lambda text: text.rstrip(b"\n"),
        lambda text: text.removeprefix(BOM_UTF8).replace(b"\r", b"").replace(b"\n", b"\r\n"),
        lambda text: BOM_UTF8 + text.removeprefix(BOM_UTF8),
        lambda text: text + b"\n",
    ],
)
def test_a_ledger_that_an_editor_has_saved_counts_on(tmp_path, edit) -> None:
    ledger = tmp_path / "ledger.jsonl"
    for entry in ({"look": 1}, {"look": 2}):
        extend_ledger(ledger, [entry])
        ledger.write_bytes(edit(ledger.read_bytes()))
        extend_ledger(ledger, [])
    assert read_ledger(ledger, {"look": int}) == [{"look": 1}, {"look": 2}]


def test_planned_looks_end(tmp_path) -> None:
    board, options = hand_made_board(14), {"ledger": tmp_path / "looks.jsonl", "looks": 2}
    for margin in (20, 30):
        assert gate_on(board, **PAIR, margin=margin, **LEVEL, **options).level == 0.025
    with pytest.raises(ValueError, match="look is 3; expected at most 2"):
        gate_on(board, **PAIR, margin=40, **LEVEL, **options)


@pytest.mark.parametrize(
    ("n_voted", "options", "told"),
    [
        (11, {"new": "new-one", "current": "voted-1"}, "11 models have votes and 'new-one' has no"),
        (14, {"judge": "gpt-4", "new": "o3-mini"}, "both of 'openai', and judges prefer their own"),
        (14, {"margin": -1.0}, "margin is -1.0; expected Elo points, 0 or more"),
        (14, {"margin": np.nan}, "margin is nan"),
        (14, {"error": 0.5}, "error is 0.5"),
        (14, {"new": "voted-2"}, "expected another model than the first"),
        (14, {"current": "voted-33"}, "did you mean 'voted-3'"),
    ],
)
def test_refusals_say_what_to_do(n_voted, options, told) -> None:
    board = hand_made_board(n_voted).replace("new-two", "o3-mini")
    with pytest.raises(ValueError, match=told):
        gate_on(board, **{**PAIR, **LEVEL, "margin": 20.0, **options})


def test_a_judge_of_the_models_maker_decides_where_that_is_stated() -> None:
    board = hand_made_board(14).replace({"voted-3": "gpt-5", "voted-2": "gpt-4"})
    pair = {"new": "gpt-5", "current": "gpt-4", "margin": 20.0, **LEVEL}
    assert gate_on(board, **pair, judge="openai/o3", same_maker=True).passes
    assert "maker is unknown" not in " ".join(gate_on(board, **pair, judge="claude-4").lines())
    assert "maker is unknown" in " ".join(gate_on(board, **pair, judge="careful").lines())
    assert gate_on(hand_made_board(4), **PAIR, margin=20.0, **LEVEL).passes  # votes on both


@pytest.mark.parametrize(
    "arguments",
    [
        ["--new", "a", "--current", "b"],
        ["x.csv", "--new", "a", "--current", "b", "--margin", "wide"],
        ["--new", "a", "--current", "b", "--margin", "20"],
        ["x.csv", "--new", "a", "--current", "b", "--margin", "20"],
    ],
)
def test_what_is_no_answer_exits_with_1(arguments, capsys) -> None:
    assert main(["gate", *arguments]) == 1
    assert "Error" in capsys.readouterr().err


def test_files_hold_the_answer_and_texts_from_outside_do_nothing() -> None:
    hostile = "<b>new</b> ![x](http://evil) `$(id)`\x1b[31m"
    board = hand_made_board(14).replace("voted-2", hostile)
    found = gate_on(board, hostile, "voted-3", margin=20.0, **LEVEL)
    suite = ElementTree.fromstring(found.to_junit())  # noqa: S314 (our own)
    assert suite.attrib == {"name": "judgeline gate", "tests": "1", "failures": "1", "errors": "0"}
    assert suite.find("testcase/failure").text.startswith("Worse: <b>new</b>")
    assert "\x1b" not in found.to_junit() + found.to_json() + found.to_markdown()
    assert not any(mark in found.to_markdown() for mark in ("<", "![", "`", "$("))
    told = json.loads(found.to_json())
    assert (told["decision"], told["passes"], told["comparison"]["model_a"]) == (
        "worse", False, hostile,
    )  # fmt: skip
    passing = gate_on(board, "new-one", "voted-3", margin=800.0, **LEVEL)
    case = ElementTree.fromstring(passing.to_junit()).find("testcase")  # noqa: S314
    assert [part.tag for part in case] == ["system-out"]


@pytest.mark.slow
def test_a_file_is_gated_from_python_the_command_line_and_pytest(tmp_path, capsys) -> None:
    path, test = tmp_path / "battles.csv", tmp_path / "test_release.py"
    battles = simulated_battles()
    battles.to_csv(path, index=False)
    names = ["--new", "model-00", "--current", "model-11", "--margin", "20"]
    files = [f"--{form}={tmp_path / form}" for form in ("junit", "json", "markdown")]
    assert main(["gate", str(path), *names, *files]) == 2
    assert (tmp_path / "battles.csv.gate.jsonl").exists()
    assert json.loads((tmp_path / "json").read_text())["look"] == 1
    assert (tmp_path / "markdown").read_text().startswith("### Gate: worse")
    battles.assign(score_difference=-battles["score_difference"]).to_csv(path, index=False)
    assert main(["gate", str(path), *names]) == 1  # a judge that fails its own gate is no answer
    board = judgeline.rank(battles, judgeline.Settings(n_resamples=0))
    assert judgeline.gate(board, new="model-11", current="model-00", margin=20).passes
    test.write_text(
        "import pandas as pd\n"
        "def test_up(judgeline_gate):\n"
        f"    judgeline_gate({str(path)!r}, new='model-11', current='model-00', margin=20)\n"
        "def test_down(judgeline_gate):\n"
        f"    judgeline_gate({str(path)!r}, new='model-00', current='model-11', margin=20)\n"
    )
    battles.to_csv(path, index=False)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "judgeline.pytest_plugin", str(test)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout
    assert "Worse: model-00 is more than 20 Elo below model-11" in done.stdout


def test_the_action_hands_inputs_on_as_values() -> None:
    action = yaml.safe_load((ROOT / ".github/actions/gate/action.yml").read_text("utf-8"))
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]  # a name in a script would be a command
        assert step["shell"] == "bash"
    options = {f"--{name}" for name in ("new", "current", "margin", "ledger", "junit", "markdown")}
    assert all(option in action["runs"]["steps"][-1]["run"] for option in options)

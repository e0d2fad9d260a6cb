"""The command line: exit codes, messages that say what to do, and what stays unloaded."""

import errno
import html
import json
import os
import shutil
import socket
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from test_rank import simulated_battles

from judgeline.cli import CHECKOUT_COMMANDS, _entry_points, app, main
from judgeline.suggest import message_of

ROOT = Path(__file__).resolve().parents[3]
HEADER = "model_a,model_b,score_difference,human_outcome\n"
Capture = pytest.CaptureFixture[str]


def write_battles(path: Path, *, judge_sign: int = 1) -> Path:
    """Write 400 battles of 10 models; a judge of sign -1 prefers what people reject."""
    table = simulated_battles(n_models=10, n_battles=400)
    table["score_difference"] *= judge_sign
    table.to_csv(path, index=False)
    return path


def rank(path: Path, out: Path, *options: str) -> int:
    return main(["rank", str(path), "--out", str(out), "--no-report", "--n-resamples=0", *options])


def judgeline(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line as a person does."""
    command = [sys.executable, "-m", "pipelines", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def complaint(capture: Capture) -> str:
    """Return the one paragraph on the error stream; nothing else may be on either stream."""
    shown = capture.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    return shown.err


def test_a_good_file_exits_with_0_and_says_where_things_are(tmp_path, capsys):
    battles, out = write_battles(tmp_path / "battles.csv"), tmp_path / "out"
    assert rank(battles, out) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "400 battles of battles.csv, judged by the judge of battles.csv; 0 rows" in shown.out
    assert str(out / "leaderboard.csv") in shown.out.replace("\n", "")
    assert not (out / "report.html").exists()
    assert "smoothed" not in shown.out
    assert "smoothed" not in (out / "summary.csv").read_text()
    assert rank(battles, out, "--force", "--method", "smoothed-0.55", "--method", "soft") == 0
    assert "smoothed-0.55" in capsys.readouterr().out


def test_a_closed_output_is_no_error(tmp_path: Path) -> None:
    battles, out = write_battles(tmp_path / "battles.csv"), tmp_path / "out"
    command = [sys.executable, "-m", "judgeline", "rank", str(battles), "--out", str(out)]
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command, "--no-report"]
    done = subprocess.run(closed, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (out / "leaderboard.csv").exists()


def test_the_report_has_the_command_line_as_typed(tmp_path: Path) -> None:
    battles, out = write_battles(tmp_path / "my battles.csv"), tmp_path / "out"
    typed = ["rank", str(battles), "--out", str(out), "--columns", "human_outcome=human_outcome"]
    assert main([*typed, "--n-resamples", "20", "--std-error", "analytic"]) == 0
    page = html.unescape((out / "report.html").read_text("utf-8"))
    assert f"judgeline rank '{battles}' --out {out} --columns human_outcome=human_out" in page


def test_a_judge_against_people_exits_with_2(tmp_path: Path) -> None:
    battles = write_battles(tmp_path / "battles.csv", judge_sign=-1)
    done = judgeline("rank", str(battles), "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "contradicts-humans" in done.stderr
    assert "prefers what people reject" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_a_missing_file_exits_with_1_and_no_traceback(tmp_path: Path, capsys: Capture) -> None:
    write_battles(tmp_path / "battles.csv")
    assert rank(tmp_path / "batles.csv", tmp_path / "out") == 1
    message = complaint(capsys)
    assert message.startswith("Error: no file at")
    assert f"did you mean {tmp_path / 'battles.csv'}?" in message
    (tmp_path / "empty").mkdir()
    assert rank(tmp_path / "empty", tmp_path / "out") == 1
    assert "holds no file that ends in one of" in complaint(capsys)
    assert rank(tmp_path / "battles.csv", tmp_path / "battles.csv" / "out") == 1
    message = complaint(capsys)
    assert "cannot write into" in message  # before any work
    assert "--out" in message


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("empty.csv", "", ["is empty (0 bytes)"]),
        ("header.csv", HEADER, ["a header and no rows"]),
        ("wrong.csv", "model_a,model_b,winner\na,b,a\n", ["model_a, model_b, winner", "expected"]),
        ("near.csv", "model_a,model_b,score_diff,human_outcome\na,b,1,1\n",
         ["is 'score_diff' meant as 'score_difference'?"]),
        ("battles.xlsx", "PK", ["ends in '.xlsx'", ".csv, .tsv, .json"]),
        ("torn.parquet", "PAR1 and no more", ["cannot be read as parquet", "again"]),
        ("torn.feather", "ARROW1 and no more", ["cannot be read as feather", "again"]),
        ("torn.csv.gz", "no gzip", ["cannot be read as csv", "download or write it again"]),
        ("torn.zip", "no zip", ["cannot be read as zip", "download or write it again"]),
        ("battles.parquet.gz", "PAR1", ["ends in '.parquet' within the packing"]),
        ("torn.json", '[{"model_a": ', ["line 1", "not JSON"]),
        ("number.json", "3", ["entry 1: int, expected one object"]),
        ("list.jsonl", "[1, 2]\n", ["line 1", "list, expected one object"]),
        ("torn.jsonl", '{"model_a": \n', ["line 1", "not JSON"]),
        ("codes.csv", HEADER + "a,b,1,won\nb,c,1,lost\n",
         ["2 unknown-outcome", "'won'", "A's share of the win"]),
        ("self.csv", HEADER + "a,a,1,1\n", ["1 self-battle"]),
        ("islands.csv", HEADER + "a,b,1,1\na,b,-1,0\na,b,1,0\nc,d,1,1\n",
         ["2 of 4 models", "c, d"]),
    ],
)  # fmt: skip
def test_bad_input_is_named_with_a_remedy(name, content, told, tmp_path, capsys):
    path = tmp_path / name
    path.write_text(content)
    assert rank(path, tmp_path / "out") == 1
    message = complaint(capsys)
    assert [part for part in told if part not in message] == [], message


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--miscoverage", "1"],
            "Error: --miscoverage is 1.0; expected a finite number, more than 0 and less than 1",
        ),
        (["--n-splits", "0"], "'--n-splits': Input should be greater than or equal to 1; got '0'"),
        (["--n-splits=0"], "'--n-splits': Input should be greater than or equal to 1; got '0'"),
        (["--l2", "-1", "--missing", "--l2"], "than or equal to 0; got '-1'"),
        (["--n-splits", "--n-splits", "0"], "parse string as an integer; got '--n-splits'"),
        (["--l2", "-1"], "--l2"),
        (["--hard-outcome", "guessed"], "'derived', 'recorded'"),
        (["--std-error", "bootstrap"], "--n-resamples 0 leaves no bootstrap standard error"),
        (["--metod", "soft"], "--method"),
        (["--method", "sofft"], "did you mean 'soft'"),
        (["--plain", "hlaf"], ": 'hlaf' is not one of 'half', 'davidson'. Did you mean 'half'?"),
        (["--intervals", "PUBLISH"], "Did you mean 'published'? (see: judgeline rank --help)"),
        (["--intervals", "zzz"], "'zzz' is not one of 'calibrated', 'published'. (see"),
        (["--intervals", "published"], "--n-resamples 0 leaves no bootstrap standard error"),
    ],
)
def test_bad_settings_exit_with_1(options, told, tmp_path, capsys):
    battles = write_battles(tmp_path / "battles.csv")
    assert rank(battles, tmp_path / "out", *options) == 1
    assert told in complaint(capsys)
    assert not list(tmp_path.glob("out/*"))


def test_errors_on_files_say_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    doings = {
        f"no file at {tmp_path / 'gone'}; ": (tmp_path / "gone").read_bytes,
        f"no folder at {tmp_path / 'gone'}; make it": (tmp_path / "gone" / "it").read_bytes,
        f"{file / 'it'} lies below a file": (file / "it").read_bytes,
        f"{tmp_path} is a folder; name a file": tmp_path.read_bytes,
        f"{file} is a file, where a folder is needed": file.mkdir,
    }
    for told, do in doings.items():
        with pytest.raises(OSError, match="Errno") as caught:
            do()
        assert message_of(caught.value).startswith(told)
    closed = PermissionError(errno.EACCES, "Permission denied", str(file))
    assert message_of(closed).startswith(f"{file} may not be read or written by this user")
    assert message_of(ConnectionError("no answer")) == "no answer"


def test_quarantined_rows_are_counted_by_reason(tmp_path: Path, capsys: Capture) -> None:
    battles = write_battles(tmp_path / "battles.csv")
    with battles.open("a") as file:
        file.write("one,one,1,1\none,two,1,both\none,two,1,neither\n")
    assert rank(battles, tmp_path / "out") == 0
    shown = capsys.readouterr().out
    assert "400 battles of battles.csv, judged by the judge of battles.csv; 3 rows" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert any({"self-battle", "1"} <= set(line) for line in lines)
    assert any({"unknown-outcome", "2"} <= set(line) for line in lines)
    assert pd.read_csv(tmp_path / "out" / "quarantine.csv")["row"].tolist() == [400, 401, 402]


def test_an_infinite_threshold_is_explained(tmp_path: Path, capsys: Capture) -> None:
    battles = write_battles(tmp_path / "battles.csv")
    assert rank(battles, tmp_path / "out", "--miscoverage", "0.05") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "every threshold is infinite" in shown
    assert "at least 19 models" in shown


def test_ctrl_c_exits_with_130(tmp_path, capsys, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("judgeline.api.rank_battles", interrupt)
    assert rank(write_battles(tmp_path / "battles.csv"), tmp_path / "out") == 130
    assert "Interrupted" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", ["", "--help", "rank --help", "run --help"])
def test_help_teaches_with_an_example(arguments: str, capsys: Capture) -> None:
    assert main(arguments.split()) == 0
    shown = capsys.readouterr().out
    assert "judgeline r" in shown
    assert "Exit codes" in shown
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("judgeline ")
    assert main(["rnak"]) == 1
    assert "'rank'" in complaint(capsys)


def test_ranking_loads_no_orchestrator(tmp_path: Path) -> None:
    battles = write_battles(tmp_path / "battles.csv")
    script = (
        "import sys; from judgeline.cli import main;"
        f"code = main(['rank', {str(battles)!r}, '--out', {str(tmp_path)!r}, '--n-resamples=2']);"
        "assert code == 0, code;"
        "print([m for m in sys.modules if m.split('.')[0] in ('dagster', 'great_expectations')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("fixture", "arguments", "told"),
    [
        ("home", "leaderboard --corpus areno", ["areno", "arena"]),
        ("home", "run --corpus areno", ["areno", "arena"]),
        ("home", "leaderboard --corpus arena --judge nobody-known", ["nobody-known"]),
        ("home", "leaderboard --corpus arena", ["judgeline run --corpus arena"]),
        ("stored_board", "leaderboard --corpus arena --judge pooled",
         ["two judges", "judgeline run --corpus arena --judge"]),
    ],
)  # fmt: skip
def test_what_is_not_there_names_the_remedy(request, capsys, fixture, arguments, told) -> None:
    request.getfixturevalue(fixture)
    assert main(arguments.split()) == 1
    says = "".join(capsys.readouterr()) if arguments.startswith("run") else complaint(capsys)
    assert [part for part in told if part not in says] == []


@pytest.fixture
def stored_board(home: Path) -> pd.DataFrame:
    """One stored leaderboard of the built-in arena, with an infinite bound and a missing vote."""
    board = pd.DataFrame(
        {
            "rank": [1, 2], "model": ["[b]old", "plain"], "method": "soft",
            "rating": [1510.25, 1489.75], "std_error": [5.0, 6.0], "lower": [-np.inf, 1480.0],
            "upper": [np.inf, 1500.0], "best_rank": [1, 1], "worst_rank": [2, 2], "basis": "",
            "human_rating": [np.nan, 1490.0], "n_battles": [10, 12], "n_votes": [0, 12],
            "flags": ["no-votes", ""],
        }
    )  # fmt: skip
    folder = home / "tables" / "leaderboard" / "arena"
    folder.mkdir(parents=True)
    board.to_parquet(folder / "careful.parquet")
    return board


@pytest.mark.parametrize(
    ("style", "read"),
    [
        ("csv", lambda text: text.splitlines()[1].split(",")[2]),
        ("json", lambda text: json.loads(text)[0]["model"]),
        ("md", lambda text: html.unescape(text.splitlines()[2].split("|")[3].strip())),
        ("table", lambda text: "[b]old" if "[b]old" in text and "-∞ to ∞" in text else text),
    ],
)
def test_leaderboards_print_in_every_format(style, read, stored_board, capsys):
    assert main(["leaderboard", "--corpus", "arena", "--format", style]) == 0
    shown = capsys.readouterr()
    assert read(shown.out) == stored_board["model"][0]
    assert "simulation" in (shown.out if style == "table" else shown.err)
    if style == "json":
        first = json.loads(shown.out)[0]
        assert (first["lower"], first["upper"], first["human_rating"]) == ("-inf", "inf", None)
        assert first["rating"] == stored_board["rating"][0]


def test_configured_names_are_listed(capsys: Capture) -> None:
    assert main(["corpora"]) == 0
    assert "arena" in capsys.readouterr().out
    assert main(["judges"]) == 0
    listed = capsys.readouterr().out
    assert "builtin" in listed
    assert "rubric" in listed


def test_the_interface_refuses_a_port_that_is_taken(home: Path, capsys: Capture) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        assert main(["ui", "--port", str(port)]) == 1
    assert f"port {port} on 127.0.0.1 is taken" in complaint(capsys)
    assert not home.exists()


def test_the_lineage_adds_the_commands_that_its_absence_names(tmp_path, monkeypatch, capsys):
    assert main([]) == 0
    added = set(typer.main.get_command(app).commands) - {
        "agreement",
        "compare",
        "doctor",
        "example",
        "gate",
        "plan",
        "plain",
        "rank",
        "rates",
        "score",
        "seal",
        "verify",
        "vote",
    }
    assert added == set(CHECKOUT_COMMANDS)
    monkeypatch.setattr("judgeline.cli._CHECKOUT", tmp_path)
    assert main(["run", "--corpus", "arena"]) == 1
    told = "judgeline run comes with a checkout of judgeline"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("is_installed", [True, False])
def test_the_lineage_joins_with_and_without_an_installation(is_installed, monkeypatch) -> None:
    """An installation older than the entry points has metadata without them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {
        group: EntryPoints(EntryPoint(*entry, group) for entry in entries.items())
        for group, entries in project["entry-points"].items()
    }
    own = [group for group in declared if group.startswith("judgeline.")]
    assert len(own) == 4
    for group in own:
        expected = declared[group]
        found = expected if is_installed else EntryPoints()
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group, found=found: found)
        assert sorted(_entry_points(group)) == sorted(expected)
        assert all(callable(entry.load()) for entry in _entry_points(group))


@pytest.mark.parametrize(
    ("column", "options", "name"),
    [
        ({}, [], "the judge of battles.csv"),
        ({}, ["--judge", "mine"], "mine"),
        ({"judge": "gpt-5-mini"}, [], "gpt-5-mini"),
    ],
)
def test_a_report_names_its_judge(tmp_path, capsys, column, options, name):
    battles, out = write_battles(tmp_path / "battles.csv"), tmp_path / "out"
    pd.read_csv(battles).assign(**column).to_csv(battles, index=False)
    assert main(["rank", str(battles), "--out", str(out), "--n-resamples=0", *options]) == 0
    assert f"judged by {name}; 0 rows" in capsys.readouterr().out
    page = (out / "report.html").read_text(encoding="utf-8")
    assert f">Ratings by {name} are" in page
    assert f"<bdi>{name}</bdi></h2>" in page


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("judgeline ru", "run"),
        ("judgeline leaderboard --ju", "--judge"),
        ("judgeline leaderboard --judge car", "careful"),
        ("judgeline why m --corpus ar", "arena"),
        ("judgeline rank battles.csv --std-error b", "bootstrap"),
    ],
)
def test_bash_completes_commands_options_and_slugs(tmp_path, line, offered):
    program = tmp_path / "judgeline"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pipelines "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = f"""eval "$(judgeline --show-completion)"
        COMP_WORDS=({line}); COMP_CWORD=$(({len(line.split()) - 1}))
        "$(complete -p judgeline | sed 's/.*-F \\([^ ]*\\).*/\\1/')" judgeline
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [offered], done.stderr

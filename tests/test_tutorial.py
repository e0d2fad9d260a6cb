"""The code of the tutorial and of the README runs, and prints what they say."""

import re
import runpy
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from judgeline.cli import app, main

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def words(line: str) -> list[str]:
    return line.split()


def run_code_of(page: str, folder: Path) -> dict[str, Any]:
    """Run a page's Python in the working directory, and return what it defines."""
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (folder / "code.py").write_text(code, encoding="utf-8")
    return runpy.run_path("code.py")


def test_the_readme_rates_the_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "judgeline example --out battles.csv" in README
    assert main(["example", "--out", "battles.csv"]) == 0
    board = run_code_of(README, tmp_path)["board"]
    assert len(board.leaderboard) == 24
    assert "model-23" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_file_of_the_tutorial_gives_its_board(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    (head,) = re.findall(r"battles.csv\n\$ head -3 battles.csv\n(.*?)```", PAGE, re.DOTALL)
    assert main(["example", "--out", "battles.csv"]) == 0
    assert main(["example", "--out", "battles.csv"]) == 1  # which no file is lost to
    assert (tmp_path / "battles.csv").read_text().startswith(head)
    (board,) = re.findall(r"```\n\$ judgeline (rank .*?)\n(.*?)```", PAGE, re.DOTALL)
    printed = [
        words(line) for line in CliRunner().invoke(app, board[0].split()).output.splitlines()
    ]
    assert [line for line in board[1].splitlines() if words(line) not in printed] == []

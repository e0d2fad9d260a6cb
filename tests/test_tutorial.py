"""The tutorial's code prints what the tutorial says."""

import re
import runpy
from pathlib import Path

import pytest
from typer.testing import CliRunner

from judgeline.cli import app

PAGE = (Path(__file__).resolve().parent.parent / "docs/tutorial.md").read_text(encoding="utf-8")


def words(line: str) -> list[str]:
    return line.split()


def test_the_file_of_the_tutorial_gives_its_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "make.py").write_text(code, encoding="utf-8")
    runpy.run_path("make.py")
    (board,) = re.findall(r"```\n\$ judgeline (rank .*?)\n(.*?)```", PAGE, re.DOTALL)
    printed = [
        words(line) for line in CliRunner().invoke(app, board[0].split()).output.splitlines()
    ]
    assert [line for line in board[1].splitlines() if words(line) not in printed] == []

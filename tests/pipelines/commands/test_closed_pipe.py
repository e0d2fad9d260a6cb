"""`judgeline ... | head`: whoever reads may leave at any time; what was begun ends as it would."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def unread(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line into a pipe that nobody reads, from its first line on."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "pipelines", *arguments]
    try:
        return subprocess.run(
            command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["judges"], 0),
        (["--help"], 0),
        (["run", "--help"], 0),
        (["--version"], 0),
        (["leaderboard", "--corpus", "arena"], 1),  # there is none, and that is said
        (["rnak"], 1),
    ],
)
def test_a_short_command_ends_quietly_with_its_own_code(arguments: list[str], code: int) -> None:
    done = unread(*arguments)
    assert done.returncode == code
    assert len(done.stderr.strip().splitlines()) == code, done.stderr


def test_a_run_goes_on_to_its_end(home: Path) -> None:
    done = unread("run", "--corpus", "arena", "--judge", "careful", "--select", "group:corpus")
    assert done.returncode == 0, done.stderr
    assert (home / "tables" / "sampled_battles" / "arena.parquet").exists()
    assert "Error" not in done.stderr


def test_a_run_that_fails_says_so_by_its_code(home: Path) -> None:
    assert unread("run", "--corpus", "arena", "--judge", "nobody").returncode == 1
    assert not (home / "tables").exists()

"""A new module of tables, or of steps, is found: no list names it, and no step hides another."""

import shutil
import subprocess
import sys

import pytest
from sources import ROOT

from judgeline.steps import STEPS, step

TABLE = """
from judgeline.tables.schema import table

MEETINGS = table("meetings", "model opponent n_battles", ["model", "opponent"])
"""
STEP = """
from judgeline.steps.step import step
from judgeline.tables.meetings import MEETINGS


@step(MEETINGS)
def meetings(scored_battles):
    pairs = scored_battles.rename(columns={"model_a": "model", "model_b": "opponent"})
    return pairs.groupby(["model", "opponent"]).size().rename("n_battles").reset_index()
"""
ASKED = """
import pandas as pd
from judgeline.steps import STEPS, run
from resources.tables.declared import TABLES

battles = pd.DataFrame({"model_a": ["ant", "ant", "bee"], "model_b": ["bee", "bee", "cat"]})
made = run("meetings", {"scored_battles": battles}, None)["meetings"]
print(TABLES["meetings"] is STEPS["meetings"].table, made.to_numpy().tolist())
"""


def test_a_module_with_a_table_and_one_with_its_step_are_found(tmp_path) -> None:
    for folder in ("judgeline", "resources"):
        kept = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=kept)
    for room, text in {"tables": TABLE, "steps": STEP}.items():
        (tmp_path / "judgeline" / room / "meetings.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", ASKED], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
    )  # fmt: skip
    assert done.stdout == "True [['ant', 'bee', 2], ['bee', 'cat', 1]]\n", done.stderr


def test_a_second_step_of_a_table_is_refused_with_both_named() -> None:
    first = STEPS["leaderboard"]

    def leaderboard(scored_battles):
        return scored_battles

    with pytest.raises(ValueError, match=f"{first.function.__module__} and {__name__}"):
        step(first.table)(leaderboard)
    assert STEPS["leaderboard"] is first

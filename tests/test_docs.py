"""The pages of docs/ as a site: links lead somewhere, doors have a page, the notebook runs."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from judgeline.paths import ROOT
from judgeline.tables.words import WORDS
from resources.tables.declared import TABLES


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    found = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_every_table_has_a_page_with_its_columns_and_checks(pages: ModuleType) -> None:
    for name, table in TABLES.items():
        page = pages.table_page(name)
        rows = [f"| `{one}` | {table.dtypes[one]} | {WORDS[one][1]} |" for one in table.columns]
        assert "\n".join(rows) in page
        assert all(f"| `{check.name}` | {check.guards} |" in page for check in table.checks)
        assert f"(tables/{name}.md)" in pages.tables_list()


@pytest.mark.slow
def test_a_page_says_what_a_table_is_made_from_and_by_whom(pages: ModuleType) -> None:
    page = pages.table_page("leaderboard")
    made_from, made_for = re.split("## Made (?:from|for)", page.split("## Settings")[0])[1:]
    links = {"scored_battles", "heldout_ratings", "conformal_calibration", "judge_gate"}
    assert {*re.findall(r"\((\w+)\.md\)", made_from)} == {*links, "candidate_ratings"}
    assert "[candidate_ratings](candidate_ratings.md) | may be missing" in made_from
    assert "[predictions](predictions.md)" in made_for
    assert re.search(
        r"`models_are_in_order` \| .* \| stops what follows \| .*model is unique", page
    )
    assert (
        "| `miscoverage` | `0.1` | Tolerated share of misses; 0.1 asks for 90 % coverage. |" in page
    )
    rated = pages.table_page("heldout_ratings")
    assert re.search(r"`judgeline.elo.ratings.rate`: .*arXiv:2606.13221, Algorithm 1", rated)
    assert "`every_model_is_placed`" in rated  # a check that is statistics


@pytest.mark.slow
def test_the_site_is_built_without_a_broken_link_and_holds_the_doors(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / "site" / "api" / "index.html").read_text(encoding="utf-8")
    for door in ("judgeline.api.rank", "judgeline.elo.rate", "judgeline.winrate.adjust_models"):
        assert f'id="{door}"' in reference
    notebook = (tmp_path / "site" / "board" / "index.html").read_text(encoding="utf-8")
    assert "24 models from model-21" in notebook, "the notebook was not executed"
    board = (tmp_path / "site" / "tables" / "leaderboard" / "index.html").read_text("utf-8")
    assert "Elo points, by the judge as if nobody had voted on the model." in board
    assert 'href="leaderboard/"' in (tmp_path / "site" / "tables" / "index.html").read_text("utf-8")
    packages = {path.parent.name for path in (ROOT / "judgeline").glob("*/__init__.py")}
    undocumented = {one for one in packages if f'id="judgeline{one}"' not in reference}
    assert undocumented == {"io", "judges", "report", "steps", "tables"}

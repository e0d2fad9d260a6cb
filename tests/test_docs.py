"""The pages of docs/ as a site: links lead somewhere, doors have a page, the notebook runs."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from browsing import Browser, fits, opened, show

import judgeline
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def page_of(site: Path, path: str) -> str:
    return (site / path).read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_site_is_built_without_a_broken_link_and_holds_the_doors(site: Path) -> None:
    notebook = page_of(site, "board.html")
    assert "24 models from model-21" in notebook, "the notebook was not executed"
    board = page_of(site, "tables/leaderboard.html")
    assert "Elo points, by the judge as if nobody had voted on the model." in board
    assert 'href="tables/leaderboard.html"' in page_of(site, "tables.html")
    science = page_of(site, "python/elo.html") + page_of(site, "python/winrate.html")
    for function in ("judgeline.elo.rate", "judgeline.winrate.adjust_models"):
        assert f'id="{function}"' in science
    packages = {path.parent.name for path in (ROOT / "judgeline").glob("*/__init__.py")}
    undocumented = {one for one in packages if not (site / "python" / f"{one}.html").exists()}
    assert undocumented == {"io", "judges", "report", "steps", "tables"}


@pytest.mark.slow
def test_every_door_is_listed_and_described_once(pages: ModuleType, site: Path) -> None:
    doors = [name for names in pages.DOORS.values() for name in names.split()]
    assert set(dir(judgeline)) - {"__version__"} <= set(doors)
    described = "".join(path.read_text(encoding="utf-8") for path in site.glob("python/*.html"))
    listed = page_of(site, "api.html")
    for name in doors:
        assert described.count(f'id="judgeline.api.{name}"') == 1, name
        assert f'#judgeline.api.{name}"' in listed, name


@pytest.mark.slow
def test_a_page_without_a_canvas_for_graphs_has_their_arrows(pages: ModuleType, site: Path) -> None:
    assert pages.arrows_table("graph TD\n  b --> c\n  a --> c\n  b --> a") == (
        "| package | imports |\n| --- | --- |\n| `a` | `c` |\n| `b` | `a`, `c` |"
    )
    assert "<td><code>tables</code></td>" in page_of(site, "architecture.html")


ELSEWHERE = {
    ".html": r"""<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)=["']?(?:https?:)?//""",
    ".css": r"""url\(["']?(?:https?:)?//|@import""",
    ".js": r"""["'`](?:https?:)?//[^"'`]*(?:unpkg|cdn|fonts|\.js\b)[^"'`]*""",
}
NEVER_LOADED = {
    '"https://unpkg.com/resize-observer-polyfill',  # in browsers from before 2020
    '"https://unpkg.com/mermaid@11/dist/mermaid.min.js',  # where a page has a drawing of its class
}


@pytest.mark.slow
def test_pages_need_no_other_host(site: Path) -> None:
    found = {
        match
        for path in site.rglob("*")
        if path.suffix in ELSEWHERE
        for match in re.findall(ELSEWHERE[path.suffix], path.read_text(encoding="utf-8"))
    }
    assert found == NEVER_LOADED
    written = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.html"))
    assert re.findall(r"""class=["']?[^"'>]*mermaid|cdnjs|mathjax|import\(""", written) == []


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened(tmp_path_factory.mktemp("profile"), logs=["browser", "performance"]) as one:
        yield one


SHOWN = (
    "index", "tutorial", "board", "judges", "operations", "architecture", "python/intervals",
    "tables/leaderboard",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("width", [1440, 390])
def test_pages_opened_as_files_fit_and_ask_nobody(site: Path, browser: Browser, width: int) -> None:
    for name in SHOWN:
        show(browser.driver, site / f"{name}.html", width=width)
        assert fits(browser.driver, width), name
    assert browser.driver.get_log("browser") == []
    events = [
        json.loads(one["message"])["message"] for one in browser.driver.get_log("performance")
    ]
    sent = [one["params"] for one in events if one["method"] == "Network.requestWillBeSent"]
    ours = [one for one in sent if one["documentURL"].startswith(site.as_uri())]
    schemes = {one["request"]["url"].partition(":")[0] for one in ours}
    assert schemes == {"file", "data"}


@pytest.mark.slow
@pytest.mark.browser
def test_a_word_is_found_in_pages_opened_as_files(site: Path, browser: Browser) -> None:
    from selenium.webdriver.common.by import By

    show(browser.driver, site / "tables" / "leaderboard.html", width=1440)
    box = browser.driver.find_element(By.CSS_SELECTOR, "input.md-search__input")
    box.click()
    box.send_keys("conformal")
    browser.shows("matching documents", "judgeline.intervals")
    browser.driver.find_element(By.CSS_SELECTOR, ".md-search-result__link").click()
    browser.shows("One row for each method")

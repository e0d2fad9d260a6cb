"""The voting page in a real browser: keys, resuming, saving, hostile texts, and who can use it."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import Browser, fits, opened, show, violations

from judgeline.report import write_voting_page

selenium = pytest.importorskip("selenium")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.browser]

HOSTILE = (
    "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
    '<a href="javascript:window.hit=1">x</a><!-- ]]> ${window.hit = 1} \\u003c &lt;b&gt; \u2028'
)


def made(page: str) -> dict:
    battles = {
        f"k{k}": {"question": f"Q{k} {HOSTILE}", "a": f"by-a-{k} {HOSTILE}", "b": f"by-b-{k}"}
        for k in range(6)
    }
    order = [
        {"key": f"k{k}", "first": "ab"[k % 2], "place": k + 1, "probability": 0.25}
        for k in range(6)
    ]
    return {"page": page, "told": "Choose.", "n_possible": 9, "battles": battles,
            "raters": [order, order[::-1]]}  # fmt: skip


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(tmp_path_factory, downloads: Path) -> Iterator[webdriver.Chrome]:
    with opened(tmp_path_factory.mktemp("profile"), logs=["browser", "performance"]) as one:
        where = {"behavior": "allow", "downloadPath": str(downloads)}
        one.driver.execute_cdp_cmd("Browser.setDownloadBehavior", where)
        yield one.driver


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Every page has an id of its own: pages of one browser share a store."""
    return write_voting_page(tmp_path / "vote.html", made(tmp_path.name))


def begin(
    browser: webdriver.Chrome, page: Path, name: str = "Ada", number: str = "1", **size: Any
) -> None:
    show(browser, page, **size)
    browser.find_element(By.ID, "name").send_keys(name)
    browser.find_element(By.ID, "number").send_keys(number)
    browser.find_element(By.CSS_SELECTOR, "form button").click()


def press(browser: webdriver.Chrome, keys: str) -> None:
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def await_status(browser: webdriver.Chrome, begins: str) -> None:
    """Wait until the page's status begins so."""
    Browser(browser).until(lambda: browser.find_element(By.ID, "status").text.startswith(begins))


def test_votes_by_keys_survive_a_reload_and_come_out_as_lines(browser, page, downloads) -> None:
    begin(browser, page)
    assert browser.find_element(By.ID, "first").text.startswith("by-a-0")
    press(browser, "abU" + "t")
    await_status(browser, "Battle 3 of 6.")
    begin(browser, page, name="Other")  # the same browser, another day
    await_status(browser, "Battle 3 of 6.")
    assert "goes on as Ada" in browser.find_element(By.ID, "warning").text
    assert browser.find_element(By.ID, "first").text.startswith("by-a-2")
    press(browser, "xs")
    browser.find_element(By.CSS_SELECTOR, "[data-choice=first]").click()
    press(browser, "b")
    await_status(browser, "All 6 battles are done")
    press(browser, "a")  # nothing is left to vote on
    browser.find_element(By.ID, "save").click()
    path = downloads / f"votes-{page.parent.name}-1.jsonl"
    until = time.monotonic() + 30
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.1)
    votes = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    chosen = ["first", "tie", "both_bad", "skip", "first", "second"]
    assert [vote["choice"] for vote in votes] == chosen
    assert [vote["key"] for vote in votes] == [f"k{k}" for k in range(6)]
    assert [vote["shown_first"] for vote in votes] == list("ababab")
    for vote in votes:
        assert (vote["rater"], vote["rater_number"], vote["probability"]) == ("Ada", 1, 0.25)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", vote["time"])
    begin(browser, page, name="Bo", number="2")  # another rater has battles of its own
    await_status(browser, "Battle 1 of 6.")
    assert browser.find_element(By.ID, "first").text == "by-b-5"


def test_hostile_texts_are_shown_and_run_nothing(browser, page) -> None:
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    begin(browser, page)
    shown = browser.execute_script("return document.getElementById('question').textContent")
    assert shown == f"Q0 {HOSTILE}"
    inside = "return document.querySelectorAll('main img, main a, .text *').length"
    assert browser.execute_script(inside) == 0
    assert browser.execute_script("return window.hit") is None
    press(browser, "ababab")
    assert browser.execute_script("return window.hit") is None
    assert browser.get_log("browser") == []
    asked = [
        entry["message"]
        for entry in browser.get_log("performance")
        if '"Network.requestWillBeSent"' in entry["message"] and page.name not in entry["message"]
    ]
    assert [message for message in asked if '"url":"data:,' not in message] == []


@pytest.mark.parametrize("width", [1280, 320])
def test_the_page_fits_a_phone(browser, page, width) -> None:
    begin(browser, page, width=width)
    assert fits(browser, width)
    small = browser.execute_script(
        "return [...document.querySelectorAll('button, input, select')].filter(e =>"
        " e.offsetParent && e.getBoundingClientRect().height < 44).length"
    )
    assert small == 0  # WCAG 2.2, 2.5.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_rules_of_axe_core_find_no_violation(browser, page, width, scheme) -> None:
    """At the start, at a battle, at one with a warning, where all is done, and after saving."""
    show(browser, page, width=width, scheme=scheme)
    assert violations(browser) == []
    begin(browser, page, width=width, scheme=scheme)
    assert violations(browser) == []
    press(browser, "abu")
    begin(browser, page, name="Other", width=width, scheme=scheme)
    assert violations(browser) == []
    press(browser, "abtxs")
    await_status(browser, "All 6 battles are done")
    assert violations(browser) == []
    browser.find_element(By.ID, "save").click()
    assert violations(browser) == []


def test_a_screen_reader_is_told_what_is_there(browser, page) -> None:
    begin(browser, page)
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = {
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tree
        if not node["ignored"]
    }
    for role, name in [
        ("heading", "Which answer is better?"), ("region", "Question"), ("region", "Answer A"),
        ("region", "Answer B"), ("group", "Your vote"), ("button", "A is better A"),
        ("button", "Skip S"), ("progressbar", "Battles voted on"),
    ]:  # fmt: skip
        assert (role, name) in named
    assert any(role == "status" for role, _ in named)
    assert browser.switch_to.active_element.text == "Question"  # where reading goes on
    reached = []
    for _ in range(7):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.switch_to.active_element.text.split(" ")[0])
    assert reached[:5] == ["A", "B", "Tie", "Both", "Skip"]


def test_the_page_holds_no_markup_of_its_texts(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.count("<script") == 2
    assert "onerror" not in text.split('id="data">')[0]
    assert "<img" not in text
    assert "default-src 'none'" in text
    inside = text.split('id="data">')[1].split("</script>")[0]
    assert json.loads(inside) == made(page.parent.name)

"""The report in a real browser: colours, widths, sorting and silence on the console."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import fits, opened, show, violations
from report_examples import example_comparison, example_judges, write

from judgeline.report import write_report

selenium = pytest.importorskip("selenium")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with opened(tmp_path_factory.mktemp("profile"), logs=["browser", "performance"]) as one:
        yield one.driver


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(
        tmp_path_factory.mktemp("report") / "report.html",
        title="Judges of an example",
        corpus_name="Example",
        simulated=True,
        judges=example_judges(),
        provenance={"digest": "9f2c" * 16},
        comparison=example_comparison(),
    )


PRINTED = ["Leaderboard", "Judges side by side", "Provenance"]


def unfold(browser: webdriver.Chrome) -> None:
    """Open each section, but no table or battle in it."""
    browser.execute_script(
        "for (const part of document.querySelectorAll('.whole, .fold')) part.open = 1"
    )


def column(browser: webdriver.Chrome, place: int) -> list[str]:
    return browser.execute_script(
        "return [...document.querySelector('.board').tBodies[0].rows]"
        ".map(row => row.cells[arguments[0]].innerText.trim())",
        place,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_the_page_fits_its_window(browser, report, width, scheme):
    show(browser, report, width=width, scheme=scheme)
    unfold(browser)
    assert fits(browser, width)
    outside = browser.execute_script(
        "return [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, .skip')"
        " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"
    )
    assert outside == []


def test_board_and_coverage_show_their_last_columns_on_a_small_laptop(browser, report):
    show(browser, report, width=1366)
    unfold(browser)
    for table in ("board", "coverage"):
        box = browser.find_element(By.CSS_SELECTOR, f"[aria-labelledby=j1-{table}]")
        assert box.get_property("scrollWidth") == box.get_property("clientWidth"), table


@pytest.mark.parametrize("script", [True, False])
def test_a_phone_shows_rank_model_rating_and_interval_without_scrolling(browser, report, script):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
    try:
        show(browser, report, width=390)
        for board in browser.find_elements(By.CSS_SELECTOR, "main > section > .scroll .board"):
            box = board.find_element(By.XPATH, "..").rect
            for row in board.find_elements(By.TAG_NAME, "tr"):
                cells = row.find_elements(By.CSS_SELECTOR, "th, td")
                interval = cells[3].rect
                assert interval["x"] + interval["width"] <= box["x"] + box["width"], row.text
                assert cells[1].rect["width"] >= 100  # a name is more than a column of letters
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_print_has_board_and_comparison_on_three_pages(browser, report):
    show(browser, report)
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert len(re.findall(rb"/Type\s*/Page[^s]", base64.b64decode(printed))) <= 3
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = browser.execute_script("return document.querySelector('main').innerText")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert [line for line in shown.splitlines() if line in PRINTED] == PRINTED
    assert "9f2c" * 16 in shown  # provenance is printed though it is folded
    assert "Smoothed" not in shown
    assert "everything" not in shown


def folded_height(browser: webdriver.Chrome) -> int:
    return browser.execute_script("return document.documentElement.scrollHeight")


@pytest.mark.parametrize("n_judges", [1, 2])
def test_a_page_is_short_until_a_reader_unfolds_it(browser, tmp_path, n_judges):
    """Below the board there is less than three screens while all sections are folded."""
    page = tmp_path / "report.html"
    write(page, example_judges()[:n_judges])
    show(browser, page, width=1440)
    board = browser.execute_script("return document.querySelector('#j1').offsetHeight")
    assert board < folded_height(browser) < board + 2_500
    unfold(browser)
    assert folded_height(browser) > board + 5_000


def test_a_link_unfolds_what_it_leads_to_each_time(browser, report):
    show(browser, report)
    for selector, place in (
        ("#j1 a[href='#j1-quality']", "#j1-quality"),
        ("nav a[href='#provenance']", "#provenance dl"),
    ):
        link, target = (browser.find_element(By.CSS_SELECTOR, one) for one in (selector, place))
        for _ in range(2):  # the second time the address stays as it is
            assert not target.is_displayed()
            link.send_keys(Keys.ENTER)
            WebDriverWait(browser, 30).until(lambda _, target=target: target.is_displayed())
            assert (
                0
                <= browser.execute_script("return arguments[0].getBoundingClientRect().top", target)
                < browser.execute_script("return innerHeight")
            )
            browser.execute_script(
                "for (let d = arguments[0]; d; d = d.parentElement) d.open = false;", target
            )


def test_one_button_unfolds_all_but_battles_and_paper_has_what_is_unfolded(browser, report):
    show(browser, report)
    press = browser.find_element(By.CSS_SELECTOR, "nav button.unfold")
    for label, is_open in (("Fold all", True), ("Unfold all", False), ("Fold all", True)):
        press.click()
        assert press.text == label
        assert browser.execute_script(
            "return [...document.querySelectorAll('main details:not(.battle)')]"
            ".every(part => part.open === arguments[0])",
            is_open,
        )
    assert not browser.find_elements(By.CSS_SELECTOR, ".battle[open]")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = browser.execute_script("return document.querySelector('main').innerText").splitlines()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    titles = "Careful judge: everything", "Methods", "Diagnostics", "Board against board: "
    for title in titles:
        assert any(line.startswith(title) for line in shown), title


def test_the_console_and_the_network_stay_silent(browser: webdriver.Chrome, report: Path) -> None:
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # what earlier pages left
    show(browser, report)
    assert browser.get_log("browser") == []
    asked = [
        entry["message"]
        for entry in browser.get_log("performance")
        if '"Network.requestWillBeSent"' in entry["message"] and report.name not in entry["message"]
    ]
    assert [message for message in asked if '"url":"data:,' not in message] == []


def test_names_do_not_run(browser: webdriver.Chrome, report: Path) -> None:
    show(browser, report)  # an alert would raise on the next command
    assert "<script>alert(1)</script>" in column(browser, 1)


def test_battles_are_found_by_model_and_by_text(browser: webdriver.Chrome, report: Path) -> None:
    show(browser, report)
    part = browser.find_element(By.CSS_SELECTOR, "#j1-all .whole")
    assert not part.get_property("open")
    browser.find_element(By.CSS_SELECTOR, "nav a[href='#j1-all']").click()
    WebDriverWait(browser, 30).until(lambda _: part.get_property("open"))
    browser.find_element(By.CSS_SELECTOR, "#j1-battles > summary").click()
    battles = browser.find_elements(By.CSS_SELECTOR, "#j1-all .battle")
    told = browser.find_element(By.CSS_SELECTOR, "#j1-all output")
    assert told.text == f"{len(battles)} of {len(battles)} battles" == "12 of 12 battles"
    chosen = browser.find_element(By.CSS_SELECTOR, "#j1-all .filters select")
    chosen.send_keys("borealis")
    shown = [b for b in battles if b.is_displayed()]
    assert {b.get_attribute("data-model") for b in shown} == {"borealis-70b-instruct"}
    assert told.text == "4 of 12 battles"
    search = browser.find_element(By.CSS_SELECTOR, "#j1-all .filters input")
    search.send_keys("no such words")
    assert told.text == "0 of 12 battles"
    search.clear()
    search.send_keys("BORealis txet desrever")
    assert told.text == "4 of 12 battles"
    shown[0].find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert shown[0].find_element(By.CSS_SELECTOR, ".texts dd").is_displayed()


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_texts_stay_texts_inside_the_window(browser, report, width):
    show(browser, report, width=width)
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    assert browser.title == "Simulation: Judges of an example"
    texts = browser.execute_script(
        "return [...document.querySelectorAll('.texts dd')].map(e => e.textContent)"
    )
    assert any("</script><script>document.title='stolen'" in text for text in texts)
    assert any("{{ 7 * 7 }}" in text for text in texts)
    assert not [text for text in texts if {"\x1b", "\u202e", "\x00"} & set(text)]
    assert fits(browser, width)


def test_the_schemes_differ_and_drawings_follow(browser: webdriver.Chrome, report: Path) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        show(browser, report, scheme=scheme)
        seen[scheme] = browser.execute_script(
            "const style = (query) => getComputedStyle(document.querySelector(query));"
            "return [style('body').backgroundColor, style('body').color,"
            " style('figure svg text').fill]"
        )
    assert all(light != dark for light, dark in zip(*seen.values(), strict=True))
    assert seen["light"][0] == "rgb(250, 250, 248)"


def test_sorting_by_mouse_and_keyboard(browser: webdriver.Chrome, report: Path) -> None:
    show(browser, report)
    given = column(browser, 1)
    headings = browser.find_elements(By.CSS_SELECTOR, ".board thead th")
    human = headings[7].find_element(By.TAG_NAME, "button")
    human.click()
    assert headings[7].get_attribute("aria-sort") == "ascending"
    assert headings[0].get_attribute("aria-sort") is None
    ratings = column(browser, 7)
    assert ratings[:2] == ["1301", "1366"]
    assert ratings[-1] == "–"  # no rating sorts last
    human.send_keys(Keys.ENTER)
    assert headings[7].get_attribute("aria-sort") == "descending"
    assert column(browser, 7)[0] == "1672"
    assert column(browser, 7)[-1] == "–"
    headings[0].find_element(By.TAG_NAME, "button").send_keys(Keys.SPACE)
    assert column(browser, 1) == given


def test_the_table_is_whole_without_javascript(browser: webdriver.Chrome, report: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(browser, report)
        assert browser.find_elements(By.CSS_SELECTOR, ".board button") == []
        assert len(browser.find_elements(By.CSS_SELECTOR, "#j1 .board tbody tr")) == 14
        assert len(browser.find_elements(By.CSS_SELECTOR, "#j1-all .battle")) == 12
        assert not browser.find_element(By.CSS_SELECTOR, "#j1-all .filters").is_displayed()
        headings = browser.find_elements(By.CSS_SELECTOR, "#j1 .board thead th")
        assert headings[1].text == "Model"
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_rules_of_axe_core_find_no_violation(browser, report, width, scheme):
    """Names of controls, order of headings, contrast, what the keyboard reaches, and so on."""
    show(browser, report, width=width, scheme=scheme)
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    assert violations(browser) == []

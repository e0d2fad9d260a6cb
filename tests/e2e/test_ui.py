"""The web interface as a person meets it: a real run, a real server, a real browser."""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from browsing import LINEAGE, NEAR_LINEAGE, Browser
from living import Living

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(scope="module")
def served(judged: Living) -> Iterator[Living]:
    """Serve the interface over what judges have done, and check that Ctrl-C ends it all."""
    judged.start()
    yield judged
    assert judged.stop() == 130, judged.told()
    assert not judged.answers()


def test_asset_graph_shows_the_chain(browser: Browser, served: Living, tmp_path: Path) -> None:
    chain = ("raw_battles", "verdicts", "beta_folds", "heldout_ratings", "leaderboard")
    shown = browser.open(served.url + LINEAGE, *chain)
    assert "Failed to load" not in shown
    browser.open(served.url + NEAR_LINEAGE, *chain[3:])  # the whole is too small to read
    browser.photograph("lineage", tmp_path)


def test_runs_of_the_terminal_stand_on_the_overview_and_groups_can_be_read(browser, served):
    browser.open(f"{served.url}/overview", "corpus_job", "judge_job", "comparison_job")
    browser.open(f"{served.url}/groups", "corpus", "judging", "comparison", "Materialize all")
    names = browser.driver.find_elements("xpath", '//*[@data-tooltip="judging"]')
    assert max(name.rect["height"] for name in names) >= 11  # pixels


def test_leaderboard_page_shows_what_was_made(browser, served, tmp_path):
    board = json.loads(served.command("leaderboard", "--corpus", "arena", "--format", "json"))
    best, n_models = board[0]["model"], str(len({row["model"] for row in board}))
    shown = browser.open(f"{served.url}/assets/leaderboard", "evidence", "row_count", best)
    assert n_models in shown.split()
    browser.open(f"{served.url}/assets/leaderboard?{_partition()}", "[Show Markdown]")
    browser.photograph("leaderboard-asset", tmp_path)
    browser.click('(//*[normalize-space(text())="[Show Markdown]"])[2]')  # the board is first
    browser.find('//div[@role="dialog"]//img[starts-with(@src, "data:image/svg+xml")]')


def test_each_address_of_a_board_shows_it_in_the_first_screen(browser, served):
    browser.driver.set_window_size(1440, 900)
    addresses = re.findall(r"(?i)^.*\bboards?\b.* (http\S+)$", served.log.read_text(), re.M)
    assert addresses
    for address in addresses:
        browser.open(address, "Leaderboard", "sim-")
        first = browser.driver.execute_script(
            "return document.querySelector('.board tbody tr').getBoundingClientRect().bottom"
            " / innerHeight"
        )
        assert 0 < first < 0.5  # with some rows below it


def _partition() -> str:
    return urlencode({"view": "partitions", "partition": "arena|careful"})


def test_nobody_else_can_reach_it(served: Living) -> None:
    own = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for host in own - {"127.0.0.1", "127.0.1.1"}:
        with pytest.raises(OSError, match=r"refused|timed out"):
            socket.create_connection((host, served.port), timeout=2)
    with socket.socket() as probe, pytest.raises(OSError, match="in use"):
        probe.bind(("127.0.0.1", served.port))

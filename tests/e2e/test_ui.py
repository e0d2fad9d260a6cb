"""The web interface as a person meets it: a real run, a real server, a real browser."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.browser]

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
LINEAGE = "/assets/leaderboard?view=lineage&lineageDepth=10"
START_SECONDS, PAGE_SECONDS = 120, 60
CHROMIUM_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1600,1000",
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose home is new and whose arena is small."""
    config = tmp_path_factory.mktemp("config")
    shutil.copytree(ROOT / "config", config, dirs_exist_ok=True)
    _shrink(config / "corpora.yaml")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JUDGELINE_", "DAGSTER_"))}
    return {
        **kept,
        "JUDGELINE_HOME": str(tmp_path_factory.mktemp("home")),
        "JUDGELINE_CONFIG": str(config),
    }


def _shrink(corpora: Path) -> None:
    import yaml

    known = yaml.safe_load(corpora.read_text(encoding="utf-8"))
    known["arena"]["arena"] |= {"n_prompts": 100, "n_battles": 1500, "n_voted": 14, "n_new": 2}
    corpora.write_text(yaml.safe_dump(known), encoding="utf-8")


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/server_info")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _wait_until_served(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _answers(port):
        told = log.read_text(errors="replace")[-2000:]
        assert server.poll() is None, f"the server ended with {server.returncode}: {told}"
        assert time.monotonic() < deadline, f"no answer in {START_SECONDS} s: {told}"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def address(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run one judge, serve the interface over that home, and check that Ctrl-C ends it all."""
    command = [sys.executable, "-m", "pipelines"]
    materialised = subprocess.run(
        [*command, "run", "--corpus", "arena", "--judge", _a_judge()],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert materialised.returncode == 0, materialised.stdout + materialised.stderr
    port, log = _port(), tmp_path_factory.mktemp("ui") / "log"
    with log.open("wb") as sink:
        server = subprocess.Popen(
            [*command, "ui", "--port", str(port)],
            cwd=ROOT,
            env=environment,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_served(server, port, log)
        yield f"http://127.0.0.1:{port}"
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130, log.read_text(errors="replace")[-2000:]
        assert not _answers(port)
    finally:
        if server.poll() is None:
            server.terminate()  # `judgeline ui` takes its own servers along
            server.wait(60)


def _a_judge() -> str:
    from resources.judges.definitions import load_judges

    return next(slug for slug, judge in load_judges().items() if judge.kind == "builtin")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium and chromedriver here: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*CHROMIUM_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def _open(browser: Any, url: str, *expected: str) -> str:
    """Open a page, wait until its text holds everything expected, and return the text."""
    from selenium.common.exceptions import TimeoutException
    from selenium.webdriver.support.wait import WebDriverWait

    def text(driver: Any) -> str:
        return str(driver.execute_script("return document.body.innerText"))

    browser.get(url)
    try:
        WebDriverWait(browser, PAGE_SECONDS).until(lambda d: all(e in text(d) for e in expected))
    except TimeoutException:
        missing = [part for part in expected if part not in text(browser)]
        pytest.fail(f"{url} never showed {missing}; it shows: {text(browser)[:1500]}")
    return text(browser)


def _photograph(browser: Any, name: str, tmp_path: Path) -> None:
    folder = Path(os.environ.get("JUDGELINE_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    time.sleep(1)  # fonts and edges settle
    assert browser.save_screenshot(str(folder / f"{name}.png"))
    assert (folder / f"{name}.png").stat().st_size > 10_000  # a blank page is smaller


def test_asset_graph_shows_the_chain(browser: Any, address: str, tmp_path: Path) -> None:
    chain = ("raw_battles", "verdicts", "beta_folds", "heldout_ratings", "leaderboard")
    shown = _open(browser, address + LINEAGE, *chain)
    assert "Failed to load" not in shown
    _photograph(browser, "lineage", tmp_path)


def test_leaderboard_page_shows_what_was_made(
    browser: Any, address: str, environment: dict[str, str], tmp_path: Path
) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "pipelines", "leaderboard", "--corpus", "arena", "--format", "json"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    board = json.loads(printed.stdout)
    best, n_models = board[0]["model"], str(len(board))
    shown = _open(browser, f"{address}/assets/leaderboard", "n_tiers", "row_count", best)
    assert n_models in shown.split()
    _photograph(browser, "leaderboard-asset", tmp_path)


def test_nobody_else_can_reach_it(address: str) -> None:
    port = int(address.rpartition(":")[2])
    own = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for host in own - {"127.0.0.1", "127.0.1.1"}:
        with pytest.raises(OSError, match=r"refused|timed out"):
            socket.create_connection((host, port), timeout=2)
    with socket.socket() as probe, pytest.raises(OSError, match="in use"):
        probe.bind(("127.0.0.1", port))

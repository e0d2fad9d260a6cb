"""A real browser without a window: opening, reading, clicking and photographing pages."""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
LINEAGE = "/assets/leaderboard?view=lineage&lineageDepth=10"
NEAR_LINEAGE = "/assets/leaderboard?view=lineage&lineageDepth=1&lineageScope=upstream"
PAGE_SECONDS = 60
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--window-size=1600,1000",
)  # fmt: skip


class Browser:
    """Pages of one server, as a person sees them."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def text(self) -> str:
        """Everything that the page shows."""
        return str(self.driver.execute_script("return document.body.innerText"))

    def open(self, url: str, *expected: str) -> str:
        """Open a page, wait until its text holds everything expected, and return the text."""
        self.driver.get(url)
        return self.shows(*expected)

    def shows(self, *expected: str, seconds: float = PAGE_SECONDS) -> str:
        """Wait until the text of the page holds everything expected, and return the text."""
        from selenium.common.exceptions import TimeoutException

        try:
            self.until(lambda: all(part in self.text() for part in expected), seconds)
        except TimeoutException:
            missing = [part for part in expected if part not in self.text()]
            pytest.fail(
                f"{self.driver.current_url} never showed {missing}; it shows: {self.text()[:1500]}"
            )
        return self.text()

    def until(self, check: Any, seconds: float = PAGE_SECONDS) -> Any:
        """Return what `check` finds as soon as it finds something."""
        from selenium.webdriver.support.wait import WebDriverWait

        return WebDriverWait(self.driver, seconds).until(lambda _: check())

    def find(self, xpath: str, seconds: float = PAGE_SECONDS) -> Any:
        """The first element that is shown at an XPath."""
        from selenium.common.exceptions import StaleElementReferenceException, TimeoutException

        def shown() -> Any:
            try:
                found = self.driver.find_elements("xpath", xpath)
                return next((one for one in found if one.is_displayed()), None)
            except StaleElementReferenceException:
                return None

        try:
            return self.until(shown, seconds)
        except TimeoutException:
            pytest.fail(f"{self.driver.current_url} has no {xpath}; it shows: {self.text()[:2500]}")

    def click(self, xpath: str, seconds: float = PAGE_SECONDS) -> None:
        """Click what is shown at an XPath, as soon as it can be clicked."""
        from selenium.common.exceptions import (
            ElementClickInterceptedException,
            StaleElementReferenceException,
        )

        def clicked() -> bool:
            try:
                element = self.find(xpath, seconds)
                if not element.is_enabled():
                    return False
                element.click()
            except (ElementClickInterceptedException, StaleElementReferenceException):
                return False
            return True

        self.until(clicked, seconds)

    def press(self, label: str, seconds: float = PAGE_SECONDS) -> None:
        """Click the button that carries a label."""
        self.click(f"//button[contains(normalize-space(.), {quoted(label)})]", seconds)

    def photograph(self, name: str, folder: Path) -> Path:
        """Save what the window shows, in JUDGELINE_SCREENSHOTS if that is set, and return where."""
        place = Path(os.environ.get("JUDGELINE_SCREENSHOTS") or folder)
        place.mkdir(parents=True, exist_ok=True)
        time.sleep(1)  # fonts and edges settle
        path = place / f"{name}.png"
        assert self.driver.save_screenshot(str(path))
        assert path.stat().st_size > 10_000  # a blank page is smaller
        _make_small(path)
        return path


def _make_small(path: Path) -> None:
    """Keep 256 colours of a picture: enough for pages, a third of the bytes."""
    from PIL import Image

    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def show(driver: Any, page: Path, *, width: int = 1280, scheme: str = "light") -> None:
    """Show a page in a window of this width, to a person who prefers this colour scheme."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    driver.get(page.as_uri())


def fits(driver: Any, width: int) -> bool:
    """Whether the page is no wider than its window, which has this width."""
    wide, room = driver.execute_script(
        "const root = document.documentElement; return [root.scrollWidth, root.clientWidth]"
    )
    return bool(wide == room <= width)


def violations(driver: Any) -> list[tuple[str, str]]:
    """Which rules of axe-core the page breaks, and the first element that does."""
    driver.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text("utf-8"))
    found = driver.execute_async_script(
        "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(done)"
    )
    assert len(found["passes"]) > 20
    return [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]]


def quoted(text: str) -> str:
    """Return a text as an XPath literal; it must not hold double quotes."""
    assert '"' not in text, text
    return f'"{text}"'


@contextmanager
def opened(profile: Path, *flags: str, logs: Sequence[str] = ()) -> Iterator[Browser]:
    """Give a browser with a new profile that keeps some logs, or skip the test where none is."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium and chromedriver here: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, *flags, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()

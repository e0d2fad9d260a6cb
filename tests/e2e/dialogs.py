"""The interface's own dialogs, gone through click by click."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from browsing import Browser, quoted

DIALOG = '//div[@role="dialog"]'
FILTER = '//input[@placeholder="Filter partitions"]'
JUDGE_JOB = "/locations/__repository__@judgeline/jobs/judge_job"


def backfill(
    browser: Browser,
    url: str,
    partitions: Mapping[str, Sequence[str]],
    *,
    folder: Path,
    button: str = "Launch",
) -> str:
    """Launch a backfill of the judge job from its page, and return what its dialog said."""
    browser.open(url + JUDGE_JOB, "judge_job", "Materialize all")
    _open_dialog(browser, "Materialize all")
    for dimension, keys in partitions.items():
        _choose(browser, dimension, keys)
    told = browser.find(f'{DIALOG}[contains(., "Launch runs to")]').text
    browser.photograph("backfill-dialog", folder)
    browser.click(f"{DIALOG}//button[contains(normalize-space(.), {quoted(button)})]")
    return str(told)


def _open_dialog(browser: Browser, button: str) -> None:
    """Press a button until its dialog is there (early clicks get lost), and confirm if asked."""
    sure = f'{DIALOG}//button[normalize-space(.)="Confirm"]'
    title = f'{DIALOG}//*[contains(text(), "Select a partition")]'

    def is_open() -> bool:
        if not browser.driver.find_elements("xpath", DIALOG):
            browser.press(button)
            time.sleep(3)
        return bool(browser.driver.find_elements("xpath", f"{sure} | {title}"))

    browser.until(is_open)
    browser.find(f"{sure} | {title}")
    if browser.driver.find_elements("xpath", sure):
        browser.click(sure)


def _choose(browser: Browser, dimension: str, keys: Sequence[str]) -> None:
    """Open the list of one dimension's keys, tick some of them, and close the list."""
    title = f"{DIALOG}//span[normalize-space(.)={quoted(dimension)}]"

    def is_open() -> bool:
        if not browser.driver.find_elements("xpath", FILTER):
            browser.click(f'{title}/following::*[contains(text(), "Select a partition")][1]')
            time.sleep(2)  # a list may open and close again while the dialog still loads
        return bool(browser.driver.find_elements("xpath", FILTER))

    browser.until(is_open)
    for key in keys:
        named = f".//*[normalize-space(text())={quoted(key)}]"
        browser.click(f'//*[@role="menuitem"][.//input[@type="checkbox"]][{named}]')
    browser.click(f'{DIALOG}//*[contains(text(), "Launch runs to")]')
    browser.until(lambda: not browser.driver.find_elements("xpath", FILTER))

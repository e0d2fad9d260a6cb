"""What the tests of living installations share, and the fault server of the resources' tests."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "resources"))


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An installation that nothing was run in yet; JUDGELINE_E2E_STORAGE says where runs go."""
    from living import Living

    storage = os.environ.get("JUDGELINE_E2E_STORAGE") or "sqlite"
    if storage != "sqlite":
        pytest.skip(f"JUDGELINE_E2E_STORAGE={storage}: only sqlite is known")
    place = Living(tmp_path_factory.mktemp("living"))
    try:
        yield place
    finally:
        place.left()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless browser, or a skip that says how to get one."""
    from browsing import opened

    with opened(tmp_path_factory.mktemp("profile")) as one:
        yield one

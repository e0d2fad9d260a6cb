"""What the tests of living installations share."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def storage() -> Iterator[dict[str, str]]:
    """Variables that say where runs are recorded: JUDGELINE_E2E_STORAGE is sqlite or postgres."""
    chosen = os.environ.get("JUDGELINE_E2E_STORAGE") or "sqlite"
    if chosen == "sqlite":
        yield {}
    elif chosen == "postgres":
        from postgres import running

        with running() as server:
            yield server.variables()
    else:
        pytest.fail(f"JUDGELINE_E2E_STORAGE is {chosen!r}; set it to sqlite or postgres")


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory, storage: dict[str, str]) -> Iterator[Any]:
    """An installation that nothing was run in yet."""
    from living import Living

    place = Living(tmp_path_factory.mktemp("living"), variables=storage)
    try:
        yield place
    finally:
        place.left()


@pytest.fixture(scope="module")
def judged(living: Any, once: Callable[..., Path], storage: dict[str, str]) -> Any:
    """An installation in which the arena's judges have done their work; it is not served yet."""
    from living import Living

    def run(place: Living) -> None:
        place.command("run", "--corpus", "arena")

    if storage:  # a database is not copied
        run(living)
    else:
        living.take_over(once("judged", lambda folder: run(Living(folder))))
    return living


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless browser, or a skip that says how to get one."""
    from browsing import opened

    with opened(tmp_path_factory.mktemp("profile")) as one:
        yield one

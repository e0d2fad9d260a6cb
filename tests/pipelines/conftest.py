"""A tiny arena with some judges, and a way to run the lineage on it."""

import io
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from rich.console import Console

from pipelines.commands.outcome import RunOutcome
from pipelines.commands.run import run_lineage
from pipelines.instance.homes import open_instance
from resources.config.catalog import Catalog
from resources.tables.store import ParquetTables

QUIET = {
    "seed": 1,
    "noise": 0.6,
    "mood": 0.3,
    "taste": 0.4,
    "style_taste": 0.2,
    "position_bias": 0.1,
    "verbosity_bias": 0.1,
    "family_bias": 0.1,
    "malformed_rate": 0.0,
    "refusal_rate": 0.0,
    "truncated_rate": 0.0,
}
JUDGES = {
    "careful": {"kind": "builtin", "family": "cedar", "builtin": QUIET},
    "hasty": {"kind": "builtin", "family": "fern", "builtin": {**QUIET, "seed": 2, "noise": 1.2}},
    "mumbler": {"kind": "builtin", "family": "fern", "builtin": {**QUIET, "malformed_rate": 0.9}},
    "sloppy": {
        "kind": "builtin",
        "family": "fern",
        "builtin": {**QUIET, "malformed_rate": 0.02, "refusal_rate": 0.01, "truncated_rate": 0.01},
    },
    # Of this seed the slope happens to be above zero; below it there are no ratings to withhold.
    "noise": {
        "kind": "builtin",
        "family": "fern",
        "builtin": {**QUIET, "seed": 2, "noise": 9.0, "mood": 9.0},
    },
    # Of this seed it happens to be below.
    "contrary": {
        "kind": "builtin",
        "family": "fern",
        "builtin": {**QUIET, "seed": 13, "noise": 9.0, "mood": 9.0},
    },
    "recorded": {"kind": "recorded", "family": "none"},
}
TINY = {
    "display_name": "Tiny arena",
    "reader": "arena",
    "sample_size": 300,
    "judges": ["careful", "hasty"],
    "rating": {"n_resamples": 20},
    "arena": {"n_prompts": 40, "n_voted": 12, "n_new": 2, "n_battles": 400},
}


@dataclass
class Workshop:
    """A home, a configuration and an instance of its own."""

    home: Path
    instance: dg.DagsterInstance
    printed: str = ""
    tiny: dict[str, object] = field(default_factory=lambda: dict(TINY))

    @property
    def tables(self) -> ParquetTables:
        return ParquetTables(base_uri=str(self.home / "tables"))

    @property
    def judges(self) -> dict[str, dict[str, Any]]:
        """Entries of all judges; a change of one holds until it is undone."""
        return JUDGES

    @property
    def catalog(self) -> Catalog:
        corpora, judges = self.home / "corpora.yaml", self.home / "judges.yaml"
        corpora.write_text(yaml.safe_dump({"tiny": self.tiny}), encoding="utf-8")
        named = {slug: {"display_name": slug.title(), **j} for slug, j in JUDGES.items()}
        judges.write_text(yaml.safe_dump(named), encoding="utf-8")
        return Catalog(corpora_file=str(corpora), judges_file=str(judges))

    def run(self, *judges: str, corpus: str = "tiny", **options: object) -> RunOutcome:
        """Run the lineage and keep what was printed."""
        out = io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JUDGELINE_HOME", str(self.home))
            outcome = run_lineage(
                corpus=corpus,
                judges=list(judges) or None,
                instance=self.instance,
                catalog=self.catalog,
                tables=self.tables,
                console=Console(file=out, width=100),
                **options,
            )
        self.printed = out.getvalue()
        return outcome

    def files(self) -> dict[str, bytes]:
        """Every stored table by its place."""
        folder = self.home / "tables"
        found = sorted(folder.rglob("*.parquet"))
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}

    def stored(self, *place: str):
        return self.tables.create_io_manager(None).stored(*place)


@pytest.fixture(scope="module")
def make_workshop(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[], Workshop]]:
    """Make workshops, each over an instance that leaves nothing behind."""
    with ExitStack() as instances:

        def make() -> Workshop:
            instance = instances.enter_context(dg.DagsterInstance.ephemeral())
            return Workshop(tmp_path_factory.mktemp("home"), instance)

        yield make


@contextmanager
def copied(finished: Path, folder: Path) -> Iterator[Workshop]:
    """Give a workshop that goes on from a finished one: a copy of its home and of its runs."""
    shutil.copytree(finished, folder, dirs_exist_ok=True)
    told = json.loads((folder / "told.json").read_text(encoding="utf-8"))
    printed = told["printed"].replace(told["home"], str(folder))
    with kept_in(folder / "home") as instance:
        yield Workshop(folder / "home", instance, printed)


def kept_in(home: Path) -> dg.DagsterInstance:
    """Open the instance that commands with this home would."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGELINE_HOME", str(home))
        patch.delenv("DAGSTER_HOME", raising=False)
        return open_instance()


@pytest.fixture(scope="session")
def finished_home(once: Callable[..., Path]) -> Path:
    """The tiny arena as two judges rate it, run once: its home, its runs and what was printed."""

    def fill(folder: Path) -> None:
        with kept_in(folder / "home") as instance:
            workshop = Workshop(folder / "home", instance)
            outcome = workshop.run()
        assert (outcome.exit_code, outcome.errors) == (0, ()), workshop.printed
        assert outcome.judges == ("careful", "hasty")
        assert outcome.report == workshop.home / "reports" / "tiny.html"
        told = {"home": str(folder), "printed": workshop.printed}
        (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")

    return once("finished-arena", fill)


@pytest.fixture(scope="module")
def finished(finished_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """The tiny arena as two judges rated it, for the tests of a module that only look."""
    with copied(finished_home, tmp_path_factory.mktemp("finished")) as workshop:
        yield workshop


@pytest.fixture
def finished_workshop(finished_home: Path, tmp_path: Path) -> Iterator[Workshop]:
    """The same for one test, which may change it."""
    with copied(finished_home, tmp_path / "finished") as workshop:
        yield workshop


@pytest.fixture
def workshop(make_workshop: Callable[[], Workshop]) -> Workshop:
    """A fresh workshop."""
    return make_workshop()

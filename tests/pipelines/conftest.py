"""A tiny arena with some judges, and a way to run the lineage on it."""

import io
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from catalogs import catalog_of
from rich.console import Console

from assets.comparison.report import compare_methods
from assets.partitions import corpus_judge_key
from pipelines.commands.console import RunOutcome
from pipelines.commands.run import run_lineage
from pipelines.definitions import build_definitions
from pipelines.instance.homes import open_instance
from resources.arena.judge import BuiltinJudge
from resources.config.catalog import Catalog
from resources.stores import StoredVerdicts
from resources.tables.store import ParquetTables

QUIET = {
    "seed": 1, "noise": 0.6, "mood": 0.3, "taste": 0.4, "style_taste": 0.2, "position_bias": 0.1,
    "verbosity_bias": 0.1, "family_bias": 0.1, "malformed_rate": 0.0, "refusal_rate": 0.0,
    "truncated_rate": 0.0,
}  # fmt: skip
JUDGES = {
    "careful": {"kind": "builtin", "family": "cedar", "builtin": QUIET},
    "hasty": {"kind": "builtin", "family": "fern", "builtin": {**QUIET, "seed": 2, "noise": 1.2}},
    "mumbler": {"kind": "builtin", "family": "fern", "builtin": {**QUIET, "malformed_rate": 0.9}},
    "sloppy": {"kind": "builtin", "family": "fern",
     "builtin": {**QUIET, "malformed_rate": 0.02, "refusal_rate": 0.01, "truncated_rate": 0.01}},
    # Of this seed the slope happens to be above zero; below it there are no ratings to withhold.
    "noise": {"kind": "builtin", "family": "fern",
     "builtin": {**QUIET, "seed": 2, "noise": 9.0, "mood": 9.0}},
    # Of this seed it happens to be below.
    "contrary": {"kind": "builtin", "family": "fern",
     "builtin": {**QUIET, "seed": 13, "noise": 9.0, "mood": 9.0}},
    "recorded": {"kind": "recorded", "family": "none"},
}  # fmt: skip
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
        named = {slug: {"display_name": slug.title(), **j} for slug, j in JUDGES.items()}
        return catalog_of(self.home, corpora={"tiny": self.tiny}, judges=named)

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

    def run_job(
        self, name: str, judge: str | None = None, select: Any = None, **resources: Any
    ) -> dg.ExecuteInProcessResult:
        """Run a job of the lineage as the daemon would, on a judge or on the corpus."""
        definitions = build_definitions(
            catalog=self.catalog,
            tables=self.tables,
            verdict_store=StoredVerdicts(uri=str(self.home / "verdicts")),
            **resources,
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JUDGELINE_HOME", str(self.home))
            patch.delenv("JUDGELINE_CANDIDATES", raising=False)
            return definitions.resolve_job_def(name).execute_in_process(
                partition_key=corpus_judge_key("tiny", judge) if judge else "tiny",
                instance=self.instance,
                raise_on_error=False,
                asset_selection=select and [dg.AssetKey(name) for name in select],
            )

    def install(self, patch: pytest.MonkeyPatch) -> "Workshop":
        """Make it the installation that commands find; return it."""
        assert self.catalog.corpus("tiny")  # writes the configuration
        shutil.rmtree(self.home / "prompts", ignore_errors=True)  # that another test wrote
        for name in ("JUDGELINE_HOME", "JUDGELINE_CONFIG"):
            patch.setenv(name, str(self.home))
        for kind in ("CANDIDATES", "TABLES", "VERDICTS", "EMBEDDINGS"):
            patch.delenv(f"JUDGELINE_{kind}", raising=False)
        patch.delenv("DAGSTER_HOME", raising=False)
        patch.setenv("COLUMNS", "300")
        return self

    def rest(self) -> Path:
        """Let the files of candidates rest, so that they are taken as complete."""
        folder = self.home / "candidates" / "tiny"
        for path in folder.glob("*"):
            os.utime(path, (time.time() - 1000,) * 2)
        return folder

    def metadata(self, asset: str) -> dict[str, Any]:
        """What the last materialisation of an asset says."""
        event = self.instance.get_latest_materialization_event(dg.AssetKey(asset))
        return {name: one.value for name, one in event.asset_materialization.metadata.items()}

    def files(self) -> dict[str, bytes]:
        """Every stored table by its place."""
        folder = self.home / "tables"
        found = sorted(folder.rglob("*.parquet"))
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}

    def stored(self, *place: str):
        return self.tables.create_io_manager(None).stored(*place)

    def methods(self):
        """The scoring methods of all judges side by side, as the report shows them."""
        store = self.tables.create_io_manager(None)
        tables = [
            {judge: store.stored(name, "tiny", judge) for judge in store.partitions(name, "tiny")}
            for name in ("scoring_methods", "leaderboard")
        ]
        return compare_methods(self.instance, "tiny", *tables)


@pytest.fixture(scope="module")
def make_workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Workshop]]:
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
        assert (outcome.exit_code, outcome.errors) == (0, []), workshop.printed
        assert outcome.judges == ("careful", "hasty")
        assert outcome.report == workshop.home / "reports" / "tiny.html"
        assert len(outcome.made) == len(workshop.files()) + 1  # the report is no table
        told = {"home": str(folder), "printed": workshop.printed}
        (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")

    return once("finished-arena", fill)


@pytest.fixture(scope="session")
def copy_of() -> Callable[[Path, Path], AbstractContextManager[Workshop]]:
    """Go on from a finished folder in another one."""
    return copied


@pytest.fixture(scope="module")
def go_on(
    finished_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Workshop]]:
    """Make workshops in which the tiny arena was rated by two judges, for tests that go on."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(
            copied(finished_home, tmp_path_factory.mktemp("finished"))
        )


@pytest.fixture(scope="module")
def finished(go_on: Callable[[], Workshop]) -> Workshop:
    """The tiny arena as two judges rated it, for the tests of a module that only look."""
    return go_on()


@pytest.fixture
def finished_workshop(finished_home: Path, tmp_path: Path) -> Iterator[Workshop]:
    """The same for one test, which may change it."""
    with copied(finished_home, tmp_path / "finished") as workshop:
        yield workshop


@pytest.fixture
def workshop(make_workshop: Callable[[], Workshop]) -> Workshop:
    """A fresh workshop."""
    return make_workshop()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Every call that a simulated judge was asked, by battle, order and run."""
    seen: list[tuple[str, str, int]] = []
    real = BuiltinJudge.answer

    def noting(self: BuiltinJudge, presentations: Any, budget: Any) -> Iterator[Any]:
        for one, given in zip(presentations, real(self, presentations, budget), strict=False):
            seen.append((one.battle_id, one.order, one.replicate))
            yield given

    monkeypatch.setattr(BuiltinJudge, "answer", noting)
    return seen

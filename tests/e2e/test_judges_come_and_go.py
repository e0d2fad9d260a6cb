"""A judge that is added while the interface runs, backfilled, and retired: by the real daemon."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest
import yaml
from ports import free_port

from pipelines.definitions import defs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0
COMMAND = [sys.executable, "-W", "ignore", "-m", "pipelines"]


class House:
    """A small arena with two judges, in a home and a configuration of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.config = folder, folder / "config"
        shutil.copytree(ROOT / "config", self.config)
        corpora = yaml.safe_load((self.config / "corpora.yaml").read_text(encoding="utf-8"))
        arena = corpora["arena"]
        arena["arena"] |= {"n_prompts": 60, "n_battles": 600, "n_voted": 12, "n_new": 2}
        arena |= {"judges": ["careful"], "sample_size": 300, "rating": {"n_resamples": 20}}
        del arena["panel"]
        self._write("corpora", {"arena": arena})
        judges = yaml.safe_load((self.config / "judges.yaml").read_text(encoding="utf-8"))
        self.careful = {**judges["careful"], "asks": ["rubric"]}
        traits = {**self.careful["builtin"], "seed": 7}  # it fails nowhere: all is stored
        self.newcomer = {**self.careful, "display_name": "Newcomer", "builtin": traits}
        self.judges(careful=self.careful)
        foreign = ("JUDGELINE_", "DAGSTER_")
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(foreign)},
            "JUDGELINE_HOME": str(folder / "home"),
            "JUDGELINE_CONFIG": str(self.config),
            "JUDGELINE_SENSOR_SECONDS": "3",
        }

    def _write(self, name: str, entries: dict[str, Any]) -> None:
        (self.config / f"{name}.yaml").write_text(yaml.safe_dump(entries), encoding="utf-8")

    def judges(self, **entries: Any) -> None:
        self._write("judges", entries)

    def command(self, *arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def table(self, *place: str) -> pd.DataFrame:
        return pd.read_parquet(
            self.folder.joinpath("home", "tables", *place).with_suffix(".parquet")
        )

    @contextmanager
    def instance(self) -> Iterator[dg.DagsterInstance]:
        with dg.DagsterInstance.from_config(str(self.folder / "home")) as instance:
            yield instance

    def made(self) -> dict[tuple[str, str], float]:
        """When each partition of each table was last made."""
        found: dict[tuple[str, str], float] = {}
        with self.instance() as instance:
            for key in defs.resolve_asset_graph().executable_asset_keys:
                for record in instance.fetch_materializations(key, limit=1000).records:
                    found.setdefault((key.to_user_string(), record.partition_key), record.timestamp)
        return found

    def partitions(self) -> set[str]:
        with self.instance() as instance:
            return set(instance.get_dynamic_partitions("judge"))

    @contextmanager
    def served(self) -> Iterator[Callable[..., Any]]:
        """Serve the interface, as `judgeline ui` does; give a way to ask its GraphQL."""
        port = free_port()
        with (self.folder / "ui.txt").open("wb") as log:
            server = subprocess.Popen(
                [*COMMAND, "ui", "--port", str(port)],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

        def ask(query: str, **variables: Any) -> Any:
            body = json.dumps({"query": query, "variables": variables}).encode()
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/graphql", body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return json.load(answer)["data"]

        try:
            yield ask
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE:.0f} s"
        time.sleep(2)


LAUNCH = """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) {
    __typename ... on LaunchBackfillSuccess { backfillId } } }"""
STATUS = """query($b: String!) { partitionBackfillOrError(backfillId: $b) {
    ... on PartitionBackfill { status } } }"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    house = House(tmp_path_factory.mktemp("house"))
    code, told = house.command("run", "--corpus", "arena")
    assert code == 0, told
    return house


def test_a_judge_is_added_backfilled_from_both_sides_and_retired(house: House) -> None:
    before = house.made()
    code, told = house.command("backfill", "--judge", "careful", "--yes")
    assert code == 1
    assert "never seen). Start one and leave it running: judgeline ui" in " ".join(told.split())
    with house.served() as ask:
        until(lambda: house.partitions() == {"careful"}, "the daemon is at work")
        house.judges(careful=house.careful, newcomer=house.newcomer)
        until(lambda: "newcomer" in house.partitions(), "the new judge is a partition")
        code, told = house.command(
            "backfill", "--judge", "newcomer", "--corpus", "arena", "--budget", "700calls", "--yes"
        )
        assert code == 0, told
        assert "arena|newcomer: 600 calls" in told
        assert "done arena|newcomer" in told
        assert len(house.table("verdicts", "arena", "newcomer")) == 600
        after = house.made()
        moved = {name for name, when in before.items() if after[name] != when}
        assert {partition for _, partition in moved} == {"arena"}  # its comparison, no judge's
        assert {partition for _, partition in after.keys() - before.keys()} == {"arena|newcomer"}

        verdicts = [{"path": ["verdicts"]}, {"path": ["scored_battles"]}]
        launched = ask(
            LAUNCH,
            p={
                "assetSelection": verdicts,
                "partitionNames": ["arena|newcomer"],
                "tags": [{"key": "judgeline/budget", "value": "1calls"}],  # all of it is stored
            },
        )["launchPartitionBackfill"]["backfillId"]

        def ended() -> bool:
            status = ask(STATUS, b=launched)["partitionBackfillOrError"]["status"]
            assert status not in ("FAILED", "COMPLETED_FAILED", "CANCELED"), status
            return str(status).startswith("COMPLETED")

        until(ended, "the interface's backfill")
        last = house.made()
        assert last["verdicts", "arena|newcomer"] > after["verdicts", "arena|newcomer"]
        assert last["verdicts", "arena|careful"] == before["verdicts", "arena|careful"]

        house.judges(careful=house.careful)
        until(lambda: house.partitions() == {"careful"}, "the judge is retired")
        compared = lambda: set(house.table("judge_comparison", "arena")["judge"])  # noqa: E731
        until(lambda: compared() == {"careful"}, "the comparison goes on without it")
        assert len(house.table("verdicts", "arena", "newcomer")) == 600

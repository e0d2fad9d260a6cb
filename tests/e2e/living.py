"""An installation that lives: a home of its own, its configuration, and the servers over both."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from ports import HOST, free_port
from processes import Found, wait_for
from serving import answers, environment, post

from judgeline.paths import ROOT

START_SECONDS, STOP_SECONDS, COMMAND_SECONDS = 240, 60, 1800
SMALL_ARENA = {"n_prompts": 60, "n_battles": 800, "n_voted": 12, "n_new": 1}
REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": "judgeline"}

Timestamps = dict[str, dict[str, str]]
"""When each partition of each asset was last made, by asset and partition."""


class Living:
    """A home and a configuration in a new folder; `start` serves them, `stop` ends it all.
    `arena` replaces options of the built-in arena, `variables` are added to each process."""

    def __init__(
        self,
        folder: Path,
        arena: Mapping[str, Any] = SMALL_ARENA,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.home, self.config = folder / "home", folder / "config"
        self.log = folder / "ui.log"
        shutil.copytree(ROOT / "config", self.config)
        self.edit("corpora", lambda known: known["arena"]["arena"].update(arena))
        self.environment = {
            **environment(),
            **({"JUDGELINE_DATA": data} if (data := os.environ.get("JUDGELINE_DATA")) else {}),
            "JUDGELINE_HOME": str(self.home),
            "JUDGELINE_CONFIG": str(self.config),
            "JUDGELINE_SENSOR_SECONDS": "3",
            **(variables or {}),
        }
        self.port = 0
        self.server: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where the web interface is."""
        return f"http://{HOST}:{self.port}"

    def edit(self, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
        """Change a configuration file, such as `judges`, as an editor would: whole, at once."""
        path = self.config / f"{name}.yaml"
        known = yaml.safe_load(path.read_text(encoding="utf-8"))
        change(known)
        part = path.with_suffix(".part")
        part.write_text(yaml.safe_dump(known, sort_keys=False), encoding="utf-8")
        part.replace(path)

    def command(self, *arguments: str, code: int = 0) -> str:
        """Run the command line to its end, which must be this code; return what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "pipelines", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS,
        )
        assert done.returncode == code, f"{arguments}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout + (done.stderr if code else "")

    def take_over(self, folder: Path) -> None:
        """Go on from what an installation in another folder has done."""
        shutil.copytree(folder / self.home.name, self.home)

    def start(self) -> "Living":
        """Serve the web interface with its daemon on a free port; wait until it answers."""
        self.port = self.port or free_port()
        self.launch("pipelines", "ui", "--port", str(self.port))
        self.wait("the interface to answer", self._serves, START_SECONDS)
        return self

    def launch(self, module: str, *options: str, **variables: str) -> None:
        """Start a server in a session of its own, which a signal to this process does not reach."""
        with self.log.open("ab") as sink:
            self.server = subprocess.Popen(
                [sys.executable, "-m", module, *options],
                cwd=ROOT,
                env={**self.environment, **variables},
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def stop(self) -> int:
        """Interrupt the interface as Ctrl-C does, and return its exit code."""
        assert self.server is not None, "it was not started"
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGINT)
        try:
            return self.server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.server.terminate()
            return self.server.wait(STOP_SECONDS)

    def told(self) -> str:
        """The end of what the servers printed."""
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    def wait(
        self, what: str, check: Callable[[], Found], seconds: float, pause: float = 1.0
    ) -> Found:
        """Return what `check` finds as soon as it finds something."""

        def looked() -> Found:
            ended = self.server.poll() if self.server is not None else None
            assert ended is None, f"the servers ended with {ended}: {self.told()}"
            return check()

        return wait_for(what, looked, seconds, pause, self.told)

    def answers(self) -> bool:
        """Whether a web server answers on the port."""
        return answers(self.port)

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """Return the data that the interface's GraphQL answers; an error it tells of raises."""
        answer = post(self.port, query, variables)
        assert not answer.get("errors"), answer["errors"]
        data: dict[str, Any] = answer["data"]
        return data

    def _serves(self) -> bool:
        """Whether the code is loaded too: without it the first pages are empty."""
        if not self.answers():
            return False
        query = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"
        return bool(self.ask(query)["repositoriesOrError"].get("nodes"))

    # ------------------------------------------------------------------ what there is

    def keys(self, dimension: str) -> list[str]:
        """The partition keys of a dimension, `corpus` or `judge`."""
        query = """{ assetNodeOrError(assetKey: {path: ["verdicts"]}) { ... on AssetNode {
            partitionKeysByDimension { name partitionKeys } } } }"""
        dimensions = self.ask(query)["assetNodeOrError"]["partitionKeysByDimension"]
        return next(d["partitionKeys"] for d in dimensions if d["name"] == dimension)

    def timestamps(self) -> Timestamps:
        """When each partition of each asset was last made, where it ever was."""
        query = """{ assetNodes { assetKey { path } isExecutable
            latestMaterializationByPartition { partition timestamp } } }"""
        return {
            "/".join(node["assetKey"]["path"]): {
                made["partition"]: made["timestamp"]
                for made in node["latestMaterializationByPartition"]
                if made is not None and made["partition"] is not None
            }
            for node in self.ask(query)["assetNodes"]
            if node["isExecutable"]
        }

    def metadata(self, asset: str, partition: str) -> dict[str, Any]:
        """What the latest materialisation of a partition said about itself."""
        query = """query($key: AssetKeyInput!, $parts: [String!]) {
            assetNodeOrError(assetKey: $key) { ... on AssetNode {
              latestMaterializationByPartition(partitions: $parts) { metadataEntries { label
                ... on IntMetadataEntry { intValue } ... on FloatMetadataEntry { floatValue }
                ... on TextMetadataEntry { text } ... on BoolMetadataEntry { boolValue }
                ... on JsonMetadataEntry { jsonString } } } } } }"""
        node = self.ask(query, key={"path": [asset]}, parts=[partition])["assetNodeOrError"]
        made = node["latestMaterializationByPartition"][0]
        return {} if made is None else {e.pop("label"): _value(e) for e in made["metadataEntries"]}

    def checks(self, asset: str, check: str) -> list[dict[str, Any]]:
        """The executions of a check, the latest first."""
        query = """query($key: AssetKeyInput!, $name: String!) {
            assetCheckExecutions(assetKey: $key, checkName: $name, limit: 100) {
              status runId timestamp
              evaluation { success severity description partition } } }"""
        return self.ask(query, key={"path": [asset]}, name=check)["assetCheckExecutions"]

    def runs(self, **chosen: Any) -> list[dict[str, Any]]:
        """Runs, the latest first; `chosen` narrows them as in the interface's filter."""
        query = """query($filter: RunsFilter) { runsOrError(filter: $filter, limit: 1000) {
            ... on Runs { results { runId status jobName creationTime startTime endTime
              tags { key value } assetSelection { path } } } } }"""
        found = self.ask(query, filter=chosen)["runsOrError"]["results"]
        for run in found:
            run["tags"] = {tag["key"]: tag["value"] for tag in run["tags"]}
            run["assets"] = {"/".join(k["path"]) for k in run.pop("assetSelection") or ()}
        return list(found)

    def backfills(self) -> list[dict[str, Any]]:
        """Backfills, the latest first."""
        query = """{ partitionBackfillsOrError(limit: 100) { ... on PartitionBackfills {
            results { id status timestamp endTimestamp partitionNames numPartitions tags
              { key value } assetSelection { path } error { message } } } } }"""
        return list(self.ask(query)["partitionBackfillsOrError"]["results"])

    def ticks(self, sensor: str) -> list[dict[str, Any]]:
        """The evaluations of a sensor, the latest first."""
        query = """query($s: SensorSelector!) { sensorOrError(sensorSelector: $s) {
            ... on Sensor { sensorState { ticks(limit: 100) {
              timestamp endTimestamp status runIds skipReason error { message } } } } } }"""
        found = self.ask(query, s=REPOSITORY | {"sensorName": sensor})["sensorOrError"]
        assert "sensorState" in found, f"there is no sensor {sensor!r}"
        return list(found["sensorState"]["ticks"])

    # ------------------------------------------------------------------ what is waited for

    def unfinished(self) -> list[str]:
        """The ids of runs and backfills that are under way."""
        running = ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING", "MANAGED"]
        return [run["runId"] for run in self.runs(statuses=running)] + [
            b["id"] for b in self.backfills() if b["status"] in {"REQUESTED", "CANCELING"}
        ]

    def settle(self, seconds: float = 1800, sensors: Iterable[str] = ("automation",)) -> None:
        """Wait until nothing runs and every sensor has looked again and wanted nothing."""
        names = tuple(sensors)

        def settled() -> bool:
            nonlocal since
            if self.unfinished():
                since = time.time()
                return False
            return all(self._idle(name, since) for name in names)

        since = time.time()
        self.wait("everything to settle", settled, seconds, pause=2.0)

    def _idle(self, sensor: str, since: float) -> bool:
        """Whether two evaluations that began after `since` asked for nothing."""
        ended = [
            t for t in self.ticks(sensor) if t["timestamp"] > since and t["status"] != "STARTED"
        ]
        return len(ended) >= 2 and not any(tick["runIds"] for tick in ended[:2])

    def left(self) -> None:
        """End what a failed test left behind."""
        if self.server is not None and self.server.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self.stop()


def _value(entry: Mapping[str, Any]) -> Any:
    """The value of a metadata entry, whichever its type; None where it is of no type asked for."""
    if "jsonString" in entry:
        return json.loads(entry["jsonString"])
    return next(iter(entry.values()), None)

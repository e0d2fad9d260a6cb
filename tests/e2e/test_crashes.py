"""A backfill through kills of workers, services and database: no recorded call is repeated."""

import os
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import postgres
import pytest
import yaml
from deployment import Deployment, deployed
from fault_server import FaultServer, serving, shown_texts
from installation import Installation, contested, graded
from processes import is_alive, wait_for
from upath import UPath

from judgeline.judges.presentation import present
from judgeline.judges.store.verdicts import VerdictStore

pytestmark = pytest.mark.slow

JUDGES = ("j", "k")
N_BATTLES, FEW_BATTLES, CONCURRENCY, LATENCY_S = 700, 200, 4, 0.12
DOWN_S = 40  # longer than those who need the database are willing to wait for it
ASSETS = (
    "raw_battles", "quarantined_battles", "recorded_verdicts", "battles", "sampled_battles",
    "verdicts", "scored_battles", "beta_folds",
)  # fmt: skip
REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": "judgeline"}

Call = tuple[str, ...]
"""A model's name, and the texts that it was shown."""

ADD = """
mutation($repository: RepositorySelector!, $definition: String!, $key: String!) {
  addDynamicPartition(
    repositorySelector: $repository, partitionsDefName: $definition, partitionKey: $key
  ) { __typename }
}"""
LAUNCH = """
mutation($parameters: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $parameters) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}"""
STATUS = """
query($id: String!) {
  partitionBackfillOrError(backfillId: $id) {
    __typename
    ... on PartitionBackfill { status error { message } }
  }
}"""
RUNS = """
query {
  runsOrError {
    ... on Runs { results { runId status tags { key value } parentRunId } }
  }
}"""
EVENTS = """
query($id: ID!) {
  runOrError(runId: $id) {
    ... on Run { eventConnection { events {
      ... on EngineEvent { metadataEntries { label ... on TextMetadataEntry { text } } }
    } } }
  }
}"""

POOLS = """
query { instance { concurrencyLimits { concurrencyKey limit activeSlotCount } } }"""


@dataclass
class Backfill:
    """A backfill of two judges under way, what its judges were asked, and what kills cost."""

    place: Installation
    server: FaultServer
    services: Deployment
    id: str = ""
    kills: list[tuple[int, set[Call]]] = field(default_factory=list)
    n_lost: int = 0

    def launch(self) -> None:
        """Start it as the interface's dialog does."""
        for definition, keys in (("corpus", ["c"]), ("judge", JUDGES)):
            for key in keys:
                self.services.ask(ADD, repository=REPOSITORY, definition=definition, key=key)
        selection = [{"path": [name]} for name in ASSETS]
        told = self.services.ask(
            LAUNCH, parameters={"assetSelection": selection, "partitionNames": ["c"]}
        )["launchPartitionBackfill"]
        assert told["__typename"] == "LaunchBackfillSuccess", told
        self.id = told["backfillId"]

    @property
    def asked(self) -> list[Call]:
        """Every request about texts that reached the server, in order."""
        return [(body["model"], *shown_texts(body)) for body in list(self.server.presentations)]

    def needed(self) -> list[Call]:
        shown = present(contested(self.place.n_battles), 1)
        texts = [(s.instruction, s.first_completion, s.second_completion) for s in shown]
        return [(f"tiny-{judge}", *text) for judge in JUDGES for text in texts]

    def recorded(self) -> list[Call]:
        """Every verdict in the store, by what was asked."""
        texts = {(s.battle_id, s.order): s for s in present(contested(self.place.n_battles), 1)}
        store = VerdictStore(UPath(self.place.home / "verdicts"))
        found = []
        for key in store.judge_keys():
            table = store.scan(key, ["judge", "battle_id", "order"]).table.to_pandas()
            for row in table.itertuples(index=False):
                one = texts[row.battle_id, row.order]
                shown = (one.instruction, one.first_completion, one.second_completion)
                found.append((f"tiny-{row.judge}", *shown))
        return found

    def wait_for_share(self, share: float) -> None:
        """Wait until so much of everything is recorded."""
        n_wanted = share * len(self.needed())
        wait_for(f"{share:.0%} to be there", lambda: len(self.recorded()) >= n_wanted, 600)

    def count_losses(self, *judges: str) -> None:
        """Note what dead workers had recorded, and count what they asked for in vain."""
        time.sleep(1)  # what the dead had sent is read
        wait_for("answers", lambda: self.server.in_flight <= self.most_in_flight(judges), 30)
        models = {f"tiny-{judge}" for judge in judges}
        asked = self.asked
        kept = {call for call in self.recorded() if call[0] in models}
        self.kills.append((len(asked), kept))
        self.n_lost += len({call for call in asked if call[0] in models} - kept)

    def most_in_flight(self, dead: Collection[str]) -> int:
        """Requests that the living may have under way."""
        return CONCURRENCY * (len(JUDGES) - len(dead))

    def kill_worker(self, run: dict[str, Any]) -> str:
        """Kill the process of a run, and return the judge that it asked."""
        os.kill(self.worker_of(run), signal.SIGKILL)
        return judge_of(run)

    def runs(self, *statuses: str) -> list[dict[str, Any]]:
        results = self.services.ask(RUNS)["runsOrError"]["results"]
        return [run for run in results if not statuses or run["status"] in statuses]

    def worker_of(self, run: dict[str, Any]) -> int:
        """The process that works on a run."""
        events = self.services.ask(EVENTS, id=run["runId"])["runOrError"]["eventConnection"]
        pids = [
            int(entry["text"])
            for event in events["events"]
            for entry in event.get("metadataEntries", ())
            if entry["label"] == "pid"
        ]
        return pids[-1]

    def judging(self) -> list[dict[str, Any]]:
        """Runs that ask a judge at this moment."""
        return [run for run in self.runs("STARTED") if judge_of(run) in JUDGES]

    def is_readable(self) -> bool:
        """Whether the webserver answers: its connections were cut, and the first query tells."""
        try:
            return self.status() != "unknown"
        except AssertionError:
            return False

    def has_ended(self) -> bool:
        """Whether the backfill is over, however; asks seldom, since the machine is busy."""
        time.sleep(3)
        return self.status().startswith(("COMPLETED", "FAILED", "CANCELED"))

    def pools(self) -> list[dict[str, Any]]:
        """What the interface shows of pools."""
        return list(self.services.ask(POOLS)["instance"]["concurrencyLimits"])

    def status(self) -> str:
        """What has become of it; unknown while the database comes back."""
        found = self.services.ask(STATUS, id=self.id)["partitionBackfillOrError"]
        return str(found.get("status", "unknown"))


@contextmanager
def under_way(folder: Path, variables: dict[str, str], n_battles: int) -> Iterator[Backfill]:
    """Give a backfill that was just launched on an installation of its own."""
    latency = LATENCY_S * N_BATTLES / n_battles  # few take as long, so that a kill costs few
    with serving(FaultServer(answer=graded, latency_s=latency)) as server:
        judge = {"concurrency": CONCURRENCY}
        uncapped = {
            **variables,
            "JUDGELINE_BUDGET": "none",
        }  # the daemon's runs have no typed budget
        place = Installation(folder, server.url, n_battles, judge=judge, environment=uncapped)
        file = folder / "config" / "judges.yaml"
        entry = yaml.safe_load(file.read_text(encoding="utf-8"))["j"]
        both = {slug: {**entry, "model": f"tiny-{slug}"} for slug in JUDGES}
        file.write_text(yaml.safe_dump(both), encoding="utf-8")
        with deployed(folder, place.variables) as services:
            backfill = Backfill(place, server, services)
            backfill.launch()
            yield backfill


def judge_of(run: dict[str, Any]) -> str:
    """The judge of a run's partition; nothing for runs that have none."""
    tags = {tag["key"]: tag["value"] for tag in run["tags"]}
    return str(tags.get("dagster/partition", "")).rpartition("|")[2]


def leaks(folder: Path, secret: str) -> list[str]:
    """Files of an installation, and command lines of this machine, that hold a secret."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    lines = Path("/proc").glob("[0-9]*/cmdline")
    return [str(path) for path in (*files, *lines) if secret.encode() in content(path)]


def content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # a process that ended, a file that was moved
        return b""


@pytest.mark.parametrize(
    ("storage", "n_battles"),
    [
        pytest.param("sqlite", FEW_BATTLES, marks=pytest.mark.full),  # as `test_storms` kills runs
        pytest.param("sqlite", N_BATTLES, marks=pytest.mark.full),
        ("postgres", FEW_BATTLES),
        pytest.param("postgres", N_BATTLES, marks=pytest.mark.full),
    ],
)
def test_a_backfill_survives_kills_and_buys_nothing_twice(tmp_path, storage, n_battles):
    """With few battles there is time for one kill: of SQLite's services, or of the database."""
    with ExitStack() as stack:
        database = stack.enter_context(postgres.running()) if storage == "postgres" else None
        variables = database.variables() if database else {}
        backfill = stack.enter_context(under_way(tmp_path, variables, n_battles))
        services = backfill.services

        if n_battles > FEW_BATTLES:
            # A run worker, as the kernel kills when memory is short; and the daemon, at once.
            backfill.wait_for_share(0.05)
            judge = backfill.kill_worker(backfill.judging()[0])
            services.kill("daemon")
            backfill.count_losses(judge)
            services.start("daemon")

        if n_battles > FEW_BATTLES or not database:
            # The whole machine but the database: workers die with those who would notice.
            backfill.wait_for_share(0.35)
            assert backfill.judging()
            services.kill("code", "daemon", "webserver")
            backfill.count_losses(*JUDGES)
            services.start()

        if database:
            backfill.wait_for_share(0.6 if n_battles > FEW_BATTLES else 0.35)
            workers = {judge_of(run): backfill.worker_of(run) for run in backfill.judging()}
            assert workers
            database.kill()
            time.sleep(DOWN_S)
            backfill.count_losses(*(name for name, pid in workers.items() if not is_alive(pid)))
            assert leaks(tmp_path, database.password) == []
            database.start()
            wait_for("the webserver to find the database again", backfill.is_readable)
        wait_for("the backfill to end", backfill.has_ended, 600)
        assert backfill.status() == "COMPLETED_SUCCESS", backfill.runs()
        free = {"concurrencyKey": "endpoint-here", "limit": 2, "activeSlotCount": 0}
        wait_for("places of the dead", lambda: backfill.pools() == [free])

    needed, asked = backfill.needed(), backfill.asked
    assert Counter(backfill.recorded()) == Counter(needed)
    for n_before, kept in backfill.kills:
        assert not kept.intersection(asked[n_before:])  # what was recorded is never asked again
    extra = len(asked) - len(needed)
    assert extra <= backfill.n_lost
    assert (
        backfill.n_lost < len(needed) / 10
    )  # the kills came while there was work, and cost little
    say(f"{storage}: {len(asked)} requests for {len(needed)} verdicts, {extra} of them again")


def say(words: str) -> None:
    print(words)  # noqa: T201  what was counted is worth seeing with -s

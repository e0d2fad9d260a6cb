"""Places in a pool, claimed by processes that share nothing but the instance."""

import itertools
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import managed
import postgres
import pytest
import sqlalchemy

from assets.judging import pools as pool
from assets.judging.pools import claimed
from pipelines.instance.homes import open_instance

pytestmark = pytest.mark.slow

ROUNDS = 3


def become(variables: Mapping[str, str]) -> None:
    """Make this process one of the installation that the variables say, and of no other."""
    for name in [name for name in os.environ if name.startswith(("JUDGELINE_", "DAGSTER_"))]:
        del os.environ[name]
    os.environ.update(variables)


def make(variables: Mapping[str, str]) -> None:
    """Make the tables of an instance; several processes at once cannot on SQLite."""
    become(variables)
    open_instance().dispose()


def work(variables: Mapping[str, str], pool_name: str, run_id: str, written: Path) -> None:
    """Claim again and again; write down when it was inside."""
    become(variables)
    pool._LOOK_EVERY_S = 0.05
    with open_instance() as instance:
        for _ in range(ROUNDS):
            with claimed(instance, run_id, pool_name, limit=1, tell=lambda text: None):
                began = time.monotonic()
                time.sleep(0.2)
                with written.open("a", encoding="ascii") as stream:
                    stream.write(f"{began} {time.monotonic()}\n")


@pytest.fixture(scope="module")
def database() -> Iterator[Mapping[str, str]]:
    with postgres.running() as server:
        yield server.variables()


@pytest.mark.parametrize("storage", ["sqlite", "postgres", "postgres of several hosts"])
def test_two_processes_are_never_inside_together(tmp_path, request, storage):
    shared = {} if storage == "sqlite" else request.getfixturevalue("database")
    apart = storage.endswith("hosts")  # homes of their own: no file that both could lock
    fork, written = multiprocessing.get_context("spawn"), tmp_path / "spans"
    name = f"endpoint-{storage}".replace(" ", "-")  # the database outlives a test
    homes = [tmp_path / (f"home-{n}" if apart else "home") for n in range(2)]
    places = [{**shared, "JUDGELINE_HOME": str(home)} for home in homes]
    first = fork.Process(target=make, args=(places[0],))
    first.start()
    first.join(180)
    processes = [
        fork.Process(target=work, args=(place, name, f"run-{n}", written))
        for n, place in enumerate(places)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(180)
        assert process.exitcode == 0
    spans = sorted(tuple(map(float, line.split())) for line in written.read_text().splitlines())
    assert len(spans) == 2 * ROUNDS
    for (_, ended), (began, _) in itertools.pairwise(spans):
        assert ended <= began


@pytest.mark.parametrize("step", ["_allocate_concurrency_slots", "claim_concurrency_slot"])
@pytest.mark.parametrize("limit", [1, None])
def test_a_host_waits_for_one_that_gives_a_limit_or_claims_a_place(
    tmp_path: Path,
    database: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
    limit: int | None,
    step: str,
) -> None:
    """Dagster alone writes a limit twice, which fails, and gives one place to two."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    for name, value in database.items():
        monkeypatch.setenv(name, value)
    locks = sqlalchemy.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    is_inside = threading.Event()

    def enter(instance: dg.DagsterInstance, run_id: str) -> bool:
        with claimed(instance, run_id, f"new-{limit}-{step}", limit=limit, tell=lambda text: None):
            return True

    def open_at(home: Path) -> dg.DagsterInstance:
        monkeypatch.setenv("JUDGELINE_HOME", str(home))
        return open_instance()

    with open_at(tmp_path / "a") as first, open_at(tmp_path / "b") as second:
        storage = first.event_log_storage
        take_step = getattr(storage, step)

        def is_awaited() -> bool:
            with storage.index_connection() as connection:
                return bool(connection.execute(locks).scalar())

        def take_step_late(*arguments: object) -> object:
            is_inside.set()
            managed.wait_for(is_awaited, "the other host waits")
            return take_step(*arguments)

        monkeypatch.setattr(storage, step, take_step_late)
        with ThreadPoolExecutor(2) as threads:
            one = threads.submit(enter, first, "run-1")
            assert is_inside.wait(60)
            other = threads.submit(enter, second, "run-2")
            assert one.result(60)
            assert other.result(60)


def test_a_pool_of_two_lets_two_in_and_names_them_to_the_third(tmp_path, database, monkeypatch):
    for name, value in {**database, "JUDGELINE_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        raise KeyboardInterrupt  # as somebody who cancels the run

    with open_instance() as instance:
        inside = [claimed(instance, run, "endpoint-e", tell=told.append) for run in ("a", "b")]
        with inside[0], inside[1]:  # the instance file's default limit is two
            with pytest.raises(KeyboardInterrupt), claimed(instance, "c", "endpoint-e", tell=tell):
                pytest.fail("both places are taken")
            info = instance.event_log_storage.get_concurrency_info("endpoint-e")
            assert (info.slot_count, info.active_run_ids) == (2, {"a", "b"})
            assert info.pending_run_ids == set()
        info = instance.event_log_storage.get_concurrency_info("endpoint-e")
        assert info.active_run_ids == set()
    assert told == ["waiting for pool endpoint-e, held by run a, b"]

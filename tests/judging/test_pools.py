"""Slots of the pool in which servers run: never two holders at a time, always given back."""

import itertools
import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import managed
import pytest

from assets.judging import pools as pool
from assets.judging.pools import claimed

pytestmark = pytest.mark.slow

SETTINGS = """
storage:
  sqlite: {base_dir: %s/storage}
local_artifact_storage:
  module: dagster.core.storage.root
  class: LocalArtifactStorage
  config: {base_dir: %s/artifacts}
concurrency:
  pools: {default_limit: 4, granularity: op}
telemetry: {enabled: false}
"""


def open_instance(folder: Path) -> dg.DagsterInstance:
    return dg.DagsterInstance.from_config(str(folder))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "dagster.yaml").write_text(SETTINGS % (tmp_path, tmp_path), encoding="utf-8")
    monkeypatch.setattr(pool, "_LOOK_EVERY_S", 0.02)
    return tmp_path


@pytest.fixture
def instance(folder: Path) -> Iterator[dg.DagsterInstance]:
    with open_instance(folder) as instance:
        yield instance


def holders(instance: dg.DagsterInstance, name: str = "gpu") -> set[str]:
    return set(instance.event_log_storage.get_concurrency_info(name).active_run_ids)


def work(folder: Path, run_id: str, rounds: int) -> None:
    """Claim again and again; write down when it was inside."""
    with open_instance(folder) as instance:
        for _ in range(rounds):
            with claimed(instance, run_id, "gpu", limit=1, tell=lambda text: None):
                began = time.monotonic()
                time.sleep(0.05)
                with (folder / "inside").open("a", encoding="ascii") as stream:
                    stream.write(f"{began} {time.monotonic()}\n")


def inside(folder: Path) -> list[tuple[float, float]]:
    lines = (folder / "inside").read_text(encoding="ascii").splitlines()
    spans = [tuple(map(float, line.split())) for line in lines]
    return sorted((began, ended) for began, ended in spans)


def require_apart(spans: list[tuple[float, float]], n_spans: int) -> None:
    assert len(spans) == n_spans
    for (_, ended), (began, _) in itertools.pairwise(spans):
        assert ended <= began


@pytest.mark.parametrize("runs", [("run-0", "run-1"), ("run-0", "run-0")])
def test_two_threads_are_never_inside_together(folder, instance, runs):
    threads = [threading.Thread(target=work, args=(folder, run, 4)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    require_apart(inside(folder), 8)
    assert holders(instance) == set()


def test_the_pool_has_one_slot_whatever_the_default_limit_is(instance):
    with claimed(instance, "run-1", "gpu", limit=1, tell=lambda text: None):
        info = instance.event_log_storage.get_concurrency_info("gpu")
        assert (info.slot_count, info.active_run_ids) == (1, {"run-1"})


def test_a_limit_that_somebody_set_is_kept(instance):
    instance.event_log_storage.set_concurrency_slots("gpu", 2)
    with (
        claimed(instance, "run-1", "gpu", limit=1, tell=lambda text: None),
        claimed(instance, "run-2", "gpu", limit=1, tell=lambda text: None),
    ):
        assert holders(instance) == {"run-1", "run-2"}


def test_a_slot_is_given_back_after_an_error(instance):
    def fail() -> None:
        with claimed(instance, "run-1", "gpu", limit=1, tell=lambda text: None):
            assert holders(instance) == {"run-1"}
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert holders(instance) == set()


def test_giving_back_leaves_the_other_slots_of_the_run_alone(instance):
    storage = instance.event_log_storage
    storage.set_concurrency_slots("judging", 1)
    assert storage.claim_concurrency_slot("judging", "run-1", "verdicts").is_claimed
    with claimed(instance, "run-1", "gpu", limit=1, tell=lambda text: None):
        pass
    assert holders(instance, "judging") == {"run-1"}


def test_one_who_waits_is_told_for_whom_and_stops_waiting_when_interrupted(instance):
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        raise KeyboardInterrupt

    with claimed(instance, "run-1", "gpu", limit=1, tell=told.append):
        with (
            pytest.raises(KeyboardInterrupt),
            claimed(instance, "run-2", "gpu", limit=1, tell=tell),
        ):
            pytest.fail("run-1 is still inside")
        info = instance.event_log_storage.get_concurrency_info("gpu")
        assert info.pending_run_ids == set()
        assert holders(instance) == {"run-1"}
    assert told == ["waiting for pool gpu, held by run run-1"]


def test_slots_of_a_run_whose_process_died_are_freed_with_the_run(instance, folder):
    claim = claimed(instance, "run-1", "gpu", limit=1, tell=lambda text: None)
    claim.__enter__()  # and never left, as after kill -9
    instance.event_log_storage.free_concurrency_slots_for_run("run-1")  # as `recover` does
    work(folder, "run-2", 1)
    assert len(inside(folder)) == 1
    managed.wait_for(lambda: holders(instance) == set(), "the slot is free")


def claim_for_good(folder: Path, run_id: str) -> None:
    """Claim, say so, and stay until killed."""
    with open_instance(folder) as instance:

        def tell(text: str) -> None:
            (folder / f"{run_id} waits").touch()

        with claimed(instance, run_id, "gpu", limit=1, tell=tell):
            (folder / f"{run_id} holds").touch()
            time.sleep(600)


@contextmanager
def keeper(folder: Path, run_id: str, what: str) -> Iterator[multiprocessing.Process]:
    """Run another process that holds a slot, or waits for one."""
    process = multiprocessing.get_context("spawn").Process(
        target=claim_for_good, args=(folder, run_id)
    )
    process.start()
    try:
        managed.wait_for((folder / f"{run_id} {what}").exists, f"{run_id} {what}")
        yield process
    finally:
        process.kill()
        process.join()


def waiter(folder: Path, told: list[str], done: threading.Event) -> threading.Thread:
    def wait() -> None:
        with (
            open_instance(folder) as instance,
            claimed(instance, "late", "gpu", limit=1, tell=told.append),
        ):
            done.set()

    return threading.Thread(target=wait, daemon=True)


def test_one_who_waits_gets_the_slot_of_a_holder_that_is_killed_meanwhile(folder, instance):
    told: list[str] = []
    done = threading.Event()
    with keeper(folder, "run-1", "holds") as process:
        thread = waiter(folder, told, done)
        thread.start()
        managed.wait_for(lambda: told, "the wait is told")
        assert told == ["waiting for pool gpu, held by run run-1"]
        assert not done.wait(0.5)  # many looks: it lives, and keeps its slot
        process.kill()
        managed.wait_for(done.is_set, "the slot of the dead is taken")
    thread.join()
    assert told[1:] == ["the process of run run-1 is gone; its place in pool gpu is free"]
    assert holders(instance) == set()
    assert list((folder / "artifacts" / "pools").iterdir()) == []


def test_one_who_is_killed_in_the_queue_is_passed_over(folder, instance):
    with (
        claimed(instance, "run-1", "gpu", limit=1, tell=lambda text: None),
        keeper(folder, "run-2", "waits"),
    ):
        assert holders(instance) == {"run-1"}
    done = threading.Event()
    thread = waiter(folder, [], done)  # the free slot is meant for the one who died
    thread.start()
    managed.wait_for(done.is_set, "the slot goes to the one who lives")
    thread.join()


def test_a_slot_that_another_program_holds_is_left_alone(folder, instance):
    storage = instance.event_log_storage
    storage.set_concurrency_slots("gpu", 1)
    assert storage.claim_concurrency_slot("gpu", "theirs", "training").is_claimed
    done = threading.Event()
    thread = waiter(folder, [], done)
    thread.start()
    assert not done.wait(0.5)
    storage.free_concurrency_slots_for_run("theirs")
    managed.wait_for(done.is_set, "the slot is free")
    thread.join()


def test_an_instance_in_memory_has_nobody_to_share_with():
    with (
        dg.DagsterInstance.ephemeral() as instance,
        claimed(instance, "run-1", "gpu", limit=1, tell=lambda text: None),
        claimed(instance, "run-2", "gpu", limit=1, tell=lambda text: None),
    ):
        assert not instance.event_log_storage.supports_global_concurrency_limits

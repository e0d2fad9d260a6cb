"""Sensors rest while nothing that they look at changes, and end their rest when it does."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._daemon import asset_daemon, controller, sensor

from assets.partitions import register
from pipelines.instance import daemon

STEP_S = 5.0  # between two questions of the daemon


@dg.op
def nothing() -> None: ...


class World:
    """A home whose clock the test moves, and what the daemon asks in it."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.instance, self.now, self.rest = instance, 1000.0, daemon.Rest()
        self.config, self.dropped = folder / "config", folder / "candidates"
        self.states: dict[str, Any] = {}
        (self.config / "local").mkdir(parents=True)
        (self.config / "corpora.yaml").write_text("a: 1\n")

    def awake(self, seconds: float = 2 * daemon.LOOK_EVERY_S) -> float:
        """For how many of the next seconds sensors look."""
        looks = 0
        for _ in range(int(seconds / STEP_S)):
            self.now += STEP_S
            looks += self.rest.is_over(self.instance)
        return looks * STEP_S

    def state(self, kind: str, cursor: str) -> None:
        """Have a sensor of a kind come to a cursor."""
        data = SimpleNamespace(sensor_type=sensor.SensorType[kind], cursor=cursor)
        self.states[kind] = SimpleNamespace(
            instigator_name=kind, status="RUNNING", instigator_data=data
        )

    def drop(self, text: str) -> None:
        folder = self.dropped / "arena"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "new.jsonl").write_text(text)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with dg.DagsterInstance.ephemeral() as instance:
        here = World(tmp_path, instance)
        monkeypatch.setenv("JUDGELINE_CONFIG", str(here.config))
        monkeypatch.setenv("JUDGELINE_CANDIDATES", str(here.dropped))
        monkeypatch.setattr(daemon, "time", SimpleNamespace(monotonic=lambda: here.now))
        known = lambda **_: [*here.states.values()]  # noqa: E731
        monkeypatch.setattr(instance, "all_instigator_state", known)
        yield here


def at_rest(world: World) -> World:
    """The world when sensors have come to rest."""
    assert world.awake(daemon.AWAKE_S) == daemon.AWAKE_S  # they look from the start
    assert world.awake(60) <= daemon.LOOK_EVERY_S
    assert world.awake(60) == 0
    return world


def run(world: World) -> None:
    job = dg.JobDefinition(name="job", graph_def=dg.GraphDefinition(name="g", node_defs=[nothing]))
    assert job.execute_in_process(instance=world.instance).success


def read_again(world: World) -> None:
    world.dropped.joinpath("arena", "new.jsonl").chmod(0o644)


CHANGES: dict[str, Callable[[World], Any]] = {
    "a file is dropped": lambda w: w.drop("two\n"),
    "a file may be read": read_again,
    "a file is gone": lambda w: w.dropped.joinpath("arena", "new.jsonl").unlink(),
    "an edit": lambda w: w.config.joinpath("corpora.yaml").write_text("a: 22\n"),
    "an entry": lambda w: w.config.joinpath("local", "judges.yaml").write_text("b: 1\n"),
    "a run": run,
    "a partition": lambda w: register(w.instance, corpora=["c"]),
    "a cursor": lambda w: w.state("RUN_STATUS", "2"),
    "a switch": lambda w: vars(w.states["STANDARD"]).update(status="STOPPED"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_ends_the_rest_within_a_look_and_is_followed(world: World, change) -> None:
    world.drop("one\n")
    world.dropped.joinpath("arena", "new.jsonl").chmod(0o600)
    world.state("RUN_STATUS", "1")
    world.state("STANDARD", "1")
    change(at_rest(world))
    begun = world.awake(daemon.LOOK_EVERY_S + STEP_S)
    assert begun >= STEP_S
    assert begun + world.awake(daemon.AWAKE_S + daemon.REST_S / 2) == daemon.AWAKE_S


def test_nothing_rests_while_a_run_is_under_way(world: World) -> None:
    run_of = world.instance.create_run_for_job(
        dg.JobDefinition(name="job", graph_def=dg.GraphDefinition(name="g", node_defs=[nothing]))
    )
    assert world.awake(3 * daemon.AWAKE_S) == 3 * daemon.AWAKE_S
    world.instance.report_run_failed(run_of)
    at_rest(world)


def test_conditions_count_their_looks_and_that_ends_no_rest(world: World) -> None:
    world.state("AUTOMATION", "1")
    world.state("AUTO_MATERIALIZE", "1")
    at_rest(world).state("AUTO_MATERIALIZE", "2")
    assert world.awake() == 0


def test_a_rest_ends_now_and_then(world: World) -> None:
    found = at_rest(world).awake(10 * daemon.REST_S)
    assert 9 * daemon.LOOK_EVERY_S <= found <= 10 * (daemon.LOOK_EVERY_S + STEP_S)


def test_files_elsewhere_are_looked_at_always(world: World, monkeypatch) -> None:
    monkeypatch.setenv("JUDGELINE_CANDIDATES", "memory://candidates")
    assert world.awake(3 * daemon.AWAKE_S) == 3 * daemon.AWAKE_S


def test_what_rests_is_what_dagster_calls(monkeypatch) -> None:
    """The contract with Dagster: an upgrade shows here."""
    loop = inspect.getsource(sensor.execute_sensor_iteration_loop)
    assert "yield from execute_sensor_iteration(\n                workspace_process_context" in loop
    core = inspect.getsource(asset_daemon.AssetDaemon.core_loop)
    assert "self._run_iteration_impl(\n                        workspace_process_context" in core
    assert "AssetDaemon(" in inspect.getsource(controller.create_daemon_of_type)
    assert "RELOAD_WORKSPACE_INTERVAL:" in inspect.getsource(
        controller.DagsterDaemonController.check_workspace_freshness
    )
    monkeypatch.setattr(daemon, "REST", SimpleNamespace(is_over=lambda _: False))
    context: Any = SimpleNamespace(instance=None)
    assert [*daemon.iteration(context)] == []
    assert daemon.RestingAutomation._run_iteration_impl(SimpleNamespace(), context) is None  # type: ignore[arg-type]

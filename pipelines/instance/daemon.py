"""The daemon of the interface: Dagster's own, whose sensors rest while nothing changes.

    python -m pipelines.instance.daemon run --workspace workspace.yaml

Dagster has every sensor look at its intervals, and each look is a request to the code server and
a dozen transactions. Here one cheap look at all that sensors look at goes before theirs.
"""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.scheduler.instigation import InstigatorState, InstigatorType
from dagster._daemon import asset_daemon, controller, sensor
from dagster._daemon.cli import main as daemon_main

from judgeline.paths import candidates_uri, config_dir, votes_uri
from pipelines.instance.homes import UNFINISHED
from pipelines.instance.internals import backfill_at_work, watch_seldom
from pipelines.sensors.durations import sensor_seconds

LOOK_EVERY_S = 10.0
AWAKE_S = 5.0 * max(sensor_seconds(), 30)
"""How long after a change sensors look at their intervals: some changes need a later look."""
REST_S = 20.0 * sensor_seconds()
"""After how much rest sensors look though nothing changed: some wait for time to pass."""
RELOAD_S = 600
"""After how long the daemon fetches the definitions anew, which change with the server only."""


def stamps(folder: str | Path) -> Any:
    """Return the files below a folder with their sizes and times of change, rights included.

    A place that is no folder of this machine has changed at every look.
    """
    if "://" in str(folder):
        return time.monotonic()
    paths = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
    return {path: _stamp(path) for path in paths}


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ctime_ns, found.st_size, found.st_ino


def looked_at(instance: dg.DagsterInstance) -> Any:
    """Return what sensors look at: events, partitions, backfills, files, and their own states."""
    states = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    return (
        instance.event_log_storage.get_maximum_record_id(),
        [instance.get_dynamic_partitions(name) for name in ("corpus", "judge")],
        backfill_at_work(instance),
        [stamps(folder) for folder in (config_dir(), candidates_uri(), votes_uri())],
        {state.instigator_name: _of_sensor(state) for state in states},
    )


def _of_sensor(state: InstigatorState) -> tuple[Any, ...]:
    """Return whether a sensor runs, and its cursor; that of conditions counts its looks."""
    kind = getattr(state.instigator_data, "sensor_type", None)
    counts_looks = kind is None or kind.is_handled_by_asset_daemon
    return state.status, None if counts_looks else getattr(state.instigator_data, "cursor", None)


class Rest:
    """The rest of sensors: it begins `AWAKE_S` after the last change, and ends with the next."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: Any = None
        self._rests_from = self._looks_at = 0.0

    def is_over(self, instance: dg.DagsterInstance) -> bool:
        """Return whether sensors are to look now; asked by several threads, every 5 s each."""
        now = time.monotonic()
        with self._lock:
            if now >= self._looks_at:
                self._looks_at = now + LOOK_EVERY_S
                self._look(instance, now)
            return now < self._rests_from

    def _look(self, instance: dg.DagsterInstance, now: float) -> None:
        seen = looked_at(instance)
        runs = instance.get_run_ids(dg.RunsFilter(statuses=UNFINISHED), limit=1)
        if runs or seen != self._seen:
            self._seen, self._rests_from = seen, now + AWAKE_S
        elif now >= self._rests_from + REST_S:
            self._rests_from = now + LOOK_EVERY_S


class RestingAutomation(asset_daemon.AssetDaemon):
    """Dagster's daemon of automation conditions, which rests as sensors do."""

    def _run_iteration_impl(
        self, workspace_process_context: Any, *arguments: Any, **options: Any
    ) -> None:
        if REST.is_over(workspace_process_context.instance):
            super()._run_iteration_impl(workspace_process_context, *arguments, **options)


REST = Rest()
_over_sensors = sensor.execute_sensor_iteration


def iteration(context: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
    """Yield from Dagster's iteration over sensors, unless they rest."""
    if REST.is_over(context.instance):
        yield from _over_sensors(context, *arguments, **options)


def main() -> None:
    """Run a command of Dagster's daemon, with sensors that rest."""
    over_sensors: Any = sensor
    over_all: Any = controller
    over_sensors.execute_sensor_iteration = iteration
    over_all.AssetDaemon = RestingAutomation
    controller.RELOAD_WORKSPACE_INTERVAL = RELOAD_S
    watch_seldom()
    daemon_main()


if __name__ == "__main__":
    main()

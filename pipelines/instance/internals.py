"""Parts of Dagster that are not its public interface, for the commands and sensors.

`tests/pipelines/instance/test_internals.py` is the contract: an upgrade of Dagster shows there.
"""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph as AssetGraph
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.definitions.data_version import CODE_VERSION_TAG as CODE_VERSION_TAG
from dagster._core.definitions.data_version import (
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    SKIP_PARTITION_DATA_VERSION_DEPENDENCY_THRESHOLD,
    get_input_data_version_tag,
)
from dagster._core.definitions.events import AssetKeyPartitionKey
from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.execution.backfill import (
    BULK_ACTION_TERMINAL_STATUSES as BULK_ACTION_TERMINAL_STATUSES,
)
from dagster._core.execution.backfill import BulkActionsFilter, PartitionBackfill
from dagster._core.execution.backfill import BulkActionStatus as BulkActionStatus
from dagster._core.remote_origin import InProcessCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.utils import make_new_backfill_id
from dagster._grpc import server_watcher

MODULE, LOCATION = "pipelines.definitions", "judgeline"
"""The code that is served, and its name there; as in workspace.yaml."""

_NO_VERSION = {DEFAULT_DATA_VERSION.value, hashlib.sha256(b"").hexdigest()}


@contextmanager
def shown_with_jobs(instance: dg.DagsterInstance, job: str) -> Iterator[None]:
    """Have runs of a job that this process makes belong to it on all pages of the interface.

    Those pages ask for the runs of a repository, which a run executed in a process lacks.
    """
    target = LoadableTargetOrigin(module_name=MODULE)
    place = InProcessCodeLocationOrigin(target, location_name=LOCATION)
    origin = RemoteRepositoryOrigin(place, SINGLETON_REPOSITORY_NAME).get_job_origin(job)
    create: Any = instance.create_run_for_job
    placed: Any = instance
    placed.create_run_for_job = partial(create, remote_job_origin=origin)
    try:
        yield
    finally:
        del placed.create_run_for_job


def watch_seldom() -> None:
    """Have this process ask every ten seconds, not each, whether the code server is another one."""
    server_watcher.WATCH_INTERVAL = 10


def launch_backfill(
    instance: dg.DagsterInstance,
    graph: AssetGraph,
    targets: Iterable[tuple[dg.AssetKey, str]],
    tags: Mapping[str, str],
    title: str,
) -> str:
    """Hand a backfill of tables and partitions to the daemon of an instance; return its id.

    GraphQL cannot name the tables of each judge: docs/decisions.md, 12.
    """
    wanted = {AssetKeyPartitionKey(key, partition) for key, partition in targets}
    backfill = PartitionBackfill.from_asset_graph_subset(
        backfill_id=make_new_backfill_id(),
        backfill_timestamp=time.time(),
        tags=dict(tags),
        dynamic_partitions_store=instance,
        asset_graph_subset=AssetGraphSubset.from_asset_partition_set(wanted, graph),
        title=title,
        description=None,
        run_config=None,
    )
    instance.add_backfill(backfill)
    return str(backfill.backfill_id)


def backfill_at_work(instance: dg.DagsterInstance) -> str:
    """Return the id of a backfill that is under way; empty text where none is."""
    statuses = [BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING]
    found = instance.get_backfills(filters=BulkActionsFilter(statuses=statuses), limit=1)
    return found[0].backfill_id if found else ""


def data_version(instance: dg.DagsterInstance, key: dg.AssetKey, partitions: Iterable[str]) -> str:
    """Return the version of an input, made of those of its partitions as Dagster makes it."""
    partitions = list(partitions)
    if len(partitions) >= SKIP_PARTITION_DATA_VERSION_DEPENDENCY_THRESHOLD:
        event = instance.get_latest_materialization_event(key)
        tags = event.asset_materialization.tags if event and event.asset_materialization else {}
        return _known((tags or {}).get(DATA_VERSION_TAG, ""))
    found = instance.event_log_storage.get_latest_tags_by_partition(
        key,
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        [DATA_VERSION_TAG],
        asset_partitions=partitions,
    )
    versions = [tags[DATA_VERSION_TAG] for _, tags in sorted(found.items())]
    return _known(hashlib.sha256("".join(versions).encode()).hexdigest())


def input_version(tags: Mapping[str, str], parent: dg.AssetKey) -> str:
    """Return the version of an input that a table was made by, from its tags."""
    return _known(tags.get(get_input_data_version_tag(parent), ""))


def _known(version: str) -> str:
    """Return a version, one text for all ways of saying that there is none."""
    return "" if version in _NO_VERSION else version

"""The table of contents of the lineage: assets, checks, jobs, sensors and resources."""

import functools
from collections.abc import Mapping
from itertools import chain
from pkgutil import iter_modules
from typing import Any

import dagster as dg

import assets
from assets.checks import steps_of_checks
from judgeline.judges.budget import Budget
from pipelines.instance.homes import in_process_on_named_host
from pipelines.jobs import JOBS
from pipelines.sensors.candidates import new_candidates, new_votes, place_candidates
from pipelines.sensors.durations import RUNNING
from pipelines.sensors.messages import tell_of_failures, tell_of_successes
from pipelines.sensors.partitions import configured_partitions
from pipelines.sensors.upkeep import lost_runs, old_evaluations, weekly_pruning
from pipelines.sensors.weekly import drift_watch, refreshed_corpora, weekly_refresh
from resources.config.catalog import Catalog
from resources.stores import StoredEmbeddings, StoredVerdicts
from resources.tables.store import ParquetTables

automation = dg.AutomationConditionSensorDefinition(
    "automation",
    target=dg.AssetSelection.all(),
    **RUNNING,
    description="Remakes what follows when its inputs change and their blocking checks pass.",
)
SENSORS = (
    automation,
    configured_partitions,
    lost_runs,
    new_candidates,
    new_votes,
    old_evaluations,
    place_candidates,
    refreshed_corpora,
    tell_of_failures,
    tell_of_successes,
)
SCHEDULES = (drift_watch, weekly_pruning, weekly_refresh)
"""What runs by itself. `verdicts` carries no condition: it costs money, so that only a person, a
schedule or a sensor that names it asks for it."""


@functools.cache
def _lineage() -> dict[str, Any]:
    """Return the checks and every asset, in the group that bears the name of its folder."""
    folders = [folder.name for folder in iter_modules(assets.__path__) if folder.ispkg]
    load = dg.load_assets_from_package_name
    loaded = chain.from_iterable(load(f"assets.{name}", group_name=name) for name in folders)
    return {"assets": [*loaded], "asset_checks": steps_of_checks()}


def build_definitions(
    *,
    catalog: Catalog | None = None,
    tables: ParquetTables | None = None,
    verdict_store: StoredVerdicts | None = None,
    budget: Budget | None = None,
    loggers: Mapping[str, dg.LoggerDefinition] | None = None,
    **resources: Any,
) -> dg.Definitions:
    """Return the lineage over the given resources, or over those of this installation."""
    tables = tables or ParquetTables()
    return dg.Definitions(
        **_lineage(),
        jobs=JOBS,
        sensors=SENSORS,
        schedules=SCHEDULES,
        executor=in_process_on_named_host,
        loggers=loggers,
        resources={
            "catalog": catalog or Catalog(),
            "io_manager": tables,
            "verdict_store": verdict_store or StoredVerdicts(),
            "embedding_store": StoredEmbeddings(),
            "budget": budget or Budget(),
            **resources,
        },
    )


defs = build_definitions()

"""Sensors and schedules of the lineage.

One sensor keeps cheap tables up to date; what each asset waits for stands beside it. `verdicts`
carries no condition: it costs money, so that only a person, a schedule or a sensor that names it
asks for it.
"""

import dagster as dg

from pipelines.sensors.candidates import new_candidates
from pipelines.sensors.drift import drift_watch
from pipelines.sensors.durations import sensor_seconds
from pipelines.sensors.log_retention import old_evaluations, weekly_pruning
from pipelines.sensors.lost_runs import lost_runs
from pipelines.sensors.partitions import configured_partitions
from pipelines.sensors.placing import place_candidates
from pipelines.sensors.refresh import refreshed_corpora, weekly_refresh

automation = dg.AutomationConditionSensorDefinition(
    "automation",
    target=dg.AssetSelection.all(),
    minimum_interval_seconds=sensor_seconds(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Remakes what follows when its inputs change and their blocking checks pass.",
)
SENSORS = (
    automation,
    configured_partitions,
    lost_runs,
    new_candidates,
    old_evaluations,
    place_candidates,
    refreshed_corpora,
)
SCHEDULES = (
    drift_watch,
    weekly_pruning,
    weekly_refresh,
)

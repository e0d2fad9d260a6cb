"""Retention of step logs and of evaluations of automation conditions.

Events are the lineage: nothing here touches them.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from pipelines.sensors.durations import whole_number

VARIABLE = "JUDGELINE_LOG_DAYS"
DEFAULT_DAYS = 90
EVALUATIONS_KEPT = timedelta(minutes=10)
"""How long it can be seen which condition was true of which partition: each tick that did something
leaves a hundred kilobytes for each table, and Dagster keeps them for 30 days."""
_PAGE = 500
_FINISHED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]


@dg.op(description="Deletes what steps of runs printed that ended long ago.")
def prune_compute_logs(context: dg.OpExecutionContext) -> None:
    """Delete the captured output of runs that ended more than JUDGELINE_LOG_DAYS ago."""
    days = kept_days()
    cutoff = datetime.now(UTC) - timedelta(days=days)
    n_runs = prune(context.instance, cutoff)
    context.log.info(f"deleted what {n_runs:,} runs printed that ended more than {days} days ago")
    context.add_output_metadata({"runs": n_runs, "kept_days": days})


@dg.job(
    name="prune_logs",
    description=f"Deletes captured logs of runs that ended {VARIABLE} ({DEFAULT_DAYS}) days ago.",
)
def prune_logs() -> None:
    """Delete captured logs of runs that ended long ago."""
    prune_compute_logs()


weekly_pruning = dg.ScheduleDefinition(
    name="weekly_pruning",
    job=prune_logs,
    cron_schedule="30 3 * * 0",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Deletes captured logs that are old, on Sundays at night.",
)


@dg.sensor(
    minimum_interval_seconds=120,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Deletes what automation conditions came to more than ten minutes ago.",
)
def old_evaluations(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Delete the evaluations of automation conditions that are older than `EVALUATIONS_KEPT`."""
    before = datetime.now(UTC) - EVALUATIONS_KEPT
    storage = context.instance.schedule_storage
    if storage is not None and storage.supports_auto_materialize_asset_evaluations:
        storage.purge_asset_evaluations(before.timestamp())
    return dg.SkipReason(f"evaluations from before {before:%Y-%m-%d %H:%M} UTC are gone")


def kept_days() -> int:
    """Return the days for which captured logs are kept: JUDGELINE_LOG_DAYS, or 90."""
    return whole_number(VARIABLE, DEFAULT_DAYS, "days")


def prune(instance: dg.DagsterInstance, cutoff: datetime) -> int:
    """Delete the captured output of runs that ended before a moment; return how many those are.

    Runs that had theirs deleted before count again: their events are still there.
    """
    n_runs = 0
    for run_id in _ended_before(instance, cutoff):
        instance.compute_log_manager.delete_logs(prefix=[run_id])
        n_runs += 1
    return n_runs


def _ended_before(instance: dg.DagsterInstance, cutoff: datetime) -> Iterator[str]:
    cursor = None
    wanted = dg.RunsFilter(statuses=_FINISHED, created_before=cutoff)
    while records := instance.get_run_records(wanted, limit=_PAGE, cursor=cursor):
        for record in records:
            ended = record.end_time or record.update_timestamp.timestamp()
            if ended < cutoff.timestamp():
                yield record.dagster_run.run_id
        cursor = records[-1].dagster_run.run_id

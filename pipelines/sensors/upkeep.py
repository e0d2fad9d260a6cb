"""Upkeep: lost runs, forgotten attempts and old logs. Events are the lineage: none is deleted."""

from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster import DefaultRunLauncher

from assets.judging.budgets import is_typed
from pipelines.instance.homes import ENDED, recover
from pipelines.instance.storage import delete_logs_of_ticks
from pipelines.sensors.durations import sensor_seconds, whole_number

ASKED_TAG = "judgeline/retry-asked"
"""Tag with the id of a run, since runs take over tags, for which an attempt was asked for twice."""
VARIABLE = "JUDGELINE_LOG_DAYS"
DEFAULT_DAYS = 90
EVALUATIONS_KEPT = timedelta(minutes=10)
"""How long it can be seen which condition was true of which partition: each tick that did something
leaves a hundred kilobytes for each table, and Dagster keeps them for 30 days."""
_LEFT_TO_THE_DAEMON = timedelta(seconds=60)
_LOOKED_BACK = timedelta(days=1)


@dg.sensor(
    minimum_interval_seconds=2 * sensor_seconds(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Fails runs of this host whose process is gone, so that they are tried again.",
)
def lost_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Fail the runs whose process is gone; the instance's run retries start them again.

    Run monitoring looks after other launchers; runs of Dagster's default one it cannot see.
    """
    instance = context.instance
    forgotten = ask_again(instance, datetime.now(UTC) - _LEFT_TO_THE_DAEMON)
    again = f"; asked again for another attempt of {', '.join(forgotten)}" if forgotten else ""
    if not isinstance(instance.run_launcher, DefaultRunLauncher):
        launcher = type(instance.run_launcher).__name__
        return dg.SkipReason(f"run monitoring watches the runs of {launcher}{again}")
    gone = recover(instance)
    failed = f"failed {', '.join(gone)}" if gone else "no run of this host lost its process"
    return dg.SkipReason(failed + again)


def ask_again(instance: dg.DagsterInstance, before: datetime) -> list[str]:
    """Report once more the failed runs whose promised retry was not made; return those runs' ids.

    Dagster's daemon passes over a run whose state is written a moment later than its failure.
    """
    promised = dg.RunsFilter(
        statuses=[dg.DagsterRunStatus.FAILURE],
        tags={"dagster/will_retry": "true"},
        updated_after=before - _LOOKED_BACK,
        updated_before=before,
    )
    forgotten = []
    for run in instance.get_runs(promised):
        is_asked = run.tags.get(ASKED_TAG) == run.run_id
        if is_asked or "dagster/auto_retry_run_id" in run.tags or is_typed(run):
            continue
        instance.add_run_tags(run.run_id, {ASKED_TAG: run.run_id})
        instance.report_run_failed(run, "The attempt that was to follow did not: it is due again.")
        forgotten.append(run.run_id)
    return forgotten


@dg.op(description="Deletes what steps of runs printed that ended long ago.")
def prune_compute_logs(context: dg.OpExecutionContext) -> None:
    """Delete the captured output of runs that ended more than JUDGELINE_LOG_DAYS ago."""
    days = kept_days()
    n_runs = prune(context.instance, datetime.now(UTC) - timedelta(days=days))
    context.log.info(f"deleted what {n_runs:,} runs printed that ended more than {days} days ago")
    context.add_output_metadata({"runs": n_runs, "kept_days": days})


@dg.job(
    name="prune_logs",
    description=f"Deletes logs of runs and ticks older than {VARIABLE} ({DEFAULT_DAYS}) days.",
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
    """Delete captured output of runs that ended, and logs of ticks, before a moment; count runs."""
    ended = instance.get_run_ids(dg.RunsFilter(statuses=[*ENDED], updated_before=cutoff))
    for run_id in ended:
        instance.compute_log_manager.delete_logs(prefix=[run_id])
    delete_logs_of_ticks(instance.compute_log_manager, cutoff.timestamp())
    return len(ended)

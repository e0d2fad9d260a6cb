"""The sensor that finds runs whose process was killed together with whoever watched it.

It also finds runs whose further attempt was forgotten: Dagster's daemon looks once, when the
failure is recorded, and passes over a run whose state is written a moment later than its event.
"""

from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster import DefaultRunLauncher

from pipelines.instance.homes import recover
from pipelines.sensors.durations import sensor_seconds

_LEFT_TO_THE_DAEMON = timedelta(seconds=60)
ASKED_TAG = "judgeline/retry-asked"
"""Tag with the id of a run for which another attempt was asked for twice; there is no third time.

The id, since a run takes over the tags of the one it follows.
"""

_WILL_RETRY, _RETRIED_AS = "dagster/will_retry", "dagster/auto_retry_run_id"
_LOOKED_BACK = timedelta(days=1)


@dg.sensor(
    minimum_interval_seconds=2 * sensor_seconds(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Fails runs of this host whose process is gone, so that they are tried again.",
)
def lost_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Fail the runs whose process is gone; the instance's run retries start them again.

    The server that launched a run notices when its process ends, unless it ended too. Run
    monitoring looks after runs of other launchers; those of Dagster's default one it cannot see.
    """
    instance = context.instance
    forgotten = ask_again(instance, datetime.now(UTC) - _LEFT_TO_THE_DAEMON)
    again = f"; asked again for another attempt of {', '.join(forgotten)}" if forgotten else ""
    if not isinstance(instance.run_launcher, DefaultRunLauncher):
        launcher = type(instance.run_launcher).__name__
        return dg.SkipReason(f"run monitoring watches the runs of {launcher}{again}")
    gone = recover(instance)
    told = f"failed {', '.join(gone)}" if gone else "no run of this host lost its process"
    return dg.SkipReason(told + again)


def ask_again(instance: dg.DagsterInstance, before: datetime) -> list[str]:
    """Report once more the failures whose promised attempt nobody made; return those runs' ids."""
    promised = dg.RunsFilter(
        statuses=[dg.DagsterRunStatus.FAILURE],
        tags={_WILL_RETRY: "true"},
        updated_after=before - _LOOKED_BACK,
        updated_before=before,
    )
    forgotten = []
    for run in instance.get_runs(promised):
        is_settled = _RETRIED_AS in run.tags or run.tags.get(ASKED_TAG) == run.run_id
        if is_settled or not _is_launched(run):  # the daemon cannot start what a terminal ran
            continue
        instance.add_run_tags(run.run_id, {ASKED_TAG: run.run_id})
        instance.report_run_failed(run, "The attempt that was to follow did not: it is due again.")
        forgotten.append(run.run_id)
    return forgotten


def _is_launched(run: dg.DagsterRun) -> bool:
    return run.remote_job_origin is not None

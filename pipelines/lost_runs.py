"""The sensor that finds runs whose process was killed together with whoever watched it."""

import dagster as dg
from dagster import DefaultRunLauncher

from pipelines.instance import recover

EVERY_S = 60


@dg.sensor(
    minimum_interval_seconds=EVERY_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Fails runs of this host whose process is gone, so that they are tried again.",
)
def lost_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Fail the runs whose process is gone; the instance's run retries start them again.

    The server that launched a run notices when its process ends, unless it ended too. Run
    monitoring looks after runs of other launchers; those of Dagster's default one it cannot see.
    """
    instance = context.instance
    if not isinstance(instance.run_launcher, DefaultRunLauncher):
        launcher = type(instance.run_launcher).__name__
        return dg.SkipReason(f"run monitoring watches the runs of {launcher}")
    gone = recover(instance)
    told = f"failed {', '.join(gone)}" if gone else "no run of this host lost its process"
    return dg.SkipReason(told)

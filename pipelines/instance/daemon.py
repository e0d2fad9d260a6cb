"""The daemon: Dagster's own, which looks at backfills as often as at sensors.

Dagster looks at them every 30 seconds, of which a backfill of one judge waits for three.

    python -m pipelines.instance.daemon run --workspace workspace.yaml
"""

import logging
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.execution import asset_backfill
from dagster._core.storage.tags import BACKFILL_ID_TAG
from dagster._daemon import controller
from dagster._daemon.cli import main as dagster_main
from dagster._daemon.sensor import MIN_INTERVAL_LOOP_TIME

_LOOK_TAKES_S = 60.0  # at most

runs_are_complete = asset_backfill.backfill_runs_are_complete


def runs_were_complete(backfill: str, instance: dg.DagsterInstance, log: logging.Logger) -> bool:
    """Return whether the runs of a backfill were over before Dagster began to look at its tables.

    Dagster looks at tables first and at runs last. Where the retry of a failed run ends in
    between, its tables would count as failed for ever: the next look knows better.
    """
    if not runs_are_complete(backfill, instance, log):
        return False
    own = {BACKFILL_ID_TAG: backfill}
    failed = dg.RunsFilter(tags=own, statuses=[dg.DagsterRunStatus.FAILURE])
    began = datetime.now(UTC) - timedelta(seconds=_LOOK_TAKES_S)
    just = dg.RunsFilter(tags=own, updated_after=began)
    return not (instance.get_runs(failed, limit=1) and instance.get_runs(just, limit=1))


def main() -> None:
    """Run a command of Dagster's daemon."""
    controller.DEFAULT_DAEMON_INTERVAL_SECONDS = MIN_INTERVAL_LOOP_TIME
    asset_backfill.backfill_runs_are_complete = runs_were_complete
    dagster_main()


if __name__ == "__main__":
    main()

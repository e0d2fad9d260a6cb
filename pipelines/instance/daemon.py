"""The daemon: Dagster's own, which looks at backfills as often as at sensors.

Dagster looks at them every 30 seconds, of which a backfill of one judge waits for three.

    python -m pipelines.instance.daemon run --workspace workspace.yaml
"""

from dagster._daemon import controller
from dagster._daemon.cli import main as dagster_main
from dagster._daemon.sensor import MIN_INTERVAL_LOOP_TIME


def main() -> None:
    """Run a command of Dagster's daemon."""
    controller.DEFAULT_DAEMON_INTERVAL_SECONDS = MIN_INTERVAL_LOOP_TIME
    dagster_main()


if __name__ == "__main__":
    main()

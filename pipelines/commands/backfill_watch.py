"""Progress of a backfill that the daemon runs: a line per run and state, and the end."""

import time
from collections.abc import Iterator

import dagster as dg
from dagster._core.execution.backfill import BULK_ACTION_TERMINAL_STATUSES, BulkActionStatus
from rich.console import Console

from assets.judging.asking import PROGRESS
from judgeline.terminal import plain
from pipelines.commands.console import blocked, cause, progress_bar
from pipelines.commands.outcome import FailedCheck

_STATES = {
    dg.DagsterRunStatus.QUEUED: ("wait", "dim", "waits for its turn"),
    dg.DagsterRunStatus.STARTED: ("run", "cyan", "started"),
    dg.DagsterRunStatus.SUCCESS: ("done", "green", "done"),
    dg.DagsterRunStatus.FAILURE: ("FAIL", "bold red", "failed"),
    dg.DagsterRunStatus.CANCELED: ("stop", "yellow", "cancelled"),
}
_LAST_WORDS = 30  # events looked at for how far a judge is


class Watcher:
    """Follows a backfill until it ends.

    Parameters
    ----------
    instance, backfill_id : DagsterInstance, str
        The backfill.
    console : rich Console
        Where to print.
    n_expected : int
        Runs that it is expected to take.
    """

    def __init__(
        self, instance: dg.DagsterInstance, backfill_id: str, console: Console, n_expected: int
    ) -> None:
        self._instance, self._id, self._console = instance, backfill_id, console
        self._seen: dict[str, dg.DagsterRunStatus] = {}
        self._progress = progress_bar(console)
        self._task = self._progress.add_task("waiting for the daemon", total=n_expected)

    def follow(self, pause: float = 2.0) -> BulkActionStatus:
        """Print a line when a run changes its state, look every `pause` seconds; return the end."""
        with self._progress:
            while True:
                backfill = self._instance.get_backfill(self._id)
                status = backfill.status if backfill else BulkActionStatus.FAILED
                self._look()
                if status in BULK_ACTION_TERMINAL_STATUSES:
                    return status
                time.sleep(pause)

    def failures(self) -> tuple[list[FailedCheck], list[str]]:
        """Return the checks that failed in the last runs of each partition, and what could not run.

        A run that was retried counts by its last retry.
        """
        checks: list[FailedCheck] = []
        errors: list[str] = []
        runs = self._runs()
        repeated = {run.parent_run_id for run in runs}
        for run in (run for run in runs if run.run_id not in repeated):
            checks += self._failed_checks(run)
            if run.status == dg.DagsterRunStatus.FAILURE:
                errors += self._errors(run)
        backfill = self._instance.get_backfill(self._id)
        if backfill is not None and backfill.error is not None:
            errors.append(f"the backfill itself: {' '.join(backfill.error.message.split())}")
        return checks, errors

    def _runs(self) -> list[dg.DagsterRun]:
        runs = self._instance.get_runs(dg.RunsFilter(tags={"dagster/backfill": self._id}))
        return list(reversed(runs))

    def _look(self) -> None:
        runs = self._runs()
        for run in runs:
            if self._seen.get(run.run_id) != run.status:
                self._seen[run.run_id] = run.status
                self._tell(run)
        ended = [run for run in runs if run.status == dg.DagsterRunStatus.SUCCESS]
        self._progress.update(self._task, completed=len(ended))
        for run in runs:
            if run.status == dg.DagsterRunStatus.STARTED and self._console.is_terminal:
                self._progress.update(self._task, description=plain(self._last_word(run)))

    def _tell(self, run: dg.DagsterRun) -> None:
        if run.status not in _STATES:
            return
        mark, style, told = _STATES[run.status]
        again = " again" if run.parent_run_id and told == "started" else ""
        n_assets = len(run.asset_selection or ())
        self._console.print(
            f"  [{style}]{mark:<4}[/] {plain(partition_of(run))}: {told}{again}"
            f" ({n_assets} tables, run {run.run_id[:8]})",
            highlight=False,
            soft_wrap=True,
        )

    def _last_word(self, run: dg.DagsterRun) -> str:
        records = self._instance.get_records_for_run(
            run.run_id, limit=_LAST_WORDS, ascending=False
        ).records
        for record in records:
            message = record.event_log_entry.user_message
            if message.startswith(PROGRESS):
                return message.removeprefix(PROGRESS)
        return partition_of(run)

    def _failed_checks(self, run: dg.DagsterRun) -> Iterator[FailedCheck]:
        for event in self._events(run, dg.DagsterEventType.ASSET_CHECK_EVALUATION):
            found = event.asset_check_evaluation_data
            if not found.passed:
                yield FailedCheck(
                    found.asset_key.to_user_string(),
                    found.check_name,
                    partition_of(run),
                    found.severity == dg.AssetCheckSeverity.ERROR,
                    found.description or "",
                )

    def _errors(self, run: dg.DagsterRun) -> list[str]:
        failures = list(self._events(run, dg.DagsterEventType.STEP_FAILURE))
        if not failures:
            events = list(self._events(run, dg.DagsterEventType.RUN_FAILURE))
            told = events[-1].message if events else "its process ended"
            return [f"{partition_of(run)}: {told}"]
        return [
            f"{event.step_key} of {partition_of(run)}: {cause(event)}"
            for event in failures
            if not blocked(event)
        ]

    def _events(self, run: dg.DagsterRun, kind: dg.DagsterEventType) -> Iterator[dg.DagsterEvent]:
        for record in self._instance.get_records_for_run(run.run_id, of_type=kind).records:
            yield record.event_log_entry.dagster_event


def partition_of(run: dg.DagsterRun) -> str:
    """Return the partition that a run makes, as people write it."""
    return run.tags.get("dagster/partition", "no partition")

"""The code server: Dagster's own, with workers forked after all imports.

A worker that starts anew imports for seconds before it does anything.

    python -m pipelines.instance.codeserver api grpc --module-name pipelines.definitions ...
"""

from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerContext
from typing import Any

from dagster._cli import main as dagster_main
from dagster._grpc import server

from pipelines.instance.homes import compute_in_one_thread
from pipelines.instance.owned import Worker

PRELOADED = [
    "pipelines.definitions",
    "pipelines.instance.storage",
    "great_expectations.expectations",
]
"""What a worker needs: the lineage, its storage, and what its first check imports."""


class Workers(ForkServerContext):
    """The fork server, with workers that end with it."""

    Process = Worker  # type: ignore[assignment]


class ForkingServer(server.DagsterApiServer):
    """Dagster's server of definitions and runs; its workers come from Python's fork server.

    The fork server is a process of its own without threads, begun by the first run.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._pids: dict[str, int | None] = {}
        super().__init__(*arguments, **options)
        self._mp_ctx = Workers()
        self._mp_ctx.set_forkserver_preload(PRELOADED)

    def _check_for_orphaned_runs(self) -> None:
        """Name a helper that was killed, and begin it anew, before runs are looked after."""
        if self._is_another("_pid", resource_tracker._resource_tracker):
            self._logger.warning("The resource tracker ended by itself; it begins anew.")
        if self._is_another("_forkserver_pid", forkserver._forkserver):
            self._logger.warning("The fork server ended by itself, with its runs; it begins anew.")
        super()._check_for_orphaned_runs()

    def _is_another(self, pid: str, helper: Any) -> bool:
        """Return whether a helper of Python's is another than before; if it ended, begin it."""
        if getattr(helper, pid) is not None:
            helper.ensure_running()
        before, self._pids[pid] = self._pids.get(pid), getattr(helper, pid)
        return before not in (None, self._pids[pid])


def main() -> None:
    """Run a command of Dagster, with our server in the place of its code server."""
    compute_in_one_thread()
    server.DagsterApiServer = ForkingServer
    dagster_main()


if __name__ == "__main__":
    main()

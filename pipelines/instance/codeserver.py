"""The code server: Dagster's own, with workers forked after all imports.

A worker that starts anew imports for seconds before it does anything.

    python -m pipelines.instance.codeserver api grpc --module-name pipelines.definitions ...
"""

import multiprocessing
from typing import Any

from dagster._cli import main as dagster_main
from dagster._grpc import server

from pipelines.instance.homes import compute_in_one_thread

PRELOADED = [
    "pipelines.definitions",
    "pipelines.instance.storage",
    "great_expectations.expectations",
]
"""What a worker needs: the lineage, its storage, and what its first check imports."""


class ForkingServer(server.DagsterApiServer):
    """Dagster's server of definitions and runs; its workers come from Python's fork server.

    The fork server is a process of its own without threads, begun by the first run.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._mp_ctx = multiprocessing.get_context("forkserver")
        self._mp_ctx.set_forkserver_preload(PRELOADED)


def main() -> None:
    """Run a command of Dagster, with our server in the place of its code server."""
    compute_in_one_thread()
    server.DagsterApiServer = ForkingServer
    dagster_main()


if __name__ == "__main__":
    main()

"""The web interface of this installation: Dagster's, on the loopback address only."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from types import FrameType

from rich.console import Console

from pipelines.instance import open_instance, prepare_home, recover
from resources.paths import ROOT, home, tables_uri

HOST = "127.0.0.1"  # there is no login: never listen to the network
LINEAGE = "/assets/leaderboard?view=lineage&lineageDepth=10"
_PATIENCE = 15.0  # seconds that the servers get to stop in their own way


def serve(port: int, console: Console) -> int:
    """Serve the web interface until it is stopped, and return the exit code.

    Parameters
    ----------
    port : int
        Port on the loopback address.
    console : rich Console
        Where to say what to open.

    Raises
    ------
    ValueError
        If the port is taken, or the instance cannot be opened.
    """
    _require_free(port)
    with open_instance() as instance:
        for run_id in recover(instance):
            console.print(f"Run {run_id} had lost its process: it is failed, and tried again")
    console.print(f"Lineage, checks and runs of {home()}", soft_wrap=True)
    console.print(f"Open [bold]http://{HOST}:{port}{LINEAGE}[/bold]", soft_wrap=True)
    console.print(
        "It takes some twenty seconds to start. No login, this machine only; Ctrl-C stops."
    )
    server = subprocess.Popen(  # noqa: S603 - our own interpreter, arguments that are not a shell's
        _command(port), cwd=ROOT, env=_environment(), start_new_session=True
    )
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return 1 if server.wait() else 0
    finally:
        _stop(server)


def _command(port: int) -> list[str]:
    workspace = str(ROOT / "workspace.yaml")
    serving = ["dev", "--host", HOST, "--port", str(port), "--workspace", workspace]
    return [sys.executable, "-W", "ignore", "-m", "dagster", *serving, "--log-level", "warning"]


def _environment() -> dict[str, str]:
    """Return this environment with the home spelt out for every process of the interface."""
    return {
        **os.environ,
        "DAGSTER_HOME": str(prepare_home().absolute()),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "JUDGELINE_HOME": str(home()),
        "JUDGELINE_TABLES": tables_uri(),
    }


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ValueError(
                f"port {port} on {HOST} is taken ({error.strerror}); stop what listens there or "
                f"choose another: judgeline ui --port {port + 1 if port < 65535 else 3000}"
            ) from error


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _stop(server: "subprocess.Popen[bytes]") -> None:
    """End the servers: the one we started first, then whatever of its group is left."""
    try:
        with suppress(subprocess.TimeoutExpired):
            server.send_signal(signal.SIGINT)
            server.wait(_PATIENCE)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()

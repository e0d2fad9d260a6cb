"""The web interface of this installation: Dagster's, guarded, on the loopback address only."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from rich.console import Console

from assets.judging.budgets import default_cap_text
from judgeline.paths import ROOT, home, tables_uri
from pipelines.instance import owned
from pipelines.instance.guard import allowed_hosts
from pipelines.instance.homes import open_instance, prepare_home, recover
from pipelines.sensors.durations import sensor_seconds
from resources.webhook import who_is_told

HOST = "127.0.0.1"  # there is no login: never listen to the network
MODULE, LOCATION = "pipelines.definitions", "judgeline"
LINEAGE = "/assets/leaderboard?view=lineage&lineageDepth=10"
_PATIENCE_S = 10.0  # that the servers get to stop in their own way
_LOOK_EVERY_S = 0.2


def serve(port: int, console: Console) -> int:
    """Serve the web interface until it is stopped, and return the exit code."""
    sensor_seconds()  # a wrong one is said here, rather than by the interface later
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ValueError(
                f"port {port} on {HOST} is taken ({error.strerror}); stop what listens there or "
                f"choose another: judgeline ui --port {port + 1 if port < 65535 else 3000}"
            ) from error
    allowed_hosts()
    told = who_is_told()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with open_instance() as instance:
        for run_id in recover(instance):
            console.print(f"Run {run_id} had lost its process: it is failed, and tried again")
    console.print(f"Lineage, checks and runs of {home()}", soft_wrap=True)
    console.print(f"Open [bold]http://{HOST}:{port}{LINEAGE}[/bold]", soft_wrap=True)
    console.print(default_cap_text(), soft_wrap=True)
    console.print(told, soft_wrap=True)
    console.print(
        "It takes some twenty seconds to start. No login, this machine only; Ctrl-C stops."
    )
    with _running(port) as servers:
        while all(server.poll() is None for server in servers.values()):
            time.sleep(_LOOK_EVERY_S)
        ended = next(name for name, server in servers.items() if server.poll() is not None)
    console.print(f"The {ended} ended by itself, so everything was stopped. Start it again.")
    return 1


@contextmanager
def _running(port: int) -> Iterator[dict[str, owned.Process]]:
    """Start the servers, the one of the code first; stop them all in the end."""
    servers: dict[str, owned.Process] = {}
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(prepare_home().absolute()),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "JUDGELINE_HOME": str(home()),
        "JUDGELINE_TABLES": tables_uri(),
    }
    start = partial(owned.start, folder=ROOT, environment=environment)
    with TemporaryDirectory(prefix="judgeline-") as folder:
        address, workspace = Path(folder, "code"), Path(folder, "workspace.yaml")
        server = {"socket": str(address), "location_name": LOCATION}
        places = yaml.safe_dump({"load_from": [{"grpc_server": server}]})
        workspace.write_text(places, encoding="utf-8")
        code = ("--module-name", MODULE, "--location-name", LOCATION)  # as in workspace.yaml
        at = ("--working-directory", str(ROOT), "--socket", str(address))
        with_logs = ("--inject-env-vars-from-instance", "--log-level", "warning")
        using = ("--workspace", str(workspace), "--log-level", "warning")
        serving = ("--host", HOST, "--port", str(port), "--dagster-log-level", "warning")
        try:
            server_of_code = ("pipelines.instance.codeserver", "code-server", "start")
            servers["code server"] = start(*server_of_code, *code, *at, *with_logs)
            with socket.socket(socket.AF_UNIX) as probe:
                while servers["code server"].poll() is None and probe.connect_ex(str(address)):
                    time.sleep(_LOOK_EVERY_S)
            servers["web server"] = start("pipelines.instance.webserver", *serving, *using)
            servers["daemon"] = start("dagster._daemon", "run", *using)
            yield servers
        finally:
            owned.stop(servers.values(), _PATIENCE_S)

"""The web interface of this installation: Dagster's, guarded, on the loopback address only."""

import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from rich.console import Console

from assets.judging.budgets import default_cap_text
from judgeline.paths import (
    BOARD_PLACE,
    GROUPS_PAGE,
    REPORT_PAGES,
    ROOT,
    home,
    readable_home_message,
    tables_uri,
)
from judgeline.terminal import plain
from pipelines.instance import owned
from pipelines.instance.guard import allowed_hosts
from pipelines.instance.homes import open_instance, prepare_home, recover
from pipelines.instance.internals import LOCATION, MODULE
from pipelines.sensors.durations import sensor_seconds
from resources.webhook import who_is_told_text

HOST = "127.0.0.1"  # there is no login: never listen to the network
_N_REPORTS = 3  # the newest
_PATIENCE_S = 5.0  # that the servers get to stop in their own way; a container's stop waits ten
_REQUEST_SECONDS = "180"  # a busy machine may take over a minute to start a run, Dagster's limit
_BEGINS_EVERY_S, _LOOK_EVERY_S = 0.2, 1.0  # whether a server listens, or has ended
_DESCRIPTORS = 65_536
_WEB = "web server"


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
    told = who_is_told_text()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with open_instance() as instance:
        for run_id in recover(instance):
            console.print(f"Run {run_id} had lost its process: it is failed, and tried again")
    console.print(f"Lineage, checks and runs of {home()}", soft_wrap=True)
    for what, path in pages():
        console.print(f"{what:<13} [bold]http://{HOST}:{port}{path}[/bold]", soft_wrap=True)
    console.print(default_cap_text(), soft_wrap=True)
    console.print(told, soft_wrap=True)
    if open_home := readable_home_message():
        console.print(f"[yellow]Note[/]: {plain(open_home)}", soft_wrap=True)
    console.print(
        "It takes some twenty seconds to start. No login, this machine only; Ctrl-C stops."
    )
    raise_descriptor_limit()
    with _running(port) as running:
        ended = running.first_ended(console)
    console.print(f"The {ended} ended by itself, so everything was stopped. Start it again.")
    return 1


def pages() -> list[tuple[str, str]]:
    """Return the pages to open first, and their paths: reports, their boards, tables by group.

    A report of scoring methods alone has no board.
    """
    reports = sorted((home() / "reports").glob("*.html"), key=lambda file: -file.stat().st_mtime)
    named = []
    for file in reports[:_N_REPORTS]:
        page = f"{REPORT_PAGES}/{file.name}"
        named.append(("Report", page))
        if f'id="{BOARD_PLACE}"' in file.read_text(encoding="utf-8"):
            named.append(("Its board", f"{page}#{BOARD_PLACE}"))
    return [*named, ("Groups", GROUPS_PAGE)]


def raise_descriptor_limit() -> None:
    """Let this process and its servers open as many files as the system allows, if not endless."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@dataclass
class _Running:
    """The servers by name, how to start the web server, and where it listens."""

    servers: dict[str, owned.Process]
    start_web: Callable[[], owned.Process]
    port: int

    def first_ended(self, console: Console) -> str:
        """Wait until a server ends, and return its name; a web server that served begins anew."""
        has_served = False
        while True:
            if not has_served and _listens(socket.AF_INET, (HOST, self.port)):
                console.print("It answers.")
                has_served = True
            ended = [name for name, one in self.servers.items() if one.poll() is not None]
            if ended == [_WEB] and has_served:
                console.print("The web server ended by itself; it begins anew, and runs go on.")
                self.servers[_WEB], has_served = self.start_web(), False
            elif ended:
                return ended[0]
            time.sleep(_LOOK_EVERY_S)


def _listens(family: int, address: Any) -> bool:
    with socket.socket(family) as probe:
        return probe.connect_ex(address) == 0


@contextmanager
def _running(port: int) -> Iterator[_Running]:
    """Start the servers, the one of the code first; stop them all in the end."""
    servers: dict[str, owned.Process] = {}
    environment = {
        "DAGSTER_GRPC_TIMEOUT_SECONDS": _REQUEST_SECONDS,
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
        code = ("--module-name", MODULE, "--location-name", LOCATION)
        at = ("--working-directory", str(ROOT), "--socket", str(address))
        how = ("--inject-env-vars-from-instance", "--lazy-load-user-code", "--log-level", "warning")
        using = ("--workspace", str(workspace), "--log-level", "warning")
        serving = ("--host", HOST, "--port", str(port), "--dagster-log-level", "warning")
        try:
            server_of_code = ("pipelines.instance.codeserver", "api", "grpc")
            servers["code server"] = start(*server_of_code, *code, *at, *how)
            while servers["code server"].poll() is None and not _listens(
                socket.AF_UNIX, str(address)
            ):
                time.sleep(_BEGINS_EVERY_S)
            start_web = partial(start, "pipelines.instance.webserver", *serving, *using)
            servers[_WEB] = start_web()
            servers["daemon"] = start("pipelines.instance.daemon", "run", *using)
            yield _Running(servers, start_web, port)
        finally:
            owned.stop(servers.values(), _PATIENCE_S)

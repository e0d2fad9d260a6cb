"""The services of deploy/compose.yaml as processes of this machine, to be killed and restarted."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from ports import free_port
from processes import wait_for
from serving import answers, environment, post

from judgeline.paths import ROOT

SERVICES = ("code", "webserver", "daemon")
PATIENCE_S = 180.0
LOOKED_AFTER_OFTEN = {"poll_interval_seconds": 3, "free_slots_after_run_end_seconds": 5}
_PORTS = {"4000": "JUDGELINE_CODE_PORT", "3000": "WEBSERVER_PORT"}


@dataclass
class Deployment:
    """Code location, webserver and daemon by the commands of the compose file, on loopback."""

    folder: Path
    variables: Mapping[str, str]
    _processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    _ports: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ports = {name: free_port() for name in _PORTS.values()}
        compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
        self._commands = {name: compose["services"][name]["command"] for name in SERVICES}

    @property
    def environment(self) -> dict[str, str]:
        ports = {name: str(port) for name, port in self._ports.items()}
        return {
            **environment(),
            **self.variables,
            "DAGSTER_HOME": self.variables["JUDGELINE_HOME"],
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "JUDGELINE_CODE_HOST": "127.0.0.1",
            "JUDGELINE_SENSOR_SECONDS": "3",
            "PYTHONPATH": str(ROOT),
            **ports,
        }

    def prepare(self) -> None:
        """Write the instance file as every command of ours does; runs are looked after sooner."""
        script = "from pipelines.instance.homes import prepare_home; prepare_home()"
        foreign = {"DAGSTER_HOME": ""}
        subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, env=self.environment | foreign, check=True
        )
        file = Path(self.variables["JUDGELINE_HOME"]) / "dagster.yaml"
        settings = yaml.safe_load(file.read_text(encoding="utf-8"))
        settings["run_monitoring"] |= LOOKED_AFTER_OFTEN
        file.write_text(yaml.safe_dump(settings), encoding="utf-8")

    def start(self, *names: str) -> None:
        """Start services, all by default, and wait until they answer."""
        for name in names or SERVICES:
            self._processes[name] = self._started(name)
            if name == "code":
                listens = partial(self._listens, "JUDGELINE_CODE_PORT")
                wait_for("the code location to listen", listens, PATIENCE_S)
        if "webserver" in (names or SERVICES):
            wait_for("the webserver to answer", self._is_served, PATIENCE_S)

    def kill(self, *names: str) -> None:
        """Kill services with all their processes, run workers of the code location included."""
        for name in names:
            process = self._processes.pop(name)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)

    def stop(self) -> None:
        """End everything that was started."""
        self.kill(*self._processes)

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """Data that the webserver answers; after a database's kill each connection fails once."""
        for _ in range(10):
            told = post(self._ports["WEBSERVER_PORT"], query, variables)
            if "server closed the connection" not in str(told.get("errors", "")):
                break
        assert "errors" not in told, told["errors"]
        return dict(told["data"])

    def _started(self, name: str) -> "subprocess.Popen[bytes]":
        command = [self._localised(word) for word in self._commands[name]]
        programs = Path(sys.executable).parent
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [str(programs / command[0]), *command[1:]],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _localised(self, word: str) -> str:
        if word in _PORTS:
            return str(self._ports[_PORTS[word]])
        return "127.0.0.1" if word == "0.0.0.0" else word  # noqa: S104  what containers listen on

    def _listens(self, port: str) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._ports[port])) == 0

    def _is_served(self) -> bool:
        """Whether the webserver answers; a service that ended starts again, as in compose."""
        for name, process in list(self._processes.items()):
            if process.poll() is not None:
                self._processes[name] = self._started(name)
        return answers(self._ports["WEBSERVER_PORT"])


@contextlib.contextmanager
def deployed(folder: Path, variables: Mapping[str, str]) -> Iterator[Deployment]:
    """Give the services of an installation, running; end them all in the end."""
    services = Deployment(folder, variables)
    services.prepare()
    try:
        services.start()
        yield services
    finally:
        services.stop()

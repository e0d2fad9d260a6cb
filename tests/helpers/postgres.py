"""A PostgreSQL server of Debian's packages for a test, with data, port and password of its own."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg2
import pytest
from ports import HOST, free_port
from processes import left_after

DATABASE, USER = "judgeline", "judge"
_SERVER_USER = "postgres"  # who runs the server when the tests run as root, which it refuses
_PATIENCE_S = 60.0
_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
password_encryption = 'scram-sha-256'
max_connections = 200
shared_buffers = '32MB'
"""


def binaries() -> Path:
    """The folder of the newest server's programs, or a skip that says what is missing."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    if not found:
        pytest.skip("no PostgreSQL server here: apt-get install postgresql (`make postgresql`)")
    if os.geteuid() == 0 and not (shutil.which("setpriv") and _server_ids()):
        pytest.skip(f"root cannot run PostgreSQL, and there is no setpriv or user {_SERVER_USER!r}")
    return found[-1].parent


def _version(initdb: Path) -> int:
    return int(initdb.parents[1].name)


def _server_ids() -> tuple[int, int] | None:
    try:
        entry = pwd.getpwnam(_SERVER_USER)
    except KeyError:
        return None
    return entry.pw_uid, entry.pw_gid


@dataclass
class Server:
    """A server that this process started, in a folder that its user owns."""

    folder: Path
    programs: Path
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: f"pw:/@%{secrets.token_hex(12)}")
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def variables(self) -> dict[str, str]:
        """The environment that makes an installation use this server."""
        return {
            "DAGSTER_PG_HOST": HOST, "DAGSTER_PG_PORT": str(self.port), "DAGSTER_PG_DB": DATABASE,
            "DAGSTER_PG_USERNAME": USER, "DAGSTER_PG_PASSWORD": self.password,
        }  # fmt: skip

    def initialise(self) -> None:
        """Make the data folder, the user that owns it all, and the database."""
        secret = self.folder / "password"
        secret.write_text(self.password, encoding="utf-8")
        _own(secret)
        how = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={secret}", "--no-sync"]
        self._run([str(self.programs / "initdb"), f"--pgdata={self.data}", *how])
        secret.unlink()
        with (self.data / "postgresql.conf").open("a", encoding="ascii") as settings:
            settings.write(_SETTINGS)
        self.start()
        with contextlib.closing(self.connect("postgres")) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(f'CREATE DATABASE "{DATABASE}"')

    def start(self) -> None:
        """Start the server and wait until it answers, after a crash recovery if need be."""
        command = [str(self.programs / "postgres"), "-D", str(self.data), f"-p{self.port}"]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                _as_server(command), stdout=log, stderr=subprocess.STDOUT, cwd=self.folder,
                start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self.connect("postgres").close()
            except psycopg2.OperationalError:
                told = (self.folder / "server.log").read_text(errors="replace")[-2000:]
                assert self._process.poll() is None, f"the server ended: {told}"
                assert time.monotonic() < deadline, f"no answer in {_PATIENCE_S} s: {told}"
                time.sleep(0.1)
            else:
                return

    def connect(self, database: str = DATABASE) -> "psycopg2.extensions.connection":
        """Open a connection; close it after use."""
        return psycopg2.connect(
            host=HOST, port=self.port, user=USER, password=self.password, dbname=database,
            connect_timeout=5,
        )  # fmt: skip

    @property
    def pids(self) -> list[int]:
        """The postmaster, first, and its children."""
        assert self._process is not None
        lines = (self.data / "postmaster.pid").read_text(encoding="ascii").splitlines()
        postmaster = int(lines[0])
        return [postmaster, *_children(postmaster)]

    def kill(self) -> None:
        """Kill the postmaster and its children at once, as a power cut would: no shutdown."""
        pids = self.pids
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert self._process is not None
        self._process.wait(30)
        assert not left_after(set(pids), _PATIENCE_S), f"some of {pids} do not die"

    def stop(self) -> None:
        """Stop the server in its own way, without waiting for clients; once is enough."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()

    def _run(self, command: Sequence[str]) -> None:
        done = subprocess.run(
            _as_server(command), cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Give a fresh server with an empty database (not in pytest's folders), and leave no trace."""
    programs = binaries()
    folder = Path(tempfile.mkdtemp(prefix="judgeline-postgres-"))
    _own(folder)
    server = Server(folder, programs)
    try:
        server.initialise()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _as_server(command: Sequence[str]) -> list[str]:
    """Return a command as the server's user would run it, if that is not who we are."""
    ids = _server_ids()
    if os.geteuid() != 0 or ids is None:
        return list(command)
    return ["setpriv", f"--reuid={ids[0]}", f"--regid={ids[1]}", "--clear-groups", *command]


def _own(path: Path) -> None:
    ids = _server_ids()
    if os.geteuid() == 0 and ids is not None:
        os.chown(path, *ids)
    path.chmod(0o700 if path.is_dir() else 0o600)


def _children(parent: int) -> list[int]:
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
    return [int(pid) for pid in found.split()]

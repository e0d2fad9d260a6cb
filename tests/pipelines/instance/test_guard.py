"""The guard of the web interface, at a real server: whose requests pass, and whose do not."""

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from ports import free_port
from processes import wait_for
from report_examples import write
from starlette.routing import Route

from judgeline.paths import ROOT
from pipelines.commands import ui
from pipelines.instance import webserver
from pipelines.instance.guard import ALLOWED_HOSTS, allowed_hosts

PROXY = "judges.example.org"
QUERY = json.dumps({"query": "{ version }"}).encode()
JSON = ("Content-Type", "application/json")
Headers = list[tuple[str, str]]


class Door(NamedTuple):
    """A server behind the guard: its port, what it answers to bytes, and its process."""

    port: int
    pid: int = 0

    def status(
        self, target: str, headers: Headers, method: str = "GET", body: bytes = b""
    ) -> tuple[int, str]:
        """Return the status and the body of an answer to exactly these headers."""
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        if "Upgrade" not in dict(headers):
            lines.append("Connection: close")
        sent = "\r\n".join([*lines, "", ""]).encode() + body
        with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
            connection.sendall(sent)
            with connection.makefile("rb") as answer:
                status = int(answer.readline().split()[1])
                return status, "" if status == 101 else answer.read().decode()

    def own(self, *further: tuple[str, str]) -> Headers:
        return [("Host", f"localhost:{self.port}"), *further]

    def socket(self, *further: tuple[str, str]) -> tuple[int, str]:
        """Return what an attempt to open a WebSocket is answered."""
        upgrade = [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
            ("Sec-WebSocket-Protocol", "graphql-ws"),
        ]
        return self.status("/graphql", [*further, *upgrade])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """The web server's own entry, over a workspace without code."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    port = free_port()
    command = ("-m", "pipelines.instance.webserver", "--empty-workspace", "--port", str(port))
    (folder / "reports").mkdir()
    (folder / "reports" / "arena.html").write_text("<title>Judges</title>")
    homes = {"DAGSTER_HOME": str(folder), "JUDGELINE_HOME": str(folder)}
    environment = {**os.environ, **homes, ALLOWED_HOSTS: f" {PROXY.upper()} ,"}
    server = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment)
    try:
        wait_for("the web server", lambda: server.poll() is not None or answers(port), 90)
        yield Door(port, server.pid)
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.parametrize(
    "host", ["localhost:{port}", "LocalHost:{port}", "127.0.0.1:{port}", "[::1]:{port}", PROXY]
)
def test_own_names_are_answered(door: Door, host: str) -> None:
    assert door.status("/server_info", [("Host", host.format(port=door.port))])[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:{port}", "evil.example", "localhost", "localhost:{other}",
        "localhost.:{port}", "127.0.0.1.evil.example:{port}", "localhost:{port}.evil.example",
        "evil@localhost:{port}", "0.0.0.0:{port}", "[::]:{port}", "::1", f"{PROXY}:{{port}}",
        f"sub.{PROXY}", "",
    ],
)  # fmt: skip
def test_other_names_are_misdirected(door: Door, host: str) -> None:
    named = host.format(port=door.port, other=door.port + 1)
    status, told = door.status("/server_info", [("Host", named)])
    assert status == 421
    assert repr(named) in told
    assert ALLOWED_HOSTS in told
    assert door.socket(("Host", named))[0] == 421


@pytest.mark.parametrize(
    "header",
    [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://localhost:{other}"),
        ("Origin", "http://127.0.0.1:{port}"),
        ("Origin", "http://localhost:{port}.evil.example"),
        ("Origin", ""),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Sec-Fetch-Site", "same-origin, none"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "HEAD", "DELETE"])
def test_other_sites_are_refused_everywhere(door, header, method):
    name, value = header
    foreign = (name, value.format(port=door.port, other=door.port + 1))
    for target in ("/", "/graphql", "/server_info", "/robots.txt", "/logs/x", "/nowhere"):
        status, told = door.status(target, door.own(foreign, JSON), method, QUERY)
        assert status == 403, target
        assert method == "HEAD" or "press Enter" in told
        assert "access-control" not in told.lower()
    assert door.socket(*door.own(foreign))[0] == 403


def test_own_pages_are_answered(door: Door) -> None:
    for scheme in ("http", "https"):
        own = door.own(("Origin", f"{scheme}://localhost:{door.port}"))
        assert door.socket(*own)[0] == 101
        status, told = door.status(
            "/graphql", [*own, ("Sec-Fetch-Site", "same-origin"), JSON], "POST", QUERY
        )
        assert status == 200
        assert '"version"' in told
    typed = door.own(("Sec-Fetch-Site", "none"), ("Sec-Fetch-Mode", "navigate"))
    assert "<html" in door.status("/runs", typed)[1]
    assert door.socket(*door.own())[0] == 101  # a program that is no browser


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("Origin", "http://localhost:{port}"), ("Origin", "http://evil.example")),
        (("Sec-Fetch-Site", "none"), ("sec-fetch-site", "cross-site")),
        (("Content-Type", "text/plain"), JSON),
        (("Host", "evil.example"), ("X", "x")),
    ],
)
def test_a_header_that_is_there_twice_is_refused(door, first, second):
    pair = [(name, value.format(port=door.port)) for name, value in (first, second)]
    assert door.status("/graphql", door.own(*pair), "POST", QUERY)[0] == 400


def test_a_request_without_host_is_refused(door: Door) -> None:
    assert door.status("/server_info", [])[0] in (400, 421)
    with socket.create_connection(("127.0.0.1", door.port), 10) as connection:
        connection.sendall(b"GET /server_info HTTP/1.0\r\n\r\n")
        assert connection.recv(100).split()[1] == b"421"


@pytest.mark.parametrize("target", ["http://evil.example/graphql", "http://localhost/", "*"])
def test_a_target_that_is_no_path_is_refused(door: Door, target: str) -> None:
    assert door.status(target, door.own(JSON), "POST", QUERY)[0] == 400
    assert door.status(target, door.own(), "OPTIONS")[0] == 400


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("accepted", ["*/*", "text/html", "application/json"])
def test_graphql_is_not_asked_by_get(door: Door, method: str, accepted: str) -> None:
    target = "/graphql?query=%7Bversion%7D"
    for spelt in (target, target.replace("g", "%67", 1)):
        assert door.status(spelt, door.own(("Accept", accepted), JSON), method)[0] == 405


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "text/plain; x=application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json",
        "application/graphql",
        "application/jsonp",
        "Application/JSON",  # Dagster would take the query of the address
        "application/json, text/plain",
        "",
    ],
)
def test_graphql_is_asked_in_json_only(door: Door, media_type: str) -> None:
    target = "/graphql?query=%7Bversion%7D"
    status, told = door.status(target, door.own(("Content-Type", media_type)), "POST", QUERY)
    assert status == 415
    assert "application/json" in told
    assert door.status(target, door.own(), "POST", QUERY)[0] == 415
    spelt = door.own(("Content-Type", "application/json; charset=utf-8"))
    assert door.status(target, spelt, "POST", QUERY)[0] == 200


@pytest.mark.parametrize("event", ["materialization", "check", "observation"])
def test_nobody_reports_events(door: Door, event: str) -> None:
    target = f"/report_asset_{event}/leaderboard?description=forged"
    assert door.status(target, door.own(JSON), "POST", b"{}")[0] == 403


def test_a_report_is_shown_as_a_page_of_no_site(door: Door) -> None:
    status, answer = door.status("/reports/arena.html", door.own())
    assert status == 200
    assert "content-security-policy: sandbox allow-scripts\r\n" in answer
    assert answer.endswith("<title>Judges</title>")
    for other in ("mine.html", "Arena.html", "..html", "a%00b.html"):
        assert door.status(f"/reports/{other}", door.own())[0] == 404
    for outside in ("..%2Fdagster.yaml", "../dagster.yaml", "..%2Freports%2Farena.html"):
        told = door.status(f"/reports/{outside}", door.own())[1]
        assert "telemetry: {enabled" not in told
        assert "<title>Judges</title>" not in told
    assert door.status("/reports/arena.html", [("Host", "evil.example")])[0] == 421


def test_nothing_else_takes_what_is_posted() -> None:
    """A new way in of a later Dagster would show here, under a prefix too."""
    from pipelines.instance.webserver import GuardedWebserver

    _, _, mounted, _ = GuardedWebserver(None, "/prefix").build_routes()
    posted = [r.path for r in mounted.routes if isinstance(r, Route) and "POST" in r.methods]
    reports = [path for path in posted if path.startswith("/report_asset_")]
    assert sorted(posted) == sorted(["/graphql", *reports])
    assert len(reports) == 3


@pytest.mark.parametrize(
    "entry", ["http://judges.example.org", "*", "a b", "name/path", "name:", "name:port", "a..b"]
)
def test_what_is_no_host_name_is_not_allowed(monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    monkeypatch.setenv(ALLOWED_HOSTS, f"fine.example.org, {entry}")
    with pytest.raises(ValueError, match=rf"{ALLOWED_HOSTS} has '.*write names as"):
        allowed_hosts()


def test_the_server_does_not_start_with_a_wrong_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from pipelines.instance import webserver

    monkeypatch.setenv(ALLOWED_HOSTS, "https://judges.example.org/")
    with pytest.raises(SystemExit, match=ALLOWED_HOSTS):
        webserver.main()


def test_allowed_hosts_are_read_as_the_address_line_shows_them(monkeypatch):
    monkeypatch.delenv(ALLOWED_HOSTS, raising=False)
    assert allowed_hosts() == frozenset()
    monkeypatch.setenv(ALLOWED_HOSTS, "Judges.Example.org, localhost:8080,[::1]:8080,")
    assert allowed_hosts() == {"judges.example.org", "localhost:8080", "[::1]:8080"}


@pytest.mark.parametrize("body", [b"[]", b"null", b'"{ version }"', b"\xff\xfe", b"[" * 100_000])
def test_graphql_is_asked_by_one_object(door: Door, body: bytes) -> None:
    assert door.status("/graphql", door.own(JSON), "POST", body)[0] == 400


HEADERS = "GET / HTTP/1.1\r\nHos"
BODY = (
    "POST /graphql HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\n"
    "Content-Length: 9\r\n\r\n"
)


@pytest.mark.parametrize(("limit", "begun"), [(8192, HEADERS), (8192, BODY), (1024, HEADERS)])
def test_slow_connections_are_closed_in_time_and_stop_no_server(
    door: Door, limit: int, begun: str, many_files: None
) -> None:
    _, hard = resource.prlimit(door.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(door.pid, resource.RLIMIT_NOFILE, (limit, hard))
    slow = [socket.create_connection(("127.0.0.1", door.port), 30) for _ in range(1300)]
    for one in slow:
        with contextlib.suppress(ConnectionError):  # beyond half of the limit
            one.sendall(begun.format(port=door.port).encode())
    if limit > 2 * len(slow):
        assert door.status("/server_info", door.own())[0] == 200
    for one in slow:
        with one, contextlib.suppress(ConnectionError):
            assert one.recv(1) == b""
    assert door.status("/server_info", door.own())[0] == 200


def test_a_web_socket_may_wait(door: Door, monkeypatch) -> None:
    with socket.create_connection(("127.0.0.1", door.port), 30) as connection:
        key = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        key += "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-ws"
        host = f"GET /graphql HTTP/1.1\r\nHost: localhost:{door.port}\r\n"
        connection.sendall(f"{host}{key}\r\n\r\n".encode())
        assert b"101 Switching Protocols" in connection.recv(4096)
        connection.settimeout(webserver.REQUEST_S + 2)
        with pytest.raises(TimeoutError):
            connection.recv(1)


@pytest.fixture
def many_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 8192:
        pytest.skip(f"1,300 connections and as many answers need more than {before[1]} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_interface_prints_reports_boards_and_groups(door: Door, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path))
    (tmp_path / "reports").mkdir()
    groups = ("Groups", "/groups")
    assert ui.pages() == [groups]  # no board is promised where there is none
    report, page = ("Report", "/reports/arena.html"), tmp_path / "reports" / "arena.html"
    page.write_text("")
    assert ui.pages() == [report, groups]
    write(page)
    assert ui.pages() == [report, ("Its board", "/reports/arena.html#j1-board"), groups]
    for _, path in ui.pages():
        assert door.status(path.partition("#")[0], door.own())[0] == 200


def test_the_interface_lets_its_servers_open_as_many_files_as_the_system_allows() -> None:
    program = (
        "import resource as r; from pipelines.commands.ui import raise_descriptor_limit; "
        "r.setrlimit(r.RLIMIT_NOFILE, (256, 2048)); raise_descriptor_limit(); "
        "print(r.getrlimit(r.RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "(2048, 2048)\n", done.stderr

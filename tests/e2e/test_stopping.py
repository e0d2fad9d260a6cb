"""Nothing outlives `judgeline ui`: its servers end with it, however it ends."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from living import REPOSITORY, Living
from processes import below, is_alive, left_after, parent_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc"),
]

JOB = "prune_logs"
LAUNCH = "mutation($p: ExecutionParams!) { launchRun(executionParams: $p) { __typename } }"
KILLED_SECONDS, STOPPED_SECONDS = 5, 15


@contextmanager
def as_in_the_background() -> Iterator[None]:
    """Ignore SIGINT, as a shell does for what a script starts with an ampersand."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def end_all(pids: set[int]) -> None:
    for pid in filter(is_alive, pids):
        os.kill(pid, signal.SIGKILL)


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def begin_a_run(place: Living) -> None:
    """Launch a job, and wait until the process of its run is there."""
    launched = place.ask(LAUNCH, p={"mode": "default", "selector": {**REPOSITORY, "jobName": JOB}})
    assert launched["launchRun"]["__typename"] == "LaunchRunSuccess"
    assert place.server is not None
    owner = place.server.pid

    def forked() -> bool:
        return any("forkserver" in command(parent_of(pid) or 0) for pid in below(owner))

    place.wait("a run", forked, 90, 0.1)


@pytest.mark.parametrize(
    ("number", "seconds", "code"),
    [
        pytest.param(signal.SIGKILL, KILLED_SECONDS, -signal.SIGKILL, id="SIGKILL"),
        pytest.param(signal.SIGINT, STOPPED_SECONDS, 130, id="SIGINT"),
        pytest.param(signal.SIGTERM, STOPPED_SECONDS, 130, id="SIGTERM"),
    ],
)
def test_servers_and_runs_end_with_the_interface(living, number, seconds, code):
    with as_in_the_background():
        living.start()
    assert living.server is not None
    begin_a_run(living)
    started = below(living.server.pid)
    # web server, daemon, code server, the code's process, the fork server, and the run's
    assert len(started) >= 6
    try:
        living.server.send_signal(number)
        assert living.server.wait(seconds) == code, living.told()
        assert [command(pid)[:120] for pid in left_after(started, KILLED_SECONDS)] == []
        assert not living.answers()
    finally:
        end_all(started | {living.server.pid})
        living.server.wait(30)


def test_a_dead_web_server_begins_anew_and_dead_code_ends_everything(living: Living) -> None:
    """The code is a process that the code server started, and does not miss."""
    living.start()
    assert living.server is not None
    begin_a_run(living)
    started = below(living.server.pid)
    (web,) = (pid for pid in started if "instance.webserver" in command(pid))
    (code,) = (pid for pid in started if " api grpc " in command(pid))
    try:
        os.kill(web, signal.SIGKILL)
        living.wait("the web server to answer again", living.answers, 90)
        assert "The web server ended by itself; it begins anew" in living.told()
        assert code in below(living.server.pid)
        started |= below(living.server.pid)
        os.kill(code, signal.SIGKILL)
        assert living.server.wait(20 + STOPPED_SECONDS) == 1, living.told()
        assert "process of the code server ended by itself" in living.told()
        assert [command(pid)[:120] for pid in left_after(started, KILLED_SECONDS)] == []
    finally:
        end_all(started | {living.server.pid})
        living.server.wait(30)

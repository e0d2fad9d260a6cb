"""Nothing outlives `judgeline ui`: its servers end with it, however it ends."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
KILLED_SECONDS, STOPPED_SECONDS, NAMED_SECONDS = 5, 15, 20


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


def fork_servers(place: Living) -> set[int]:
    """Those that run below the interface; what they fork has their command line too."""
    assert place.server is not None
    found = {pid for pid in below(place.server.pid) if "forkserver" in command(pid)}
    return {pid for pid in found if parent_of(pid) not in found}


def begin_a_run(place: Living) -> int:
    """Launch a job, and return the process of its run as soon as it is there."""
    launched = place.ask(LAUNCH, p={"mode": "default", "selector": {**REPOSITORY, "jobName": JOB}})
    assert launched["launchRun"]["__typename"] == "LaunchRunSuccess"

    def forked() -> int | None:
        servers = fork_servers(place)
        own = (pid for one in servers for pid in below(one) if parent_of(pid) == one)
        return next(own, None)

    worker = place.wait("a run", forked, 90, 0.02)
    assert worker is not None
    return worker


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
    # web server, daemon, code server, the fork server with its resource tracker, and the run's
    assert len(started) >= 6
    try:
        living.server.send_signal(number)
        assert living.server.wait(seconds) == code, living.told()
        assert [command(pid)[:120] for pid in left_after(started, KILLED_SECONDS)] == []
        assert not living.answers()
    finally:
        end_all(started | {living.server.pid})
        living.server.wait(30)


def of(place: Living, mark: str) -> int:
    """The process whose command line holds a mark, which its parent's lacks."""
    assert place.server is not None
    (found,) = (
        pid
        for pid in below(place.server.pid)
        if mark in command(pid) and mark not in command(parent_of(pid) or 0)
    )
    return found


def worker_of(place: Living) -> int:
    """The process of a new run, which is held so that it does not end by itself."""
    worker = begin_a_run(place)
    os.kill(worker, signal.SIGSTOP)
    return worker


def failed_runs(place: Living) -> int:
    return len(place.runs(statuses=["FAILURE"]))


def kill(place: Living, pid: int, named: Callable[[], bool]) -> None:
    """Kill a process; its death is named in time."""
    os.kill(pid, signal.SIGKILL)
    place.wait("a death to be named", named, NAMED_SECONDS, 0.2)
    assert not is_alive(pid)


def ends_by(place: Living, pid: int, named: str) -> None:
    """Kill a process; its death is named in time, and ends all the others."""
    assert place.server is not None
    started = below(place.server.pid)
    try:
        os.kill(pid, signal.SIGKILL)
        assert place.server.wait(NAMED_SECONDS) == 1, place.told()
        assert f"The {named} ended by itself" in place.told()
        assert [command(one)[:120] for one in left_after(started, KILLED_SECONDS)] == []
    finally:
        end_all(started | {place.server.pid})
        place.server.wait(30)


def test_whatever_is_killed_is_named_and_begins_anew_or_ends_it_all(living: Living) -> None:
    """Every process below the interface in turn; those that end it all are the last."""
    living.start()
    assert living.server is not None
    worker, failed = worker_of(living), failed_runs(living)
    tracker, (fork_server,) = of(living, "resource_tracker"), fork_servers(living)
    web, daemon = of(living, "instance.webserver"), of(living, "instance.daemon")
    code = of(living, "instance.codeserver")
    assert below(living.server.pid) == {worker, tracker, fork_server, web, daemon, code}
    kill(living, worker, lambda: failed_runs(living) > failed)
    kill(living, tracker, lambda: "resource tracker ended by itself" in living.told())
    worker = worker_of(living)
    kill(living, fork_server, lambda: "fork server ended by itself" in living.told())
    with suppress(ProcessLookupError):
        os.kill(worker, signal.SIGCONT)
    assert left_after({worker}, KILLED_SECONDS) == set()
    kill(living, web, lambda: "The web server ended by itself; it begins" in living.told())
    living.wait("the web server to answer again", living.answers, 90)
    assert {daemon, code} < below(living.server.pid)
    worker_of(living)
    ends_by(living, code, "code server")
    living.start()
    ends_by(living, of(living, "instance.daemon"), "daemon")

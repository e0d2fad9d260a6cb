"""Owned processes end with their owner, with all that they started."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import left_after, wait_for

from judgeline.paths import ROOT
from pipelines.instance import owned

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc: Linux only")

SERVER = """
import os, pathlib, signal, subprocess, sys, time
def note(name, value):
    part = pathlib.Path(f"{name}.part")
    part.write_text(str(value))
    part.replace(name)
deaf = "import signal, time; [signal.signal(s, signal.SIG_IGN) for s in (2, 15)]; time.sleep(600)"
worker = subprocess.Popen([sys.executable, "-c", deaf])
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
note("read", repr(sys.stdin.read()))
note("interrupts", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
note("started", f"{os.getpid()} {worker.pid}")
try:
    if "deaf" not in sys.argv:
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    time.sleep(600)
except KeyboardInterrupt:
    note("ended", "in its own way")
"""

OWNER = """
import os, pathlib, signal, sys, time
from pipelines.instance import owned
signal.signal(signal.SIGINT, signal.SIG_IGN)
folder = pathlib.Path(sys.argv[1])
environment = os.environ | {"PYTHONPATH": f"{folder}:{sys.argv[2]}"}
server = owned.start("server", folder=folder, environment=environment)
while not (folder / "started").exists():
    time.sleep(0.05)
if sys.argv[3] == "leaves":
    sys.exit()
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "server.py").write_text(SERVER)
    return tmp_path


def begun(folder: Path, *arguments: str) -> owned.Process:
    environment = os.environ | {"PYTHONPATH": f"{folder}:{ROOT}"}
    process = owned.start("server", *arguments, folder=folder, environment=environment)
    pids(folder)
    return process


def pids(folder: Path) -> list[int]:
    """The server and what it started."""
    wait_for("the server", (folder / "started").exists, 60, 0.05)
    return [int(pid) for pid in (folder / "started").read_text().split()]


def are_gone(found: list[int], seconds: float = 10) -> bool:
    running = left_after(set(found), seconds)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    return not running


@pytest.mark.parametrize(
    ("then", "end"),
    [
        ("stays", lambda owner: owner.kill()),
        ("stays", lambda owner: owner.terminate()),
        ("leaves", lambda owner: owner.wait(60)),
    ],
    ids=["killed", "terminated", "left"],
)
def test_an_owner_that_ends_takes_everything_along(folder, then, end):
    command = [sys.executable, "-c", OWNER, str(folder), str(ROOT), then]
    owner = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)})
    try:
        found = pids(folder)
        end(owner)
        assert are_gone(found)
    finally:
        owner.kill()
        owner.wait(30)
    assert (folder / "interrupts").read_text() == "True"  # though the owner ignores them
    assert (folder / "read").read_text() == "''"
    assert not (folder / "ended").exists()


def test_a_stopped_server_may_end_in_its_own_way(folder: Path) -> None:
    server = begun(folder)
    owned.stop([server], patience_s=30)
    assert server.returncode == 0
    assert (folder / "ended").exists()
    assert are_gone(pids(folder))


def test_a_server_that_does_not_stop_is_killed_with_what_it_started(folder: Path) -> None:
    server = begun(folder, "deaf")
    owned.stop([server], patience_s=0.5)
    assert server.returncode == -signal.SIGKILL
    assert are_gone(pids(folder))

"""SIGINT reaches a command, also in the background; a reader of its output may leave any time."""

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from judgeline.paths import ROOT
from pipelines.commands.run import interrupts_raised


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_last_step_of_a_job_is_not_lost(number: signal.Signals) -> None:
    class Interrupting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            event = getattr(record, "dagster_meta", {}).get("dagster_event")
            if event is not None and event.is_job_success:
                os.kill(os.getpid(), number)

    @dg.logger
    def console(_: dg.InitLoggerContext) -> logging.Logger:
        log = logging.Logger("interrupting")
        log.addHandler(Interrupting())
        return log

    @dg.asset
    def made() -> None:
        return

    definitions = dg.Definitions([made], loggers={"console": console})
    job = definitions.resolve_implicit_global_asset_job_def()
    handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    logged = {"loggers": {"console": {"config": {}}}}
    try:
        with (
            dg.DagsterInstance.ephemeral() as instance,
            pytest.raises(KeyboardInterrupt),
            interrupts_raised(),
        ):
            run = job.execute_in_process(instance=instance, run_config=logged)
        assert run.success
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)


def test_a_block_that_nothing_interrupts_goes_on() -> None:
    with interrupts_raised():
        pass
    assert signal.set_wakeup_fd(-1) == -1


FINALIZED = """
class Finalized:
    def __del__(self):
        interrupt()

Finalized()
"""
COMPARED = """
import numpy as np, pandas as pd

class Unknown(pd.StringDtype):
    def __repr__(self):  # numpy asks for it, in vain, to say what it cannot compare
        interrupt()

np.dtype(object) == Unknown()
"""
DROPPED = """
import os, signal, time
from judgeline.cli import heed_interrupts

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)

with heed_interrupts():
    try:
        {}
        time.sleep(10)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("dropping", [FINALIZED, COMPARED], ids=["finalizer", "comparison"])
def test_an_interrupt_whose_exception_is_dropped_comes_again(dropping: str) -> None:
    """Also in the background of a shell script, which has its commands ignore SIGINT."""
    program = DROPPED.format(dropping.strip().replace("\n", "\n        "))
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def unread(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line into a pipe that nobody reads, from its first line on."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "pipelines", *arguments]
    pipes = {"stdout": writer, "stderr": subprocess.PIPE}
    try:
        return subprocess.run(command, cwd=ROOT, text=True, check=False, **pipes)
    finally:
        os.close(writer)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["judges"], 0),
        (["run", "--help"], 0),
        (["leaderboard", "--corpus", "arena"], 1),  # there is none, and that is said
    ],
)
def test_a_short_command_ends_quietly_with_its_own_code(arguments: list[str], code: int) -> None:
    done = unread(*arguments)
    assert done.returncode == code
    assert len(done.stderr.strip().splitlines()) == code, done.stderr


def test_a_run_goes_on_to_its_end_and_a_failing_one_says_so_by_its_code(home: Path) -> None:
    assert unread("run", "--corpus", "arena", "--judge", "nobody").returncode == 1
    assert not (home / "tables").exists()
    done = unread("run", "--corpus", "arena", "--judge", "careful", "--select", "group:corpus")
    assert done.returncode == 0, done.stderr
    assert (home / "tables" / "sampled_battles" / "arena.parquet").exists()
    assert "Error" not in done.stderr

"""Work beside this process: its results come in order, its errors arrive, and it ends with us."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from judgeline.io import ArgumentError
from judgeline.paths import ROOT
from pipelines.commands.child_processes import beside

HELD = """
import signal
from pipelines.commands.child_processes import beside

def wait():
    print("waiting", flush=True)
    signal.pause()

with beside([wait]) as results:
    list(results)
"""


NARROW = """
from judgeline.cli import main

main(["run", "--corpus", "nowhere"])  # numpy is there now
from threadpoolctl import threadpool_info

print(*{it["num_threads"] for it in threadpool_info() if it["internal_api"] == "openblas"})
"""


@pytest.mark.parametrize(
    ("variables", "n_threads"),
    [({}, 1), ({"OPENBLAS_NUM_THREADS": "2"}, min(2, os.cpu_count() or 1))],
)
def test_a_run_computes_in_one_thread_where_nobody_wants_more(tmp_path, variables, n_threads):
    others = {name: it for name, it in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", NARROW],
        cwd=ROOT,
        env={**others, **variables, "JUDGELINE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[-1] == str(n_threads)


def test_results_come_in_the_order_of_the_works_from_other_processes() -> None:
    def slow() -> int:
        time.sleep(0.2)
        return os.getpid()

    with beside([slow, os.getpid]) as results:
        first, second = results
    assert len({first, second, os.getpid()}) == 3


def test_an_error_is_raised_where_the_result_is_waited_for() -> None:
    def broken() -> None:
        raise ValueError("no battle has a vote")

    with pytest.raises(ValueError, match="no battle has a vote"), beside([broken]) as results:
        next(results)


def test_an_error_of_any_kind_arrives_with_its_message_and_the_next_result_after_it() -> None:
    def misread() -> None:
        json.loads("{")

    def remedied() -> None:
        raise ArgumentError("name it with outcomes=1/-1/0", "outcomes")

    def failed() -> None:
        raise KeyError("model_a")

    with beside([misread, remedied, failed, os.getpid]) as results:
        for kind, told in (
            (ValueError, "Expecting property name"),
            (ValueError, "outcomes=1/-1/0"),
            (RuntimeError, "model_a"),
        ):
            with pytest.raises(kind, match=told):
                next(results)
        assert next(results) != os.getpid()


def test_a_process_that_is_killed_is_told_of() -> None:
    def killed() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    told = "code -9 before it was done; .* run the same command again"
    with pytest.raises(ChildProcessError, match=told), beside([killed]) as results:
        next(results)


def test_a_block_that_fails_interrupts_what_it_began(tmp_path: Path) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "interrupted"

    def wait() -> None:
        try:
            begun.touch()
            time.sleep(60)
        except KeyboardInterrupt:
            ended.touch()

    def fail_meanwhile() -> None:
        with beside([wait]):
            while not begun.exists():
                time.sleep(0.01)
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        fail_meanwhile()
    assert ended.exists()


def test_it_ends_with_a_process_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", HELD], cwd=ROOT, stdout=subprocess.PIPE) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == b"waiting\n"
        one.kill()
        assert one.stdout.read() == b""  # it ends when nobody holds the pipe any more

"""kill -9 and Ctrl-C of a process that buys in batches: every call is submitted exactly once."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from answering import annotate, statuses
from batch_server import BatchServer, answered
from buyer_process import numbered, store_in
from channels import batch, live, on_question
from fault_server import KEY, FaultServer, serving
from forks import forking
from managed import is_alive

from judgeline.judges.batch.provider import Limits
from judgeline.judges.buying import Account, Buyer
from judgeline.judges.judge import judge_key
from judgeline.judges.live.judge import ServedJudge
from judgeline.judges.presentation import present

N_BATTLES, N_KILLS = 40, 12
STEPS = ("upload", "create", "look", "content")
BATTLES = numbered(N_BATTLES)
PROGRAM = f"""
    import sys
    sys.path[:0] = {sys.path!r}
    from pathlib import Path
    from test_batch_kills import bought
    from channels import batch
    from fault_server import FaultServer
    from judgeline.cli import heed_interrupts
    from judgeline.judges.batch.provider import Limits
    folder = Path(sys.argv[2])
    say = lambda text: print(text, flush=True)
    limits = Limits(int(sys.argv[3]))
    try:
        with heed_interrupts():
            bought(batch(FaultServer(url=sys.argv[1]), folder, limits, tell=say), folder)
    except KeyboardInterrupt:
        sys.exit(130)
"""


def bought(judge: ServedJudge, folder: Path) -> pd.DataFrame:
    buyer = Buyer(store_in(folder))
    return annotate(judge, BATTLES, slug="j", buyer=buyer)


def start(
    server: BatchServer, folder: Path, most: int = 30, begun: Callable[[], object] | None = None
) -> subprocess.Popen[str]:
    program = textwrap.dedent(PROGRAM)
    command = [sys.executable, "-c", program, server.url, str(folder), str(most)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, text=True, preexec_fn=begun, **pipes)  # type: ignore[call-overload, no-any-return]


def in_background() -> None:
    """Ignore SIGINT, as what a shell script starts in the background does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def buy(url: str, folder: Path, most: int) -> None:
    judge = batch(FaultServer(url=url), folder, Limits(most), tell=lambda text: None)
    bought(judge, folder)


def fork(server: BatchServer, folder: Path, most: int = 30) -> ForkServerProcess:
    """Start a process that buys, without the time that its imports would take."""
    process = forking().Process(target=buy, args=(server.url, folder, most))
    process.start()
    return process


def in_the_end(server: BatchServer, folder: Path) -> pd.DataFrame:
    """What an undisturbed run makes of all that was left behind."""
    table = bought(batch(server, folder), folder)
    assert set(table["status"]) == {"ok"}
    assert len(server.submitted) == 2 * N_BATTLES
    assert set(server.submitted.values()) == {1}
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    return table


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("live")
    with serving(BatchServer()) as server:
        return bought(live(server, folder), folder)


class Killer:
    """Kills the process that asks, at the n-th time that it takes some step of the protocol."""

    def __init__(self, step: str, n: int) -> None:
        self._step, self._left = step, n
        self._lock = threading.Lock()
        self.process: ForkServerProcess | None = None

    def __call__(self, step: str) -> Any:
        with self._lock:
            self._left -= step == self._step
            if self._left == 0:
                while self.process is None:  # it is quicker than who starts it
                    time.sleep(0.002)
                os.kill(self.process.pid, signal.SIGKILL)
                while is_alive(self.process.pid):  # who started it is told of its end, once
                    time.sleep(0.002)
                self._left = -1


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("n", [1, 2])
def test_a_kill_at_any_step_submits_nothing_twice(step, moment, n, tmp_path, undisturbed):
    killer = Killer(step, n)
    with serving(BatchServer(**{moment: killer})) as server:  # type: ignore[arg-type]
        killer.process = fork(server, tmp_path)
        killer.process.join(60)
        assert killer.process.exitcode == -signal.SIGKILL
        table = in_the_end(server, tmp_path)
    pd.testing.assert_frame_equal(table, undisturbed)


@pytest.mark.slow
def test_kills_at_random_submit_nothing_twice(tmp_path: Path, undisturbed: pd.DataFrame) -> None:
    rng = random.Random(5)  # noqa: S311
    n_killed, n_submitted = 0, []
    with serving(BatchServer(before=lambda step: time.sleep(0.03), late_s=0.03)) as server:
        for _ in range(N_KILLS):
            n_steps = len(server.steps) + rng.randint(1, 8)
            process = fork(server, tmp_path, most=6)
            while len(server.steps) < n_steps and process.is_alive():
                time.sleep(0.002)
            time.sleep(rng.uniform(0.0, 0.03))
            process.kill()
            process.join()
            n_killed += process.exitcode == -signal.SIGKILL
            n_submitted.append(server.submitted.total())
        table = in_the_end(server, tmp_path)
    assert n_killed >= 10
    assert len(set(n_submitted)) > 4  # most kills came while there was something to submit
    pd.testing.assert_frame_equal(table, undisturbed)
    print(f"{n_killed} kills, {server.submitted.total()} requests for {2 * N_BATTLES} calls")  # noqa: T201


@pytest.mark.slow
def test_a_creation_that_outlives_its_process_buys_nothing_twice(tmp_path, undisturbed):
    killer = Killer("create", 1)
    with serving(BatchServer(before=killer)) as server:
        server.late_s = 4.0  # accepted, and not there for a while
        killer.process = fork(server, tmp_path)
        killer.process.join(60)
        server.late_s = 0.0
        table = in_the_end(server, tmp_path)
        while not [one for one in server.batches.values() if one["input_file_id"] == "file-0"]:
            time.sleep(0.01)  # it comes, finds that its file is gone, and costs nothing
    assert set(server.submitted.values()) == {1}
    pd.testing.assert_frame_equal(table, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("begun", [None, in_background])
def test_an_interrupt_leaves_batches_and_says_how_to_collect_them(begun, tmp_path, undisturbed):
    def hold(step: str) -> None:
        for made in server.batches.values():
            made["status"] = "in_progress"

    server = BatchServer(before=hold)
    with serving(server):
        process = start(server, tmp_path, begun=begun)
        while "look" not in server.steps and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        try:
            said, _ = process.communicate(timeout=20)
        finally:
            process.kill()
        assert process.returncode == 130
        assert "3 batches with 80 requests go on" in said
        assert "run the same again to collect them" in said
        assert "nothing is paid for twice" in said
        server.before = lambda step: None
        table = in_the_end(server, tmp_path)
    pd.testing.assert_frame_equal(table, undisturbed)


STORM = f"""
    import os, random, signal, sys, tempfile, time
    sys.path[:0] = {sys.path!r}
    from pathlib import Path
    from test_batch_kills import bought
    from channels import batch, live, on_question
    from fault_server import FaultServer
    from judgeline.cli import heed_interrupts
    moments = random.Random(3)
    for number in range(int(sys.argv[2])):
        make = (batch, live)[number % 2]
        folder = Path(tempfile.mkdtemp(dir=sys.argv[3]))
        begun, begin = os.pipe()
        child = os.fork()  # a signal that arrives before the child is ready for it is dropped
        if child == 0:
            try:
                with heed_interrupts():
                    os.write(begin, b"!")
                    bought(make(FaultServer(url=sys.argv[1]), folder), folder)
            except KeyboardInterrupt:
                os._exit(130)
            os._exit(1)
        os.read(begun, 1)
        os.close(begun), os.close(begin)
        time.sleep(moments.uniform(0.0, 0.4))
        os.kill(child, signal.SIGINT)
        deadline = time.monotonic() + 15
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        if ended[0] == 0:
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(ended[1]), flush=True)
"""


@pytest.mark.slow
def test_an_interrupt_at_any_moment_ends_the_process_within_its_limit(tmp_path: Path) -> None:
    """What is bought never ends by itself; 15 s: twice what winding up may take."""

    def hold(step: str) -> None:
        for made in list(server.batches.values()):
            made["status"] = "in_progress"

    server = BatchServer(lambda texts, n: "slow", slow_s=60, before=hold)
    with serving(server):
        command = [sys.executable, "-c", textwrap.dedent(STORM), server.url, "40", str(tmp_path)]
        done = subprocess.run(
            command, preexec_fn=in_background, capture_output=True, text=True, check=False
        )
    assert done.stdout.split() == ["130"] * 40, done.stderr[-2000:]


def test_a_second_run_and_a_live_judge_buy_nothing_that_a_batch_bought(tmp_path: Path) -> None:
    with serving(BatchServer()) as server:
        first = in_the_end(server, tmp_path)
        steps = len(server.steps)
        pd.testing.assert_frame_equal(bought(batch(server, tmp_path), tmp_path), first)
        pd.testing.assert_frame_equal(bought(live(server, tmp_path), tmp_path), first)
        assert len(server.steps) == steps
        assert not server.presentations


def interrupt(text: str) -> None:
    raise KeyboardInterrupt(text)


def test_a_live_judge_refuses_what_is_under_way_in_batches(tmp_path: Path) -> None:
    with serving(BatchServer(on_question(3, "prose"))) as server:
        with pytest.raises(KeyboardInterrupt):
            bought(batch(server, tmp_path, tell=interrupt), tmp_path)
        assert server.submitted.total() == 2 * N_BATTLES
        with pytest.raises(RuntimeError, match=r"80 of 80 calls to judge 'j' .*'batch: true'"):
            bought(live(server, tmp_path), tmp_path)
        assert not server.presentations
        collected = bought(batch(server, tmp_path), tmp_path)
        assert collected["status"].value_counts().to_dict() == {"ok": 78, "parse_error": 2}
        server.fault = lambda texts, n: None
        assert bought(live(server, tmp_path), tmp_path)["status"].eq("ok").all()
    assert len(server.presentations) == 2
    assert set(server.submitted.values()) == {1}


@pytest.mark.parametrize("again", [batch, live])
def test_an_interrupted_run_leaves_a_failure_its_second_attempt(again, tmp_path):
    def stop(account: Account) -> None:
        if account.n_asked == 2 * N_BATTLES:
            raise KeyboardInterrupt

    store = store_in(tmp_path)
    with serving(BatchServer(line=lambda body: answered(body, "Response 1 is better."))) as server:
        judge, shown = batch(server, tmp_path), present(BATTLES, 1)
        with pytest.raises(KeyboardInterrupt):
            Buyer(store).readings(judge, shown, slug="j", on_progress=stop)
        assert set(statuses(store, judge_key(judge)).values()) == {"parse_error"}
        server.line = None
        assert bought(again(server, tmp_path), tmp_path)["status"].eq("ok").all()
    assert server.submitted.total() + len(server.presentations) == 4 * N_BATTLES


def test_a_batch_judge_buys_nothing_that_was_bought_live(tmp_path: Path) -> None:
    with serving(BatchServer()) as server:
        first = bought(live(server, tmp_path), tmp_path)
        pd.testing.assert_frame_equal(bought(batch(server, tmp_path), tmp_path), first)
    assert not server.batches


def test_failures_that_were_stored_are_asked_again_by_class(tmp_path: Path) -> None:
    with serving(BatchServer(on_question(3, "prose"))) as server:
        assert bought(batch(server, tmp_path), tmp_path)["status"].eq("ok").sum() == 78
        server.fault = on_question(4, "refusal-field")
        again = bought(batch(server, tmp_path), tmp_path)
        assert again["status"].eq("ok").all()
        assert server.submitted.total() == 82
        server.fault = lambda texts, n: None
        assert bought(batch(server, tmp_path), tmp_path).equals(again)
    assert server.submitted.total() == 82

"""A server of our own, and a judge that needs it only while it answers: gone whatever happens."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import managed
import pandas as pd
import pytest
from answering import annotate
from buyer_process import numbered, store_in

from judgeline.judges.budget import Budget
from judgeline.judges.buying import Buyer
from judgeline.judges.embeddings.definition import EmbedderDefinition
from judgeline.judges.embeddings.managed import ManagedEmbedder
from judgeline.judges.forms.form import Prompt
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.live.fields import ServedFields
from judgeline.judges.managed import judge as servers
from judgeline.judges.managed.fetching import fetch_weights
from judgeline.judges.managed.judge import ManagedJudge, Server, VllmError, running, vllm_python
from judgeline.judges.managed.options import Hosting, VllmOptions
from judgeline.judges.options import Decoding
from judgeline.judges.presentation import present

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc: Linux only"),
]

FIELDS = ServedFields(model="tiny", revision="abc")
KEEPS_ONE = """
import sys, time
from pathlib import Path
from judgeline.judges.managed.options import Hosting
from judgeline.judges.managed.options import VllmOptions
from judgeline.judges.managed.judge import running
from judgeline.judges.live.fields import ServedFields

place = Hosting(print, logs=Path(sys.argv[1]))
with running("tiny", ServedFields(model="tiny"), VllmOptions(), place):
    print("inside", flush=True)
    time.sleep(600)
"""

STOPPED_EARLY = """
import os, signal, sys
from pathlib import Path
from judgeline.judges.managed import guard

class Popen(guard.subprocess.Popen):
    def __init__(self, *given, **how):
        super().__init__(*given, **how)
        Path({place!r}).write_text(str(self.pid))
        os.kill(os.getpid(), signal.SIGTERM)  # the server runs, and nobody knows it yet

guard.subprocess.Popen = Popen
report = os.open(os.devnull, os.O_WRONLY)
command = [sys.executable, "-c", "import time; time.sleep(600)"]
sys.exit(guard.guard(os.getppid(), 20.0, report, command))
"""


@pytest.fixture
def fake(tmp_path, monkeypatch) -> managed.FakeVllm:
    fake = managed.install(tmp_path / "site")
    monkeypatch.delenv("JUDGELINE_VLLM_PYTHON", raising=False)
    for name, value in fake.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(servers, "PATIENCE_S", 0.3)
    return fake


def behave(monkeypatch, fake: managed.FakeVllm, **how: object) -> None:
    monkeypatch.setenv("FAKE_VLLM", fake.behaves(**how)["FAKE_VLLM"])


def run_server(tmp_path: Path, told: list[str], **options: object):
    return running(
        "tiny", FIELDS, VllmOptions(**options), Hosting(told.append, logs=tmp_path / "logs")
    )


def gone(fake: managed.FakeVllm) -> bool:
    return not any(map(managed.is_alive, fake.pids))


def command_lines() -> str:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(file.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return "\n".join(found)


def test_a_server_is_ready_inside_and_gone_outside(fake, tmp_path):
    told: list[str] = []
    with run_server(tmp_path, told, dtype="float32", extra_args=["--reasoning-parser", "x"]) as it:
        assert all(map(managed.is_alive, fake.pids))
        assert it.version == "0.0-fake"
        assert it.exit_code is None
        (start,) = fake.lines("starts")
        for words in (
            "--model tiny --served-model-name tiny --host 127.0.0.1",
            "--dtype float32",
            "--revision abc",
            '{"backend": "xgrammar", "disable_any_whitespace": true}',
            "--reasoning-parser x",
        ):
            assert words in start
    assert gone(fake)
    assert told[0].startswith("vllm: starting tiny for tiny; its log is ")
    assert told[-1].endswith("version 0.0-fake")


def test_the_key_is_in_no_command_line_log_or_message(fake, tmp_path, monkeypatch):
    told: list[str] = []
    with run_server(tmp_path, told) as it:
        key = it.endpoint.key
        assert len(key) >= 32
        assert "fake_vllm" not in key
        assert f"--port {it.endpoint.url[17:-3]}" in command_lines()  # they are readable at all
        assert key not in command_lines()
        assert key not in repr(it.endpoint)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert key.encode() not in file.read_bytes(), file
    assert key not in "\n".join(told)


def test_each_start_has_a_key_and_a_log_of_its_own(fake, tmp_path):
    seen = []
    for _ in range(2):
        with run_server(tmp_path, []) as it:
            seen.append((it.endpoint.key, it.log))
    assert len({key for key, _ in seen}) == len({log for _, log in seen}) == 2


def test_progress_tells_seconds_and_the_latest_line_of_the_log(fake, tmp_path, monkeypatch):
    behave(monkeypatch, fake, slow_start_s=1.0)
    monkeypatch.setattr(servers, "_TELL_EVERY_S", 0.3)
    told: list[str] = []
    with run_server(tmp_path, told):
        pass
    assert any(line.endswith("s: fake: serving tiny") for line in told)
    assert all(line.startswith("vllm: ") for line in told)


def test_an_early_end_is_told_with_the_last_lines_and_without_the_key(fake, tmp_path, monkeypatch):
    behave(monkeypatch, fake, crash=3)
    with pytest.raises(VllmError) as raised, run_server(tmp_path, []):
        pytest.fail("it never was ready")
    message = str(raised.value)
    assert "exit code 3" in message
    assert "fake: line 39 of the log" in message
    assert "fake: line 20 of the log" not in message  # 20 lines, the last one names the key
    assert "fake: no GPU for [key]" in message
    assert str(tmp_path / "logs") in message


def test_a_server_that_stays_silent_is_given_up_and_stopped(fake, tmp_path, monkeypatch):
    behave(monkeypatch, fake, deaf=True, family=True)
    with (
        pytest.raises(VllmError, match=r"did not answer within 1.5 s.*startup_timeout_s"),
        run_server(tmp_path, [], startup_timeout_s=1.5),
    ):
        pytest.fail("it never was ready")
    assert len(fake.pids) == 3
    assert gone(fake)


def test_a_server_that_loads_for_long_is_waited_for_while_its_log_grows(
    fake, tmp_path, monkeypatch
):
    behave(monkeypatch, fake, talks_s=6)
    with run_server(tmp_path, [], startup_timeout_s=5) as it:
        assert it.loading_s > 5


def test_a_server_that_only_talks_is_given_up_in_the_end(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "_LONGEST_START", 2)
    behave(monkeypatch, fake, talks_s=600)
    with (
        pytest.raises(VllmError, match=r"in 1\d s, 2 times.*it wrote to its log all along"),
        run_server(tmp_path, [], startup_timeout_s=5),
    ):
        pytest.fail("it never was ready")
    assert gone(fake)


HUB = """
import sys
def list_repo_files(name, revision=None):
    if name == "gated/model":
        raise PermissionError(f"401: accept the terms of {name}")
    if name == "org/kept":
        raise ConnectionError("offline mode is enabled")
    return ["model.safetensors", "model.bin"] if name == "org/safe" else ["model.bin"]
def snapshot_download(name, revision=None, ignore_patterns=None, local_files_only=False):
    if local_files_only and name != "org/kept":
        raise FileNotFoundError(f"{name} is not on disk")
    print("Fetching", file=sys.stderr)
    return f"/cache/{name}/{revision}/{','.join(ignore_patterns or [])}"
"""


@pytest.mark.parametrize(
    ("model", "revision", "folder"),
    [
        (
            "org/safe",
            "abc",
            "/cache/org/safe/abc/onnx/*,*.h5,*.msgpack,*.gguf,*.bin,*.pt,*.pth,original/*",
        ),
        ("org/old", None, "/cache/org/old/None/onnx/*,*.h5,*.msgpack"),
        ("org/kept", "abc", "/cache/org/kept/abc/"),
    ],
)
def test_weights_are_fetched_by_the_interpreter_of_vllm(fake, model, revision, folder, capfd):
    (fake.folder / "huggingface_hub.py").write_text(HUB)
    fields = ServedFields(model=model, revision=revision)
    assert fetch_weights("j", fields) == folder
    assert "Fetching" in capfd.readouterr().err


def test_weights_that_are_there_or_cannot_be_had(fake, tmp_path, capfd):
    (fake.folder / "huggingface_hub.py").write_text(HUB)
    assert fetch_weights("j", ServedFields(model=str(tmp_path))) == str(tmp_path)
    with pytest.raises(VllmError, match=r"judge 'j': the weights of 'gated/model'.*HF_TOKEN"):
        fetch_weights("j", ServedFields(model="gated/model"))
    assert "accept the terms of gated/model" in capfd.readouterr().err


@pytest.mark.parametrize("models", [["another"], [], None, ["tiny-2", None]])
def test_another_server_on_the_port_is_not_taken_for_ours(fake, tmp_path, monkeypatch, models):
    behave(monkeypatch, fake, deaf=True)
    with other_server(models) as port:
        monkeypatch.setattr(servers, "_free_port", lambda: port)
        with (
            pytest.raises(VllmError, match=r"did not answer within 1.5 s"),
            run_server(tmp_path, [], startup_timeout_s=1.5),
        ):
            pytest.fail("ours never was ready")
    assert gone(fake)


@contextlib.contextmanager
def other_server(models: list[str | None] | None) -> Iterator[int]:
    """Serve models to everybody, whatever their key."""
    listed = models if models is None else [{"id": name} for name in models]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"object": "list", "data": listed}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_children_that_ignore_a_polite_stop_or_left_the_group_go_too(fake, tmp_path, monkeypatch):
    behave(monkeypatch, fake, family=True)
    with contextlib.suppress(ZeroDivisionError), run_server(tmp_path, []):
        assert len(fake.pids) == 3
        assert all(map(managed.is_alive, fake.pids))
        raise ZeroDivisionError
    assert gone(fake)


def test_a_server_that_dies_by_itself_takes_its_children_along(fake, tmp_path, monkeypatch):
    behave(monkeypatch, fake, family=True)
    with run_server(tmp_path, []) as it:
        os.kill(fake.pids[0], signal.SIGKILL)
        managed.wait_for(lambda: gone(fake), "the server's children end")
        managed.wait_for(lambda: it.exit_code is not None, "the end is noticed")
        assert it.exit_code == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_stubborn_server_goes_when_its_guard_is_stopped(fake, tmp_path, monkeypatch, number):
    behave(monkeypatch, fake, family=True, stubborn=True)
    with run_server(tmp_path, []) as it:
        assert len(fake.pids) == 3
        os.kill(parent_of(fake.pids[0]), number)
        managed.wait_for(lambda: it.exit_code is not None, "the end of the guard is noticed")
    assert gone(fake)


def parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[1])


def test_a_guard_that_is_stopped_while_it_starts_the_server_leaves_none(tmp_path):
    code = STOPPED_EARLY.format(place=str(tmp_path / "pid"))
    asked = subprocess.run([sys.executable, "-c", code], cwd=managed.ROOT, stdin=subprocess.PIPE)
    server = int((tmp_path / "pid").read_text(encoding="ascii"))
    try:
        assert not managed.is_alive(server)
        assert asked.returncode == 128 + signal.SIGTERM  # it heard the polite request
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_when_we_are_gone_so_is_the_server(fake, tmp_path, monkeypatch, number):
    behave(monkeypatch, fake, family=True)
    keeper = subprocess.Popen(
        [sys.executable, "-c", KEEPS_ONE, str(tmp_path / "logs")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=managed.ROOT,
    )
    try:
        while keeper.stdout.readline() not in ("inside\n", ""):
            continue
        assert len(fake.pids) == 3
        assert all(map(managed.is_alive, fake.pids))
        os.kill(keeper.pid, number)
        managed.wait_for(lambda: gone(fake), "the server ends with its owner")
    finally:
        keeper.kill()
        keeper.wait()


def test_an_interpreter_without_vllm_is_told_with_the_remedy(monkeypatch):
    for name in ("PYTHONPATH", "JUDGELINE_VLLM_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(VllmError, match=r"pip install vllm\) and set JUDGELINE_VLLM_PYTHON"):
        vllm_python("tiny")
    monkeypatch.setenv("JUDGELINE_VLLM_PYTHON", "/nowhere/python")
    with pytest.raises(VllmError, match="JUDGELINE_VLLM_PYTHON names '/nowhere/python'"):
        vllm_python("tiny")


def test_the_end_of_a_long_log_is_read_without_the_rest(tmp_path):
    log = tmp_path / "long.log"
    log.write_bytes(b"x" * 100_000 + b"\rloading 3/4\n\nlast \xff line\n")
    endpoint = servers.Endpoint("http://127.0.0.1:1/v1", "k" * 32)
    it = Server(None, endpoint, [], log, model="tiny")
    assert it.last_lines(2) == ["loading 3/4", "last \ufffd line"]


TEMPLATE = "{delimiter} {instruction} {first_completion} {second_completion}"
OF_JUDGE = ServedFields(model="tiny", concurrency=2)
BATTLES = numbered(10)


def judge(place: Hosting | None = None, template: str = TEMPLATE, **options) -> ManagedJudge:
    fields = OF_JUDGE.model_copy(update=options.pop("fields", {}))
    given = place or Hosting(logs=Path("nowhere"))
    return ManagedJudge("tiny", fields, VllmOptions(**options), Prompt(template, RUBRIC), given)


def buy(tmp_path: Path, place: Hosting) -> tuple[pd.DataFrame, Buyer]:
    buyer = Buyer(store_in(tmp_path))
    return annotate(judge(place), BATTLES, slug="tiny", buyer=buyer), buyer


def starts(fake: managed.FakeVllm) -> int:
    return len(fake.lines("starts"))


def test_what_shapes_an_answer_is_in_the_identity_and_speed_is_not():
    plain = judge().identity
    assert plain["kind"] == plain["endpoint"] == "vllm"
    assert plain["structured_output"] == "json_schema"
    for options in (
        {"tensor_parallel_size": 4},
        {"data_parallel_size": 2},
        {"startup_timeout_s": 5},
        {"pool": "gpu-2"},
        {"extra_args": ["--gpu-memory-utilization", "0.8", "--max_num_seqs=64"]},
        {"fields": {"concurrency": 99, "timeout_s": 1.0}},
    ):
        assert judge(**options).identity == plain, options
    others = [
        judge(dtype="float32"),
        judge(max_model_len=8192),
        judge(extra_args=["--reasoning-parser", "qwen3"]),
        judge(extra_args=["--max-num-seqs", "4", "--quantization=fp8"]),
        judge(fields={"revision": "abc"}),
        judge(fields={"decoding": Decoding(seed=1)}),
        judge(fields={"log_probabilities": "auto"}),
        judge(fields={"structured_output": "off"}),
        judge(template=TEMPLATE + "!"),
    ]
    identities = [plain, *(one.identity for one in others)]
    assert len({tuple(sorted(one.items())) for one in identities}) == len(identities)


def test_the_server_ends_when_the_answers_are_taken_or_left(fake, tmp_path):
    shown = present(BATTLES, 1)
    asked = judge(Hosting(logs=tmp_path / "logs"))
    assert asked.metadata == {"server": "none was started"}
    answers = asked.answer(shown, Budget())
    assert fake.pids == []  # nothing runs before the first answer is wanted
    next(answers)
    assert managed.is_alive(fake.pids[0])
    answers.close()
    assert gone(fake)
    assert asked.metadata["server"] == "vLLM 0.0-fake"
    assert "--served-model-name tiny" in asked.metadata["command"]
    assert len(list(asked.answer(shown, Budget()))) == 20
    assert gone(fake)
    told = asked.metadata
    assert told["prompt_tokens_cached"] == "50.0%"
    read, written = (float(told[f"{of}_tokens_per_second"]) for of in ("prompt", "answer"))
    assert read / written == pytest.approx(15, rel=0.05)
    assert list(asked.answer([], Budget())) == []
    assert starts(fake) == 2


def test_a_rate_counts_from_the_first_question_and_the_start_stands_beside_it(
    fake, tmp_path, monkeypatch
):
    behave(monkeypatch, fake, slow_start_s=2.0)
    _, buyer = buy(tmp_path, Hosting(logs=tmp_path / "logs"))
    account = buyer.account
    assert account.waiting_s > 2.0
    assert 0 < account.seconds < account.waiting_s
    assert f"{account.n_asked / account.seconds:,.1f}/s" in account.text("tiny", None)
    assert f"after {account.waiting_s:.0f} s of starting its server" in account.text("tiny", None)


def test_a_slot_is_held_while_the_server_runs_and_no_longer(fake, tmp_path):
    events: list[str] = []

    class Slot:
        def __init__(self, pool: str) -> None:
            self.pool = pool

        def __enter__(self) -> None:
            events.append(f"take {self.pool}, {starts(fake)} started")

        def __exit__(self, *_: object) -> None:
            events.append(f"give {self.pool}, {'nobody' if gone(fake) else 'somebody'} left")

    place = Hosting(claim=Slot, logs=tmp_path / "logs")
    assert len(list(judge(place, pool="gpu-2").answer(present(BATTLES, 1), Budget()))) == 20
    assert events == ["take gpu-2, 0 started", "give gpu-2, nobody left"]


def test_a_step_that_fails_with_the_answers_half_taken_leaves_no_server(fake, tmp_path):
    kept = []

    def fail() -> None:
        with Hosting(lambda text: None) as place:
            place.logs = tmp_path / "logs"
            answers = judge(place).answer(present(BATTLES, 1), Budget())
            kept.append(answers)  # as a traceback would
            next(answers)
            assert managed.is_alive(fake.pids[0])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert gone(fake)


def test_a_server_that_dies_ends_the_run_and_loses_nothing(fake, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_VLLM", fake.behaves(dies_after=6)["FAKE_VLLM"])
    monkeypatch.setattr("judgeline.judges.live.troubles.RetryPolicy.delay", lambda *_: 0.0)
    place = Hosting(logs=tmp_path / "logs")
    with pytest.raises(VllmError, match=r"(?s)exit code 9 while it answered.*out of memory"):
        buy(tmp_path, place)
    assert gone(fake)
    monkeypatch.setenv("FAKE_VLLM", "{}")
    done, bought = buy(tmp_path, place)
    assert done["status"].tolist() == ["ok"] * 20
    assert 20 - 8 <= bought.account.n_asked <= 20 - 5  # two in flight may be lost with it


OWN = EmbedderDefinition(slug="own", kind="vllm", model="tiny", batch_size=1, concurrency=1)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"dies_after": 2}, r"embedding 'own': vLLM stopped with exit code 9 while it embedded"),
        ({"crash": 7}, r"vLLM stopped with exit code 7"),
        ({"deaf": True}, r"startup_timeout_s in config/embeddings\.yaml"),
    ],
)
def test_a_failure_of_an_embedder_is_told_as_its_own(fake, tmp_path, monkeypatch, how, told):
    behave(monkeypatch, fake, **how)
    monkeypatch.setattr("judgeline.judges.live.troubles.RetryPolicy.delay", lambda *_: 0.0)
    own = OWN.model_copy(update={"vllm": VllmOptions(startup_timeout_s=5)})
    embedder, came = ManagedEmbedder(own, Hosting(logs=tmp_path / "logs")), []
    with pytest.raises(VllmError, match=told) as caught:
        came.extend(embedder.embed(["one", "two", "three"]))
    assert "judge" not in str(caught.value).replace(str(tmp_path), "")
    assert gone(fake)


def test_an_embedder_without_vllm_is_told_as_one(monkeypatch, tmp_path):
    for name in ("PYTHONPATH", "JUDGELINE_VLLM_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(VllmError, match="embedding 'own' needs vLLM"):
        list(ManagedEmbedder(OWN, Hosting(logs=tmp_path)).embed(["one"]))


def test_a_budget_in_money_without_a_price_is_refused_before_anything_starts(fake, tmp_path):
    def claim(pool: str) -> None:
        pytest.fail(f"nobody needs {pool}")

    asked = judge(Hosting(claim=claim, logs=tmp_path / "logs"))
    with pytest.raises(ValueError, match=r"judge 'tiny' has no price"):
        list(asked.answer(present(BATTLES, 1), Budget.parse(["5EUR"])))
    assert fake.pids == []


def test_a_definition_that_leaves_no_room_for_an_answer_is_refused_before_anything_starts(fake):
    with pytest.raises(ValueError, match=r"context of 'tiny' is 2048; lower decoding.max_tokens"):
        assert judge(max_model_len=2048).identity
    assert fake.pids == []

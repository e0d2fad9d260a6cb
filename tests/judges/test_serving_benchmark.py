"""The benchmark of serving: each server is asked alike, and a row hides no failure."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import managed
import pytest
from tokenizers import Tokenizer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc: Linux only"),
]

SCRIPT = managed.ROOT / "benchmarks" / "serving.py"


def run(*words: str, exit_code: int = 0, **variables: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        env={**os.environ, "PYTHONPATH": str(managed.ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_a_managed_server_is_started_with_and_without_a_prefix_cache(tmp_path):
    fake = managed.install(tmp_path / "site")
    words = ["--made-up", "tiny", "--in-flight", "2", "4", "--rounds", "2", "--bound"]
    lines = run(*words, "--logs", str(tmp_path), JUDGELINE_VLLM_PYTHON="", **fake.variables)
    first, second = fake.lines("starts")
    assert "--load-format dummy --enable-prefix-caching" in first
    assert "--load-format dummy --no-enable-prefix-caching" in second
    rows = [line.split() for line in lines if line.startswith(("on ", "off "))]
    assert [row[:5] for row in rows] == [
        [cache, str(in_flight), str(2 * in_flight), "0", str(2 * in_flight)]
        for cache in ("on", "off")
        for in_flight in (2, 4)
    ]
    assert not any(map(managed.is_alive, fake.pids))


def test_what_an_endpoint_refuses_is_counted_and_told():
    lines = run("--url", "http://127.0.0.1:9/v1", "--model", "m", "--in-flight", "2")
    (row,) = [line.split() for line in lines if line.startswith("as served")]
    assert row[2:8] == ["2", "12", "12", "0", row[6], "0.00"]
    assert "the first failure: ClientConnectorError" in lines[-1]


def test_nothing_is_run_where_no_server_is_named():
    (said,) = run()
    assert said.endswith("not run")


def test_the_tokenizer_of_made_up_weights_is_as_large_as_their_vocabulary():
    spec = importlib.util.spec_from_file_location("serving_benchmark", SCRIPT)
    serving = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serving)
    made = Tokenizer.from_str(json.dumps(serving.tokenizer(3000, ["one word, another word"])))
    assert made.get_vocab_size() == 3000
    assert made.decode(made.encode("one word, naïve").ids) == "one word, naïve"

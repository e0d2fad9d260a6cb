"""`judgeline run` with a judge of kind vllm: one server per run that needs one, none after it."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import dagster as dg
import managed
import pandas as pd
import pytest
import yaml

from judgeline.verdict.identity import text_hash

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc: Linux only")

N_BATTLES = 30
RUN = ["run", "--corpus", "own", "--judge", "tiny"]
VERDICTS = ["--select", "+verdicts"]
MODELS = ("ash", "birch", "cedar")


class Place:
    """A home and a configuration with one judge and one corpus, worked by the command line."""

    def __init__(self, folder: Path, fake: managed.FakeVllm) -> None:
        self.home, self.config, self.fake = folder / "home", folder / "config", fake
        shutil.copytree(managed.ROOT / "config" / "prompts", self.config / "prompts")
        tiny = {"display_name": "Tiny", "family": "none", "kind": "vllm", "model": "tiny"}
        self.write("judges", {"tiny": tiny})
        file = self.config / "battles.csv"
        self.write("corpora", {"own": {"reader": "battles", "location": str(file)}})
        battles().to_csv(file, index=False)

    def write(self, name: str, entries: dict[str, object]) -> None:
        (self.config / f"{name}.yaml").write_text(yaml.safe_dump(entries), encoding="utf-8")

    def start(self, *words: str) -> "subprocess.Popen[str]":
        given = {**os.environ, **self.fake.variables}
        given |= {"JUDGELINE_HOME": str(self.home), "JUDGELINE_CONFIG": str(self.config)}
        for name in ("JUDGELINE_VLLM_PYTHON", "DAGSTER_HOME"):
            given.pop(name, None)
        return subprocess.Popen(
            [sys.executable, "-m", "pipelines", *words],
            env=given,
            cwd=managed.ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def do(self, *words: str, exit_code: int = 0) -> str:
        process = self.start(*words)
        printed, _ = process.communicate()
        assert process.returncode == exit_code, printed
        return " ".join(printed.split())

    @property
    def n_starts(self) -> int:
        return len(self.fake.lines("starts"))

    @property
    def n_answers(self) -> int:
        return len(self.fake.lines("answers"))

    def nobody_is_left(self) -> bool:
        return not any(map(managed.is_alive, self.fake.pids))

    def instance(self) -> dg.DagsterInstance:
        return dg.DagsterInstance.from_config(str(self.home))


def battles() -> pd.DataFrame:
    pairs = [(MODELS[n % 3], MODELS[(n + 1) % 3]) for n in range(N_BATTLES)]
    return pd.DataFrame(
        {
            "battle_id": [f"b{n}" for n in range(N_BATTLES)],
            "model_a": [first for first, _ in pairs],
            "model_b": [second for _, second in pairs],
            "instruction": [f"Question {n}?" for n in range(N_BATTLES)],
            "completion_a": [f"Yes, {text_hash(f'a{n}')}." for n in range(N_BATTLES)],
            "completion_b": [f"No, {text_hash(f'b{n}')}." for n in range(N_BATTLES)],
            "human_outcome": [n % 2 for n in range(N_BATTLES)],
        }
    )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, managed.install(tmp_path / "site"))


@pytest.mark.slow
def test_a_run_starts_one_server_and_another_run_none(place: Place) -> None:
    n_calls = 2 * N_BATTLES
    assert f"own|tiny: {n_calls} calls" in place.do(*RUN, "--dry-run")
    assert place.n_starts == 0
    place.do(*RUN, *VERDICTS)
    assert (place.n_starts, place.n_answers) == (1, n_calls)
    assert place.nobody_is_left()
    place.do(*RUN, *VERDICTS)
    assert (place.n_starts, place.n_answers) == (1, n_calls)
    explained = place.do("verdicts", "explain", "b0", "--judge", "tiny")
    assert explained.count("hit") == 2
    assert place.n_starts == 1

    with place.instance() as instance:
        (made,) = instance.fetch_materializations(dg.AssetKey("verdicts"), limit=2).records
        first = made.asset_materialization.metadata
        assert first["endpoint"].value["server"] == "vLLM 0.0-fake"
        assert "--served-model-name tiny" in first["endpoint"].value["command"]
        words = [log.user_message for log in instance.all_logs(made.run_id)]
        assert any(word.startswith("judging: tiny: vllm: starting tiny") for word in words)
        assert any(word.startswith("judging: tiny: vllm: ready after") for word in words)
        info = instance.event_log_storage.get_concurrency_info("gpu")
        assert (info.slot_count, info.active_run_ids) == (1, set())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_stopped_stops_its_server_and_gives_its_slot_back(place, number) -> None:
    place.fake.behaves(latency_s=1.0, family=True)
    run = place.start(*RUN, *VERDICTS)
    managed.wait_for(lambda: place.n_answers or run.poll() is not None, "the first answer")
    assert len(place.fake.pids) == 3
    os.kill(run.pid, number)
    run.communicate()
    assert run.returncode == 130
    assert place.nobody_is_left()
    with place.instance() as instance:
        info = instance.event_log_storage.get_concurrency_info("gpu")
        assert info.active_run_ids == set()


@pytest.mark.slow
def test_a_server_that_does_not_start_is_the_reason_that_the_run_gives(place: Place) -> None:
    place.fake.behaves(crash=7)
    told = place.do(*RUN, *VERDICTS, exit_code=1)
    assert "vLLM stopped with exit code 7" in told
    assert "fake: no GPU for [key]" in told
    with place.instance() as instance:
        assert instance.event_log_storage.get_concurrency_info("gpu").active_run_ids == set()

"""`judgeline run` with a judge of kind vllm: one server per run that needs one, none after it."""

import os
import signal
from pathlib import Path

import dagster as dg
import managed
import pandas as pd
import pytest
from buyer_process import numbered
from households import RUN, VERDICTS, Household

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc: Linux only")

N_BATTLES = 30
MODELS = ("ash", "birch", "cedar")


def battles() -> pd.DataFrame:
    return numbered(N_BATTLES).assign(
        model_a=[MODELS[n % 3] for n in range(N_BATTLES)],
        model_b=[MODELS[(n + 1) % 3] for n in range(N_BATTLES)],
        human_outcome=[n % 2 for n in range(N_BATTLES)],
    )


@pytest.fixture
def fake(tmp_path: Path) -> managed.FakeVllm:
    return managed.install(tmp_path / "site")


@pytest.fixture
def place(tmp_path: Path, fake: managed.FakeVllm) -> Household:
    place = Household.furnish(tmp_path, JUDGELINE_VLLM_PYTHON="", **fake.variables)
    place.define("tiny")
    place.add_corpus(battles())
    return place


def n_answers(fake: managed.FakeVllm) -> int:
    return len(fake.lines("answers"))


def nobody_is_left(fake: managed.FakeVllm) -> bool:
    return not any(map(managed.is_alive, fake.pids))


def in_the_pool(instance: dg.DagsterInstance) -> set[str]:
    return set(instance.event_log_storage.get_concurrency_info("gpu").active_run_ids)


@pytest.mark.slow
def test_a_run_starts_one_server_and_another_run_none(place, fake):
    n_calls = 2 * N_BATTLES
    assert f"real|tiny: {n_calls} calls" in place.run("--dry-run")
    assert place.servers == 0
    for _ in range(2):
        place.run(*VERDICTS)
        assert (place.servers, n_answers(fake)) == (1, n_calls)
        assert nobody_is_left(fake)
    assert place.do("verdicts", "explain", "b0", "--judge", "tiny").count("hit") == 2
    assert place.servers == 1

    with place.instance() as instance:
        (made,) = instance.fetch_materializations(dg.AssetKey("verdicts"), limit=2).records
        first = made.asset_materialization.metadata
        assert first["endpoint"].value["server"] == "vLLM 0.0-fake"
        assert "--served-model-name tiny" in first["endpoint"].value["command"]
        words = [log.user_message for log in instance.all_logs(made.run_id)]
        assert any(word.startswith("judging: tiny: vllm: starting tiny") for word in words)
        assert any(word.startswith("judging: tiny: vllm: ready after") for word in words)
        assert instance.event_log_storage.get_concurrency_info("gpu").slot_count == 1
        assert in_the_pool(instance) == set()


@pytest.mark.slow
def test_all_forms_of_a_run_are_asked_of_one_server(place, fake):
    place.define("tiny", asks=["rubric", "choice"])
    place.run(*VERDICTS, "--select", "choice_verdicts")
    assert (place.servers, n_answers(fake)) == (1, 2 * 2 * N_BATTLES)
    assert nobody_is_left(fake)
    with place.instance() as instance:
        for table in ("verdicts", "choice_verdicts"):
            (made,) = instance.fetch_materializations(dg.AssetKey(table), limit=2).records
            server = made.asset_materialization.metadata["endpoint"].value["server"]
            assert server == "vLLM 0.0-fake"
        assert in_the_pool(instance) == set()


@pytest.mark.slow
def test_an_embedder_gets_the_pool_that_the_judge_of_its_run_held(place, fake):
    place.add_corpus(battles(), embeddings="own", panel={"battles": 0})
    embedder = "own: {kind: vllm, model: tiny, vllm: {startup_timeout_s: 60}}"
    (place.config / "embeddings.yaml").write_text(embedder, encoding="utf-8")
    place.run("--select", "+rationale_embeddings", "--select", "reliability_panel")
    assert place.servers == 2
    assert nobody_is_left(fake)
    with place.instance() as instance:
        assert in_the_pool(instance) == set()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_stopped_stops_its_server_and_gives_its_slot_back(place, fake, number):
    place.variables |= fake.behaves(latency_s=1.0, family=True)
    run = place.start(*RUN, *VERDICTS)
    managed.wait_for(lambda: n_answers(fake) or run.poll() is not None, "the first answer")
    assert len(fake.pids) == 3
    os.kill(run.pid, number)
    run.communicate()
    assert run.returncode == 130
    assert nobody_is_left(fake)
    with place.instance() as instance:
        assert in_the_pool(instance) == set()


@pytest.mark.slow
def test_a_server_that_does_not_start_is_the_reason_that_the_run_gives(place, fake):
    place.variables |= fake.behaves(crash=7)
    told = place.do(*RUN, *VERDICTS, exit_code=1)
    assert "vLLM stopped with exit code 7" in told
    assert "fake: no GPU for [key]" in told
    with place.instance() as instance:
        assert in_the_pool(instance) == set()

"""`judgeline run` with a real vLLM server: all arrives once, and no server outlives its run."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
from answering import statuses
from households import RUN, VERDICTS, Household
from processes import below, left_after

from judgeline.judges.opening import read_template
from judgeline.verdict.dictation import _tokens, scripts

pytestmark = pytest.mark.slow

PATIENCE_S = 300.0
ANSWERS_S = 900.0  # a server on a busy CPU loads for minutes
RUBRIC = "fenced-rubric.txt"
N_BATTLES = 6  # a CPU writes an answer of random weights in seconds


def key_of(pids: set[int]) -> str:
    """The key of the server among some processes, from the environment of one of them."""
    for pid in pids:
        for word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = word.partition(b"=")
            if name == b"VLLM_API_KEY":
                return value.decode()
    raise AssertionError(f"none of {pids} has a key")


class Story(NamedTuple):
    """What is left of a run that was killed while its server answered, and of one after it."""

    household: Household
    n_calls: int
    kept: set[str]
    secret: str
    told: str


@pytest.fixture(scope="module")
def story(
    tmp_path_factory: pytest.TempPathFactory, python: str, model: Path, battles: pd.DataFrame
) -> Iterator[Story]:
    """Kill a run that has five answers, see what is left to ask, and ask for it."""
    battles = battles.head(N_BATTLES)
    household = Household.furnish(
        tmp_path_factory.mktemp("household"),
        JUDGELINE_VLLM_PYTHON=python,
        HF_HUB_OFFLINE="1",
        VLLM_CPU_KVCACHE_SPACE="1",
    )
    long = battles.iloc[0].to_dict() | {"battle_id": "long"}
    long["completion_a"] = " ".join(battles["completion_a"]) * 6
    household.add_corpus(pd.concat([battles, pd.DataFrame([long])], ignore_index=True))
    household.define(
        model,
        log_probabilities="on",
        concurrency=1,
        structured_output="on",
        decoding={"max_tokens": 400},
        vllm={"extra_args": ["--enforce-eager"]},
    )
    n_calls = 2 * len(battles) + 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGELINE_CONFIG", str(household.config))  # where the tests look things up
        assert f"real|tiny: {n_calls} calls" in household.run("--dry-run")
        assert household.servers == 0
        kept, secret = killed(household)
        told = household.run("--dry-run")
        household.run(*VERDICTS)
        assert household.servers == 2
        yield Story(household, n_calls, kept, secret, told)


def killed(household: Household) -> tuple[set[str], str]:
    """Kill a run once it has five answers; return those that are kept, and its server's key."""
    store, key = household.store(), household.key()
    run = household.start(*RUN, *VERDICTS)
    deadline = time.monotonic() + ANSWERS_S
    while len(set(statuses(store, key))) < 5:
        assert run.poll() is None, run.stdout.read() + household.server_logs()
        assert time.monotonic() < deadline, household.server_logs()
        time.sleep(0.2)
    started = below(run.pid)
    secret = key_of(started)
    assert len(started) >= 4  # the guard, the server, its engine and its worker
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    assert left_after(started, PATIENCE_S) == set()
    return set(statuses(store, key)), secret


def test_an_echo_cannot_arise(battles: pd.DataFrame) -> None:
    """A mark is a token of 1 to 10; without one, no text lists marks or states them by name."""
    for text in battles[["instruction", "completion_a", "completion_b"]].to_numpy().ravel():
        for script in scripts(text):
            assert all(token > 10 for tokens in _tokens(script) for token in tokens)


def test_kill_9_takes_the_server_along_and_only_the_rest_is_asked_again(story: Story) -> None:
    household, n_kept = story.household, len(story.kept)
    assert 5 <= n_kept < story.n_calls
    assert f"{story.n_calls - n_kept} calls ({n_kept} answered already)" in story.told
    verdicts = household.verdicts()
    assert len(verdicts) == story.n_calls
    store = household.store()
    rows = store.scan(household.key(), ["identity", "status", "log_probabilities"]).table
    rows = rows.to_pandas()
    assert rows["identity"].is_unique
    assert set(rows["identity"]) == set(verdicts["identity"])
    for kept_with in rows.loc[rows["status"].eq("ok"), "log_probabilities"]:
        token, logprob, others = json.loads(kept_with)[0]
        assert token.startswith("{")
        assert logprob <= 0
        assert len(others) == 5
    for file in household.home.rglob("*"):
        if file.is_file():
            assert story.secret.encode() not in file.read_bytes(), file


def test_real_texts_are_judged_in_both_orders_and_what_is_too_long_is_said(story: Story) -> None:
    verdicts = story.household.verdicts().set_index("battle_id")
    assert verdicts.loc["long", "status"].tolist() == ["context_overflow"] * 2
    others = verdicts.drop("long")
    assert set(others["status"]) == {"ok"}  # no text holds marks that could be repeated
    orders = others.groupby("battle_id")["order"].agg(lambda shown: " ".join(sorted(shown)))
    assert set(orders) == {"AB BA"}
    assert others["prompt_tokens"].gt(300).all()


def test_another_run_starts_no_server(story: Story) -> None:
    household, first = story.household, story.household.verdicts()
    household.run(*VERDICTS)
    pd.testing.assert_frame_equal(household.verdicts(), first)
    assert household.servers == 2
    assert f"no calls ({story.n_calls} answered already)" in household.run("--dry-run")


def test_another_prompt_misses_all_of_it(story: Story) -> None:
    household = story.household
    (household.config / "prompts").mkdir()
    prompt = read_template(RUBRIC).replace("Grade each", "Judge each")
    (household.config / "prompts" / RUBRIC).write_text(prompt, encoding="utf-8")
    assert f"real|tiny: {story.n_calls} calls" in household.run("--dry-run")
    told = household.do("verdicts", "explain", "b0", "--judge", "tiny")
    assert told.count("miss") == 2
    assert "differs in the template" in told


@pytest.mark.full
def test_another_prompt_is_asked_anew(story: Story) -> None:
    """After the test before: the template has changed."""
    household, first = story.household, story.household.verdicts()
    household.run(*VERDICTS)
    again = household.verdicts()
    assert household.servers == 3
    assert not set(again["identity"]) & set(first["identity"])
    assert len(statuses(household.store(), household.key())) == story.n_calls

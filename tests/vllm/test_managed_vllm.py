"""`judgeline run` with a real vLLM server of our own, on real questions and answers.

The weights are random, so what it says of the models means nothing; that all of it arrives, once,
and that no server outlives its run, is what these show.
"""

import json
import os
import signal
import time
from pathlib import Path

import pandas as pd
import pytest
from households import VERDICTS, Household

pytestmark = pytest.mark.slow

PATIENCE_S = 300.0
RUBRIC = "fenced-rubric.txt"


def family(pid: int) -> set[int]:
    """Everything that a process started and that what it started started, by its id."""
    parents: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        except OSError:
            continue
        parents[int(file.parent.name)] = int(after_name.split()[1])
    found: set[int] = set()
    layer = {pid}
    while layer := {child for child, parent in parents.items() if parent in layer}:
        found |= layer
    return found


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def key_of(pids: set[int]) -> str:
    """The key of the server among some processes, from the environment of one of them."""
    for pid in pids:
        for word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = word.partition(b"=")
            if name == b"VLLM_API_KEY":
                return value.decode()
    raise AssertionError(f"none of {pids} has a key")


def test_real_texts_are_judged_once_and_another_prompt_misses_them(
    household: Household, battles: pd.DataFrame
) -> None:
    household.add_corpus(battles)
    n_calls = 2 * len(battles)
    assert f"real|tiny: {n_calls} calls" in household.run("--dry-run")
    assert household.servers == 0

    household.run(*VERDICTS)
    first = household.verdicts()
    assert len(first) == n_calls
    assert first["status"].value_counts().to_dict() == {"ok": n_calls}
    orders = first.groupby("battle_id")["order"].agg(lambda shown: " ".join(sorted(shown)))
    assert orders.tolist() == ["AB BA"] * len(battles)
    assert first["prompt_tokens"].gt(300).all()
    assert household.servers == 1

    household.run(*VERDICTS)
    pd.testing.assert_frame_equal(household.verdicts(), first)
    assert household.servers == 1
    assert f"no calls ({n_calls} answered already)" in household.run("--dry-run")

    prompt = household.config / "prompts" / RUBRIC
    prompt.write_text(prompt.read_text(encoding="utf-8").replace("Grade each", "Judge each"))
    assert f"real|tiny: {n_calls} calls" in household.run("--dry-run")
    told = household.do("verdicts", "explain", "b0", "--judge", "tiny")
    assert told.count("miss") == 2
    assert "differs in the template" in told
    household.run(*VERDICTS)
    again = household.verdicts()
    assert household.servers == 2
    assert again["status"].eq("ok").all()
    assert not set(again["identity"]) & set(first["identity"])
    assert len(household.store().statuses(household.key())) == n_calls


def test_kill_9_takes_the_server_along_and_only_the_rest_is_asked_again(
    household: Household, battles: pd.DataFrame, model: Path
) -> None:
    long = battles.iloc[0].to_dict() | {"battle_id": "long"}
    long["completion_a"] = " ".join(battles["completion_a"]) * 3
    household.add_corpus(pd.concat([battles, pd.DataFrame([long])], ignore_index=True))
    household.define(model, log_probabilities="on", concurrency=1)
    store, key = household.store(), household.key()

    run = household.start("run", "--corpus", "real", "--judge", "tiny", *VERDICTS)
    deadline = time.monotonic() + PATIENCE_S
    while len(kept := set(store.statuses(key))) < 5:
        assert run.poll() is None, run.stdout.read() + household.server_logs()
        assert time.monotonic() < deadline, household.server_logs()
        time.sleep(0.2)
    started = family(run.pid)
    secret = key_of(started)
    assert len(started) >= 4  # the guard, the server, its engine and its worker
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    kept |= set(store.statuses(key))
    while any(map(is_alive, started)):
        assert time.monotonic() < deadline, [pid for pid in started if is_alive(pid)]
        time.sleep(0.1)

    n_calls = 2 * len(battles) + 2
    assert len(kept) < n_calls
    told = household.run("--dry-run")
    assert f"{n_calls - len(kept)} calls ({len(kept)} answered already)" in told
    household.run(*VERDICTS)
    assert household.servers == 2
    verdicts = household.verdicts().set_index("battle_id")
    assert verdicts.loc["long", "status"].tolist() == ["context_overflow"] * 2
    assert verdicts.drop("long")["status"].eq("ok").all()
    assert len(verdicts) == n_calls

    rows = store.scan(key, ["identity", "status", "log_probabilities"]).table.to_pandas()
    assert sorted(rows["identity"]) == sorted(verdicts["identity"])  # none twice
    for kept_with in rows.loc[rows["status"].eq("ok"), "log_probabilities"]:
        token, logprob, others = json.loads(kept_with)[0]
        assert token.startswith("{")
        assert logprob <= 0
        assert len(others) == 5
    for file in household.home.rglob("*"):
        if file.is_file():
            assert secret.encode() not in file.read_bytes(), file

"""kill -9 of an annotating process, again and again: nothing lost, nothing bought twice."""

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from answering import annotate, statuses
from buyer_process import MOST_LOST, buy, buy_in_small_shards, numbered, store_in, tiny_judge
from fake_judges import ByRubric
from fault_server import FaultServer, scores_of, serving
from forks import forking
from lanes import sized
from upath import UPath

from judgeline.judges import buying
from judgeline.judges.budget import Budget
from judgeline.judges.judge import call_identity, judge_key
from judgeline.judges.presentation import Answer, Presentation, present
from judgeline.judges.store.verdicts import VerdictStore
from judgeline.judges.store.writing import PATIENCE, VerdictWriter
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.verdict.identity import text_hash
from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import RESPONSES

pytestmark = pytest.mark.slow

N_BATTLES, N_KILLS, FLUSH_ROWS = 400, sized(20, 8), 5
BATTLES = numbered(N_BATTLES)


class Slow(ByRubric):
    """A judge that thinks for 2 ms, and writes down each call before it answers."""

    identity = {"kind": "slow"}  # noqa: RUF012

    def __init__(self, ledger: Path, seconds: float = 0.002) -> None:
        self._ledger, self._seconds = ledger, seconds

    def replies(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Iterator[tuple[int, Answer]]:
        descriptor = os.open(self._ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for position, shown in enumerate(presentations):
            os.write(descriptor, f"{call_identity(self, shown)}\n".encode())
            time.sleep(self._seconds)
            marks = text_hash(shown.first_completion + shown.order)
            scores = (dict.fromkeys(CRITERIA, 1 + int(digit, 16) % 10) for digit in marks[:2])
            text = str(dict(zip(RESPONSES, scores, strict=True))).replace("'", '"')
            failure = "refusal" if marks[2] == "0" else None
            yield position, Answer(text, failure, len(shown.instruction), len(text))


def _annotate(base: Path, ledger: Path, seconds: float = 0.002) -> pd.DataFrame:
    buyer = buying.Buyer(VerdictStore(UPath(base)))
    return annotate(Slow(ledger, seconds), BATTLES, slug="slow", buyer=buyer)


def _calls(ledger: Path) -> list[str]:
    return ledger.read_text(encoding="ascii").split() if ledger.exists() else []


def test_kills_lose_nothing_and_buy_nothing_twice(tmp_path: Path, monkeypatch) -> None:
    writer = partial(VerdictWriter, rows=FLUSH_ROWS, seconds=0.01)
    monkeypatch.setattr(buying, "VerdictWriter", writer)
    undisturbed = _annotate(tmp_path / "calm", tmp_path / "calm.txt", 0.0)
    base, ledger = tmp_path / "killed", tmp_path / "killed.txt"
    store, key = VerdictStore(UPath(base)), judge_key(Slow(ledger))
    rng = random.Random(2)  # noqa: S311
    fork = multiprocessing.get_context("fork")
    acknowledged: list[tuple[int, set[str]]] = []
    for number in range(N_KILLS):
        n_before = len(_calls(ledger))
        process = fork.Process(target=_annotate, args=(base, ledger))
        process.start()
        while number % 2 and len(_calls(ledger)) == n_before and process.is_alive():
            time.sleep(0.005)  # every other kill hits a process that certainly buys
        time.sleep(rng.uniform(0.0, 0.12))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        acknowledged.append((len(_calls(ledger)), set(statuses(store, key))))
    disturbed = _annotate(base, ledger)

    pd.testing.assert_frame_equal(disturbed, undisturbed)
    calls = _calls(ledger)
    for n_before, kept in acknowledged:
        assert not kept.intersection(calls[n_before:])  # acknowledged is never asked again
    counts = Counter(calls)
    extra = len(calls) - len(counts)
    assert sorted(store.find(key, counts)[0]["identity"]) == sorted(counts)  # each of them once
    assert len(counts) == 2 * N_BATTLES
    # those waiting for their shard and those being written, and one in flight
    assert extra <= N_KILLS * (2 * PATIENCE * FLUSH_ROWS + 1)
    survivors = [len(kept) for _, kept in acknowledged]
    assert 0 < survivors[-1] < 2 * N_BATTLES  # the kills came while there was something to do
    print(f"{N_KILLS} kills: {len(calls)} calls for {len(counts)} verdicts, {extra} extra")  # noqa: T201


# a real client over HTTP, killed from outside

HTTP_KILLS, HTTP_BATTLES = sized(47, 12), sized(600, 300)


def _texts(shown: Presentation) -> tuple[str, ...]:
    return shown.instruction, shown.first_completion, shown.second_completion


def _by_arithmetic(shown: Presentation) -> list[int]:
    """The scores that the server gives, oriented to the models."""
    scores = scores_of(_texts(shown))
    first, second = (list(scores[response].values()) for response in RESPONSES)
    return first + second if shown.order == "AB" else second + first


def test_kills_over_http_lose_nothing_and_buy_nothing_twice(tmp_path):
    context = forking()
    shown = present(numbered(HTTP_BATTLES), 1)
    rng = random.Random(3)  # noqa: S311
    calls: list[tuple[str, ...]] = []
    with serving(FaultServer(lambda texts, n: calls.append(texts), latency_s=0.01)) as server:
        judge = tiny_judge(server.url, tmp_path)
        texts_of = {call_identity(judge, one): _texts(one) for one in shown}
        store, key = store_in(tmp_path), judge_key(judge)
        acknowledged: list[tuple[int, set[tuple[str, ...]]]] = []
        for number in range(HTTP_KILLS):
            n_before = len(calls)
            process = context.Process(
                target=buy_in_small_shards, args=(server.url, str(tmp_path), HTTP_BATTLES)
            )
            process.start()
            while number % 9 and len(calls) == n_before and process.is_alive():
                time.sleep(0.002)  # one in nine dies before it could buy
            time.sleep(rng.uniform(0.0, 0.12))
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            assert process.exitcode == -signal.SIGKILL
            acknowledged.append((len(calls), {texts_of[i] for i in statuses(store, key)}))
        disturbed = buy(server.url, str(tmp_path), HTTP_BATTLES)

    for n_before, kept in acknowledged:
        assert not kept.intersection(calls[n_before:])  # acknowledged is never asked again
    assert disturbed[list(SCORE_COLUMNS)].to_numpy().tolist() == list(map(_by_arithmetic, shown))
    assert sorted(store.find(key, texts_of)[0]["identity"]) == sorted(texts_of)  # each once
    counts = Counter(calls)
    assert set(counts) == set(texts_of.values())
    extra = len(calls) - len(counts)
    assert extra <= HTTP_KILLS * MOST_LOST
    assert 0 < len(acknowledged[-1][1]) < len(shown)  # the kills came while there was work to do
    print(  # noqa: T201
        f"{HTTP_KILLS} kills over HTTP: {len(calls)} calls for {len(counts)} verdicts, "
        f"{extra} extra, at most {HTTP_KILLS * MOST_LOST}"
    )

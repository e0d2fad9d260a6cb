"""Runs of the real command line and the whole lineage through kills."""

import os
import random
import signal
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from fault_server import FaultServer, serving
from installation import Installation, contested, graded, grades
from upath import UPath

from judgeline.judges.presentation import Presentation, present
from judgeline.judges.store.verdicts import VerdictStore
from judgeline.judges.store.writing import FLUSH_ROWS, PATIENCE
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.verdict.rubric import RESPONSES

pytestmark = pytest.mark.slow

N_KILLS, N_BATTLES, CONCURRENCY = 3, 500, 4
BUY = ("run", "--corpus", "c", "--judge", "j", "--select", "+verdicts")

Key = tuple[str, str]
Texts = tuple[str, ...]


def say(words: str) -> None:
    print(words)  # noqa: T201  what was counted is worth seeing with -s


def texts_of(shown: Presentation) -> Texts:
    return shown.instruction, shown.first_completion, shown.second_completion


def by_arithmetic(shown: Presentation) -> list[int]:
    """The scores that the server gives, oriented to the models."""
    scores = grades(texts_of(shown))
    first, second = (list(scores[response].values()) for response in RESPONSES)
    return first + second if shown.order == "AB" else second + first


def keys_of(table: pd.DataFrame) -> list[Key]:
    return list(zip(table["battle_id"], table["order"], strict=True))


def bought(place: Installation) -> list[Key]:
    """Every row in the verdict store, before anything is collapsed."""
    store = VerdictStore(UPath(place.home / "verdicts"))
    scans = [store.scan(key, ["battle_id", "order"]).table for key in store.judge_keys()]
    return [key for table in scans for key in keys_of(table.to_pandas())]


def test_killed_runs_lose_nothing_and_buy_nothing_twice(tmp_path: Path) -> None:
    calls: list[Texts] = []
    shown = {(one.battle_id, one.order): one for one in present(contested(N_BATTLES), 1)}
    rng = random.Random(4)  # noqa: S311
    acknowledged: list[tuple[int, set[Texts]]] = []
    server = FaultServer(lambda texts, n: calls.append(texts), answer=graded, latency_s=0.03)
    with serving(server):
        place = Installation(tmp_path, server.url, N_BATTLES, judge={"concurrency": CONCURRENCY})
        for number in range(N_KILLS):  # after a question, and every other one after a shard
            progress = partial(bought, place) if number % 2 == 0 else partial(list, calls)
            n_before = len(progress())
            process = place.start(*BUY)
            while len(progress()) == n_before:
                assert process.poll() is None, (tmp_path / "output.txt").read_text()
                time.sleep(0.05)
            time.sleep(rng.uniform(0.0, 1.0))
            os.kill(process.pid, signal.SIGKILL)
            assert process.wait(30) == -signal.SIGKILL
            acknowledged.append((len(calls), {texts_of(shown[key]) for key in bought(place)}))
        code, said = place.command(*BUY)
    assert code == 0, said

    for n_before, kept in acknowledged:
        assert not kept.intersection(calls[n_before:])  # acknowledged is never asked again
    verdicts = place.stored("verdicts", "c", "j")
    assert verdicts["status"].eq("ok").all()
    expected = {key: by_arithmetic(one) for key, one in shown.items()}
    scores = verdicts[list(SCORE_COLUMNS)].to_numpy().tolist()
    assert dict(zip(keys_of(verdicts), scores, strict=True)) == expected
    assert Counter(bought(place)) == Counter(list(shown))  # too few shards to be merged
    assert len(verdicts) == len(shown) == len(set(calls))
    # under work, waiting for their shard, or being written; this judge is slower than any disk
    waiting = 2 * PATIENCE * FLUSH_ROWS
    extra, most = len(calls) - len(shown), N_KILLS * (4 * CONCURRENCY + waiting)
    assert extra <= most
    assert 0 < len(acknowledged[-1][1]) < len(shown)  # the kills came while there was work to do
    say(
        f"{N_KILLS} kills of the command line: {len(calls)} calls for {len(shown)} verdicts, "
        f"{extra} extra, at most {most}"
    )

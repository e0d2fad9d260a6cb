"""Buys verdicts over HTTP in small shards: what a process does that others kill."""

from functools import partial
from pathlib import Path

import pandas as pd
from answering import annotate
from upath import UPath

from judgeline.judges import buying
from judgeline.judges.forms.form import Prompt
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.live import bridge
from judgeline.judges.live.endpoint import Endpoint
from judgeline.judges.live.fields import ServedFields
from judgeline.judges.live.judge import ServedJudge, Site
from judgeline.judges.live.troubles import RetryPolicy
from judgeline.judges.opening import read_template
from judgeline.judges.store.verdicts import VerdictStore
from judgeline.judges.store.writing import PATIENCE, VerdictWriter

CONCURRENCY, SHARD_ROWS, SHARD_SECONDS, BACKLOG = 4, 16, 0.1, 8
MOST_LOST = (
    4 * CONCURRENCY  # questions under work: sent, or waiting to be sent again
    + BACKLOG + 4 * CONCURRENCY  # answers that nobody has taken: every worker may add one
    + 1  # the one just taken
    + 2 * PATIENCE * SHARD_ROWS  # those waiting for their shard, and those being written
)  # fmt: skip
"""Answers that one kill can lose, whatever the machine does meanwhile."""

PROMPT = Prompt(read_template("fenced-rubric.txt"), RUBRIC)


def numbered(n_battles: int) -> pd.DataFrame:
    """Battles whose texts are all different."""
    return pd.DataFrame(
        {
            "battle_id": [f"b{i}" for i in range(n_battles)],
            "model_a": "x",
            "model_b": "y",
            "instruction": [f"Question {i}" for i in range(n_battles)],
            "completion_a": [f"first of {i}" for i in range(n_battles)],
            "completion_b": [f"second of {i}" for i in range(n_battles)],
        }
    )


def tiny_judge(url: str, folder: Path, **fields: object) -> ServedJudge:
    declared = ServedFields(
        **{"model": "tiny", "endpoint_name": "here", "concurrency": CONCURRENCY, **fields}
    )
    policy = RetryPolicy(base_s=0.002, cap_s=0.01)
    return ServedJudge("j", declared, PROMPT, Site(Endpoint(url, "k"), folder, policy))


def store_in(folder: Path) -> VerdictStore:
    return VerdictStore(UPath(folder / "verdicts"))


def buy(url: str, folder: str, n_battles: int) -> pd.DataFrame:
    """Buy the verdicts on numbered battles, keeping them under a folder."""
    judge, buyer = tiny_judge(url, Path(folder)), buying.Buyer(store_in(Path(folder)))
    return annotate(judge, numbered(n_battles), slug="j", buyer=buyer)


def buy_in_small_shards(url: str, folder: str, n_battles: int) -> None:
    """Buy in a process of its own: how answers are kept is changed for all of it."""
    buying.VerdictWriter = partial(VerdictWriter, rows=SHARD_ROWS, seconds=SHARD_SECONDS)
    bridge._MOST_WAITING = BACKLOG
    buy(url, folder, n_battles)

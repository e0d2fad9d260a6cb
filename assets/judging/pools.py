"""Which of Dagster's pools a judge is asked in: one per hosted endpoint, and those of GPUs."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from urllib.parse import urlsplit

import dagster as dg

from resources.config.judges import JudgeDefinition
from resources.judges.live.endpoint import find_endpoint
from resources.judges.managed.options import VllmOptions
from resources.judges.managed.pool import claimed

Turn = Callable[[], AbstractContextManager[object]]


def pool_of(judge: JudgeDefinition) -> str | None:
    """Return the pool in which a judge is asked, or None if it needs no place in one.

    A judge of kind ``vllm`` runs in a pool of GPUs, ``gpu`` unless it says otherwise. One of kind
    ``openai`` shares ``endpoint-NAME`` with all that are asked at the same endpoint: its
    `endpoint_name`, or else the host. Batches take up to a day and few requests, so that a judge
    asked in such needs no place; nor do verdicts that are there, or computed.
    """
    if judge.kind == "vllm":
        return (judge.vllm or VllmOptions()).pool
    if judge.kind != "openai" or judge.batch:
        return None
    name = judge.endpoint_name or urlsplit(find_endpoint(judge.slug, judge).url).netloc
    return f"endpoint-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"


def turn_of(
    context: dg.AssetExecutionContext, judge: JudgeDefinition, tell: Callable[[str], None]
) -> Turn:
    """Return what a run enters before it asks a hosted judge, and leaves after it.

    Until the pool has a place it waits, says so once a minute, and can be interrupted. A server
    that is started for its judge claims a place by itself: see `hosting_of`.
    """
    pool = pool_of(judge)
    if pool is None or judge.kind == "vllm":
        return nullcontext
    return partial(claimed, context.instance, context.run.run_id, pool, tell=tell)

"""The channels to a served judge, opened alike, and what is asked through them."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fault_server import KEY, FaultServer

from judgeline.judges.batch.judge import BatchJudge, LiveJudge, Pace
from judgeline.judges.batch.provider import Limits
from judgeline.judges.forms.form import Prompt
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.live.endpoint import Endpoint
from judgeline.judges.live.fields import ServedFields
from judgeline.judges.live.judge import ServedJudge, Site
from judgeline.judges.live.troubles import RetryPolicy
from judgeline.judges.opening import read_template
from judgeline.judges.presentation import Presentation

TEMPLATE = read_template("fenced-rubric.txt")
PROMPT = Prompt(TEMPLATE, RUBRIC)
QUICK = RetryPolicy(attempts=8, base_s=0.002, cap_s=0.01)
FIELDS: dict[str, Any] = {"model": "tiny", "endpoint_name": "here"}
PATIENT_S = 60.0
"""Seconds for a reply that comes: a busy machine takes its time."""
NOWHERE = FaultServer(url="http://127.0.0.1:9/v1")

Fault = Callable[[tuple[str, ...], int], str | None]


def presentation(number: int, order: str = "AB", replicate: int = 0) -> Presentation:
    texts = (f"first answer {number}", f"second answer {number}")
    shown = texts if order == "AB" else texts[::-1]
    return Presentation(f"b{number}", order, replicate, f"question {number}", *shown, "x", "y")


SHOWN = [presentation(i, order) for i in range(15) for order in ("AB", "BA")]


def some(n: int) -> list[Presentation]:
    return [presentation(i) for i in range(n)]


def always(name: str) -> Fault:
    return lambda texts, n: name


def once(name: str) -> Fault:
    return lambda texts, n: name if n == 0 else None


def on_question(number: int, name: str) -> Fault:
    return lambda texts, n: name if texts[0].lower() == f"question {number}" else None


def live(
    server: FaultServer,
    folder: Path,
    policy: RetryPolicy = QUICK,
    *,
    key: str = KEY,
    warn: Callable[[str], None] = logging.warning,
    **fields: Any,
) -> ServedJudge:
    declared = ServedFields(**{**FIELDS, "timeout_s": PATIENT_S, **fields})
    site = Site(Endpoint(server.url, key), folder, policy, warn)
    return LiveJudge("j", declared, PROMPT, site)


def batch(
    server: FaultServer,
    folder: Path,
    limits: Limits | None = None,
    *,
    tell: Callable[[str], None] = logging.info,
    outage_s: float = 600.0,
    warn: Callable[[str], None] = logging.warning,
    **fields: Any,
) -> BatchJudge:
    declared = ServedFields(**{**FIELDS, "timeout_s": 5.0, **fields})
    site = Site(Endpoint(server.url, KEY), folder, QUICK, warn)
    pace = Pace(0.001, 0.004, outage_s)
    return BatchJudge("j", declared, PROMPT, site, limits=limits, pace=pace, tell=tell)


CHANNELS = {"live": live, "batch": batch}

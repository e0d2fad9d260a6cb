"""GPU hours of a plan for servers of our own, by the speed of earlier runs."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import dagster as dg

from assets.judging.assets import ASKED
from assets.provenance import latest_said
from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.forms.registered import FORM_TABLES
from judgeline.judges.judge_plan import JudgePlan, gpu_hours
from pipelines.sensors.activity import identity_now
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.tables.store import ParquetStore

_RUNS = 50
"""Latest tables of a judge among which one tells its speed: many are made of stored answers."""

Opened = Callable[[], AbstractContextManager[dg.DagsterInstance]]


def with_gpu_hours(
    plan: Sequence[JudgePlan],
    asked: Sequence[tuple[CorpusDefinition, JudgeDefinition]],
    catalog: Catalog,
    store: ParquetStore,
    opened: Opened,
) -> tuple[JudgePlan, ...]:
    """Return a plan, a step per corpus and judge `asked`, with GPU hours of servers of our own.

    The instance is opened only where a judge was asked something before.
    """
    if not any(step.is_own for step in plan):
        return tuple(plan)
    is_made = any(store.partitions(name, slug) for name in ASKED for slug in catalog.corpora())
    timed = []
    with opened() if is_made else nullcontext() as instance:
        for step, (corpus, judge) in zip(plan, asked, strict=True):
            rates = speeds(instance, judge, corpus) if instance and step.is_own else {}
            hours = gpu_hours(judge, step.by_form, rates) if step.is_own else ""
            timed.append(replace(step, gpu_hours=hours))
    return tuple(timed)


def speeds(
    instance: dg.DagsterInstance, judge: JudgeDefinition, corpus: CorpusDefinition
) -> dict[str, float]:
    """Return a judge's calls a second by form, in the last run that asked it on any corpus."""
    found = {}
    for form in judge.asks:
        asset, now = FORM_TABLES[form].name, identity_now(judge, corpus, form)
        places = instance.get_materialized_partitions(dg.AssetKey(asset))
        own = [place for place in places if place.endswith(f"|{judge.slug}")]
        for made in latest_said(instance, asset, own, _RUNS):
            n_asked, seconds = (made.get(name, 0) for name in ("n_asked", "seconds_asking"))
            if n_asked and seconds and made.get("judge_identity") == now:
                found[form] = n_asked / seconds
                break
    return found

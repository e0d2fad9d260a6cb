"""A backfill: judges on corpora that are there already, made by the daemon of the instance.

It is Dagster's own asset backfill, the one that its web interface starts, of exactly what each
judge's verdicts support.
"""

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.definitions.events import AssetKeyPartitionKey
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.utils import make_new_backfill_id

from assets.judging.budgets import NO_CAP, require_environment
from assets.judging.planning import plan_judge
from assets.partitions import corpus_judge_key, register
from assets.run_tags import BUDGET_TAG
from pipelines.commands.able import judges_of
from pipelines.commands.supported import common_part, supported_part
from pipelines.sensors.candidates import has_candidates
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.config.judges import JudgeDefinition
from resources.judges.buying import Buyer
from resources.judges.judge_plan import JudgePlan
from resources.tables.store import ParquetStore

WITHOUT_CORPUS = "not group:corpus and not group:candidates and not candidate_verdicts"
"""What a backfill makes, as a selection of a run: nothing of the corpus and nothing of new models.

It is what the daemon's backfill makes; new models are placed by a sensor, with a budget of theirs.
"""
_NEEDED_DAEMONS = ("BACKFILL", "QUEUED_RUN_COORDINATOR")
_LONGEST_SILENCE_S = 120.0  # a daemon gives a sign of life every 30 s


class Pair(NamedTuple):
    """A judge on a corpus."""

    corpus: CorpusDefinition
    judge: JudgeDefinition


def choose_pairs(
    catalog: Catalog,
    store: ParquetStore,
    judges: Sequence[str],
    corpora: Sequence[str] = (),
) -> list[Pair]:
    """Return who is to judge what: the named corpora, or all that are there and can be judged."""
    chosen = [catalog.judge(slug) for slug in dict.fromkeys(judges)]
    if corpora:
        named = [catalog.corpus(slug) for slug in dict.fromkeys(corpora)]
        for corpus in named:
            _require_read(corpus, store)
            judges_of(corpus, catalog, [judge.slug for judge in chosen])
        return [Pair(corpus, judge) for corpus in named for judge in chosen]
    there = [
        corpus
        for corpus in catalog.corpora().values()
        if store.stored("sampled_battles", corpus.slug) is not None
    ]
    pairs = [
        Pair(corpus, judge)
        for corpus in there
        for judge in chosen
        if judge.slug in (corpus.judges or ()) or _can_judge(judge, corpus, store)
    ]
    for judge in chosen:
        if not any(pair.judge.slug == judge.slug for pair in pairs):
            known = ", ".join(corpus.slug for corpus in there) or "none"
            raise ValueError(
                f"there is no corpus that judge {judge.slug!r} can judge (read so far: {known}); "
                f"read one first: judgeline run --corpus SLUG --judge {judge.slug}"
            )
    return pairs


def _require_read(corpus: CorpusDefinition, store: ParquetStore) -> None:
    if store.stored("sampled_battles", corpus.slug) is None:
        raise ValueError(
            f"corpus {corpus.slug!r} has no sampled battles yet; read it first: "
            f"judgeline run --corpus {corpus.slug} --select group:corpus"
        )


def _can_judge(judge: JudgeDefinition, corpus: CorpusDefinition, store: ParquetStore) -> bool:
    came = store.stored("recorded_verdicts", corpus.slug)
    if came is not None and came["judge"].eq(judge.slug).any():
        return True
    if judge.kind in ("recorded", "builtin"):
        return judge.kind == "builtin" and corpus.reader == "arena"
    sample = store.stored("sampled_battles", corpus.slug)
    return sample is not None and bool(
        sample[["instruction", "completion_a", "completion_b"]].notna().all(axis=None)
    )


def plan_backfill(
    pairs: Iterable[Pair], store: ParquetStore, buyer: Buyer
) -> tuple[JudgePlan, ...]:
    """Return what each judge would be asked about the battles that are sampled now."""
    require_environment()
    plans = []
    for corpus, judge in pairs:
        sample = store.stored("sampled_battles", corpus.slug)
        came = store.stored("recorded_verdicts", corpus.slug)
        if sample is None or came is None:
            _require_read(corpus, store)
            raise ValueError(
                f"corpus {corpus.slug!r} has no table of recorded verdicts; read it again: "
                f"judgeline run --corpus {corpus.slug} --select group:corpus"
            )
        plans.append(plan_judge(judge, corpus, sample, came, store, buyer))
    return tuple(plans)


def left_to_sensor(pairs: Iterable[Pair], store: ParquetStore) -> list[str]:
    """Return per corpus with new models and judges that can be asked who places them and when."""
    corpora = {pair.corpus.slug: pair.corpus for pair in pairs if pair.judge.kind != "recorded"}
    return [
        f"{slug} has candidates, which are not part of it: afterwards the sensor place_candidates "
        f"of a daemon, or judgeline run --corpus {slug}, places them, within candidates.budget "
        f"({' '.join(corpus.candidates.budget)} for each judge and run)"
        for slug, corpus in corpora.items()
        if has_candidates(corpus, store)
    ]


def require_daemon(instance: dg.DagsterInstance) -> None:
    """Check that a daemon is at work on the instance, which is what runs a backfill."""
    heartbeats = instance.get_daemon_heartbeats()
    required = instance.get_required_daemon_types()
    for kind in (kind for kind in _NEEDED_DAEMONS if kind in required):
        beat = heartbeats.get(kind)
        silent_for = time.time() - beat.timestamp if beat is not None else None
        if silent_for is None or silent_for > _LONGEST_SILENCE_S:
            told = "never seen" if silent_for is None else f"silent for {silent_for:,.0f} s"
            raise RuntimeError(
                f"no daemon runs backfills of this instance ({kind.lower()}: {told}). Start one "
                "and leave it running: judgeline ui (docs/judges-and-schedules.md). Or do the "
                "work in this process: add --here"
            )


def submit(
    instance: dg.DagsterInstance,
    defs: dg.Definitions,
    store: ParquetStore,
    pairs: Sequence[Pair],
    budget: Sequence[str] = (),
) -> str:
    """Hand a backfill to the daemon of an instance, and return its id."""
    register(
        instance,
        corpora=[pair.corpus.slug for pair in pairs],
        judges=[pair.judge.slug for pair in pairs],
    )
    backfill_id = make_new_backfill_id()
    tags = {BUDGET_TAG: " ".join(budget) or NO_CAP}  # a person typed it
    judges = sorted({pair.judge.slug for pair in pairs})
    instance.add_backfill(
        PartitionBackfill.from_asset_graph_subset(
            backfill_id=backfill_id,
            backfill_timestamp=time.time(),
            tags=tags,
            dynamic_partitions_store=instance,
            asset_graph_subset=_target(defs, store, pairs),
            title=f"judgeline backfill of {', '.join(judges)}",
            description=None,
            run_config=None,
        )
    )
    return backfill_id


def cancel(instance: dg.DagsterInstance, backfill_id: str) -> None:
    """Ask the daemon to end a backfill and its runs; what was bought is kept."""
    backfill = instance.get_backfill(backfill_id)
    if backfill is None:
        raise ValueError(f"there is no backfill {backfill_id!r}; the UI lists them under Runs")
    if backfill.status != BulkActionStatus.REQUESTED:
        raise ValueError(f"backfill {backfill_id!r} is {backfill.status.value.lower()} already")
    instance.update_backfill(backfill.with_status(BulkActionStatus.CANCELING))


def _target(defs: dg.Definitions, store: ParquetStore, pairs: Sequence[Pair]) -> AssetGraphSubset:
    """Return the partitions to make: those of each judge, and the comparison of each corpus."""
    graph = defs.resolve_asset_graph()
    judged, compared = (
        defs.resolve_job_def(name).asset_layer.executable_asset_keys
        for name in ("judge_job", "comparison_job")
    )
    targets: set[AssetKeyPartitionKey] = set()
    for corpus in sorted({pair.corpus.slug for pair in pairs}):
        judges = [pair.judge.slug for pair in pairs if pair.corpus.slug == corpus]
        parts = {judge: supported_part(graph, store, corpus, judge) for judge in judges}
        for judge, part in parts.items():
            partition = corpus_judge_key(corpus, judge)
            targets |= {AssetKeyPartitionKey(key, partition) for key in judged - part.left_out}
        together = common_part(parts, dict.fromkeys(parts, True))
        left_out = together.left_out if together else frozenset()
        targets |= {AssetKeyPartitionKey(key, corpus) for key in compared - left_out}
    return AssetGraphSubset.from_asset_partition_set(targets, graph)

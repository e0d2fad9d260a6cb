"""The sensor that makes partitions equal to what the configuration holds."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import dagster as dg
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus

from assets.partitions import CORPUS, JUDGE, corpus_judge_key
from pipelines.jobs import comparison_job
from resources.catalog import Catalog

_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.MANAGED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_NEEDED: dict[str, tuple[str, ...]] = {
    "judge_comparison": (
        "leaderboard",
        "heldout_ratings",
        "conformal_calibration",
        "judge_diagnostics",
        "verdicts",
        "scored_battles",
    ),
    "method_comparison": ("scoring_methods",),
    "rating_systems": ("reference_ratings",),
}
"""Tables that a judge must have, all of them, to be part of a comparison."""
_REPORTED = {"judge_comparison", "method_comparison"}


class Changes(NamedTuple):
    """What the configuration adds to a dimension, and what is no longer in it."""

    added: tuple[str, ...]
    gone: tuple[str, ...]


@dg.sensor(
    jobs=[comparison_job],
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Adds corpora and judges of the configuration as partitions, and retires those "
    "that are gone; deletes no table and no verdict.",
)
def configured_partitions(context: dg.SensorEvaluationContext, catalog: Catalog) -> dg.SensorResult:
    """Make partitions equal to the configured corpora and judges.

    A file that cannot be read changes nothing. Nobody is retired who was there at the look
    before, since half a file can be whole YAML, nor while a run or a backfill could be at work on
    them. What compares the judges of a corpus is made again where those changed.
    """
    try:
        corpora, judges = catalog.corpora(), catalog.judges()
    except (ValueError, OSError) as error:
        told = f"partitions stay as they are: {error}"
        context.log.error(told)
        # who was gone at the look before has to be gone at two further ones
        return dg.SensorResult(skip_reason=told, cursor="{}")
    instance = context.instance
    seen = {
        "corpus": _changes(instance, "corpus", corpora),
        "judge": _changes(instance, "judge", judges),
    }
    by_dimension, why_not = _due(instance, seen, json.loads(context.cursor or "{}"))
    told = [line for name, found in by_dimension.items() for line in _told(name, found)] + why_not
    context.log.info("; ".join(told))
    requests = [
        request
        for definition, found in ((CORPUS, by_dimension["corpus"]), (JUDGE, by_dimension["judge"]))
        for request in _requests(definition, found)
    ]
    told = told or [f"{len(corpora)} corpora and {len(judges)} judges, all known"]
    compared = _compared_again(instance, list(corpora), list(judges), by_dimension["judge"])
    return dg.SensorResult(
        dynamic_partitions_requests=requests,
        run_requests=list(compared) if requests else [],
        skip_reason=None if requests else dg.SkipReason("; ".join(told)),
        cursor=json.dumps({name: found.gone for name, found in seen.items()}),
    )


def _due(
    instance: dg.DagsterInstance, seen: dict[str, Changes], missed: dict[str, list[str]]
) -> tuple[dict[str, Changes], list[str]]:
    """Return the changes to make now, and why others wait; `missed` were gone a look ago too."""
    gone = {
        name: tuple(one for one in found.gone if one in missed.get(name, ()))
        for name, found in seen.items()
    }
    first = [one for name, found in seen.items() for one in found.gone if one not in gone[name]]
    why_not = [f"not in the configuration, retired at the next look: {', '.join(first)}"]
    if any(gone.values()) and (busy := _busy(instance)):
        gone = dict.fromkeys(seen, ())
        why_not.append(f"nobody is retired before {busy} has ended")
    due = {name: found._replace(gone=gone[name]) for name, found in seen.items()}
    return due, why_not if first else why_not[1:]


def _changes(instance: dg.DagsterInstance, dimension: str, wanted: dict[str, object]) -> Changes:
    known = set(instance.get_dynamic_partitions(dimension))
    return Changes(tuple(sorted(set(wanted) - known)), tuple(sorted(known - set(wanted))))


def _told(dimension: str, found: Changes) -> list[str]:
    lines = []
    if found.added:
        lines.append(f"{dimension} added: {', '.join(found.added)}")
    if found.gone:
        lines.append(f"{dimension} retired, tables and verdicts stay: {', '.join(found.gone)}")
    return lines


def _requests(
    definition: dg.DynamicPartitionsDefinition, found: Changes
) -> Iterator[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest]:
    if found.added:
        yield definition.build_add_request(list(found.added))
    if found.gone:
        yield definition.build_delete_request(list(found.gone))


def _busy(instance: dg.DagsterInstance) -> str:
    """Return what is at work and could need a partition, in words; empty where nothing is."""
    at_work = [BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING]
    backfills = instance.get_backfills(filters=BulkActionsFilter(statuses=at_work), limit=1)
    if backfills:
        return f"backfill {backfills[0].backfill_id}"
    runs = instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED), limit=1)
    return f"run {runs[0].run_id}" if runs else ""


def _compared_again(
    instance: dg.DagsterInstance, corpora: list[str], judges: list[str], changed: Changes
) -> Iterator[dg.RunRequest]:
    """Request what compares judges and is joined or left by one, where another has what it needs.

    A judge that was run in part is part of what its tables are enough for.
    """
    made = {
        name: instance.get_materialized_partitions(dg.AssetKey(name))
        for names in _NEEDED.values()
        for name in names
    }
    able = {name: set.intersection(*(made[one] for one in of)) for name, of in _NEEDED.items()}
    known = set(instance.get_dynamic_partitions("corpus"))
    moved = (*changed.added, *changed.gone)
    for corpus in sorted(known.intersection(corpora)):
        there = {
            name
            for name, partitions in able.items()
            if any(corpus_judge_key(corpus, judge) in partitions for judge in moved)
            and any(corpus_judge_key(corpus, judge) in partitions for judge in judges)
        }
        if there:
            report = {"report"} if there & _REPORTED else set()
            yield dg.RunRequest(
                job_name=comparison_job.name,
                partition_key=corpus,
                asset_selection=[dg.AssetKey(name) for name in sorted(there | report)],
            )

"""The sensor that makes partitions equal to what is configured and in use."""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import dagster as dg
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus

from assets.partitions import CORPUS, JUDGE, corpus_judge_key
from pipelines.commands.able import judges_of
from pipelines.jobs import comparison_job
from pipelines.sensors.durations import sensor_seconds
from resources.config.catalog import Catalog

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
    "pooled_leaderboard": ("leaderboard", "scored_battles"),
    "method_comparison": ("scoring_methods",),
    "rating_systems": ("reference_ratings",),
}
"""Tables that a judge must have, all of them, to be part of a comparison."""
_REPORTED = {"judge_comparison", "method_comparison"}


_SEEN = "configured"
"""What was configured at the look before, in a cursor; without it, unused partitions are retired.

Versions before this one made partitions of all that was configured.
"""


class Changes(NamedTuple):
    """What is missing in a dimension, and what does not belong there any more."""

    added: tuple[str, ...]
    gone: tuple[str, ...]


@dg.sensor(
    jobs=[comparison_job],
    minimum_interval_seconds=sensor_seconds(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Adds corpora that were read and the judges that they name, or that were asked, as "
    "partitions, and retires those that left the configuration; deletes no table and no verdict.",
)
def configured_partitions(context: dg.SensorEvaluationContext, catalog: Catalog) -> dg.SensorResult:
    """Make partitions equal to the configured corpora and judges that are in use.

    A file that cannot be read changes nothing. Nobody is retired who was there at the look
    before, since half a file can be whole YAML, nor while a run or a backfill could be at work on
    them. What compares the judges of a corpus is made again where those changed.
    """
    cursor, instance = json.loads(context.cursor or "{}"), context.instance
    try:
        configured = {"corpus": catalog.corpora(), "judge": catalog.judges()}
    except (ValueError, OSError) as error:
        told = f"partitions stay as they are: {error}"
        context.log.error(told)
        # who was gone at the look before has to be gone at two further ones
        kept = {name: value for name, value in cursor.items() if name == _SEEN}
        return dg.SensorResult(skip_reason=told, cursor=json.dumps(kept))
    corpora, judges = _wanted(instance, catalog, configured, cursor.get(_SEEN))
    seen = {
        "corpus": _changes(instance, "corpus", corpora),
        "judge": _changes(instance, "judge", judges),
    }
    by_dimension, why_not = _due(instance, seen, cursor)
    told = [line for name, found in by_dimension.items() for line in _told(name, found)] + why_not
    context.log.info("; ".join(told))
    requests = [
        request
        for definition, found in ((CORPUS, by_dimension["corpus"]), (JUDGE, by_dimension["judge"]))
        for request in _requests(definition, found)
    ]
    told = told or [f"{len(corpora)} corpora and {len(judges)} judges, all known"]
    compared = _compared_again(instance, corpora, judges, by_dimension["judge"])
    gone = {name: found.gone for name, found in seen.items()}
    return dg.SensorResult(
        dynamic_partitions_requests=requests,
        run_requests=list(compared) if requests else [],
        skip_reason=None if requests else dg.SkipReason("; ".join(told)),
        cursor=json.dumps({**gone, **_seen(configured, gone, cursor)}),
    )


def _wanted(
    instance: dg.DagsterInstance,
    catalog: Catalog,
    configured: Mapping[str, Mapping[str, Any]],
    seen: Mapping[str, list[str]] | None,
) -> tuple[list[str], list[str]]:
    """Return the corpora and judges to have as partitions: in use, or new in the configuration.

    What was registered, or added in the interface, stays as long as it is configured.
    """
    corpora, judges = in_use(instance, catalog)
    if seen is not None:
        kept = {
            name: {*instance.get_dynamic_partitions(name), *(set(configured[name]) - {*seen[name]})}
            for name in configured
        }
        corpora, judges = corpora | kept["corpus"], judges | kept["judge"]
    return (
        [one for one in configured["corpus"] if one in corpora],
        [one for one in configured["judge"] if one in judges],
    )


def in_use(instance: dg.DagsterInstance, catalog: Catalog) -> tuple[set[str], set[str]]:
    """Return the corpora that were read, and the judges that were asked or that those name.

    An arena names its simulated judges, who cost nothing.
    """
    read = instance.get_materialized_partitions(dg.AssetKey("raw_battles"))
    asked = instance.get_materialized_partitions(dg.AssetKey("verdicts"))
    judges = {judge for pair in asked for judge in pair.split("|")[1:]}
    known = catalog.corpora()
    for corpus in (known[slug] for slug in read & set(known)):
        with suppress(ValueError):  # a corpus that nobody can judge names nobody
            judges |= {judge.slug for judge in judges_of(corpus, catalog)}
        if corpus.reader == "arena":
            judges |= {slug for slug, one in catalog.judges().items() if one.kind == "builtin"}
    return set(read), judges


def _seen(
    configured: Mapping[str, Mapping[str, Any]],
    gone: Mapping[str, tuple[str, ...]],
    cursor: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what a cursor holds of the configuration, once what was never used is retired."""
    if _SEEN not in cursor and any(gone.values()):
        return {}
    return {_SEEN: {name: sorted(entries) for name, entries in configured.items()}}


def _due(
    instance: dg.DagsterInstance, seen: dict[str, Changes], missed: dict[str, list[str]]
) -> tuple[dict[str, Changes], list[str]]:
    """Return the changes to make now, and why others wait; `missed` were gone a look ago too."""
    gone = {
        name: tuple(one for one in found.gone if one in missed.get(name, ()))
        for name, found in seen.items()
    }
    first = [one for name, found in seen.items() for one in found.gone if one not in gone[name]]
    why_not = [f"not configured, or never used; retired at the next look: {', '.join(first)}"]
    if any(gone.values()) and (busy := _busy(instance)):
        gone = dict.fromkeys(seen, ())
        why_not.append(f"nobody is retired before {busy} has ended")
    due = {name: found._replace(gone=gone[name]) for name, found in seen.items()}
    return due, why_not if first else why_not[1:]


def _changes(instance: dg.DagsterInstance, dimension: str, wanted: Collection[str]) -> Changes:
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

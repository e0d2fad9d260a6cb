"""The sensor that makes partitions equal to the configured corpora and judges in use."""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import dagster as dg

from assets.partitions import CORPUS, JUDGE, corpus_judge_key
from pipelines.commands.plan import judges_of
from pipelines.instance.homes import UNFINISHED
from pipelines.instance.internals import backfill_at_work
from pipelines.jobs import comparison_job
from pipelines.sensors.durations import RUNNING
from resources.config.catalog import Catalog

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
    "report": ("scoring_methods",),
}
"""Tables that a judge must have, all of them, to be part of a comparison."""
_SEEN = "configured"
"""What was configured at the look before, in a cursor; without it, as in versions before this one,
unused partitions are retired."""


class Changes(NamedTuple):
    """Partitions to add to a dimension, and those to retire from it."""

    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


def due(
    known: Mapping[str, Collection[str]],
    wanted: Mapping[str, Collection[str]],
    missed: Mapping[str, Collection[str]],
    busy: str,
) -> tuple[dict[str, Changes], list[str]]:
    """Return the changes by dimension, and lines on them and on those that wait.

    What was `missed` at the look before as well is retired, while nothing is `busy`.
    """
    changes, lines, first, waits = {}, [], [], False
    for name in known:
        absent = sorted({*known[name]} - {*wanted[name]})
        gone = tuple(one for one in absent if one in missed.get(name, ()))
        first += [one for one in absent if one not in gone]
        added = tuple(sorted({*wanted[name]} - {*known[name]}))
        if added:
            lines.append(f"{name} added: {', '.join(added)}")
        if gone and not busy:
            lines.append(f"{name} retired, tables and verdicts stay: {', '.join(gone)}")
        waits |= bool(gone and busy)
        changes[name] = Changes(added, () if busy else gone)
    if first:
        lines.append(f"not configured, or never used; retired at the next look: {', '.join(first)}")
    if waits:
        lines.append(f"nobody is retired before {busy} has ended")
    return changes, lines


@dg.sensor(
    jobs=[comparison_job],
    **RUNNING,
    description="Adds corpora that were read and the judges that they name, or that were asked, as "
    "partitions, and retires those that left the configuration; deletes no table and no verdict.",
)
def configured_partitions(context: dg.SensorEvaluationContext, catalog: Catalog) -> dg.SensorResult:
    """Make partitions equal to the configured corpora and judges that are in use.

    A file that cannot be read changes nothing. Nobody is retired who was there at the look before,
    since half a file can be whole YAML, nor while a run or a backfill could be at work on them.
    """
    cursor, instance = json.loads(context.cursor or "{}"), context.instance
    try:
        configured: dict[str, Any] = {"corpus": catalog.corpora(), "judge": catalog.judges()}
    except (ValueError, OSError) as error:
        why = f"partitions stay as they are: {error}"
        context.log.error(why)
        # who was gone at the look before has to be gone at two further ones
        kept = {name: value for name, value in cursor.items() if name == _SEEN}
        return dg.SensorResult(skip_reason=why, cursor=json.dumps(kept))
    wanted = _wanted(instance, catalog, configured, cursor.get(_SEEN))
    known = {name: instance.get_dynamic_partitions(name) for name in configured}
    changes, lines = due(known, wanted, cursor, _busy(instance))
    if lines:  # each look that logs leaves a file
        context.log.info("; ".join(lines))
    requests: list[Any] = []
    for definition, (added, gone) in zip((CORPUS, JUDGE), changes.values(), strict=True):
        requests += [definition.build_add_request(list(added))] if added else []
        requests += [definition.build_delete_request(list(gone))] if gone else []
    counts = f"{len(wanted['corpus'])} corpora and {len(wanted['judge'])} judges, all known"
    seen: dict[str, Any] = {n: sorted({*known[n]} - {*wanted[n]}) for n in configured}
    if _SEEN in cursor or not any(seen.values()):  # not before what was never used is retired
        seen[_SEEN] = {name: sorted(entries) for name, entries in configured.items()}
    compared = _compared_again(instance, wanted, changes["judge"]) if requests else ()
    return dg.SensorResult(
        dynamic_partitions_requests=requests,
        run_requests=list(compared),
        skip_reason=None if requests else dg.SkipReason("; ".join(lines) or counts),
        cursor=json.dumps(seen),
    )


def _wanted(
    instance: dg.DagsterInstance,
    catalog: Catalog,
    configured: Mapping[str, Mapping[str, Any]],
    seen: Mapping[str, list[str]] | None,
) -> dict[str, list[str]]:
    """Return the corpora and judges to have: in use, new in the configuration, or registered."""
    wanted = dict(zip(configured, in_use(instance, catalog), strict=True))
    for name, entries in configured.items():
        if seen is not None:
            new = {*entries} - {*seen[name]}
            wanted[name] |= {*instance.get_dynamic_partitions(name), *new}
    return {name: [one for one in configured[name] if one in wanted[name]] for name in configured}


def in_use(instance: dg.DagsterInstance, catalog: Catalog) -> tuple[set[str], set[str]]:
    """Return the corpora that were read, and the judges that were asked, named there, or added."""
    read = {
        corpus
        for asset in ("raw_battles", "learnt_ratings")
        for corpus in instance.get_materialized_partitions(dg.AssetKey(asset))
    }
    asked = instance.get_materialized_partitions(dg.AssetKey("verdicts"))
    judges = {judge for pair in asked for judge in pair.split("|")[1:]} | {*catalog.own_judges()}
    known = catalog.corpora()
    for corpus in (known[slug] for slug in read & set(known)):
        with suppress(ValueError):  # a corpus that nobody can judge names nobody
            judges |= {judge.slug for judge in judges_of(corpus, catalog, instance=instance)}
        if corpus.reader == "arena":
            judges |= {slug for slug, one in catalog.judges().items() if one.kind == "builtin"}
    return read, judges


def _busy(instance: dg.DagsterInstance) -> str:
    """Return the backfill or run under way that could need a partition; empty if none is."""
    if backfill := backfill_at_work(instance):
        return f"backfill {backfill}"
    runs = instance.get_runs(dg.RunsFilter(statuses=UNFINISHED), limit=1)
    return f"run {runs[0].run_id}" if runs else ""


def _compared_again(
    instance: dg.DagsterInstance, wanted: Mapping[str, Collection[str]], changed: Changes
) -> Iterator[dg.RunRequest]:
    """Request the comparisons that a judge joins or leaves, if another judge has tables."""
    tables = {one for needed in _NEEDED.values() for one in needed}
    made = {one: instance.get_materialized_partitions(dg.AssetKey(one)) for one in tables}
    able = {name: set.intersection(*(made[one] for one in of)) for name, of in _NEEDED.items()}
    known = set(instance.get_dynamic_partitions("corpus"))
    for corpus in sorted(known.intersection(wanted["corpus"])):
        moved, left = (
            {corpus_judge_key(corpus, judge) for judge in judges}
            for judges in ((*changed.added, *changed.gone), wanted["judge"])
        )
        there = {name for name, parts in able.items() if parts & moved and parts & left}
        if there:
            report = {"report"} if "judge_comparison" in there else set()
            yield dg.RunRequest(
                job_name=comparison_job.name,
                partition_key=corpus,
                asset_selection=[dg.AssetKey(name) for name in sorted(there | report)],
            )

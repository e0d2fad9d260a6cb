"""The weekly refresh: new content of a corpus, further battles, and judges asked about those.

A schedule requests the corpus job where there is something new; when that succeeds, a sensor
requests the job of each judge that works on its own. What fails starts nothing.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import dagster as dg

from assets.partitions import corpus_judge_key
from assets.run_tags import BUDGET_TAG, REFRESH_TAG, SAMPLE_TAG
from pipelines.jobs import corpus_job, judge_job
from pipelines.sensors.activity import UnreadableError, active_judges, require_readable
from pipelines.sensors.durations import sensor_seconds
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.corpora.revision import content_revision

_RAW, _BATTLES, _SAMPLED = map(dg.AssetKey, ("raw_battles", "battles", "sampled_battles"))
_VERDICTS = dg.AssetKey("verdicts")
_ROWS = "dagster/partition_row_count"


class Refresh(NamedTuple):
    """What is to be done with a corpus, and why; nothing where `why` is empty.

    `sample_size` is how many battles to choose in all, None for as many as it always has.
    """

    why: str = ""
    reads_again: bool = False
    sample_size: int | None = None


@dg.schedule(
    job=corpus_job,
    cron_schedule="0 5 * * 1",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Refreshes the corpora that have a 'refresh' block: content that changed is read "
    "again, and 'extend_by' further battles are chosen. Judges follow within their budget.",
)
def weekly_refresh(
    context: dg.ScheduleEvaluationContext, catalog: Catalog
) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """Request the corpus job of each corpus that is kept up to date and has something new.

    A file that cannot be read fails the tick, which is tried again each minute: a week is long. A
    tick that is repeated asks for nothing twice.
    """
    try:
        kept = [one for one in catalog.corpora().values() if one.refresh is not None]
        catalog.judges()
    except (ValueError, OSError) as error:
        raise UnreadableError(f"nothing is refreshed before a tick can read it: {error}") from error
    known = set(context.instance.get_dynamic_partitions("corpus"))
    found = {
        one.slug: what_is_new(context.instance, one, _judges(context, one, catalog))
        for one in kept
        if one.slug in known
    }
    for slug, refresh in found.items():
        context.log.info(f"{slug}: {refresh.why or 'nothing new'}")
        if refresh.why:
            yield _request(slug, refresh, context.scheduled_execution_time.date().isoformat())
    if not any(refresh.why for refresh in found.values()):
        quiet = ", ".join(found) or "no corpus has a 'refresh' block and was read before"
        yield dg.SkipReason(f"nothing new: {quiet}")


def what_is_new(
    instance: dg.DagsterInstance, corpus: CorpusDefinition, judges: Sequence[str] = ()
) -> Refresh:
    """Return what a corpus needs: to be read again, further battles, its judges, or nothing.

    A corpus whose revision cannot be told is read again: that run says what is wrong.
    """
    extend_by = corpus.refresh.extend_by if corpus.refresh else 0
    n_sampled, n_battles = (_rows(instance, key, corpus.slug) for key in (_SAMPLED, _BATTLES))
    wanted = n_sampled + extend_by if extend_by else None
    before = _metadata(instance, _RAW, corpus.slug).get("content_revision")
    try:
        now = content_revision(corpus)
    except (ValueError, OSError) as error:
        return Refresh(f"its revision cannot be told: {error}", True, wanted)
    if before != now:
        return Refresh(f"{before or 'never read'} -> {now}", True, wanted)
    if wanted is not None and n_sampled < n_battles:
        wanted = min(wanted, n_battles)
        return Refresh(f"{wanted - n_sampled:,} further battles", False, wanted)
    sampled_at = _made_at(instance, _SAMPLED, corpus.slug)
    behind = [
        judge
        for judge in judges
        if _made_at(instance, _VERDICTS, corpus_judge_key(corpus.slug, judge)) < sampled_at
    ]
    return Refresh(f"not yet judged by {', '.join(behind)}") if behind else Refresh()


def _request(slug: str, refresh: Refresh, day: str) -> dg.RunRequest:
    size = {} if refresh.sample_size is None else {SAMPLE_TAG: str(refresh.sample_size)}
    return dg.RunRequest(
        run_key=f"{slug}:{day}",
        partition_key=slug,
        tags={REFRESH_TAG: day, **size},
        asset_selection=None if refresh.reads_again else [_SAMPLED],
    )


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    monitored_jobs=[corpus_job],
    request_jobs=[judge_job],
    minimum_interval_seconds=sensor_seconds(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="After a scheduled refresh of a corpus: has the judges that work on their own "
    "judge its new battles, within 'refresh.budget'.",
)
def refreshed_corpora(
    context: dg.RunStatusSensorContext, catalog: Catalog
) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """Request the job of each active judge of a corpus that a schedule refreshed."""
    run = context.dagster_run
    day, slug = run.tags.get(REFRESH_TAG), run.tags.get("dagster/partition", "")
    if day is None:
        yield dg.SkipReason("a person's run: nobody is asked after it")
        return
    require_readable(catalog)
    corpus = catalog.corpus(slug)
    if corpus.refresh is None:
        yield dg.SkipReason(f"corpus {slug!r} is no longer kept up to date")
        return
    judges = active_judges(corpus, catalog, context.instance)
    if not judges:
        yield dg.SkipReason(f"no judge of corpus {slug!r} has a leaderboard yet: run one first")
    for judge in judges:
        yield dg.RunRequest(
            run_key=f"{run.run_id}:{judge.slug}",
            job_name=judge_job.name,
            partition_key=corpus_judge_key(slug, judge.slug),
            tags={REFRESH_TAG: day, BUDGET_TAG: " ".join(corpus.refresh.budget)},
        )


def _judges(
    context: dg.ScheduleEvaluationContext, corpus: CorpusDefinition, catalog: Catalog
) -> list[str]:
    try:
        return [judge.slug for judge in active_judges(corpus, catalog, context.instance)]
    except (ValueError, OSError) as error:
        context.log.error(f"{corpus.slug}: nobody is asked: {error}")
        return []


def _last(
    instance: dg.DagsterInstance, key: dg.AssetKey, partition: str
) -> dg.EventLogRecord | None:
    made = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[partition])
    return next(iter(instance.fetch_materializations(made, limit=1).records), None)


def _made_at(instance: dg.DagsterInstance, key: dg.AssetKey, partition: str) -> float:
    record = _last(instance, key, partition)
    return record.timestamp if record else 0.0


def _metadata(instance: dg.DagsterInstance, key: dg.AssetKey, partition: str) -> dict[str, object]:
    """Return the metadata of the last materialisation of a partition, by name."""
    record = _last(instance, key, partition)
    found = record.asset_materialization if record else None
    return {name: value.value for name, value in found.metadata.items()} if found else {}


def _rows(instance: dg.DagsterInstance, key: dg.AssetKey, partition: str) -> int:
    rows = _metadata(instance, key, partition).get(_ROWS, 0)
    return int(rows) if isinstance(rows, int) else 0

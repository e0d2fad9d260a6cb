"""Weekly schedules: the refresh of corpora, whose judges follow, and the drift watch of judges."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import dagster as dg

from assets.partitions import corpus_judge_key
from assets.provenance import latest, metadata_of
from assets.settings import BUDGET_TAG, REFRESH_TAG, SAMPLE_TAG
from pipelines.jobs import corpus_job, drift_job, judge_job
from pipelines.sensors.activity import active_judges, rated_by, require_readable
from pipelines.sensors.durations import RUNNING
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.corpora.locations import content_revision

_ROWS = "dagster/partition_row_count"


class Content(NamedTuple):
    """Revisions of a corpus as read and now; `behind` are judges that lack its last sample."""

    before: str = ""
    now: str = ""
    error: str = ""
    n_sampled: int = 0
    n_battles: int = 0
    extend_by: int = 0
    behind: Sequence[str] = ()


class Refresh(NamedTuple):
    """Refresh of a corpus: its reason `why`, empty for none, and the `sample_size` to reach."""

    why: str = ""
    reads_again: bool = False
    sample_size: int | None = None


def due(content: Content) -> Refresh:
    """Return the refresh that a corpus needs: a new reading, further battles, judges, or none."""
    wanted = content.n_sampled + content.extend_by if content.extend_by else None
    if content.error:
        return Refresh(f"its revision cannot be told: {content.error}", True, wanted)
    if content.before != content.now:
        return Refresh(f"{content.before or 'never read'} -> {content.now}", True, wanted)
    if wanted is not None and content.n_sampled < content.n_battles:
        wanted = min(wanted, content.n_battles)
        return Refresh(f"{wanted - content.n_sampled:,} further battles", False, wanted)
    return Refresh(f"not yet judged by {', '.join(content.behind)}" if content.behind else "")


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

    A file that cannot be read fails the tick, which is tried again each minute: a week is long.
    """
    require_readable(catalog, "nothing is refreshed before a tick can read it")
    day = context.scheduled_execution_time.date().isoformat()
    kept = [one for one in catalog.corpora().values() if one.refresh is not None]
    known = set(context.instance.get_dynamic_partitions("corpus"))
    found = {one.slug: due(_content(context, one, catalog)) for one in kept if one.slug in known}
    for slug, refresh in found.items():
        context.log.info(f"{slug}: {refresh.why or 'nothing new'}")
        if refresh.why:
            size = {SAMPLE_TAG: str(refresh.sample_size)} if refresh.sample_size else {}
            yield dg.RunRequest(
                run_key=f"{slug}:{day}",
                partition_key=slug,
                tags={REFRESH_TAG: day, **size},
                asset_selection=None if refresh.reads_again else [dg.AssetKey("sampled_battles")],
            )
    if not any(refresh.why for refresh in found.values()):
        quiet = ", ".join(found) or "no corpus has a 'refresh' block and was read before"
        yield dg.SkipReason(f"nothing new: {quiet}")


def _content(
    context: dg.ScheduleEvaluationContext, corpus: CorpusDefinition, catalog: Catalog
) -> Content:
    instance, slug, now, error = context.instance, corpus.slug, "", ""
    try:
        now = content_revision(corpus)
    except (ValueError, OSError) as failure:
        error = str(failure)
    sampled, read = (latest(instance, name, slug) for name in ("sampled_battles", "raw_battles"))
    verdicts = {
        judge: latest(instance, "verdicts", corpus_judge_key(slug, judge))
        for judge in _judges(context, corpus, catalog)
    }
    sampled_at = sampled.timestamp if sampled else 0.0
    return Content(
        before=str(metadata_of(read).get("content_revision") or ""),
        now=now,
        error=error,
        n_sampled=int(metadata_of(sampled).get(_ROWS, 0)),
        n_battles=int(metadata_of(latest(instance, "battles", slug)).get(_ROWS, 0)),
        extend_by=corpus.refresh.extend_by if corpus.refresh else 0,
        behind=[
            judge
            for judge, made in verdicts.items()
            if (made.timestamp if made else 0.0) < sampled_at
        ],
    )


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    monitored_jobs=[corpus_job],
    request_jobs=[judge_job],
    **RUNNING,
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
    require_readable(catalog, "this run is looked at again at the next tick")
    corpus = catalog.corpus(slug)
    if corpus.refresh is None:
        yield dg.SkipReason(f"corpus {slug!r} is no longer kept up to date")
        return
    judges = active_judges(corpus, catalog, rated_by(corpus, context.instance))
    if not judges:
        yield dg.SkipReason(f"no judge of corpus {slug!r} has a leaderboard yet: run one first")
    for judge in judges:
        yield dg.RunRequest(
            run_key=f"{run.run_id}:{judge.slug}",
            job_name=judge_job.name,
            partition_key=corpus_judge_key(slug, judge.slug),
            tags={REFRESH_TAG: day, BUDGET_TAG: " ".join(corpus.refresh.budget)},
        )


NOBODY_WATCHED = "no corpus has a 'drift' block in corpora.yaml"


@dg.schedule(
    job=drift_job,
    cron_schedule="0 5 * * 3",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Re-judges the panel of every corpus with a 'drift' block, by its active judges.",
)
def drift_watch(
    context: dg.ScheduleEvaluationContext, catalog: Catalog
) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """Request a run per corpus and judge that are watched; a tick that is repeated asks once."""
    require_readable(catalog, "nobody is watched before a tick can read it")
    corpora = [corpus for corpus in catalog.corpora().values() if corpus.drift is not None]
    requests = [
        dg.RunRequest(
            run_key=f"{context.scheduled_execution_time.isoformat()} {corpus.slug}|{judge}",
            partition_key=corpus_judge_key(corpus.slug, judge),
        )
        for corpus in corpora
        for judge in _judges(context, corpus, catalog)
    ]
    yield from requests
    if not corpora:
        yield dg.SkipReason(NOBODY_WATCHED)
    elif not requests:
        yield dg.SkipReason(
            f"no judge of {', '.join(corpus.slug for corpus in corpora)} can be asked: recorded "
            "judges cannot, and others need a leaderboard first (judgeline run)"
        )


def _judges(
    context: dg.ScheduleEvaluationContext, corpus: CorpusDefinition, catalog: Catalog
) -> list[str]:
    """Return the judges that may be asked; a corpus that is misconfigured stops no other."""
    try:
        rated = rated_by(corpus, context.instance)
        return [judge.slug for judge in active_judges(corpus, catalog, rated)]
    except (ValueError, OSError) as error:
        context.log.error(f"corpus {corpus.slug!r}: nobody is asked: {error}")
        return []

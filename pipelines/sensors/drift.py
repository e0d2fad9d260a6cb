"""The schedule of the drift watch: once a week it asks each active judge about its panel."""

from collections.abc import Iterator

import dagster as dg

from assets.partitions import corpus_judge_key
from pipelines.jobs import drift_job
from pipelines.sensors.activity import active_judges, require_readable
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition

NOBODY_WATCHED = "no corpus has a 'drift' block in config/corpora.yaml"


@dg.schedule(
    job=drift_job,
    cron_schedule="0 5 * * 3",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Re-judges the panel of every corpus with a 'drift' block, by its active judges.",
)
def drift_watch(
    context: dg.ScheduleEvaluationContext, catalog: Catalog
) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """Request a run per corpus and judge that are watched; a tick that is repeated asks once.

    A file that cannot be read fails the tick, which is tried again each minute: a week is long.
    """
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
    """Return who is watched on a corpus; one that is misconfigured does not stop the others."""
    try:
        return [judge.slug for judge in active_judges(corpus, catalog, context.instance)]
    except (ValueError, OSError) as error:
        context.log.error(f"corpus {corpus.slug!r} is not watched: {error}")
        return []

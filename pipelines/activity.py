"""Which judges of a corpus work on their own: those that a schedule or a sensor may ask."""

import dagster as dg

from assets.partitions import corpus_judge_key
from pipelines.able import judges_of
from resources.catalog import Catalog
from resources.corpora.definitions import CorpusDefinition
from resources.judges.definitions import JudgeDefinition


def active_judges(
    definition: CorpusDefinition, catalog: Catalog, instance: dg.DagsterInstance
) -> list[JudgeDefinition]:
    """Return the judges of a corpus that can be asked and have a leaderboard of it already.

    Somebody ran them once, and so decided that they may be asked.
    """
    rated = instance.get_materialized_partitions(dg.AssetKey("leaderboard"))
    return [
        judge
        for judge in judges_of(definition, catalog)
        if judge.kind != "recorded" and corpus_judge_key(definition.slug, judge.slug) in rated
    ]


class UnreadableError(dg.DagsterError):
    """The configuration cannot be read now, such as in the middle of an edit.

    A sensor of runs passes on to the next run after any error but one of Dagster's own, which
    leaves the run to the next tick.
    """


def require_readable(catalog: Catalog) -> None:
    """Raise UnreadableError unless corpora and judges can be read."""
    try:
        catalog.corpora(), catalog.judges()
    except (ValueError, OSError) as error:
        raise UnreadableError(f"this run is looked at again at the next tick: {error}") from error

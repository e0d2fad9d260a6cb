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

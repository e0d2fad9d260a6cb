"""Which judges of a corpus work on their own, without a person who names them."""

import dagster as dg

from assets.partitions import corpus_judge_key
from resources.catalog import Catalog
from resources.corpora.definitions import CorpusDefinition
from resources.judges.definitions import JudgeDefinition


def active_judges(
    definition: CorpusDefinition, catalog: Catalog, instance: dg.DagsterInstance
) -> list[JudgeDefinition]:
    """Return the judges of a corpus that can be asked and have a leaderboard already.

    Raises
    ------
    ValueError
        If the corpus names a judge that is not configured, or none can judge it.
    """
    from pipelines.run import judges_of  # which imports the definitions, and they this

    there = instance.get_materialized_partitions(dg.AssetKey("leaderboard"))
    return [
        judge
        for judge in judges_of(definition, catalog)
        if judge.kind != "recorded" and corpus_judge_key(definition.slug, judge.slug) in there
    ]

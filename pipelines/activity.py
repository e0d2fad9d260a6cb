"""Which judges of a corpus work on their own: those that a schedule or a sensor may ask."""

import dagster as dg

from assets.partitions import corpus_judge_key
from pipelines.able import judges_of
from resources.catalog import Catalog
from resources.corpora.definitions import CorpusDefinition
from resources.judges.calls import judge_key
from resources.judges.catalog import open_judge, was_probed
from resources.judges.definitions import JudgeDefinition


def active_judges(
    definition: CorpusDefinition, catalog: Catalog, instance: dg.DagsterInstance
) -> list[JudgeDefinition]:
    """Return the judges of a corpus that can be asked and have a leaderboard of it already.

    Somebody ran them once, and so decided that they may be asked. Without those that are no
    partitions: a leaderboard outlives the retirement of its judge, and a run would be refused.
    """
    if definition.slug not in instance.get_dynamic_partitions("corpus"):
        return []
    known = instance.get_dynamic_partitions("judge")
    rated = instance.get_materialized_partitions(dg.AssetKey("leaderboard"))
    return [
        judge
        for judge in judges_of(definition, catalog)
        if judge.kind != "recorded"
        and judge.slug in known
        and corpus_judge_key(definition.slug, judge.slug) in rated
    ]


def identity_now(judge: JudgeDefinition, corpus: CorpusDefinition) -> str:
    """Return the key under which a judge's verdicts on a corpus are stored, as configured now.

    Empty text where that cannot be told without asking the judge, or it cannot be opened.
    """
    try:
        if judge.kind == "openai" and not was_probed(judge):
            return ""
        return judge_key(open_judge(judge, corpus))
    except (ValueError, OSError):
        return ""


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

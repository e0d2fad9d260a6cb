"""Which judges of a corpus work on their own: those that a schedule or a sensor may ask."""

from collections.abc import Collection

import dagster as dg

from assets.partitions import corpus_judge_key
from pipelines.commands.able import judges_of
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.config.judges import JudgeDefinition
from resources.judges.calls import judge_key
from resources.judges.catalog import missing_variable, open_judge, was_probed
from resources.judges.forms.options import FormName


def active_judges(
    definition: CorpusDefinition, catalog: Catalog, instance: dg.DagsterInstance
) -> list[JudgeDefinition]:
    """Return the judges of a corpus that can be asked and have a leaderboard of it already.

    Somebody ran them once, and so decided that they may be asked. Without those that are no
    partitions: a leaderboard outlives the retirement of its judge, and a run would be refused.
    """
    return active_among(definition, catalog, rated_by(definition, instance))


def rated_by(definition: CorpusDefinition, instance: dg.DagsterInstance) -> list[str]:
    """Return the judges that are partitions and have a leaderboard of a corpus that is one."""
    if definition.slug not in instance.get_dynamic_partitions("corpus"):
        return []
    rated = instance.get_materialized_partitions(dg.AssetKey("leaderboard"))
    known = instance.get_dynamic_partitions("judge")
    return [judge for judge in known if corpus_judge_key(definition.slug, judge) in rated]


def active_among(
    definition: CorpusDefinition, catalog: Catalog, rated: Collection[str]
) -> list[JudgeDefinition]:
    """Return the judges that can be asked, of those with a leaderboard that the corpus lists.

    A corpus that lists no judges has all of them.
    """
    listed = definition.judges is not None
    judges = judges_of(definition, catalog) if listed else catalog.judges().values()
    return [judge for judge in judges if judge.kind != "recorded" and judge.slug in rated]


def why_none_is_active(
    definition: CorpusDefinition, catalog: Catalog, rated: Collection[str]
) -> str:
    """Return the run or the entry that gives a corpus a judge to place its candidates."""
    judges = catalog.judges()
    wanted = [] if definition.judges is None else judges_of(definition, catalog)
    listed = [judge for judge in wanted if judge.kind != "recorded"]
    named = " ".join(f"--judge {judge.slug}" for judge in listed) or "--judge SLUG"
    told = [
        "candidates wait for a leaderboard by a judge that can be asked; run: judgeline run "
        f"--corpus {definition.slug} {named}"
    ]
    others = [slug for slug in rated if slug in judges and judges[slug].kind != "recorded"]
    if others:
        told.append(
            f"or add {', '.join(others)} to 'judges' of corpus {definition.slug!r} in "
            "config/corpora.yaml"
        )
    return "; ".join([*told, *filter(None, map(missing_variable, listed))])


def identity_now(
    judge: JudgeDefinition, corpus: CorpusDefinition, form: FormName = "rubric"
) -> str:
    """Return the key under which a judge's verdicts on a corpus are stored, as configured now.

    Empty text where that cannot be told without asking the judge, or it cannot be opened.
    """
    try:
        if judge.kind == "openai" and not was_probed(judge, form):
            return ""
        return judge_key(open_judge(judge, corpus, form=form))
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

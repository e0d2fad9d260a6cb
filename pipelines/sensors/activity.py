"""Active judges of a corpus: those that a schedule or a sensor may ask."""

from collections.abc import Collection

import dagster as dg

from assets.partitions import corpus_judge_key
from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.forms.registered import FormName
from judgeline.judges.judge import judge_key
from judgeline.judges.opening import missing_variable, was_probed
from pipelines.commands.plan import judges_of
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.opening import open_judge


def active_judges(
    corpus: CorpusDefinition, catalog: Catalog, rated: Collection[str]
) -> list[JudgeDefinition]:
    """Return the `rated` judges that may be asked; a corpus that lists no judges has all."""
    listed = corpus.judges is not None
    judges = judges_of(corpus, catalog) if listed else catalog.judges().values()
    return [judge for judge in judges if judge.kind != "recorded" and judge.slug in rated]


def rated_by(corpus: CorpusDefinition, instance: dg.DagsterInstance) -> list[str]:
    """Return the judges with a partition and a leaderboard of a corpus that has a partition."""
    if corpus.slug not in instance.get_dynamic_partitions("corpus"):
        return []
    rated = instance.get_materialized_partitions(dg.AssetKey("leaderboard"))
    known = instance.get_dynamic_partitions("judge")
    return [judge for judge in known if corpus_judge_key(corpus.slug, judge) in rated]


def active_or_why(
    corpus: CorpusDefinition, catalog: Catalog, rated: Collection[str]
) -> tuple[list[JudgeDefinition], str]:
    """Return the judges to place candidates, of those with a leaderboard; without any, why."""
    try:
        active = active_judges(corpus, catalog, rated)
        return active, "" if active else _why_none(corpus, catalog, rated)
    except (ValueError, OSError) as error:
        return [], str(error)


def _why_none(corpus: CorpusDefinition, catalog: Catalog, rated: Collection[str]) -> str:
    judges = catalog.judges()
    wanted = [] if corpus.judges is None else judges_of(corpus, catalog)
    listed = [judge for judge in wanted if judge.kind != "recorded"]
    named = " ".join(f"--judge {judge.slug}" for judge in listed) or "--judge SLUG"
    how = f"run: judgeline run --corpus {corpus.slug}"
    place = f"'judges' of corpus {corpus.slug!r} in corpora.yaml"
    how = f"name one under {place}, then {how}" if wanted and not listed else f"{how} {named}"
    others = [slug for slug in rated if slug in judges and judges[slug].kind != "recorded"]
    also = [f"or add {', '.join(others)} to {place}"] if others else []
    lacks = filter(None, map(missing_variable, listed))
    waits = "candidates wait for a leaderboard by a judge that can be asked"
    return "; ".join([waits, how, *also, *lacks])


def identity_now(
    judge: JudgeDefinition, corpus: CorpusDefinition, form: FormName = "rubric"
) -> str:
    """Return the key of a judge's verdicts on a corpus, as configured; empty where unknown."""
    try:
        if judge.kind == "openai" and not was_probed(judge, form):
            return ""
        return judge_key(open_judge(judge, corpus, form=form))
    except (ValueError, OSError):
        return ""


class UnreadableError(dg.DagsterError):
    """The configuration cannot be read now, such as in the middle of an edit.

    Only after an error of Dagster's own does a sensor of runs leave the run to its next tick.
    """


def require_readable(catalog: Catalog, otherwise: str) -> None:
    """Raise UnreadableError unless corpora and judges can be read; `otherwise` begins it."""
    try:
        catalog.corpora(), catalog.judges()
    except (ValueError, OSError) as error:
        raise UnreadableError(f"{otherwise}: {error}") from error

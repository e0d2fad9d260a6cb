"""Which judges work on a corpus: those it names or all that can, and those that run by themselves.

What belongs here: who is asked. What does not: when (the sensors), and what it costs (the plan).
"""

from collections.abc import Sequence

import dagster as dg

from assets.partitions import corpus_judge_key
from resources.catalog import Catalog
from resources.corpora.definitions import CorpusDefinition
from resources.judges.definitions import JudgeDefinition


def judges_of(
    corpus: CorpusDefinition, catalog: Catalog, named: Sequence[str] | None = None
) -> list[JudgeDefinition]:
    """Return the judges to run on a corpus: those named, those it names, or all that can.

    Raises
    ------
    ValueError
        If a name is not configured, a judge cannot judge the corpus, or none can.
    """
    wanted = named or corpus.judges
    if wanted is not None:
        chosen = [catalog.judge(slug) for slug in dict.fromkeys(wanted)]
        for judge in chosen:
            _require_able(judge, corpus)
        if not chosen:
            raise ValueError(
                f"corpus {corpus.slug!r} names no judge ('judges: []'); name one there, or remove "
                "the key so that every judge that can is taken"
            )
        return chosen
    kind = "builtin" if corpus.reader == "arena" else "recorded"
    able = [judge for judge in catalog.judges().values() if judge.kind == kind]
    if not able:
        raise ValueError(
            f"no judge of kind {kind!r} is configured, and others cost money: name who is to judge "
            f"corpus {corpus.slug!r} with --judge, or under its 'judges' in config/corpora.yaml"
        )
    return able


def active_judges(
    definition: CorpusDefinition, catalog: Catalog, instance: dg.DagsterInstance
) -> list[JudgeDefinition]:
    """Return the judges of a corpus that can be asked without a person: those with a leaderboard.

    None whose verdicts came with the corpus, and none that nobody has run yet: the first run of
    a judge, which costs most, is started by a person.

    Raises
    ------
    ValueError
        If the corpus names a judge that is not configured, or none can judge it.
    """
    there = instance.get_materialized_partitions(dg.AssetKey("leaderboard"))
    return [
        judge
        for judge in judges_of(definition, catalog)
        if judge.kind != "recorded" and corpus_judge_key(definition.slug, judge.slug) in there
    ]


def _require_able(judge: JudgeDefinition, corpus: CorpusDefinition) -> None:
    simulated = corpus.reader == "arena"
    if (judge.kind == "builtin" and not simulated) or (judge.kind == "recorded" and simulated):
        can = "the built-in arena only" if judge.kind == "builtin" else "what came with a corpus"
        raise ValueError(
            f"judge {judge.slug!r} of kind {judge.kind!r} knows {can}, not corpus {corpus.slug!r}; "
            "choose another judge. Verdicts of your own are rated by: judgeline rank FILE --out DIR"
        )

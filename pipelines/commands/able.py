"""Which judges a corpus is judged by, which of them can judge it, and which can be asked now."""

from collections.abc import Collection, Iterable, Sequence

from assets.judging.planning import plan_judge
from pipelines.commands.plan import plan_run
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.config.judges import JudgeDefinition
from resources.judges.buying import Buyer
from resources.judges.catalog import open_served
from resources.tables.store import ParquetStore


def judges_of(
    corpus: CorpusDefinition, catalog: Catalog, named: Sequence[str] | None = None
) -> list[JudgeDefinition]:
    """Return the judges to run on a corpus: those named, its own, or those without a price."""
    wanted = named or corpus.judges
    if wanted is not None:
        chosen = [catalog.judge(slug) for slug in dict.fromkeys(wanted)]
        for judge in chosen:
            _require_able(judge, corpus)
        if not chosen:
            raise ValueError(
                f"corpus {corpus.slug!r} names no judge ('judges: []'); name one there, or remove "
                "the key so that each run decides"
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


def _require_able(judge: JudgeDefinition, corpus: CorpusDefinition) -> None:
    simulated = corpus.reader == "arena"
    if (judge.kind == "builtin" and not simulated) or (judge.kind == "recorded" and simulated):
        can = "the built-in arena only" if judge.kind == "builtin" else "what came with a corpus"
        raise ValueError(
            f"judge {judge.slug!r} of kind {judge.kind!r} knows {can}, not corpus {corpus.slug!r}; "
            "choose another judge. Verdicts of your own are rated by: judgeline rank FILE --out DIR"
        )


def asked_judges(
    corpus: CorpusDefinition,
    served: Sequence[JudgeDefinition],
    tables: ParquetStore,
    buyer: Buyer,
    asks: Collection[str],
) -> list[JudgeDefinition]:
    """Return those of some judges behind an endpoint that a run would ask, for tables `asks`.

    The battles are those sampled before. A corpus that was never sampled is read for it.
    """
    if not served or not asks:
        return []
    sample = tables.stored("sampled_battles", corpus.slug)
    came = tables.stored("recorded_verdicts", corpus.slug)
    if sample is None or came is None:
        _, plan = plan_run(corpus, served, tables, buyer, asks=asks)
    else:
        plan = tuple(
            plan_judge(judge, corpus, sample, came, tables, buyer, asks=asks) for judge in served
        )
    return [judge for judge, step in zip(served, plan, strict=True) if step.n_calls]


def require_reachable(judges: Iterable[JudgeDefinition]) -> None:
    """Ask the endpoint of each judge something small."""
    problems = []
    for judge in judges:
        try:
            open_served(judge, form=judge.asks[0]).require_reachable()
        except (ValueError, OSError, RuntimeError) as error:
            problems.append(str(error))
    if problems:
        raise ValueError("; ".join(problems))

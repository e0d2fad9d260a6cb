"""What a run would ask, cost and gain, found out without asking anybody anything."""

from collections.abc import Collection, Sequence

from assets.corpus import choose
from assets.planning import ASKED, plan_judge
from resources.corpora.cleaning import filter_battles
from resources.corpora.definitions import CorpusDefinition
from resources.corpora.reading import read_corpus
from resources.judges.buying import Buyer
from resources.judges.definitions import JudgeDefinition
from resources.judges.judge_plan import JudgePlan
from resources.tables import ParquetStore

__all__ = ["ASKED", "plan_run"]


def plan_run(
    corpus: CorpusDefinition,
    judges: Sequence[JudgeDefinition],
    tables: ParquetStore,
    buyer: Buyer,
    *,
    asks: Collection[str] = ASKED,
) -> tuple[int, tuple[JudgePlan, ...]]:
    """Return how many battles would be judged, and what each judge would be asked.

    The corpus is read and sampled as a run would.

    Parameters
    ----------
    corpus : CorpusDefinition
        Whose battles.
    judges : sequence of JudgeDefinition
        Who would judge them.
    tables : ParquetStore
        Where earlier samples and leaderboards lie.
    buyer : Buyer
        Over the verdict store.
    asks : collection of str
        Tables of `ASKED` that the run would make.
    """
    read = read_corpus(corpus)
    battles, _ = filter_battles(read.battles, corpus.filters)
    sample = choose(battles, corpus, tables.stored("sampled_battles", corpus.slug))
    plan = [
        plan_judge(judge, corpus, sample, read.verdicts, tables, buyer, asks=asks)
        for judge in judges
    ]
    return len(sample), tuple(plan)

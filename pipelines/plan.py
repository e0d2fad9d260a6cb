"""What a run would ask, cost and gain, found out without asking anybody anything."""

from collections.abc import Collection, Sequence

import pandas as pd

from assets.candidates import choose_candidate_battles, read_candidates
from assets.corpus import choose
from assets.planning import ASKED, plan_judge
from resources.corpora.cleaning import filter_battles
from resources.corpora.definitions import CorpusDefinition
from resources.corpora.reading import read_corpus
from resources.judges.buying import Buyer
from resources.judges.definitions import JudgeDefinition
from resources.judges.judge_plan import JudgePlan
from resources.tables import ParquetStore


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
    further = sample.head(0)
    if "candidate_verdicts" in asks:
        further = _battles_of_candidates(corpus, battles, sample, judges, tables)
    plan = [
        plan_judge(judge, corpus, sample, read.verdicts, tables, buyer, asks=asks, further=further)
        for judge in judges
    ]
    return len(sample) + len(further), tuple(plan)


def _battles_of_candidates(
    corpus: CorpusDefinition,
    battles: pd.DataFrame,
    sample: pd.DataFrame,
    judges: Sequence[JudgeDefinition],
    tables: ParquetStore,
) -> pd.DataFrame:
    """Return the battles of candidates that a run would judge, by what is known of the noise now.

    Before any judge has ratings that is nothing: then as many as the corpus allows.
    """
    _, found = read_candidates(corpus, battles, tables)
    recorded = {judge.slug for judge in judges if judge.kind == "recorded"}
    heldout, calibration = (
        {
            judge: table
            for judge in tables.partitions(name, corpus.slug)
            if judge not in recorded
            and (table := tables.stored(name, corpus.slug, judge)) is not None
        }
        for name in ("heldout_ratings", "conformal_calibration")
    )
    before = tables.stored("candidate_battles", corpus.slug)
    chosen, _ = choose_candidate_battles(
        corpus, found.candidates, battles, heldout, calibration, sampled=sample, before=before
    )
    return chosen

"""Plan of a run: its calls, their cost and the intervals they give; nothing is asked."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import pandas as pd

from assets.candidates.assets import choose_candidate_battles, read_candidates
from assets.corpus.assets import choose
from assets.judging.planning import ASKED, plan_judge
from resources.config.corpora import CorpusDefinition
from resources.config.judges import JudgeDefinition
from resources.corpora.assemble import filter_battles
from resources.corpora.reading import read_corpus
from resources.judges.budget import Budget
from resources.judges.buying import Buyer
from resources.judges.judge_plan import JudgePlan
from resources.tables.store import ParquetStore


def plan_run(
    corpus: CorpusDefinition,
    judges: Sequence[JudgeDefinition],
    tables: ParquetStore,
    buyer: Buyer,
    *,
    asks: Collection[str] = ASKED,
) -> tuple[int, tuple[JudgePlan, ...]]:
    """Return how many battles would be judged, and what each judge would be asked.

    The corpus is read and sampled as a run would. Where the budget of the corpus for candidates is
    expected to stop the run, the plan of the judge says so.
    """
    read = read_corpus(corpus)
    battles, _ = filter_battles(read.battles, corpus.filters)
    sample = choose(battles, corpus, tables.stored("sampled_battles", corpus.slug))
    further = sample.head(0)
    if "candidate_verdicts" in asks:
        further = _battles_of_candidates(corpus, battles, sample, judges, tables)
    plan = []
    for judge in judges:
        known = (judge, corpus, sample, read.verdicts, tables, buyer)
        step = plan_judge(*known, asks=asks, further=further)
        if len(further):
            placing = plan_judge(*known, asks=("candidate_verdicts",), further=further)
            step = replace(step, cut_short=cut_short(placing, corpus.candidates.budget))
        plan.append(step)
    return len(sample) + len(further), tuple(plan)


def cut_short(placing: JudgePlan, texts: Sequence[str]) -> str:
    """Say where the budget for candidates stops a judge that places them; empty if it does not.

    It holds for each judge and run, whoever starts that.
    """
    limit = Budget.parse(list(texts))
    unpriced = placing.money is None or placing.currency != limit.currency
    if limit.money is not None and placing.tokens is not None and unpriced:
        return (
            f"candidates.budget is {limit}, and the judge has no price in {limit.currency}: "
            "nothing is asked about new models; state candidates.budget in calls, or add "
            "'price_per_million' to its entry in config/judges.yaml"
        )
    for unit, value in (
        ("calls", placing.n_calls),
        ("tokens", placing.n_tokens),
        ("money", placing.money or 0.0),
    ):
        most = getattr(limit, unit)
        if most is not None and value > most:
            what, digits = (limit.currency, 2) if unit == "money" else (unit, 0)
            return (
                f"about {value:,.{digits}f} {what} of this are about new models, where "
                f"candidates.budget stops the run at {most:,.{digits}f}: raise candidates.budget "
                "of the corpus in config/corpora.yaml, or run it several times"
            )
    return ""


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


def require_covered(plan: Sequence[JudgePlan], cap: Budget) -> None:
    """Check that a budget covers what a plan expects; what it does not foresee, the cap stops."""
    priced = [step for step in plan if step.tokens is not None and step.n_calls]
    expected = {"calls": float(sum(step.n_calls for step in plan))}
    expected["tokens"] = float(sum(step.n_tokens for step in plan))
    if cap.money is not None:
        for step in priced:
            if step.money is None or step.currency != cap.currency:
                raise ValueError(
                    f"the budget is {cap}, but judge {step.judge!r} has no price in "
                    f"{cap.currency}; add 'price_per_million' to its entry in config/judges.yaml"
                )
        expected["money"] = sum(step.money or 0.0 for step in priced)
    for unit, value in expected.items():
        limit = getattr(cap, unit)
        if limit is not None and value > limit:
            what, digits = (cap.currency, 2) if unit == "money" else (unit, 0)
            raise ValueError(
                f"about {value:,.{digits}f} {what} would be needed, --budget allows "
                f"{limit:,.{digits}f}; name fewer judges, lower sample_size of the corpus, or "
                "raise the budget"
            )

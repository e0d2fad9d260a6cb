"""What a run would ask, cost and gain, found out without asking anybody anything."""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from assets.corpus import choose
from assets.panel import choose_panel
from assets.partitions import corpus_judge_key
from judgeline.planning import expected_half_width, sampling_half_width
from pipelines.judge_plan import JudgePlan
from resources.corpora.cleaning import filter_battles
from resources.corpora.definitions import CorpusDefinition
from resources.corpora.reading import read_corpus
from resources.judges.buying import Buyer
from resources.judges.calls import call_identity, judge_key, present
from resources.judges.catalog import open_judge, template_of, was_probed
from resources.judges.definitions import JudgeDefinition
from resources.judges.estimates import Answered, estimate_tokens
from resources.judges.judge import Judge, Presentation
from resources.tables import ParquetStore

ASKED = ("verdicts", "reliability_panel")
"""Tables that are made by asking judges."""
_ANSWERS_LOOKED_AT = 500


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
    came = set(read.verdicts["judge"])
    battles, _ = filter_battles(read.battles, corpus.filters)
    sample = choose(battles, corpus, tables.stored("sampled_battles", corpus.slug))
    plan = [
        _plan_judge(judge, corpus, sample, tables, buyer, asks)
        if asks and judge.kind != "recorded" and judge.slug not in came
        else JudgePlan(judge.slug, corpus_judge_key(corpus.slug, judge.slug), 0)
        for judge in judges
    ]
    return len(sample), tuple(plan)


def _plan_judge(
    judge: JudgeDefinition,
    corpus: CorpusDefinition,
    sample: pd.DataFrame,
    tables: ParquetStore,
    buyer: Buyer,
    asks: Collection[str],
) -> JudgePlan:
    partition = corpus_judge_key(corpus.slug, judge.slug)
    shown = present(sample, judge.replicates) if "verdicts" in asks else []
    if "reliability_panel" in asks:
        shown += _panel(judge, corpus, sample, tables)
    needed, n_stored, answered = _calls(judge, corpus, shown, buyer)
    if not needed:
        return JudgePlan(judge.slug, partition, 0, n_stored)
    tokens = None
    if judge.kind in ("openai", "vllm"):
        tokens = estimate_tokens(judge, template_of(judge), needed, answered)
    price = judge.price_per_million
    expected = most = None
    if price is not None and tokens is not None:
        expected = price.of(tokens.prompt_tokens, tokens.completion_tokens)
        most = price.of(tokens.most_prompt_tokens, tokens.most_completion_tokens)
    return JudgePlan(
        judge.slug,
        partition,
        len(needed),
        n_stored,
        tokens,
        expected,
        most,
        price.currency if price else "",
        _gain(judge, corpus, sample, tables, len(needed)),
    )


def _panel(
    judge: JudgeDefinition, corpus: CorpusDefinition, sample: pd.DataFrame, tables: ParquetStore
) -> list[Presentation]:
    """Return what the panel shows a judge; its first runs are calls of the verdicts too."""
    before = tables.stored("reliability_panel", corpus.slug, judge.slug)
    n_runs = corpus.panel.runs if corpus.panel else 0
    return present(choose_panel(sample, corpus, before), n_runs)


def _calls(
    judge: JudgeDefinition,
    corpus: CorpusDefinition,
    presentations: Sequence[Presentation],
    buyer: Buyer,
) -> tuple[list[Presentation], int, Answered | None]:
    """Return what would be asked, how many calls are stored, and some of those with answers."""
    if judge.kind == "openai" and not was_probed(judge):  # a dry run asks nobody anything
        return list({_texts(one): one for one in presentations}.values()), 0, None
    opened = open_judge(judge, corpus)
    needed, n_stored = buyer.missing(opened, presentations)
    return needed, n_stored, _answered(opened, presentations, buyer) if n_stored else None


def _texts(shown: Presentation) -> tuple[str, str, str, int]:
    return shown.instruction, shown.first_completion, shown.second_completion, shown.replicate


def _answered(judge: Judge, presentations: Sequence[Presentation], buyer: Buyer) -> Answered:
    step = max(1, len(presentations) // _ANSWERS_LOOKED_AT)
    calls = {call_identity(judge, shown): shown for shown in presentations[::step]}
    found, _ = buyer.store.find(judge_key(judge), calls)
    return [calls[identity] for identity in found["identity"]], found


def _gain(
    judge: JudgeDefinition,
    corpus: CorpusDefinition,
    sample: pd.DataFrame,
    tables: ParquetStore,
    n_calls: int,
) -> str:
    """Say what the ratings' intervals would be: by this judge's own, another's, or by theory."""
    widths = {
        other: (width, n_scored)
        for other in tables.partitions("leaderboard", corpus.slug)
        if (board := tables.stored("leaderboard", corpus.slug, other)) is not None
        and (width := _median_half_width(board)) is not None
        and (n_scored := _n_scored(tables, corpus.slug, other))
    }
    if judge.slug in widths:
        now, n_scored = widths[judge.slug]
        most = min(len(sample), n_scored + n_calls)  # no call mends more than one battle
        then = expected_half_width(now, n_scored, max(most, n_scored))
        return f"median half-width {now:.0f} Elo now, about {then:.0f} then at best"
    others = [expected_half_width(now, n, len(sample)) for now, n in widths.values()]
    if others:
        return (
            f"median half-width about {np.median(others):.0f} Elo if it judges like the "
            f"{len(others)} judged before"
        )
    n_models = pd.concat([sample["model_a"], sample["model_b"]]).nunique()
    per_model = 2 * len(sample) / n_models
    least = sampling_half_width(per_model, miscoverage=corpus.rating.miscoverage)
    return (
        f"half-width about {least:.0f} Elo by sampling alone ({per_model:.0f} decisive battles a "
        "model, equal opponents); the judge's own errors come on top"
    )


def _median_half_width(board: pd.DataFrame) -> float | None:
    widths = (board["upper"] - board["lower"]).to_numpy(dtype=float) / 2
    widths = widths[np.isfinite(widths)]
    return float(np.median(widths)) if widths.size else None


def _n_scored(tables: ParquetStore, corpus: str, judge: str) -> int:
    """Return how many battles are behind a leaderboard."""
    scored = tables.stored("scored_battles", corpus, judge)
    return 0 if scored is None else len(scored)

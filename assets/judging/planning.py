"""Plans of judges on a corpus: calls, cost and expected intervals."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from assets.judging.asking import why_not_asked
from assets.partitions import corpus_judge_key
from assets.reliability.gate import choose_panel
from judgeline.intervals import expected_half_width, sampling_half_width
from resources.config.corpora import CorpusDefinition
from resources.config.judges import JudgeDefinition
from resources.judges.annotation import recorded_choices
from resources.judges.buying import Buyer
from resources.judges.forms.registered import FORM_TABLES, FormName
from resources.judges.judge import Presentation, present
from resources.judges.judge_plan import JudgePlan, expect_calls, plan_of
from resources.tables.store import ParquetStore

_TABLES = {form: table.name for form, table in FORM_TABLES.items()}
ASKED = (*_TABLES.values(), "reliability_panel", "candidate_verdicts")
"""Tables that are made by asking judges."""
FORM_OF: dict[str, FormName] = {
    **{table: form for form, table in _TABLES.items()},
    "reliability_panel": "rubric",
    "candidate_verdicts": "rubric",
}
"""The form in which a judge is asked for each of them."""


def plan_judge(
    judge: JudgeDefinition,
    corpus: CorpusDefinition,
    sample: pd.DataFrame,
    came: pd.DataFrame,
    tables: ParquetStore,
    buyer: Buyer,
    *,
    asks: Collection[str] = ASKED,
    further: pd.DataFrame | None = None,
) -> JudgePlan:
    """Return the plan of a judge for the sampled battles, and for `further` ones of candidates."""
    further = sample.head(0) if further is None else further
    partition, asks = corpus_judge_key(corpus.slug, judge.slug), _asking(judge, sample, came, asks)
    if not asks:
        return JudgePlan(judge.slug, partition, 0)
    more: list[Presentation] = []
    if "reliability_panel" in asks:  # its first runs are calls of the verdicts too
        before = tables.stored("reliability_panel", corpus.slug, judge.slug)
        n_times = corpus.panel.runs if corpus.panel else 0
        more = present(choose_panel(sample, corpus, before), n_times)
    own = sample if "verdicts" in asks else sample.head(0)
    rubric = pd.concat([own, further], ignore_index=True) if len(further) else own
    asked = {
        form: expect_calls(judge, form, corpus, sample, buyer)
        for form, table in _TABLES.items()
        if form in judge.asks and table in asks and form != "rubric"
    }
    if "rubric" in judge.asks and (len(rubric) or more):
        of_rubric = expect_calls(judge, "rubric", corpus, rubric, buyer, more=more)
        asked = {"rubric": of_rubric, **asked}
    n_rubric = asked["rubric"].n_needed if "rubric" in asked else 0
    n_rubric = max(0, n_rubric - 2 * judge.replicates * len(further))
    half_width = _gain(judge, corpus, sample, tables, n_rubric) if n_rubric else ""
    return plan_of(judge, partition, asked, half_width)


def _asking(
    judge: JudgeDefinition, sample: pd.DataFrame, came: pd.DataFrame, asks: Collection[str]
) -> set[str]:
    """Return the tables for which a judge is asked: not those that came, nor without texts."""
    if judge.kind == "recorded":
        return set()
    given: set[str] = set()
    if came["judge"].eq(judge.slug).any():
        given |= {"verdicts", "reliability_panel"}
    if len(recorded_choices(came, sample, judge.slug)):
        given.add("choice_verdicts")
    given |= {
        table
        for form, table in _TABLES.items()
        if form != "rubric" and why_not_asked(judge, form, sample)
    }
    return {*asks} - given


def _gain(
    judge: JudgeDefinition,
    corpus: CorpusDefinition,
    sample: pd.DataFrame,
    tables: ParquetStore,
    n_calls: int,
) -> str:
    """Return the expected width of intervals: by this judge's own, another's, or by theory."""
    widths: dict[str, tuple[float, int]] = {}
    for other in tables.partitions("leaderboard", corpus.slug):
        board = tables.stored("leaderboard", corpus.slug, other)
        scored = tables.stored("scored_battles", corpus.slug, other)
        if board is None or scored is None or scored.empty:
            continue
        finite = (board["upper"] - board["lower"]).to_numpy(dtype=float) / 2
        if (finite := finite[np.isfinite(finite)]).size:
            widths[other] = float(np.median(finite)), len(scored)
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

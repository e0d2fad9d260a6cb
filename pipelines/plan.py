"""What a run would ask, cost and gain, found out without asking anybody anything."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from assets.candidates import choose_candidate_battles, read_candidates
from assets.corpus import choose
from assets.panel import choose_panel
from assets.partitions import corpus_judge_key
from assets.soft_verdicts import why_not_asked
from judgeline.planning import expected_half_width, sampling_half_width
from pipelines.judge_plan import JudgePlan
from resources.corpora.cleaning import filter_battles
from resources.corpora.definitions import CorpusDefinition
from resources.corpora.reading import read_corpus
from resources.judges.buying import Buyer
from resources.judges.calls import call_identity, judge_key, present
from resources.judges.catalog import form_of_definition, open_judge, template_of, was_probed
from resources.judges.definitions import JudgeDefinition
from resources.judges.estimates import Answered, TokenEstimate, estimate_tokens, total
from resources.judges.forms.asked import Evidence, evidence_of, n_runs
from resources.judges.forms.options import FormName
from resources.judges.judge import Judge, Presentation
from resources.judges.recorded_choices import recorded_choices
from resources.tables import ParquetStore

_TABLES: dict[FormName, str] = {
    "rubric": "verdicts",
    "score": "score_verdicts",
    "choice": "choice_verdicts",
}
ASKED = (
    *_TABLES.values(),
    "reliability_panel",
    "candidate_verdicts",
)
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
    battles, _ = filter_battles(read.battles, corpus.filters)
    sample = choose(battles, corpus, tables.stored("sampled_battles", corpus.slug))
    further = sample.head(0)
    if "candidate_verdicts" in asks:
        further = _battles_of_candidates(corpus, battles, judges, tables)
    plan = [
        _plan_judge(judge, corpus, sample, tables, buyer, own, further)
        if (own := _asking(judge, sample, read.verdicts, asks))
        else JudgePlan(judge.slug, corpus_judge_key(corpus.slug, judge.slug), 0)
        for judge in judges
    ]
    return len(sample) + len(further), tuple(plan)


def _battles_of_candidates(
    corpus: CorpusDefinition,
    battles: pd.DataFrame,
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
        corpus, found.candidates, battles, heldout, calibration, before
    )
    return chosen


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
    soft: tuple[FormName, ...] = ("score", "choice")
    given |= {_TABLES[form] for form in soft if why_not_asked(judge, form, sample)}
    return {*asks} - given


class _Asked(NamedTuple):
    """What a judge would be asked in one form."""

    needed: list[Presentation]
    n_stored: int
    tokens: TokenEstimate | None
    note: str


def _plan_judge(
    judge: JudgeDefinition,
    corpus: CorpusDefinition,
    sample: pd.DataFrame,
    tables: ParquetStore,
    buyer: Buyer,
    asks: Collection[str],
    further: pd.DataFrame,
) -> JudgePlan:
    partition = corpus_judge_key(corpus.slug, judge.slug)
    more = _panel(judge, corpus, sample, tables) if "reliability_panel" in asks else []
    own = sample if "verdicts" in asks else sample.head(0)
    rubric = pd.concat([own, further], ignore_index=True) if len(further) else own
    asked = {
        form: _ask(judge, form, corpus, sample, buyer, [])
        for form, table in _TABLES.items()
        if form in judge.asks and table in asks and form != "rubric"
    }
    if "rubric" in judge.asks and (len(rubric) or more):
        asked = {"rubric": _ask(judge, "rubric", corpus, rubric, buyer, more), **asked}
    n_stored = sum(one.n_stored for one in asked.values())
    n_needed = {form: len(one.needed) for form, one in asked.items()}
    if not any(n_needed.values()):
        return JudgePlan(judge.slug, partition, 0, n_stored)
    counted = {form: one.tokens for form, one in asked.items() if one.tokens is not None}
    tokens = total(counted) if counted else None
    n_rubric = max(0, n_needed.get("rubric", 0) - 2 * judge.replicates * len(further))
    price = judge.price_per_million
    expected = most = None
    if price is not None and tokens is not None:
        expected = price.of(tokens.prompt_tokens, tokens.completion_tokens)
        most = price.of(tokens.most_prompt_tokens, tokens.most_completion_tokens)
    return JudgePlan(
        judge.slug,
        partition,
        sum(n_needed.values()),
        n_stored,
        tokens,
        expected,
        most,
        price.currency if price else "",
        _gain(judge, corpus, sample, tables, n_rubric) if n_rubric else "",
        n_needed,
        "; ".join(filter(None, (one.note for one in asked.values()))),
    )


def _panel(
    judge: JudgeDefinition, corpus: CorpusDefinition, sample: pd.DataFrame, tables: ParquetStore
) -> list[Presentation]:
    """Return what the panel shows a judge; its first runs are calls of the verdicts too."""
    before = tables.stored("reliability_panel", corpus.slug, judge.slug)
    n_times = corpus.panel.runs if corpus.panel else 0
    return present(choose_panel(sample, corpus, before), n_times)


def _ask(
    judge: JudgeDefinition,
    form: FormName,
    corpus: CorpusDefinition,
    sample: pd.DataFrame,
    buyer: Buyer,
    more: list[Presentation],
) -> _Asked:
    needed, n_stored, answered, note = _calls(judge, form, corpus, sample, buyer, more)
    tokens = None
    if needed and judge.kind in ("openai", "vllm"):
        template, asked = template_of(judge, form), form_of_definition(judge, form)
        tokens = estimate_tokens(judge, template, needed, answered, asked)
    return _Asked(needed, n_stored, tokens, note)


def _calls(
    judge: JudgeDefinition,
    form: FormName,
    corpus: CorpusDefinition,
    sample: pd.DataFrame,
    buyer: Buyer,
    more: list[Presentation],
) -> tuple[list[Presentation], int, Answered | None, str]:
    """Return what would be asked, how many calls are stored, and some of those with answers."""
    asked = form_of_definition(judge, form)
    if judge.kind == "openai" and not was_probed(judge, form):  # a dry run asks nobody anything
        is_off = judge.log_probabilities_of(form) == "off"
        guess: Evidence = "samples" if is_off else "log-probabilities"
        shown = [*asked.present(sample, n_runs(asked, guess, judge.replicates)), *more]
        n_more = n_runs(asked, "samples", judge.replicates)
        note = (
            f"{form}: each question {n_more} times instead if the endpoint has no log-probabilities"
            if asked.needs_alternatives and not is_off
            else ""
        )
        return list({_texts(one): one for one in shown}.values()), 0, None, note
    opened = open_judge(judge, corpus, form=form)
    shown = asked.present(sample, n_runs(asked, evidence_of(opened), judge.replicates))
    needed, n_stored = buyer.missing(opened, shown)
    if more:
        needed, n_stored = _with_panel(opened, shown, needed, more, buyer, judge.replicates)
    presentations = [*shown, *more]
    answered = _answered(opened, presentations, buyer) if n_stored else None
    return needed, n_stored, answered, ""


def _with_panel(
    opened: Judge,
    shown: Sequence[Presentation],
    needed: list[Presentation],
    more: list[Presentation],
    buyer: Buyer,
    n_covered: int,
) -> tuple[list[Presentation], int]:
    """Return what is needed with a panel, each call once, and how many calls are stored."""
    further, _ = buyer.repeating(n_covered).missing(opened, more)
    calls = {call_identity(opened, one): one for one in (*needed, *further)}
    n_calls = len({call_identity(opened, one) for one in (*shown, *more)})
    return list(calls.values()), n_calls - len(calls)


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

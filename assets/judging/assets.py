"""Verdicts of a judge by form, the battles scored by them, and the plan of its calls."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.checks import table_check
from assets.conditions import ASKS, follows, table_asset
from assets.judging.asking import account_of, ask_judge, releasing, why_not_asked
from assets.partitions import (
    CORPUS_JUDGE,
    corpus_and_judge,
    corpus_judge_key,
    previews_silenced,
    read_as,
)
from assets.reliability.gate import choose_panel
from assets.settings import JUDGE, corpus_of
from judgeline.elo import HeldOutRatings
from judgeline.intervals import Frontier, interval_frontier, sampling_half_width
from judgeline.io import PLAIN, are_plain, score_battles
from judgeline.judges.annotation import recorded_choices, recorded_marks
from judgeline.judges.budget import Budget
from judgeline.judges.buying import Buyer, models_named
from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.forms.registered import FORM_TABLES, FormName
from judgeline.judges.judge import Judge
from judgeline.judges.judge_plan import JudgePlan, expect_calls, plan_of
from judgeline.judges.presentation import Presentation, present
from judgeline.steps.step import as_columns
from judgeline.tables.intervals import with_judge_columns
from judgeline.voting import Counted, count_votes
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.opening import open_judge
from resources.stores import StoredVerdicts
from resources.tables.expectations import check_result
from resources.tables.store import ParquetStore, empty_result

Published = Callable[[pd.DataFrame, pd.DataFrame, str], pd.DataFrame]

_ABOUT: dict[FormName, str] = {
    "rubric": """One answer of a judge to one presentation of a battle, or why there is none.

    Rubric scores in points, 1 to 10, oriented to the models whichever was shown first. Only
    what neither came with the corpus nor lies in the verdict store is asked for.
    """,
    "score": """One score that a judge gave one completion by itself, or why there is none.

    The score is on the judge's own scale, the expected score in points of 1 to 10. Empty for
    judges that are not asked so.
    """,
    "choice": """One choice of a judge between two completions of a battle, or why there is none.

    Shares and probabilities are oriented to the models whichever was shown first. Preferences
    that came with the corpus without scores stand here too. Empty for judges not asked so.
    """,
}
_CODE_VERSIONS: dict[FormName, str] = {"score": "2"}
_PUBLISHED: dict[FormName, Published] = {"rubric": recorded_marks, "choice": recorded_choices}
"""Readers of a form's verdicts that came with a corpus, by form."""


def _published(
    form: FormName, catalog: Catalog, slug: str, sample: pd.DataFrame, came: pd.DataFrame
) -> pd.DataFrame | None:
    """Return a judge's verdicts in a form that came with the corpus; None if it is to be asked."""
    is_recorded = catalog.judge(slug).kind == "recorded" or came["judge"].eq(slug).any()
    if form == "rubric" and not is_recorded:
        return None
    verdicts = _PUBLISHED[form](came, sample, slug)
    return verdicts if form == "rubric" or len(verdicts) else None


def _verdict_asset(form: FormName) -> dg.AssetsDefinition:
    """Return the asset of a judge's verdicts in one form."""
    came = {"recorded_verdicts": read_as(of_corpus=True)} if form in _PUBLISHED else {}

    # No automation condition: judging costs money, so somebody has to ask for it by name.
    @table_asset(
        _CODE_VERSIONS.get(form, "1"),
        name=FORM_TABLES[form].name,
        description=_ABOUT.get(form, f"One answer of a judge in the form {form!r}."),
        ins=came,
        **ASKS,
    )
    @releasing
    def verdicts(
        context: dg.AssetExecutionContext,
        sampled_battles: pd.DataFrame,
        catalog: Catalog,
        verdict_store: StoredVerdicts,
        budget: dg.ResourceParam[Budget],
        **came: pd.DataFrame,
    ) -> dg.MaterializeResult[pd.DataFrame]:
        _, slug = corpus_and_judge(context)
        corpus_of(context, catalog, JUDGE)
        for published in came.values():
            found = _published(form, catalog, slug, sampled_battles, published)
            if found is not None:
                return dg.MaterializeResult(value=found, metadata=account_of(found))
        if form != "rubric" and (note := why_not_asked(catalog.judge(slug), form, sampled_battles)):
            return empty_result(FORM_TABLES[form], note)
        return ask_judge(
            context,
            sampled_battles,
            form=form,
            catalog=catalog,
            verdict_store=verdict_store,
            budget=budget,
        )

    asset: dg.AssetsDefinition = verdicts
    return asset


verdict_assets = [_verdict_asset(form) for form in FORM_TABLES]
verdicts, *_ = verdict_assets


@table_check(verdicts)
def answers_name_one_model(verdicts: pd.DataFrame, catalog: Catalog) -> dg.AssetCheckResult:
    """Answers that name several models, versions of one, or another, are not of this judge."""
    slugs = verdicts["judge"].head(1)
    named, note = models_named(verdicts, *(catalog.judge(slug).model_to_name for slug in slugs))
    counted: dict[str, Any] = {
        name: dg.MetadataValue.json(counts) for name, counts in named.items()
    }
    observed = note or "No answer names another model."
    return check_result(observed, passed=not note, **counted)


with previews_silenced():
    CAREFUL = dg.AssetCheckSpec(
        "raters_vote_with_care",
        asset="scored_battles",
        partitions_def=CORPUS_JUDGE,
        description="No rater whose file lies in the folder of votes agrees with other raters, or "
        "with the judge, only as often as by chance. Votes count all the same.",
    )


@table_asset("3", follows, check_specs=[CAREFUL])
def scored_battles(
    sampled_battles: pd.DataFrame, verdicts: pd.DataFrame, votes: pd.DataFrame | None
) -> Iterator[dg.MaterializeResult[pd.DataFrame]]:
    """One battle whose both orders parsed, with the judge's score difference and outcome.

    Score differences are A minus B in rubric points, -9 to 9, or 1, 0 and -1 of plain verdicts;
    outcomes are A's share of the win. A battle that nobody had voted on counts the first vote on it
    in the folder of votes.
    """
    counted = Counted(score_battles(sampled_battles, verdicts), [], [])
    n_left_out = len(sampled_battles) - len(counted.battles)
    if votes is not None and len(votes):
        counted = count_votes(counted.battles, votes)
    told = "; ".join([*counted.notes, *counted.at_random])
    careful = check_result(
        f"{'; '.join(counted.at_random) or 'Nobody votes as if at random'}.",
        "To leave votes out, remove their file from the folder of votes.",
        passed=not counted.at_random,
    )
    yield dg.MaterializeResult(
        value=counted.battles,
        metadata={
            "n_left_out": n_left_out,
            **({"score_basis": PLAIN} if are_plain(verdicts) else {}),
            **({"votes": told} if told else {}),
        },
        check_results=[careful._replace(check_name=CAREFUL.name)],
    )


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
    settled: Collection[str] = (),
) -> JudgePlan:
    """Return the plan of a judge for the sampled battles, and for `further` ones of candidates.

    Failed answers of the tables `settled`, which are up to date, count as answered.
    """
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

    def opened(form: FormName) -> Callable[[], Judge]:
        """Return the function that opens the judge in a form."""
        return partial(open_judge, judge, corpus, form=form)

    def buyer_of(table: str) -> Buyer:
        """Return the buyer of a table's answers."""
        return buyer.keeping_failures() if table in settled else buyer

    asked = {
        form: expect_calls(judge, form, opened(form), sample, buyer_of(table))
        for form, table in _TABLES.items()
        if form in judge.asks and table in asks and form != "rubric"
    }
    if "rubric" in judge.asks and (len(rubric) or more):
        one = buyer if len(further) else buyer_of("verdicts")
        repeats = more, buyer_of("reliability_panel").repeating(judge.replicates)
        of_rubric = expect_calls(judge, "rubric", opened("rubric"), rubric, one, repeats=repeats)
        asked = {"rubric": of_rubric, **asked}
    n_rubric = asked["rubric"].n_needed if "rubric" in asked else 0
    n_rubric = max(0, n_rubric - 2 * judge.replicates * len(further))
    half_width = _gain(judge, corpus, sample, tables, n_rubric) if n_rubric else ""
    return plan_of(judge, partition, asked, half_width)


def _asking(
    judge: JudgeDefinition, sample: pd.DataFrame, came: pd.DataFrame, asks: Collection[str]
) -> set[str]:
    """Return the tables of verdicts to buy: none that came with the corpus, none without texts."""
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
    widths: dict[str, tuple[float, int, Frontier]] = {}
    for other in tables.partitions("leaderboard", corpus.slug):
        board = tables.stored("leaderboard", corpus.slug, other)
        scored = tables.stored("scored_battles", corpus.slug, other)
        heldout = tables.stored("heldout_ratings", corpus.slug, other)
        if board is None or heldout is None or scored is None or scored.empty:
            continue
        board = with_judge_columns(board)
        finite = (board["judge_upper"] - board["judge_lower"]).to_numpy(dtype=float) / 2
        if (finite := finite[np.isfinite(finite)]).size:
            rating = corpus.rating.resolved(len(scored))
            frontier = interval_frontier(
                as_columns(HeldOutRatings, heldout),
                rating.method,
                miscoverage=rating.miscoverage,
                std_error=rating.std_error or "analytic",
            )
            widths[other] = float(np.median(finite)), len(scored), frontier
    if judge.slug in widths:
        now, n_scored, frontier = widths[judge.slug]
        most = min(len(sample), n_scored + n_calls)  # no call mends more than one battle
        then = now * frontier.narrowing(max(most, n_scored) / n_scored)
        return f"median half-width {now:.0f} Elo now, about {then:.0f} then at best"
    others = [now * parts.narrowing(len(sample) / n) for now, n, parts in widths.values()]
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

"""Plan of a run: its judges, the supported part of the lineage, calls, and price."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import dagster as dg
import pandas as pd

from assets.candidates.assets import choose_candidate_battles, read_candidates
from assets.corpus.assets import choose
from assets.judging.assets import ASKED, plan_judge
from assets.provenance import latest, metadata_of
from judgeline.io import PLAIN, are_plain
from judgeline.io.layouts.ratings import RATINGS
from judgeline.judges.budget import Budget
from judgeline.judges.buying import Buyer
from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.judge_plan import JudgePlan
from judgeline.judges.opening import open_served
from judgeline.tables.corpus import SCORE_COLUMNS
from pipelines.instance.internals import AssetGraph
from resources.candidates.folder import folder_of, wait_until_settled
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.corpora.cleaning import filter_battles
from resources.corpora.reading import read_corpus
from resources.tables.store import ParquetStore


def judges_of(
    corpus: CorpusDefinition,
    catalog: Catalog,
    named: Sequence[str] | None = None,
    instance: dg.DagsterInstance | None = None,
) -> list[JudgeDefinition]:
    """Return the judges to run on a corpus: those named, its own, or those without a price.

    None is asked about ratings of single answers, which have their judge's scores.
    Of recorded judges these are the ones whose verdicts came with it, where an instance knows that.
    """
    if corpus.reader == RATINGS.name:
        return []
    wanted = named or corpus.judges
    simulated = corpus.reader == "arena"
    if wanted is None:
        return _free_judges(corpus, catalog, instance)
    if not wanted:
        raise ValueError(
            f"corpus {corpus.slug!r} names no judge ('judges: []'); name one there, or remove "
            "the key so that each run decides"
        )
    chosen = [catalog.judge(slug) for slug in dict.fromkeys(wanted)]
    knows = {"builtin": "the built-in arena only", "recorded": "what came with a corpus"}
    for judge in chosen:
        if judge.kind == ("recorded" if simulated else "builtin"):
            raise ValueError(
                f"judge {judge.slug!r} of kind {judge.kind!r} knows {knows[judge.kind]}, not "
                f"corpus {corpus.slug!r}; choose another judge. Verdicts of your own are rated by: "
                "judgeline rank FILE --out DIR"
            )
    return chosen


def _free_judges(
    corpus: CorpusDefinition, catalog: Catalog, instance: dg.DagsterInstance | None
) -> list[JudgeDefinition]:
    """Return the judges without a price that can judge a corpus; ValueError if there is none."""
    simulated = corpus.reader == "arena"
    kind = "builtin" if simulated else "recorded"
    record = latest(instance, "recorded_verdicts", corpus.slug) if instance else None
    came = None if simulated else metadata_of(record).get("judges")
    configured = [judge for judge in catalog.judges().values() if judge.kind == kind]
    if able := [judge for judge in configured if came is None or judge.slug in came]:
        return able
    own = "" if came is None else f" (which came with verdicts of {', '.join(came) or 'none'})"
    raise ValueError(
        f"no judge of kind {kind!r} is configured that fits corpus {corpus.slug!r}{own}, and "
        "others cost money: name who is to judge it with --judge, or under its 'judges' in "
        "corpora.yaml"
    )


def asked_judges(
    corpus: CorpusDefinition,
    served: Sequence[JudgeDefinition],
    tables: ParquetStore,
    buyer: Buyer,
    asks: Collection[str],
) -> list[JudgeDefinition]:
    """Return the served judges that a run would ask, for tables `asks`."""
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
    """Probe the endpoint of each judge with a small request."""
    problems = []
    for judge in judges:
        try:
            served: Any = open_served(judge, form=judge.asks[0])
            served.require_reachable()
        except (ValueError, OSError, RuntimeError) as error:
            problems.append(str(error))
    if problems:
        raise ValueError("; ".join(problems))


def plan_run(
    corpus: CorpusDefinition,
    judges: Sequence[JudgeDefinition],
    tables: ParquetStore,
    buyer: Buyer,
    *,
    asks: Collection[str] = ASKED,
    settled: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> tuple[int, tuple[JudgePlan, ...]]:
    """Return the number of battles to judge, and the plan of each judge's calls.

    The corpus is read and sampled as a run would. `settled` names the tables, by judge, that the
    run would leave as they are. Where the budget of the corpus for candidates is expected to stop
    the run, the plan of the judge says so.
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
        kept = settled.get(judge.slug, ())
        step = plan_judge(*known, asks=asks, further=further, settled=kept)
        if len(further):
            placing = plan_judge(*known, asks=("candidate_verdicts",), further=further)
            step = replace(step, cut_short=cut_short(placing, corpus.candidates.budget))
        plan.append(step)
    return len(sample) + len(further), tuple(plan)


def cut_short(placing: JudgePlan, texts: Sequence[str]) -> str:
    """Return the sentence on judges whose candidates' budget, per run, does not cover placing."""
    limit = Budget.parse(list(texts))
    unpriced = placing.money is None or placing.currency != limit.currency
    if limit.money is not None and placing.tokens is not None and unpriced:
        return (
            f"candidates.budget is {limit}, and the judge has no price in {limit.currency}: "
            "nothing is asked about new models; state candidates.budget in calls, or add "
            "'price_per_million' to its entry in judges.yaml"
        )
    over = _first_over(limit, placing.n_calls, placing.n_tokens, placing.money or 0.0)
    if not over:
        return ""
    return (
        f"about {over[0]} of this are about new models, where candidates.budget stops the run at "
        f"{over[1]}: raise candidates.budget of the corpus in corpora.yaml, or run it several "
        "times"
    )


def _first_over(cap: Budget, calls: float, tokens: float, money: float) -> tuple[str, ...]:
    """Return the first exceeded limit of a cap among calls, tokens and money, in words."""
    for value, limit, unit, digits in (
        (calls, cap.calls, "calls", 0),
        (tokens, cap.tokens, "tokens", 0),
        (money, cap.money, cap.currency, 2),
    ):
        if limit is not None and value > limit:
            return f"{value:,.{digits}f} {unit}", f"{limit:,.{digits}f}"
    return ()


def tables_by_judge(tables: ParquetStore, name: str, corpus: str) -> dict[str, pd.DataFrame]:
    """Return the tables of a name that are stored of a corpus, by judge."""
    stored = {j: tables.stored(name, corpus, j) for j in tables.partitions(name, corpus)}
    return {judge: table for judge, table in stored.items() if table is not None}


def _battles_of_candidates(
    corpus: CorpusDefinition,
    battles: pd.DataFrame,
    sample: pd.DataFrame,
    judges: Sequence[JudgeDefinition],
    tables: ParquetStore,
) -> pd.DataFrame:
    """Return the battles of candidates that a run would judge, by the present residuals.

    Before any judge has ratings these are as many as the corpus allows.
    """
    wait_until_settled(folder_of(corpus.slug))  # as the run will
    _, found = read_candidates(corpus, battles, tables)
    heldout, calibration = (
        tables_by_judge(tables, name, corpus.slug)
        for name in ("heldout_ratings", "conformal_calibration")
    )
    for judge in judges:
        if judge.kind == "recorded":
            heldout.pop(judge.slug, None)
    before = tables.stored("candidate_battles", corpus.slug)
    known = (corpus, found.candidates, battles, heldout, calibration)
    return choose_candidate_battles(*known, sampled=sample, before=before)[0]


def require_covered(plan: Sequence[JudgePlan], cap: Budget) -> None:
    """Check that a budget covers what a plan expects; what it does not foresee, the cap stops."""
    priced = [step for step in plan if step.tokens is not None and step.n_calls]
    for step in priced if cap.money is not None else ():
        if step.money is None or step.currency != cap.currency:
            raise ValueError(
                f"the budget is {cap}, but judge {step.judge!r} has no price in "
                f"{cap.currency}; add 'price_per_million' to its entry in judges.yaml"
            )
    n_calls, n_tokens = sum(step.n_calls for step in plan), sum(step.n_tokens for step in plan)
    over = _first_over(cap, n_calls, n_tokens, sum(step.money or 0.0 for step in priced))
    if over:
        raise ValueError(
            f"about {over[0]} would be needed, --budget allows {over[1]}; name fewer judges, lower "
            "sample_size of the corpus, or raise the budget"
        )


SCORES = dg.AssetKey("scored_battles")
DO_WITHOUT = frozenset({dg.AssetKey("reference_ratings")})
"""Assets that read scored battles where there are any, and do without where there are none."""


class LeftOut(NamedTuple):
    """Assets left out of the lineage, with the reason; none by default."""

    left_out: frozenset[dg.AssetKey] = frozenset()
    told: str = ""


WHOLE = LeftOut()


def supported_part(graph: AssetGraph, store: ParquetStore, corpus: str, judge: str) -> LeftOut:
    """Return the part of the lineage that a judge's verdicts support."""
    recorded = store.stored("recorded_verdicts", corpus)
    if recorded is None:
        return WHOLE
    own = recorded[recorded["judge"].eq(judge)]
    has_scores = own[list(SCORE_COLUMNS)].notna().any(axis=None)
    if has_scores or not own["recorded_outcome"].notna().any():
        return WHOLE
    reason = ""
    if are_plain(own):
        battles = store.stored("sampled_battles", corpus)
        if battles is None or battles["human_outcome"].notna().any():
            return LeftOut(told=f"judge {judge}: {PLAIN}")
        reason = " and without human votes on their battles"
    checks = [key for key in graph.asset_check_keys if SCORES in graph.get(key).parent_entity_keys]
    checked = {check.asset_key for check in checks} - DO_WITHOUT
    resting = dg.AssetSelection.assets(SCORES, *checked).downstream().resolve(graph)
    return LeftOut(
        frozenset(resting) - DO_WITHOUT,
        f"recorded preferences without rubric scores{reason}: reference-anchored ratings only",
    )


def common_part(parts: dict[str, LeftOut], succeeded: dict[str, bool]) -> LeftOut | None:
    """Return the part that a comparison of judges supports: that of the fullest one that ran.

    None where no judge got through, and the whole where there is no judge to wait for.
    """
    if not parts:
        return WHOLE
    able = [parts[judge] for judge in parts if succeeded[judge]]
    fullest = min(able, key=lambda part: len(part.left_out), default=None)
    return fullest if fullest is None or fullest.left_out else WHOLE


def methods_part(graph: AssetGraph, made: Collection[dg.AssetKey]) -> LeftOut | None:
    """Return the part of a comparison left where gates stopped every judge: scoring methods.

    None where not even those were made.
    """
    if dg.AssetKey("scoring_methods") not in made:
        return None
    return LeftOut(
        frozenset(graph.executable_asset_keys - {dg.AssetKey("report")}),
        "no judge has ratings on the human scale: scoring methods are compared all the same",
    )

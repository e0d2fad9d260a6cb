"""The report of a corpus: its tables, the battles behind them, costs and runs, on one page."""

import platform
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import REPORTS
from assets.partitions import CORPUS, by_judge, previews_silenced, read_as
from assets.provenance import (
    OF_CORPUS,
    OF_JUDGE,
    SAID,
    judge_checks,
    last_made,
    said_of,
    settled_judges,
)
from assets.reference.assets import diagnostics_of
from assets.settings import EVERY_JUDGE, SETTINGS, stated
from judgeline.elo import HeldOutRatings, summarise
from judgeline.intervals import WITHHELD
from judgeline.io import as_table, plain_ratings
from judgeline.judges.budget import Price
from judgeline.judges.forms.registered import FORM_TABLES
from judgeline.paths import REPORT_PAGES, home
from judgeline.rating_options import RatingOptions
from judgeline.report import (
    COMPANIONS,
    COST_COLUMNS,
    MOST_PER_SIDE,
    Evidence,
    JudgeTables,
    Lead,
    changes_text,
    evidence_of,
    strongest,
    write_report,
)
from judgeline.steps.diagnostics import leads_beside
from judgeline.steps.methods import FIGURES
from judgeline.steps.missing import ANSWERED, FOUGHT, account_for, missing_bounds
from judgeline.steps.reference import DIAGNOSTICS
from judgeline.steps.reliability import withheld_judges
from judgeline.steps.step import as_columns
from judgeline.steps.winrate import adjustment_coverage, label_plan
from judgeline.verdict import POOLED
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.tables.store import ParquetStore

Tables = dict[str, pd.DataFrame]

REPORTED = (
    "leaderboard",
    "heldout_ratings",
    "beta_folds",
    "conformal_calibration",
    "judge_diagnostics",
    "scored_battles",
)
_LOOKED_UP, _METHODS = "battle_influences", "scoring_methods"


_COMPUTED: Mapping[str, Callable[[pd.DataFrame, RatingOptions], pd.DataFrame]] = {
    "label_plan": label_plan,
    "adjustment_coverage": adjustment_coverage,
}
"""Companions that no table holds: they follow at once from the scored battles."""
_PLAIN = ("plain_ratings", "style_effects")
_STORED = tuple(name for name in COMPANIONS if name not in (*_COMPUTED, *_PLAIN, DIAGNOSTICS))
_LEADING_TO_METHODS = (
    "verdicts",
    "choice_verdicts",
    "score_verdicts",
    "scored_battles",
    "soft_outcomes",
    "quantitative_outcomes",
    "scoring_methods",
)
_ORIGIN = ("reader", "location", "revision", "sample_size", "seed")
_REPORT_SETTINGS = ("display_name", *_ORIGIN, "rating", EVERY_JUDGE)
_MORE = ("reliability_panel", "candidate_verdicts", "drift_answers")
ASKING = (*(table.name for table in FORM_TABLES.values()), *_MORE)
"""Tables of answers: what a judge is asked for."""

_TEXTS = {False: ("sampled_battles", "verdicts"), True: ("candidate_battles", "candidate_verdicts")}
_WIDTH = "variance_of_intervals"  # metadata of a leaderboard: its shares by source
_SHOWN = ["method", "mae", "spearman", "coverage", "median_width", "n_calls", "completion_tokens"]
_COUNTED = ["status", "prompt_tokens", "completion_tokens"]


def battles_behind(
    store: ParquetStore,
    corpus: str,
    judge: str,
    influences: pd.DataFrame,
    scored: pd.DataFrame | None = None,
) -> list[Evidence]:
    """Return the battles that move each rating by a judge most, with texts and answers."""
    found = []
    for is_candidate, own in influences.groupby("is_candidate", sort=True):
        chosen = strongest(own, MOST_PER_SIDE)
        battles, verdicts = _TEXTS[bool(is_candidate)]
        ids = set(chosen["battle_id"])
        texts = store.matching(battles, corpus, column="battle_id", among=ids)
        answers = store.matching(verdicts, corpus, judge, column="battle_id", among=ids)
        if texts is not None and answers is not None:
            found += evidence_of(chosen, texts, answers, scored)
    return found


def costs_of(
    instance: dg.DagsterInstance, store: ParquetStore, catalog: Catalog, corpus: str
) -> pd.DataFrame:
    """Return the calls, tokens and cost behind each table of answers; no cost without a price."""
    judges = catalog.judges()
    rows = []
    for asset in ASKING:
        for judge in store.partitions(asset, corpus):
            answers = store.picked(asset, corpus, judge, columns=_COUNTED)
            if answers is not None and len(answers):
                made = last_made(instance, corpus, judge, [asset])
                account = made[0].said if made else {}
                price = judges[judge].price_per_million if judge in judges else None
                rows.append({"judge": judge, "asset": asset, **_cost(answers, account, price)})
    table = pd.DataFrame(rows, columns=list(COST_COLUMNS))
    return table.sort_values(["judge"], kind="stable", ignore_index=True)


def _cost(answers: pd.DataFrame, account: Mapping[str, Any], price: Price | None) -> dict[str, Any]:
    """Return the calls, tokens and cost of answers; without tokens those of their account."""
    columns = _COUNTED[1:]
    if set(columns) <= set(answers):
        n_calls, tokens = len(answers), answers[columns].astype("Int64").sum(min_count=1)
    else:
        bought = {name: account.get(f"{name}_bought", pd.NA) for name in columns}
        n_calls, tokens = account.get("n_calls", len(answers)), pd.Series(bought, dtype="Int64")
    price = price if tokens.notna().all() else None
    return {
        "n_calls": int(n_calls),
        "n_failed": int(answers["status"].ne("ok").sum()),
        **tokens.astype("Int64").to_dict(),
        "price": price.of(*map(int, tokens)) if price else None,
        "currency": price.currency if price else None,
        "n_bought": account.get("n_asked"),
    }


def compare_methods(
    instance: dg.DagsterInstance, corpus: str, scoring_methods: Tables, leaderboards: Tables
) -> pd.DataFrame | None:
    """Return the scoring methods of every judge of a corpus in one table; None where there is none.

    Only of judges whose last run passed the blocking checks of what methods are made from.
    """
    judges, _ = settled_judges(instance, corpus, scoring_methods, assets=_LEADING_TO_METHODS)
    if not judges:
        return None
    table = pd.concat(
        [scoring_methods[judge].assign(judge=judge) for judge in judges], ignore_index=True
    )
    withheld = withheld_judges({one: leaderboards[one] for one in judges if one in leaderboards})
    return without_figures(table, withheld)


def without_figures(comparison: pd.DataFrame, withheld: Mapping[str, str]) -> pd.DataFrame:
    """Return a comparison without the figures from withheld ratings."""
    reason = comparison["judge"].map(dict(withheld))
    hidden = reason.notna()
    why, old = WITHHELD + reason[hidden].astype(str), comparison.loc[hidden, "note"]
    table = comparison.copy()
    table.loc[hidden, list(FIGURES)] = np.nan
    table.loc[hidden, "note"] = why.where(old.eq(""), why + "; " + old)
    return table


def runs_behind(
    instance: dg.DagsterInstance, corpus: str, judge: str
) -> tuple[dict[str, str], pd.DataFrame]:
    """Return the sources of the ratings, and the run behind each table."""
    made = last_made(instance, corpus, judge, (*OF_CORPUS, *OF_JUDGE))
    runs = [[one.asset, one.made_at, one.run_id, one.code_version] for one in made]
    columns = ["asset", "made_at", "run_id", "code_version"]
    said = said_of(made)
    plain = {name: said[name] for name in SAID if isinstance(said.get(name), str | int)}
    if shares := next((one.said[_WIDTH] for one in made if one.said.get(_WIDTH)), ""):
        plain[_WIDTH] = shares
    words = {name.replace("_", " "): str(value) for name, value in plain.items()}
    return words, pd.DataFrame(runs, columns=columns)


with previews_silenced():
    SELF_CONTAINED = dg.AssetCheckSpec(
        "report_is_self_contained",
        asset="report",
        partitions_def=CORPUS,
        description="The page opens without a network: it refers to nothing outside itself.",
    )


@dg.asset(
    partitions_def=CORPUS,
    kinds={"html"},
    owners=["team:evaluation"],
    code_version="6",
    automation_condition=REPORTS,
    check_specs=[SELF_CONTAINED],
    ins={
        "judge_comparison": read_as(may_lack=True),
        "pooled_leaderboard": read_as(may_lack=True),
        "sampled_battles": read_as(*FOUGHT, may_lack=True),
        "verdicts": read_as(*ANSWERED, fans_in=True),
        **{name: read_as(fans_in=True) for name in (*REPORTED, *_STORED, _LOOKED_UP, _METHODS)},
    },
)
def report(
    context: dg.AssetExecutionContext,
    judge_comparison: pd.DataFrame | None,
    pooled_leaderboard: pd.DataFrame | None,
    sampled_battles: pd.DataFrame | None,
    catalog: Catalog,
    io_manager: dg.ResourceParam[ParquetStore],
    **tables: dict[dg.MultiPartitionKey, pd.DataFrame],
) -> dg.MaterializeResult:  # type: ignore[type-arg]  # with checks Dagster takes this one alone
    """The report of a corpus: one HTML file with the leaderboard and figures of every judge.

    It holds the battles that move each rating most, down to the judge's answers.
    Where no judge has ratings on the human scale it compares their scoring methods, and says so.
    """
    corpus = catalog.corpus(context.partition_key)
    by_asset = {name: by_judge(fanned) for name, fanned in tables.items()}
    if judge_comparison is not None:  # it may be older than the retirement of a judge
        there = judge_comparison["judge"].isin([*by_asset["leaderboard"], POOLED])
        judge_comparison = judge_comparison[there].reset_index(drop=True) if there.any() else None
    methods = compare_methods(
        context.instance, corpus.slug, by_asset[_METHODS], by_asset["leaderboard"]
    )
    if judge_comparison is None and methods is None:
        raise ValueError(
            f"neither judges nor scoring methods of {corpus.slug!r} are compared yet; run a judge "
            "first"
        )
    rated = None if methods is None else methods[methods["mae"].notna()].sort_values("mae")
    by_error = "" if rated is None else rated[["judge", *_SHOWN]].round(3).to_markdown(index=False)
    compared = [] if judge_comparison is None else judge_comparison["judge"].unique().tolist()
    judges = [judge for judge in compared if judge != POOLED]
    left_out = sorted(set(by_asset["leaderboard"]).difference(judges))
    path = write_report(
        home() / "reports" / f"{corpus.slug}.html",
        title=f"Judges of {corpus.display_name}",
        corpus_name=corpus.display_name,
        simulated=corpus.reader == "arena",
        judges=[
            _tables_of(context, catalog, io_manager, judge, by_asset, sampled_battles)
            for judge in judges
        ],
        provenance=_provenance(corpus),
        comparison=judge_comparison,
        methods=methods,
        costs=costs_of(context.instance, io_manager, catalog, corpus.slug),
        left_out=left_out,
        pooled=pooled_leaderboard if POOLED in compared else None,
    )
    return dg.MaterializeResult(
        metadata={
            "page": dg.MetadataValue.url(f"{REPORT_PAGES}/{path.name}"),
            "path": dg.MetadataValue.path(path),
            "judges": judges,
            "left_out": left_out,
            "kilobytes": path.stat().st_size / 1000,
            "methods_by_error": dg.MetadataValue.md(by_error),
            SETTINGS: stated(catalog, corpus.slug, None, _REPORT_SETTINGS),
        },
        check_results=[self_contained(path)],
    )


def _tables_of(
    context: dg.AssetExecutionContext,
    catalog: Catalog,
    store: ParquetStore,
    judge: str,
    tables: Mapping[str, Tables],
    battles: pd.DataFrame | None,
) -> JudgeTables:
    """Return one judge's part of the page: its tables, its checks and their provenance."""
    of_judge = {name: by_name[judge] for name, by_name in tables.items() if judge in by_name}
    ratings = as_columns(HeldOutRatings, of_judge["heldout_ratings"])
    corpus, influences = context.partition_key, of_judge.get(_LOOKED_UP)
    origin, runs = runs_behind(context.instance, corpus, judge)
    rating, scored = catalog.corpus(corpus).rating, of_judge["scored_battles"]
    companions = _companions(of_judge, rating)
    if (diagnostics := diagnostics_of(context.instance, corpus, judge)) is not None:
        companions[DIAGNOSTICS] = diagnostics
    known = catalog.judges()  # a judge may have left the configuration meanwhile
    return JudgeTables(
        judge=judge,
        display_name=known[judge].display_name if judge in known else judge,
        summary=as_table(summarise(ratings)),
        checks=judge_checks(context.instance, corpus, judge),
        **{name: table for name, table in of_judge.items() if name in REPORTED},
        **_missing(of_judge, battles, rating),
        companions=companions,
        battles=[]
        if influences is None
        else battles_behind(store, corpus, judge, influences, scored),
        leads=_first_place(of_judge, rating),
        origin=origin,
        runs=runs,
        changed=changes_text(store.before("leaderboard", corpus, judge), of_judge["leaderboard"]),
    )


def _companions(tables: Tables, rating: RatingOptions) -> Tables:
    """Return a judge's tables beside its board: stored ones, then those computed for the page."""
    scored = tables["scored_battles"]
    stored = {name: table for name, table in tables.items() if name in COMPANIONS}
    computed = {name: compute(scored, rating) for name, compute in _COMPUTED.items()}
    plain = plain_ratings(scored, miscoverage=rating.miscoverage, l2=rating.l2)
    return {**stored, **computed, **dict(zip(_PLAIN, plain, strict=True))}


def _missing(tables: Tables, battles: pd.DataFrame | None, rating: RatingOptions) -> Tables:
    """Return a judge's missing battles and the bounds that they leave; empty without verdicts."""
    if battles is None or "verdicts" not in tables:
        return {}
    scored, folds = tables["scored_battles"], tables["beta_folds"]
    bounds = missing_bounds(battles, scored, folds, tables["heldout_ratings"], rating)
    return {"missingness": account_for(battles, tables["verdicts"]), "missing_bounds": bounds}


def _first_place(tables: Tables, rating: RatingOptions) -> list[Lead]:
    """Return the leads of the judge's first model and their battles; none if withheld."""
    board = tables["leaderboard"]
    rated = board[board["judge_rating"].notna()]
    if rated.empty:
        return []
    first = rated.loc[rated["judge_rating"].idxmax()]
    own = board.set_index("model")
    half_width = (own["judge_upper"] - own["judge_lower"]) / 2
    battles, method = tables["scored_battles"], first["method"]
    return leads_beside(first["model"], battles, own["judge_rating"], rating, method, half_width)


def _provenance(corpus: CorpusDefinition) -> dict[str, str]:
    """Return the settings and versions that make these numbers again."""
    settings = {f"rating.{name}": value for name, value in vars(corpus.rating).items()}
    stated_by = {
        "corpus": corpus.slug,
        **{name.replace("_", " "): getattr(corpus, name) for name in _ORIGIN},
        **settings,
        "judgeline": version("judgeline"),
        "Python": platform.python_version(),
        "numpy": np.__version__,
    }
    return {name: str(value) for name, value in stated_by.items() if value is not None}


def self_contained(path: Path) -> dg.AssetCheckResult:
    """Return whether a page holds no address that a browser would fetch."""
    page = _References()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    fetched = [one for one in page.found if one and not one.lower().startswith(("data:", "#"))]
    return dg.AssetCheckResult(
        check_name=SELF_CONTAINED.name,
        passed=not fetched,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"The page refers to {', '.join(fetched[:5])}: embed what it needs."
        if fetched
        else "The page refers to nothing outside itself.",
        metadata={"references": fetched},
    )


class _References(HTMLParser):
    """Addresses that a browser would fetch to show a page: of its elements, not of its texts."""

    _LOADING = ("src", "href", "xlink:href", "srcset", "poster", "data", "action", "formaction")
    _STYLED = ("style", "fill", "clip-path", "mask", "filter")
    _STYLES = re.compile(r"""(?:url\(|@import\s)\s*["']?([^\s"')]+)""", re.IGNORECASE)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses that an element or its style loads."""
        self._in_style = tag == "style"
        for name, value in attrs:
            if name in self._LOADING:
                self.found.append((value or "").strip())
            elif name in self._STYLED:
                self.found += self._STYLES.findall(value or "")

    def handle_endtag(self, tag: str) -> None:
        """Leave a style sheet."""
        self._in_style = self._in_style and tag != "style"

    def handle_data(self, data: str) -> None:
        """Take the addresses in a style sheet; text on the page refers to nothing."""
        if self._in_style:
            self.found += self._STYLES.findall(data)

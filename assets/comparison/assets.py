"""The judges of a corpus side by side, and its report; with the checks on both."""

import platform
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd

from assets.check_results import UP_TO_LEADERBOARD, judge_checks, settled_judges
from assets.columns import as_columns
from assets.comparison.report_inputs import battles_behind, costs_of, runs_behind
from assets.conditions import COMPARES_JUDGES, OF_CORPUS, REPORTS, checks_of
from assets.intervals.pooled import compare_pooled
from assets.partitions import (
    BY_CORPUS,
    CORPUS,
    by_judge,
    if_there,
    of_every_judge,
    previews_silenced,
)
from assets.reliability.gate import withheld_judges
from assets.settings import EVERY_JUDGE, SETTINGS, corpus_of, stated
from judgeline.elo import HeldOutRatings, summarise
from judgeline.io import as_table
from judgeline.report import COMPANIONS, JudgeTables, write_report
from judgeline.verdict import POOLED
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.config.paths import home
from resources.tables.comparison import JUDGE_COMPARISON
from resources.tables.store import ParquetStore

Tables = dict[str, pd.DataFrame]

REPORTED = (
    "leaderboard",
    "heldout_ratings",
    "beta_folds",
    "conformal_calibration",
    "judge_diagnostics",
    "missingness",
    "missing_bounds",
    "scored_battles",
)
_LOOKED_UP = "battle_influences"
_ORIGIN = ("reader", "location", "revision", "sample_size", "seed")
_REPORT_SETTINGS = ("display_name", *_ORIGIN, "rating", EVERY_JUDGE)
_INTERVALS = ("miscoverage", "n_splits", "seed", "std_error")
_OF_RATINGS = ["mae", "spearman", "kendall", "mean_beta", "threshold", "coverage", "median_width"]


@dg.asset(
    **OF_CORPUS,
    group_name="comparison",
    code_version="2",
    automation_condition=COMPARES_JUDGES,
    ins={
        "leaderboard": of_every_judge("model", "flags"),
        "heldout_ratings": of_every_judge(),
        "conformal_calibration": of_every_judge(),
        "judge_diagnostics": of_every_judge(),
        "verdicts": of_every_judge("battle_id", "status"),
        "scored_battles": of_every_judge("battle_id"),
        "pooled_leaderboard": if_there(),
    },
)
def judge_comparison(
    context: dg.AssetExecutionContext,
    leaderboard: dict[str, pd.DataFrame],
    heldout_ratings: dict[str, pd.DataFrame],
    conformal_calibration: dict[str, pd.DataFrame],
    judge_diagnostics: dict[str, pd.DataFrame],
    verdicts: dict[str, pd.DataFrame],
    scored_battles: dict[str, pd.DataFrame],
    pooled_leaderboard: pd.DataFrame | None,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A judge by one method: how near its ratings come to the human ones, and how surely.

    Errors and widths in Elo points, the threshold in standard errors. Only judges whose last
    run got through its blocking checks as far as a leaderboard. What rests on ratings is null
    for a judge whose ratings are withheld. The judges together are one more, named pooled.
    """
    names = (f"rating.{name}" for name in _INTERVALS)
    rating = corpus_of(context, catalog, *names).rating
    boards, *tables = (
        by_judge(of_judges)
        for of_judges in (
            leaderboard,
            heldout_ratings,
            conformal_calibration,
            judge_diagnostics,
            verdicts,
            scored_battles,
        )
    )
    judges, left_out = settled_judges(
        context.instance,
        context.partition_key,
        set(boards).intersection(*tables),
        assets=UP_TO_LEADERBOARD,
    )
    if not judges:
        raise ValueError(
            f"no judge of {context.partition_key!r} has a leaderboard that passed its checks"
            f"{' (left out: ' + ', '.join(left_out) + ')' if left_out else ''}; run a judge first"
        )
    withheld = withheld_judges({judge: boards[judge] for judge in judges})
    rows = [compare(judge, *(of_judge[judge] for of_judge in tables)) for judge in judges]
    table = pd.concat(rows, ignore_index=True)
    table.loc[table["judge"].isin(withheld), _OF_RATINGS] = np.nan
    if pooled_leaderboard is not None and len(pooled_leaderboard):
        pooled = compare_pooled(pooled_leaderboard, rating)[table.columns]
        table = pd.concat([table, pooled], ignore_index=True)
    return dg.MaterializeResult(
        value=table,
        metadata={
            "judges": judges,
            "left_out": left_out,
            **{f"withheld {judge}": reason for judge, reason in withheld.items()},
        },
    )


def compare(
    judge: str,
    heldout_ratings: pd.DataFrame,
    conformal_calibration: pd.DataFrame,
    judge_diagnostics: pd.DataFrame,
    verdicts: pd.DataFrame,
    scored_battles: pd.DataFrame,
) -> pd.DataFrame:
    """Return the rows of one judge in the comparison, one per method that was calibrated."""
    summary = as_table(summarise(as_columns(HeldOutRatings, heldout_ratings)))
    intervals = conformal_calibration[["method", "threshold", "coverage", "median_width"]]
    kappa = judge_diagnostics.loc[judge_diagnostics["diagnostic"].eq("cohen_kappa"), "value"]
    table = summary.merge(intervals, on="method", how="inner", validate="one_to_one").assign(
        judge=judge,
        kappa=kappa.iloc[0] if len(kappa) else np.nan,
        n_verdicts=len(verdicts),
        n_failed=int(verdicts["status"].ne("ok").sum()),
        n_scored=len(scored_battles),
    )
    return table[JUDGE_COMPARISON.columns]


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
    group_name="comparison",
    code_version="3",
    automation_condition=REPORTS,
    check_specs=[SELF_CONTAINED],
    ins={
        "judge_comparison": if_there(),
        "method_comparison": if_there(),
        "pooled_leaderboard": if_there(),
        **{name: of_every_judge() for name in (*REPORTED, *COMPANIONS, _LOOKED_UP)},
    },
    deps=["sampled_battles", dg.AssetDep("verdicts", partition_mapping=BY_CORPUS)],
)
def report(
    context: dg.AssetExecutionContext,
    judge_comparison: pd.DataFrame | None,
    method_comparison: pd.DataFrame | None,
    pooled_leaderboard: pd.DataFrame | None,
    catalog: Catalog,
    io_manager: dg.ResourceParam[ParquetStore],
    **tables: dict[dg.MultiPartitionKey, pd.DataFrame],
) -> dg.MaterializeResult:
    """The report of a corpus: one HTML file with the leaderboard and figures of every judge.

    It holds the battles that move each rating most, down to the judge's answers.
    Where no judge has ratings on the human scale it compares their scoring methods, and says so.
    """
    corpus = catalog.corpus(context.partition_key)
    by_asset = {name: by_judge(fanned) for name, fanned in tables.items()}
    if judge_comparison is not None:  # it may be older than the retirement of a judge
        there = judge_comparison["judge"].isin([*by_asset["leaderboard"], POOLED])
        judge_comparison = judge_comparison[there].reset_index(drop=True) if there.any() else None
    if judge_comparison is None and method_comparison is None:
        raise ValueError(
            f"neither judges nor scoring methods of {corpus.slug!r} are compared yet; run a judge "
            "first"
        )
    compared = [] if judge_comparison is None else judge_comparison["judge"].unique().tolist()
    judges = [judge for judge in compared if judge != POOLED]
    left_out = sorted(set(by_asset["leaderboard"]).difference(judges))
    path = write_report(
        home() / "reports" / f"{corpus.slug}.html",
        title=f"Judges of {corpus.display_name}",
        corpus_name=corpus.display_name,
        simulated=corpus.reader == "arena",
        judges=[_tables_of(context, catalog, io_manager, judge, by_asset) for judge in judges],
        provenance=_provenance(corpus),
        comparison=judge_comparison,
        methods=method_comparison,
        costs=costs_of(context.instance, io_manager, catalog, corpus.slug),
        left_out=left_out,
        pooled=pooled_leaderboard if POOLED in compared else None,
    )
    return dg.MaterializeResult(
        metadata={
            "path": dg.MetadataValue.path(path),
            "judges": judges,
            "left_out": left_out,
            "kilobytes": path.stat().st_size / 1000,
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
) -> JudgeTables:
    of_judge = {name: by_name[judge] for name, by_name in tables.items() if judge in by_name}
    ratings = as_columns(HeldOutRatings, of_judge["heldout_ratings"])
    corpus, influences = context.partition_key, of_judge.get(_LOOKED_UP)
    origin, runs = runs_behind(context.instance, corpus, judge)
    known = catalog.judges()  # a judge may have left the configuration meanwhile
    return JudgeTables(
        judge=judge,
        display_name=known[judge].display_name if judge in known else judge,
        summary=as_table(summarise(ratings)),
        checks=judge_checks(context.instance, context.partition_key, judge),
        **{name: table for name, table in of_judge.items() if name in REPORTED},
        companions={name: table for name, table in of_judge.items() if name in COMPANIONS},
        battles=[] if influences is None else battles_behind(store, corpus, judge, influences),
        origin=origin,
        runs=runs,
    )


def _provenance(corpus: CorpusDefinition) -> dict[str, str]:
    """Return the settings and versions that make these numbers again."""
    settings = {f"rating.{name}": value for name, value in corpus.rating.model_dump().items()}
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
    """Return whether a page refers to nothing that a browser would have to fetch."""
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
        """Take the addresses that an element loads, and those of its style."""
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


comparison_checks = checks_of(JUDGE_COMPARISON, partitions_def=CORPUS)

"""Conformal intervals and the leaderboard that carries them; with the checks on both."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets import thumbnails
from assets.checks import table_check
from assets.conditions import follows
from assets.engine import step_asset
from assets.messages import CHANGES
from assets.partitions import corpus_and_judge
from assets.provenance import BEFORE_RATINGS, MADE_FROM, sources_of
from judgeline.elo import HeldOutRatings, is_baseline, summarise
from judgeline.intervals import refit_errors, variance_by_source
from judgeline.io import as_table
from judgeline.reliability import failures
from judgeline.report import changes_text, evidence_lines, in_markdown, with_texts
from judgeline.steps import intervals
from judgeline.steps.coding import coded, units
from judgeline.steps.reliability import gate_of
from judgeline.steps.step import as_columns
from judgeline.tables.intervals import MORE_MODELS
from judgeline.tables.rules import among, holds, n_rows
from resources.config.catalog import Catalog
from resources.tables.expectations import check_result, evaluate

_REFITS = 5  # of everything; their mean square over models is all that is shown

_SHOWN = ["rank", "model", "rating", "lower", "upper", "evidence", "judge_rating", "flags"]
_MADE_FROM = (*BEFORE_RATINGS, "heldout_ratings", "conformal_calibration", "judge_gate")


def _calibration_tells(
    _context: dg.AssetExecutionContext, tables: Mapping[str, pd.DataFrame], _settings: Any
) -> Mapping[str, Any]:
    shown = tables["conformal_calibration"][
        ["method", "threshold", "coverage", "median_width", "note"]
    ]
    return {"summary": dg.MetadataValue.md(shown.to_markdown(index=False))}


conformal_calibration = step_asset(
    intervals.conformal_calibration,
    "5",
    partial(follows, ignored=["battles"]),  # battles without verdicts change no rating
    tells=_calibration_tells,
    columns={"battles": ("model_a", "model_b", "timestamp")},
)


def _board_tells(
    context: dg.AssetExecutionContext, tables: Mapping[str, pd.DataFrame], settings: Any
) -> Mapping[str, Any]:
    table, heldout = tables["leaderboard"], as_columns(HeldOutRatings, tables["heldout_ratings"])
    sources = sources_of(context, *_MADE_FROM)
    own = {name: getattr(settings, name) for name in intervals.leaderboard.reads}
    origin = {**sources, "rating_settings": {**sources.get("rating_settings", {}), **own}}
    if changed := changes_text(tables["before"], table):
        context.log.warning(f"{CHANGES}{changed}")
    if reason := failures(gate_of(tables["judge_gate"]), withholding=True):
        return {"withheld": reason, MADE_FROM: origin}
    variance = _variance(tables["scored_battles"], heldout, settings)
    shown = with_texts(table[_SHOWN].round(0), in_markdown)
    lines = evidence_lines(table, tables["conformal_calibration"], as_table(summarise(heldout)))
    return {
        "board": dg.MetadataValue.md(shown.to_markdown(index=False)),
        "plot": thumbnails.intervals(table),
        "evidence": dg.MetadataValue.md("\n\n".join(in_markdown(text) for text, _ in lines)),
        "variance": dg.MetadataValue.md(variance.to_markdown(index=False)),
        "variance_of_intervals": _in_words(variance),
        "n_candidates": int(table["flags"].str.split(";").str[0].eq("candidate").sum()),
        "median_half_width": float(((table["upper"] - table["lower"]) / 2).median()),
        MADE_FROM: origin,
    }


leaderboard = step_asset(
    intervals.leaderboard,
    "7",
    tells=_board_tells,
    beside=["conformal_calibration"],
)


def _variance(scored_battles: pd.DataFrame, heldout: HeldOutRatings, settings: Any) -> pd.DataFrame:
    """Return the sources of the intervals' width, by resampling questions."""
    method = settings.method
    refits = refit_errors(
        coded(scored_battles, settings),
        method=method,
        l2=settings.l2,
        n_refits=_REFITS,
        seed=settings.seed,
        cluster=units(scored_battles, settings),
    )
    shares = variance_by_source(heldout, refits, method=method, std_error=settings.std_error)
    table = as_table(shares)
    return table.assign(elo=table["elo"].round(1), share=table["share"].map("{:.0%}".format))


def _in_words(variance: pd.DataFrame) -> str:
    """Return the shares of the variance as a phrase by source; empty where unknown."""
    known = variance[variance["elo"] > 0]
    rows = zip(known["share"], known["meaning"], known["elo"], strict=True)
    return "; ".join(f"{share} from {meaning} ({elo:g} Elo)" for share, meaning, elo in rows)


@table_check(conformal_calibration)
def thresholds_are_finite(
    context: dg.AssetCheckExecutionContext, conformal_calibration: pd.DataFrame, catalog: Catalog
) -> dg.AssetCheckResult:
    """Too few calibration models give the judge's intervals no ends: votes alone then rank.

    Another method than the one that ranks is not asked if it cannot rate all voted models, since a
    fold has no ruler for it.
    """
    corpus, _ = corpus_and_judge(context)
    method = catalog.corpus(corpus).rating.method
    rated, ranks = conformal_calibration["n_models"], conformal_calibration["method"].eq(method)
    whole = conformal_calibration[ranks | rated.eq(rated.max())]
    return evaluate(
        whole.assign(finite=np.isfinite(whole["threshold"])),
        [
            n_rows(1, "a method is calibrated"),
            holds("finite", None, "the threshold of a method is finite"),
        ],
        ids=["method", "note"],
        remedy=MORE_MODELS,
        severity=dg.AssetCheckSeverity.WARN,
    )


@table_check(conformal_calibration)
def coverage_holds_across_groups(conformal_calibration: pd.DataFrame) -> dg.AssetCheckResult:
    """Intervals calibrated on one kind of models should hold for another kind too.

    Strong models are tried on weak ones and the reverse, few battles on many, newer models on
    older ones, each family on the others. Random halves are alike whatever the judge does: nothing
    rests on them.
    """
    asked = conformal_calibration[~conformal_calibration["method"].map(is_baseline).astype(bool)]
    tried = asked[asked["n_structured"] > 0]
    if tried.empty:
        why = "; ".join(filter(None, asked["note"].unique()))
        text = "Nothing was tested: no group of models could be set apart from the others. " + (
            f"{why or 'too few models with votes calibrate'}."
        )
        return check_result(text, passed=True)
    return evaluate(
        tried,
        [
            among(
                "structured_below",
                [""],
                "no group of models is covered less often than chance allows",
            )
        ],
        ids=["method"],
        remedy="Do not read these intervals as holding for the groups in `structured_below`: the "
        "judge treats them apart. Have people vote on models like those that you want to rate.",
        severity=dg.AssetCheckSeverity.WARN,
    )

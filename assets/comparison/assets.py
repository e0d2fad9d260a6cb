"""Judges and rating systems of a corpus side by side; with the checks on each."""

from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import as_columns
from assets.comparison.pooled import compare_pooled
from assets.comparison.systems import compare_systems, summarise_systems
from assets.conditions import COMPARES_JUDGES, fans_in, table_asset, table_check
from assets.partitions import by_judge
from assets.provenance import UP_TO_LEADERBOARD, is_settled, judge_checks, settled_judges
from assets.reference.assets import LIKELIHOOD, RUBRIC, covering
from assets.reliability.gate import withheld_judges
from assets.settings import corpus_of, rating_of
from judgeline.elo import HeldOutRatings, summarise
from judgeline.io import as_table
from judgeline.io.anchoring import choose_reference
from judgeline.io.systems import N_SHUFFLES, SYSTEMS, agreement_of, rate_by_systems
from resources.config.catalog import Catalog
from resources.tables.comparison import JUDGE_COMPARISON
from resources.tables.expectations import evaluate
from resources.tables.rules import within

LEAST_KENDALL = 0.7

_OF_RATINGS = ["mae", "spearman", "kendall", "mean_beta", "threshold", "coverage", "median_width"]
_NEEDED = dg.AssetSelection.assets("reference_ratings")
_FOLLOWED = dg.AssetSelection.assets("reference_ratings", "leaderboard")


@table_asset(
    "2",
    COMPARES_JUDGES,
    columns={
        "leaderboard": ("model", "flags"),
        "verdicts": ("battle_id", "status"),
        "scored_battles": ("battle_id",),
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
    rating = rating_of(context, catalog, "miscoverage", "n_splits", "seed", "std_error")
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


@table_asset(
    "1",
    fans_in(_FOLLOWED, _NEEDED),
    columns={
        "scored_battles": ("battle_id", "judge_outcome"),
        "soft_outcomes": ("battle_id", "source", "outcome"),
        "reference_ratings": ("model",),
        "leaderboard": ("model", "flags"),
    },
)
def rating_systems(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    scored_battles: dict[str, pd.DataFrame],
    soft_outcomes: dict[str, pd.DataFrame],
    reference_ratings: dict[str, pd.DataFrame],
    leaderboard: dict[str, pd.DataFrame],
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's rating by one system on one judge's outcomes, and how far judges differ there.

    Bradley-Terry, Glicko-2, TrueSkill and reference-anchored gaps, in Elo points about 1500. The
    second and third depend on the order of battles; they are means over shuffles. Judges whose
    ratings are withheld are left out.
    """
    corpus = corpus_of(context, catalog, "reference", "rating.l2", "rating.seed")
    reference = choose_reference(sampled_battles, corpus.reference.model)
    rated_judges = by_judge(reference_ratings)
    withheld = withheld_judges(by_judge(leaderboard))
    scored, soft = by_judge(scored_battles), by_judge(soft_outcomes)
    outcomes = {
        judge: found
        for judge in rated_judges
        if judge not in withheld
        and len(found := outcomes_of(scored.get(judge), soft.get(judge)))
        and is_settled(judge_checks(context.instance, corpus.slug, judge))
    }
    rated = {
        judge: rate_by_systems(
            sampled_battles.merge(found.rename("outcome"), left_on="battle_id", right_index=True),
            reference.model,
            l2=corpus.rating.l2,
            seed=corpus.rating.seed,
            stream=(corpus.slug, judge),
        )
        for judge, found in outcomes.items()
    }
    systems = compare_systems(rated)
    about: dict[str, Any] = {
        "note": "no judge has outcomes that passed its checks and gate; run a judge"
    }
    if len(systems):
        summary = summarise_systems(systems).round(3).to_markdown(index=False)
        note = "" if len(rated) > 1 else "one judge: there is no spread over judges"
        about = {"summary": dg.MetadataValue.md(summary), "note": note}
    return dg.MaterializeResult(
        value=systems,
        metadata={
            "reference_model": reference.model,
            "n_shuffles": N_SHUFFLES,
            "judges": sorted(outcomes),
            "left_out": sorted(set(rated_judges) - set(outcomes)),
            **{f"withheld {judge}": reason for judge, reason in withheld.items()},
            **about,
            **agreement_of(outcomes),
        },
    )


def outcomes_of(scored: pd.DataFrame | None, soft: pd.DataFrame | None) -> "pd.Series[float]":
    """Return a judge's outcomes by battle, of its rubric scores if they cover enough of them."""
    found: dict[str, pd.Series[float]] = {}
    if scored is not None:
        found[RUBRIC] = scored.set_index("battle_id")["judge_outcome"].dropna()
    if soft is not None:
        own = soft[soft["source"].eq(LIKELIHOOD)]
        found[LIKELIHOOD] = own.set_index("battle_id")["outcome"].dropna()
    source = covering({name: len(known) for name, known in found.items()}, prefer=RUBRIC)
    return pd.Series(dtype=float) if source is None else found[source].astype(float)


@table_check(rating_systems)
def systems_agree_on_the_order(rating_systems: pd.DataFrame) -> dg.AssetCheckResult:
    """Systems that order models differently on the same outcomes rest on too few battles."""
    note = f"Kendall's tau with {SYSTEMS[0]} is at least {LEAST_KENDALL:g}"
    return evaluate(
        summarise_systems(rating_systems),
        [within("kendall", LEAST_KENDALL, note=note)],
        ids=["system"],
        remedy="Judge more battles (with the reference, if that is the system named here) before "
        "trusting the order of models close together.",
        severity=dg.AssetCheckSeverity.WARN,
    )

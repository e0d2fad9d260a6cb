"""Judges and rating systems of a corpus side by side; with the checks on each."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import COMPARES_JUDGES, fans_in, table_asset, table_check
from assets.partitions import by_judge
from assets.provenance import UP_TO_LEADERBOARD, is_settled, judge_checks, settled_judges
from assets.settings import corpus_of, rating_of
from judgeline.elo import ELO_ORIGIN, kendall
from judgeline.steps.anchoring import choose_reference
from judgeline.steps.comparison import compare, compare_pooled
from judgeline.steps.reference import LIKELIHOOD, RUBRIC, covering
from judgeline.steps.reliability import withheld_judges
from judgeline.steps.systems import N_SHUFFLES, SYSTEMS, agreement_of, rate_by_systems
from judgeline.tables.comparison import RATING_SYSTEMS
from judgeline.tables.rules import within
from resources.config.catalog import Catalog
from resources.tables.expectations import evaluate

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


def compare_systems(rated: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return `RATING_SYSTEMS`: the ratings of all judges, centred alike, with their spread.

    Within a judge and system the mean of those models that all judges rate by all systems is 1500
    Elo points. ``judge_spread`` is the standard deviation (ddof 1) of a model's rating over
    judges; NaN for a single judge, or a model that a judge has no rating of.
    """
    if not rated:
        return RATING_SYSTEMS.empty()
    table = pd.concat([part.assign(judge=judge) for judge, part in rated.items()])
    missing = table.groupby("model")["rating"].apply(lambda ratings: ratings.isna().any())
    complete = table.groupby("model").size().eq(len(rated) * len(SYSTEMS)) & ~missing
    common = table["rating"].where(table["model"].map(complete))
    if common.isna().all():
        common = table["rating"]
    keys = [table["judge"], table["system"]]
    centred = table["rating"] - common.groupby(keys).transform("mean") + ELO_ORIGIN
    table = table.assign(rating=centred)
    by_model = table.groupby(["system", "model"])["rating"]
    spread = by_model.transform("std").where(by_model.transform("count").eq(len(rated)))
    return RATING_SYSTEMS.typed(table.assign(judge_spread=spread)).reset_index(drop=True)


def summarise_systems(systems: pd.DataFrame) -> pd.DataFrame:
    """Return one row per system: how it orders and spreads models, and how far judges differ.

    ``model_spread`` is the standard deviation of ratings over models, mean over judges.
    ``relative_spread`` is the mean ``judge_spread`` over it: a system that moves everyone towards
    the middle does not look steady. ``kendall`` compares its order with Bradley-Terry's, mean over
    judges.
    """
    columns = ["system", "n_judges", "n_models", "kendall", "model_spread", "judge_spread"]
    rows = []
    for system in [name for name in SYSTEMS if systems["system"].eq(name).any()]:
        own = systems[systems["system"].eq(system)]
        width = float(own.groupby("judge")["rating"].std().mean())
        between = float(own.drop_duplicates("model")["judge_spread"].mean())
        n_models = own.loc[own["rating"].notna(), "model"].nunique()
        ratio = between / width if width else np.nan
        row = (system, own["judge"].nunique(), n_models, _kendall(systems, own), width, between)
        rows.append((*row, ratio, float(own["order_spread"].mean())))
    return pd.DataFrame(rows, columns=[*columns, "relative_spread", "order_spread"])


def _kendall(systems: pd.DataFrame, own: pd.DataFrame) -> float:
    base = systems[systems["system"].eq(SYSTEMS[0])]
    both = base.merge(own, on=["judge", "model"], suffixes=("_base", ""))
    taus = [
        kendall(part["rating_base"], part["rating"])
        for _, part in both.dropna(subset=["rating", "rating_base"]).groupby("judge")
        if not part[["rating", "rating_base"]].nunique().eq(1).any()
    ]
    return float(np.mean(taus)) if taus else np.nan


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

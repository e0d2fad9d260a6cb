"""Four rating systems on the same outcomes of every judge; with the checks on them."""

from typing import Any

import dagster as dg
import pandas as pd

from assets.conditions import OF_CORPUS, checks_of, corpus_check, fans_in
from assets.gates import is_settled, judge_checks
from assets.partitions import CORPUS, by_judge, of_every_judge
from assets.reference.anchoring import LIKELIHOOD, RUBRIC, choose_reference, covering
from assets.reference.systems import (
    N_SHUFFLES,
    SYSTEMS,
    agreement_of,
    compare_systems,
    no_systems,
    rate_by_systems,
    summarise_systems,
)
from assets.reliability.gate import withheld_judges
from assets.settings import corpus_of
from resources.config.catalog import Catalog
from resources.tables.expectations import evaluate
from resources.tables.reference import RATING_SYSTEMS
from resources.tables.rules import within

LEAST_KENDALL = 0.7
_NEEDED = dg.AssetSelection.assets("reference_ratings")
_FOLLOWED = dg.AssetSelection.assets("reference_ratings", "leaderboard")


@dg.asset(
    **OF_CORPUS,
    group_name="comparison",
    code_version="1",
    automation_condition=fans_in(_FOLLOWED, _NEEDED),
    ins={
        "scored_battles": of_every_judge("battle_id", "judge_outcome"),
        "soft_outcomes": of_every_judge("battle_id", "source", "outcome"),
        "reference_ratings": of_every_judge("model"),
        "leaderboard": of_every_judge("model", "flags"),
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
    systems = compare_systems(rated) if rated else no_systems()
    left_out = sorted(set(rated_judges) - set(outcomes))
    return dg.MaterializeResult(
        value=systems,
        metadata={
            "reference_model": reference.model,
            "n_shuffles": N_SHUFFLES,
            "judges": sorted(outcomes),
            "left_out": left_out,
            **{f"withheld {judge}": reason for judge, reason in withheld.items()},
            **_about(systems),
            **agreement_of(outcomes),
        },
    )


def outcomes_of(scored: pd.DataFrame | None, soft: pd.DataFrame | None) -> "pd.Series[float]":
    """Return a judge's outcomes by battle, of its rubric scores or of its own probabilities.

    Rubric scores come first where they cover most of the battles that the probabilities cover.
    """
    found: dict[str, pd.Series[float]] = {}
    if scored is not None:
        found[RUBRIC] = scored.set_index("battle_id")["judge_outcome"].dropna()
    if soft is not None:
        own = soft[soft["source"].eq(LIKELIHOOD)]
        found[LIKELIHOOD] = own.set_index("battle_id")["outcome"].dropna()
    source = covering({name: len(known) for name, known in found.items()}, prefer=RUBRIC)
    return pd.Series(dtype=float) if source is None else found[source].astype(float)


def _about(systems: pd.DataFrame) -> dict[str, Any]:
    if systems.empty:
        return {"note": "no judge has outcomes that passed its checks and gate; run a judge"}
    summary = summarise_systems(systems).round(3)
    note = "" if len(systems["judge"].unique()) > 1 else "one judge: there is no spread over judges"
    return {"summary": dg.MetadataValue.md(summary.to_markdown(index=False)), "note": note}


system_checks = checks_of(RATING_SYSTEMS, partitions_def=CORPUS)


@corpus_check(rating_systems)
def systems_agree_on_the_order(rating_systems: pd.DataFrame) -> dg.AssetCheckResult:
    """Systems that order models differently on the same outcomes rest on too few battles."""
    table = summarise_systems(rating_systems) if len(rating_systems) else _no_summary()
    return evaluate(
        table,
        [
            within(
                "kendall",
                LEAST_KENDALL,
                note=f"Kendall's tau with {SYSTEMS[0]} is at least {LEAST_KENDALL:g}",
            )
        ],
        ids=["system"],
        remedy="Judge more battles (with the reference, if that is the system named here) before "
        "trusting the order of models close together.",
        severity=dg.AssetCheckSeverity.WARN,
    )


def _no_summary() -> pd.DataFrame:
    return pd.DataFrame({"system": pd.Series(dtype=str), "kendall": pd.Series(dtype=float)})

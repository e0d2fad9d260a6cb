"""Choices of a judge between the two completions of a battle, with how sure it was."""

from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import OF_CORPUS_AND_JUDGE, judge_check
from assets.judging.asking import account_of, ask_judge
from assets.judging.forms import (
    REMEDY,
    SUM_SLACK,
    not_asked,
    parse_rate_of,
    well_covered,
    well_formed,
    why_not_asked,
)
from assets.partitions import corpus_and_judge, of_corpus
from assets.settings import JUDGE, corpus_of
from resources.config.catalog import Catalog
from resources.judges.annotation import annotate
from resources.judges.budget import Budget
from resources.judges.forms.choice import CHOICE_DTYPES
from resources.judges.recorded import recorded_choices
from resources.store.resource import StoredVerdicts
from resources.tables.expectations import evaluate

MIN_AGREEMENT = 0.5


# No automation condition: judging costs money, so somebody has to ask for it by name.
@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="judging",
    code_version="1",
    ins={"sampled_battles": of_corpus(), "recorded_verdicts": of_corpus()},
)
def choice_verdicts(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    recorded_verdicts: pd.DataFrame,
    catalog: Catalog,
    verdict_store: StoredVerdicts,
    budget: dg.ResourceParam[Budget],
) -> dg.MaterializeResult[pd.DataFrame]:
    """One choice of a judge between the two completions of a battle, or why there is none.

    Shares and probabilities are oriented to the models whichever was shown first. Preferences
    that came with the corpus without scores stand here too. Empty for judges not asked so.
    """
    _, slug = corpus_and_judge(context)
    corpus_of(context, catalog, JUDGE)
    published = recorded_choices(recorded_verdicts, sampled_battles, slug)
    if len(published):
        return dg.MaterializeResult(
            value=published, metadata={**account_of(published), **_by_place(published)}
        )
    if note := why_not_asked(catalog.judge(slug), "choice", sampled_battles):
        return not_asked(CHOICE_DTYPES, note)
    told = ask_judge(
        context,
        sampled_battles,
        annotate,
        form="choice",
        catalog=catalog,
        verdict_store=verdict_store,
        budget=budget,
    )
    return dg.MaterializeResult(
        value=told.value, metadata={**(told.metadata or {}), **_by_place(told.value)}
    )


def _both_orders(choices: pd.DataFrame) -> pd.DataFrame:
    """Return A's mean share as said in either order, one row per battle with both."""
    said = choices[choices["status"].eq("ok") & choices["order"].isin(["AB", "BA"])]
    shares = said.pivot_table("choice", "battle_id", "order", aggfunc="mean")
    return shares.reindex(columns=["AB", "BA"]).dropna()


def _by_place(choices: pd.DataFrame) -> dict[str, Any]:
    """Return as metadata how much the choices depend on who was shown first."""
    both = _both_orders(choices)
    if both.empty:
        return {}
    return {
        "orders_agree": float(np.isclose(both["AB"], both["BA"]).mean()),
        "first_shown_share": float((both["AB"] + 1 - both["BA"]).mean() / 2),
    }


@judge_check(choice_verdicts, blocking=True)
def choices_are_well_formed(choice_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Each choice is stored once, with a known fate, and its probabilities add up to one."""
    import great_expectations.expectations as gxe

    chances = choice_verdicts[["p_a", "p_tie", "p_b"]]
    total = chances.sum(axis=1, skipna=False).fillna(-1.0)
    table, expectations = well_formed(
        choice_verdicts.assign(total=total.where(chances.notna().any(axis=1))),
        ["battle_id", "order", "replicate"],
        ["choice", *chances],
        [*chances, "covered"],
    )
    return evaluate(
        table,
        [
            *expectations,
            gxe.ExpectColumnValuesToBeInSet(
                column="order", value_set=["AB", "BA", "mean"], notes="order is AB, BA or mean"
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="choice", value_set=[0.0, 0.5, 1.0], notes="choice is 1, 0.5, 0 or null"
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="total",
                min_value=1 - SUM_SLACK,
                max_value=1 + SUM_SLACK,
                notes="p_a, p_tie and p_b add up to 1, or none is known",
            ),
        ],
        ids=["battle_id", "order"],
        remedy=REMEDY,
    )


@judge_check(choice_verdicts)
def nearly_all_choices_parse(choice_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Choices in the few battles that a judge can decide do not stand for the others."""
    return parse_rate_of(choice_verdicts)


@judge_check(choice_verdicts)
def choices_are_covered(choice_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Probabilities over half of what a judge could have said are those of another judge."""
    return well_covered(choice_verdicts, ["battle_id", "order"])


@judge_check(choice_verdicts)
def choices_survive_a_swap(choice_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """A judge whose choice mostly changes with the order chooses places, not completions."""
    import great_expectations.expectations as gxe

    both = _both_orders(choice_verdicts)
    return evaluate(
        both.assign(agree=np.isclose(both["AB"], both["BA"])).reset_index(),
        [
            gxe.ExpectColumnValuesToBeInSet(
                column="agree",
                value_set=[True],
                mostly=MIN_AGREEMENT,
                notes=f"in at least {MIN_AGREEMENT:.0%} of the battles both orders agree",
            )
        ],
        ids=["battle_id"],
        remedy="Prefer the sources 'likelihood' and 'score' of soft_outcomes for this judge, in "
        "which a bias for a place cancels or has none.",
        severity=dg.AssetCheckSeverity.WARN,
    )

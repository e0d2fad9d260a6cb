"""Verdicts of two more forms: one score for one completion, and a choice between two.

With every answer stands how probable the judge found what else it could have said. Judges that
are not asked in a form have an empty table of it.
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.asking import MIN_PARSED, WARN_PARSED, account_of, ask_judge, parse_rate
from assets.conditions import OF_CORPUS_AND_JUDGE, judge_check
from assets.judging import STATUSES
from assets.partitions import corpus_and_judge, of_corpus
from resources.catalog import Catalog
from resources.expectations import evaluate
from resources.judges.budget import Budget
from resources.judges.forms.options import FormName
from resources.judges.recorded_choices import recorded_choices
from resources.judges.soft_annotation import (
    CHOICE_DTYPES,
    SCORE_DTYPES,
    annotate_choices,
    annotate_scores,
)
from resources.verdict_store.resource import StoredVerdicts

EVIDENCE = ("log-probabilities", "samples", "published", "none")
LEAST_COVERED = 0.5
WARN_COVERED = 0.95
MIN_AGREEMENT = 0.5
_SUM_SLACK = 1e-6


# No automation condition: judging costs money, so somebody has to ask for it by name.
@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="judging",
    code_version="1",
    pool="judging",
    ins={"sampled_battles": of_corpus()},
)
def score_verdicts(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    catalog: Catalog,
    verdict_store: StoredVerdicts,
    budget: dg.ResourceParam[Budget],
) -> dg.MaterializeResult[pd.DataFrame]:
    """One score that a judge gave one completion by itself, or the reason why there is none.

    The score is on the judge's own scale, the expected score in points of 1 to 10. Empty for
    judges that are not asked so.
    """
    _, slug = corpus_and_judge(context)
    if "score" not in catalog.judge(slug).asks:
        return _empty(SCORE_DTYPES, slug, "score")
    return ask_judge(
        context,
        sampled_battles,
        annotate_scores,
        form="score",
        catalog=catalog,
        verdict_store=verdict_store,
        budget=budget,
    )


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="judging",
    code_version="1",
    pool="judging",
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
    published = recorded_choices(recorded_verdicts, sampled_battles, slug)
    if len(published):
        return dg.MaterializeResult(
            value=published, metadata={**account_of(published), **_by_place(published)}
        )
    if "choice" not in catalog.judge(slug).asks or recorded_verdicts["judge"].eq(slug).any():
        return _empty(CHOICE_DTYPES, slug, "choice")
    told = ask_judge(
        context,
        sampled_battles,
        annotate_choices,
        form="choice",
        catalog=catalog,
        verdict_store=verdict_store,
        budget=budget,
    )
    return dg.MaterializeResult(
        value=told.value, metadata={**(told.metadata or {}), **_by_place(told.value)}
    )


def _empty(dtypes: dict[str, str], slug: str, form: FormName) -> dg.MaterializeResult[pd.DataFrame]:
    note = (
        f"judge {slug!r} is not asked in the form {form!r}: add it to the judge's 'asks' in "
        "config/judges.yaml"
    )
    table = pd.DataFrame([], columns=list(dtypes)).astype(dtypes)
    return dg.MaterializeResult(value=table, metadata={"note": note})


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


def _expectations(
    columns: Sequence[str], key: list[str], unit: Sequence[str], statuses: Sequence[str] = STATUSES
) -> list[Any]:
    """Return what both tables must meet: columns, keys, known fates, shares within [0, 1]."""
    import great_expectations.expectations as gxe

    known = (*key, "judge", "status", "evidence", "identity")
    return [
        gxe.ExpectTableColumnsToMatchSet(
            column_set=list(columns), exact_match=False, notes="no column is missing"
        ),
        *(gxe.ExpectColumnValuesToNotBeNull(column=c, notes=f"{c} is known") for c in known),
        gxe.ExpectCompoundColumnsToBeUnique(
            column_list=[*key, "judge"], notes="a presentation has one verdict per replicate"
        ),
        gxe.ExpectColumnValuesToBeInSet(
            column="status",
            value_set=list(statuses),
            notes=f"status is one of {', '.join(statuses)}",
        ),
        gxe.ExpectColumnValuesToBeInSet(
            column="evidence",
            value_set=list(EVIDENCE),
            notes=f"evidence is one of {', '.join(EVIDENCE)}",
        ),
        *(
            gxe.ExpectColumnValuesToBeBetween(
                column=c,
                min_value=0,
                max_value=1 + _SUM_SLACK,
                notes=f"{c} lies in [0, 1]",
            )
            for c in unit
        ),
        gxe.ExpectColumnValuesToBeInSet(
            column="surplus", value_set=[False], notes="a failed answer says nothing"
        ),
    ]


_REMEDY = "Look at `answer` and `log_probabilities` of these rows: the reader let them through."


@judge_check(score_verdicts, blocking=True)
def scores_are_well_formed(score_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Each score is stored once, with a known fate, and its expectation lies on the scale."""
    import great_expectations.expectations as gxe

    said = score_verdicts[["score", "expected_score"]].notna().any(axis=1)
    failed = score_verdicts["status"].ne("ok")
    unsaid = score_verdicts["score"].isna()
    return evaluate(
        score_verdicts.assign(surplus=said & failed, unsaid=unsaid & ~failed),
        [
            *_expectations(tuple(SCORE_DTYPES), ["completion_id", "replicate"], ["covered"]),
            gxe.ExpectColumnValuesToBeBetween(
                column="expected_score",
                min_value=1,
                max_value=10,
                notes="expected_score lies in [1, 10]",
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="unsaid", value_set=[False], notes="an answer that is ok has a score"
            ),
        ],
        ids=["completion_id", "replicate"],
        remedy=_REMEDY,
    )


@judge_check(choice_verdicts, blocking=True)
def choices_are_well_formed(choice_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Each choice is stored once, with a known fate, and its probabilities add up to one."""
    import great_expectations.expectations as gxe

    chances = choice_verdicts[["p_a", "p_tie", "p_b"]]
    said = choice_verdicts["choice"].notna() | chances.notna().any(axis=1)
    failed = choice_verdicts["status"].ne("ok")
    return evaluate(
        choice_verdicts.assign(
            surplus=said & failed,
            total=chances.sum(axis=1, skipna=False).where(chances.notna().any(axis=1), 1.0),
            unsaid=~said & ~failed,
        ),
        [
            *_expectations(
                tuple(CHOICE_DTYPES),
                ["battle_id", "order", "replicate"],
                ["p_a", "p_tie", "p_b", "covered"],
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="order", value_set=["AB", "BA", "mean"], notes="order is AB, BA or mean"
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="choice", value_set=[0.0, 0.5, 1.0], notes="choice is 1, 0.5, 0 or null"
            ),
            gxe.ExpectColumnValuesToNotBeNull(
                column="total", notes="of the three probabilities, all are known or none"
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="total",
                min_value=1 - _SUM_SLACK,
                max_value=1 + _SUM_SLACK,
                notes="p_a, p_tie and p_b add up to 1",
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="unsaid",
                value_set=[False],
                notes="an answer that is ok has a choice or a published probability",
            ),
        ],
        ids=["battle_id", "order"],
        remedy=_REMEDY,
    )


@judge_check(score_verdicts, blocking=True)
def most_scores_parse(score_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Scores of the few completions that a judge can grade do not stand for the others."""
    return _parse_rate(score_verdicts)


@judge_check(choice_verdicts, blocking=True)
def most_choices_parse(choice_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Choices in the few battles that a judge can decide do not stand for the others."""
    return _parse_rate(choice_verdicts)


def _parse_rate(verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Warn below one limit, stop below another; a judge that was not asked passes."""
    if verdicts.empty:
        return dg.AssetCheckResult(passed=True, description="The judge was not asked in this form.")
    stops = verdicts["status"].eq("ok").mean() < MIN_PARSED
    severity = dg.AssetCheckSeverity.ERROR if stops else dg.AssetCheckSeverity.WARN
    return parse_rate(verdicts, MIN_PARSED if stops else WARN_PARSED, severity)


@judge_check(score_verdicts)
def scores_are_covered(score_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """An expectation over half of what a judge could have said is that of another judge."""
    return _covered(score_verdicts, ["completion_id", "replicate"])


@judge_check(choice_verdicts)
def choices_are_covered(choice_verdicts: pd.DataFrame) -> dg.AssetCheckResult:
    """Probabilities over half of what a judge could have said are those of another judge."""
    return _covered(choice_verdicts, ["battle_id", "order"])


def _covered(verdicts: pd.DataFrame, ids: list[str]) -> dg.AssetCheckResult:
    import great_expectations.expectations as gxe

    return evaluate(
        verdicts[verdicts["covered"].notna()],
        [
            gxe.ExpectColumnValuesToBeBetween(
                column="covered",
                min_value=LEAST_COVERED,
                mostly=WARN_COVERED,
                notes=f"at least {WARN_COVERED:.0%} of the answers tell {LEAST_COVERED:.0%} or more "
                "of the probability",
            )
        ],
        ids=ids,
        remedy="Look at `log_probabilities` of these rows: the endpoint lists too few "
        "alternatives for the scale, or the judge begins with other words. A coarser "
        "'score.scale' or samples (log_probabilities: off) help.",
        severity=dg.AssetCheckSeverity.WARN,
    )


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

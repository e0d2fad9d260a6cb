"""The slope that puts a judge's scores on the human scale, per held-out model; with its checks."""

import dagster as dg
import pandas as pd

from assets.columns import as_coded, as_table
from assets.conditions import FOLLOWS, OF_CORPUS_AND_JUDGE, judge_check
from assets.settings import corpus_of
from judgeline.elo import fit_beta_folds
from resources.config.catalog import Catalog
from resources.tables.expectations import evaluate

WARN_STD_ERRORS = 2.0


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="calibration",
    code_version="1",
    automation_condition=FOLLOWS,
)
def beta_folds(
    context: dg.AssetExecutionContext, scored_battles: pd.DataFrame, catalog: Catalog
) -> dg.MaterializeResult[pd.DataFrame]:
    """A held-out model's beta, in logits per rubric point, fitted on human votes without it."""
    rating = corpus_of(context, catalog, "rating.hard_outcome").rating
    folds = as_table(fit_beta_folds(as_coded(scored_battles, rating.hard_outcome)))
    fitted = folds.loc[folds["status"].eq("ok"), "beta"]
    spread = {f"{how}_beta": float(getattr(fitted, how)()) for how in ("min", "median", "max")}
    return dg.MaterializeResult(
        value=folds,
        metadata={"n_fitted": len(fitted), **(spread if len(fitted) else {})},
    )


@judge_check(beta_folds, blocking=True)
def beta_is_usable(beta_folds: pd.DataFrame) -> dg.AssetCheckResult:
    """Soft outcomes need a positive slope: a judge that contradicts people has none."""
    import great_expectations.expectations as gxe

    return evaluate(
        beta_folds,
        [
            gxe.ExpectTableRowCountToBeBetween(min_value=1, notes="there is at least one fold"),
            gxe.ExpectColumnValuesToBeInSet(
                column="status",
                value_set=["ok"],
                notes="every fold's status is ok, not contradicts-humans, constant-scores, "
                "separable or no-decisive-votes",
            ),
            gxe.ExpectColumnValuesToNotBeNull(column="beta", notes="every fold has a beta"),
            gxe.ExpectColumnValuesToBeBetween(
                column="beta",
                min_value=0,
                strict_min=True,
                max_value=1e6,
                notes="beta is positive and finite",
            ),
        ],
        ids=["held_out_model"],
        remedy="contradicts-humans: the judge prefers what people reject, use another; "
        "constant-scores: all score differences are equal and tell nothing, use another; separable "
        "or no-decisive-votes: too few human votes, add voted battles.",
    )


@judge_check(beta_folds)
def beta_is_well_determined(beta_folds: pd.DataFrame) -> dg.AssetCheckResult:
    """A slope within two standard errors of zero says that the judge may know nothing."""
    import great_expectations.expectations as gxe

    return evaluate(
        beta_folds.assign(std_errors_from_zero=beta_folds["beta"] / beta_folds["std_error"]),
        [
            gxe.ExpectColumnValuesToBeBetween(
                column="std_errors_from_zero",
                min_value=WARN_STD_ERRORS,
                notes=f"beta is at least {WARN_STD_ERRORS:g} standard errors above zero",
            )
        ],
        ids=["held_out_model"],
        remedy="Add voted battles, or use a judge that agrees better with people.",
        severity=dg.AssetCheckSeverity.WARN,
    )

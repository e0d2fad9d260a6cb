"""The slope that puts a judge's scores on the human scale, per held-out model; with its checks."""

import dagster as dg
import pandas as pd

from assets.columns import as_coded, as_table
from assets.conditions import FOLLOWS, OF_CORPUS_AND_JUDGE, checks_of
from assets.settings import corpus_of
from judgeline.elo import fit_beta_folds
from resources.config.catalog import Catalog
from resources.tables.elo import BETA_FOLDS


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


slope_checks = checks_of(BETA_FOLDS)

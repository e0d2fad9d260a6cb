"""Asset of judge diagnostics: agreement, bias, reliability; with its check."""

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import as_columns
from assets.conditions import follows, judge_table
from assets.settings import rating_of
from judgeline.diagnostics import diagnose_judge
from judgeline.elo import BetaFolds, HeldOutRatings
from judgeline.io import as_coded, as_numbers, as_table
from resources.config.catalog import Catalog


@judge_table("1", follows)
def judge_diagnostics(
    context: dg.AssetExecutionContext,
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """One named diagnostic of a judge, with its value and unit, and how many it rests on."""
    rating = rating_of(context, catalog, "hard_outcome", "l2", "seed")
    columns = ("difference_ab", "difference_ba", "length_a", "length_b", "language")
    diagnostics = diagnose_judge(
        as_coded(scored_battles, rating.hard_outcome),
        as_columns(BetaFolds, beta_folds),
        as_columns(HeldOutRatings, heldout_ratings),
        **{name: _published(scored_battles[name]) for name in columns},
        l2=rating.l2,
        seed=rating.seed,
    )
    table = as_table(diagnostics)
    overall = table[table["level"].eq("") & np.isfinite(table["value"])]
    values = overall.set_index("diagnostic")["value"].to_dict()
    return dg.MaterializeResult(value=table, metadata=values)


def _published(column: pd.Series) -> np.ndarray | None:
    """Return a column as floats or text, or None where the corpus publishes none of it."""
    if column.isna().all():
        return None
    return as_numbers(column) if pd.api.types.is_numeric_dtype(column) else column.to_numpy()

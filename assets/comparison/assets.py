"""Judges of a corpus side by side."""

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import COMPARES_JUDGES, table_asset
from assets.partitions import by_judge
from assets.provenance import UP_TO_LEADERBOARD, settled_judges
from assets.settings import rating_of
from judgeline.steps.comparison import compare, compare_pooled
from judgeline.steps.intervals import conformal_calibration
from judgeline.steps.reliability import withheld_judges
from resources.config.catalog import Catalog

_READ = [name for name in conformal_calibration.reads if name != "method"]
_OF_RATINGS = ["mae", "spearman", "kendall", "mean_beta", "threshold", "coverage", "median_width"]


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
    rating = rating_of(context, catalog, *_READ)
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

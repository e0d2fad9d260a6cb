"""Judge diagnostics, and influences of battles on the ratings that a leaderboard shows."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.checks import table_check
from assets.conditions import AFTER_THE_BOARD, follows_judged_candidates
from assets.engine import step_asset
from assets.partitions import corpus_and_judge
from judgeline.elo import HEADLINE, rating_to_strength
from judgeline.io import as_numbers
from judgeline.steps import diagnostics
from judgeline.tables.ids import is_among
from judgeline.tables.rules import holds, known, within
from resources.config.catalog import Catalog
from resources.tables.expectations import evaluate


def _diagnostics_tell(
    _context: dg.AssetExecutionContext, tables: Mapping[str, pd.DataFrame], _settings: Any
) -> Mapping[str, Any]:
    table = tables["judge_diagnostics"]
    overall = table[table["level"].eq("") & np.isfinite(table["value"])]
    return {
        str(name): float(value) for name, value in overall.set_index("diagnostic")["value"].items()
    }


judge_diagnostics = step_asset(diagnostics.judge_diagnostics, "3", tells=_diagnostics_tell)


PULL_TOLERANCE = 1e-6  # wins: ratings are stored in Elo points, each good to 1e-9 of a win


battle_influences = step_asset(
    diagnostics.battle_influences,
    "2",
    follows_judged_candidates,
    deps=["heldout_ratings"],
    op_tags=AFTER_THE_BOARD,
)


@table_check(battle_influences)
def influences_add_up(
    context: dg.AssetCheckExecutionContext,
    battle_influences: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    scored_battles: pd.DataFrame,
    catalog: Catalog,
) -> dg.AssetCheckResult:
    """Wins beyond expectation balance the penalty at each rating: else they are of another one."""
    corpus, _ = corpus_and_judge(context)
    rating = catalog.corpus(corpus).rating
    own = battle_influences[~battle_influences["is_candidate"]]
    is_scored = pd.Series(is_among(own["battle_id"], scored_battles["battle_id"]), index=own.index)
    placed = _mean_of_bases(heldout_ratings, rating.method)
    surplus = (own["outcome"] - own["expected"]).groupby(own["model"]).sum()
    pull = 2 * rating.l2 * pd.Series(rating_to_strength(as_numbers(placed)), placed.index)
    table = pd.DataFrame(
        {
            "off_by": (surplus - pull[placed.notna()]).abs(),
            "known": is_scored.groupby(own["model"]).all(),
            "finite": np.isfinite(own["influence"]).groupby(own["model"]).all(),
        }
    )
    balanced = "wins beyond expectation equal the pull of the penalty at the rating"
    return evaluate(
        table.rename_axis("model").reset_index(),
        [
            within("off_by", high=PULL_TOLERANCE, note=balanced),
            *known("off_by", note="models with a rating and models with influences agree"),
            holds("known", None, "each battle is a scored one"),
            holds("finite", None, "each influence is a number"),
        ],
        ids=["model"],
        remedy="Ratings and influences are of different battles: remake heldout_ratings and "
        "battle_influences.",
        severity=dg.AssetCheckSeverity.WARN,
    )


def _mean_of_bases(heldout_ratings: pd.DataFrame, method: str) -> pd.Series:
    """Return by model the mean rating of the methods that a method is mixed of, Elo points."""
    ratings = heldout_ratings.pivot(index="model", columns="method", values="rating")  # noqa: PD010
    average = ratings[["hard", "soft"]].mean(axis=1)
    if method == HEADLINE:
        own = heldout_ratings[heldout_ratings["method"].eq(HEADLINE)].set_index("model")
        base = average.where(own["basis"].str.startswith("average"), ratings["gap"])
    else:
        base = average if method == "average" else ratings[method.removesuffix("-rescaled")]
    return base.where(ratings[method].notna())

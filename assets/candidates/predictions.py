"""The running record of predicted ratings by a judge on a corpus, and its check."""

from datetime import UTC, datetime

import dagster as dg
import pandas as pd

from assets.checks import table_check
from assets.conditions import AFTER_THE_BOARD, follows, table_asset
from assets.partitions import corpus_and_judge
from assets.settings import rating_of
from judgeline.intervals import Leaderboard
from judgeline.steps.predictions import (
    coverage_of,
    further_ratings,
    score_predictions,
    state_predictions,
    typed_record,
)
from judgeline.steps.step import require_columns
from judgeline.tables.rules import at_least
from resources.config.catalog import Catalog
from resources.tables.expectations import evaluate
from resources.tables.store import ParquetStore


@table_asset(
    "5",
    follows,
    columns={
        "candidate_ratings": ("model", "content_hash"),
        "heldout_ratings": ("model", "design_effect"),
    },
    op_tags=AFTER_THE_BOARD,
)
def predictions(
    context: dg.AssetExecutionContext,
    leaderboard: pd.DataFrame,
    candidate_ratings: pd.DataFrame | None,
    scored_battles: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    catalog: Catalog,
    io_manager: dg.ResourceParam[ParquetStore],
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's rating and interval as first stated without votes, and people's rating later.

    Elo points. A row is written once, scored once, when enough people have voted, and never
    changed: the record of what the intervals were worth. A second row per model has the rating by
    the judge and its first votes together, which its later votes score.
    """
    corpus, judge = corpus_and_judge(context)
    rating = rating_of(context, catalog, "hard_outcome", "l2", "miscoverage")
    require_columns(Leaderboard, leaderboard)
    before = typed_record(io_manager.stored("predictions", corpus, judge))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    hashes = pd.Series(dtype="str")
    if candidate_ratings is not None:
        hashes = candidate_ratings.set_index("model")["content_hash"]
    designs = heldout_ratings.drop_duplicates("model").set_index("model")["design_effect"]
    further = further_ratings(before, scored_battles, rating, designs.to_dict())
    table = state_predictions(
        score_predictions(before, leaderboard, further, now=now),
        leaderboard,
        hashes,
        scored_battles,
        miscoverage=rating.miscoverage,
        now=now,
        run_id=context.run.run_id,
    )
    is_scored = table["scored_at"].notna()
    return dg.MaterializeResult(
        value=table,
        metadata={
            "n_predictions": len(table),
            "n_new": len(table) - len(before),
            "n_scored": int(is_scored.sum()),
            "n_covered": int(table["covered"].sum()),
            "n_awaiting_votes": int((~is_scored).sum()),
        },
    )


@table_check(predictions)
def predictions_cover(
    predictions: pd.DataFrame, heldout_ratings: pd.DataFrame
) -> dg.AssetCheckResult:
    """Intervals stated before the votes hold as often as they promised, within chance."""
    return evaluate(
        coverage_of(predictions, heldout_ratings),
        [
            at_least("coverage", "shared_lower", "no fewer predictions held than chance allows"),
            at_least("shared_upper", "coverage", "no more predictions held than chance allows"),
        ],
        ids=["method", "miscoverage", "n_predictions", "n_covered", "lower", "upper"],
        remedy="Too few: new models are not like those that calibrate; read further intervals as "
        "too narrow. Too many: intervals are wider than they need be.",
        severity=dg.AssetCheckSeverity.WARN,
    )

"""The running record: predictions of models without votes, and their later ratings by people."""

from datetime import UTC, datetime

import dagster as dg
import numpy as np
import pandas as pd

from assets.candidates.prediction_record import (
    JUDGE_AND_VOTES,
    coverage_of,
    further_ratings,
    rank_tests,
    score_predictions,
    state_predictions,
    strangeness,
    typed_record,
)
from assets.columns import require_columns
from assets.conditions import FOLLOWS_WITHOUT_CANDIDATES, judge_check, judge_table
from assets.partitions import corpus_and_judge
from assets.settings import rating_of
from judgeline.elo import human_anchors
from judgeline.intervals import Leaderboard, StdErrorKind
from judgeline.io import as_coded
from resources.config.catalog import Catalog
from resources.config.corpora import RatingOptions
from resources.tables.expectations import check_result, evaluate
from resources.tables.rules import at_least
from resources.tables.store import ParquetStore

SURPRISING = 0.01
"""p-value below which a test of exchangeability warns; two are made at each look."""


@judge_table(
    "4", FOLLOWS_WITHOUT_CANDIDATES, columns={"candidate_ratings": ("model", "content_hash")}
)
def predictions(
    context: dg.AssetExecutionContext,
    leaderboard: pd.DataFrame,
    candidate_ratings: pd.DataFrame | None,
    scored_battles: pd.DataFrame,
    catalog: Catalog,
    io_manager: dg.ResourceParam[ParquetStore],
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's rating and interval as first stated without votes, and people's rating later.

    Elo points. A row is written once, scored once, when enough people have voted, and never
    changed: the record of what the intervals were worth. A second row per model has the rating by
    the judge and its first votes together, which its later votes score.
    """
    corpus, judge = corpus_and_judge(context)
    rating = rating_of(context, catalog, "hard_outcome", "l2", "miscoverage", "std_error")
    require_columns(Leaderboard, leaderboard)
    before = typed_record(io_manager.stored("predictions", corpus, judge))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    hashes = pd.Series(dtype="str")
    if candidate_ratings is not None:
        hashes = candidate_ratings.set_index("model")["content_hash"]
    table = state_predictions(
        score_predictions(before, leaderboard, _further(before, scored_battles, rating), now=now),
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


def _further(
    record: pd.DataFrame, scored_battles: pd.DataFrame, rating: RatingOptions
) -> pd.DataFrame:
    """Return people's ratings by the votes that predictions by judge and votes had not seen."""
    waiting = record[record["method"].eq(JUDGE_AND_VOTES) & record["scored_at"].isna()]
    anchors = pd.DataFrame()
    if len(waiting):
        coded = as_coded(scored_battles, rating.hard_outcome)
        voted, strengths = human_anchors(coded, l2=rating.l2)
        models = np.array(coded.models)
        anchors = pd.DataFrame(strengths, index=models, columns=models[voted])
    return further_ratings(waiting, scored_battles, anchors, l2=rating.l2)


@judge_check(predictions)
def predictions_cover(
    predictions: pd.DataFrame, heldout_ratings: pd.DataFrame
) -> dg.AssetCheckResult:
    """Intervals stated before the votes hold as often as they promised, within chance."""
    coverage, _ = coverage_of(predictions, heldout_ratings)
    return evaluate(
        coverage,
        [
            at_least("coverage", "shared_lower", "no fewer predictions held than chance allows"),
            at_least("shared_upper", "coverage", "no more predictions held than chance allows"),
        ],
        ids=["method", "miscoverage", "n_predictions", "n_covered", "lower", "upper"],
        remedy="Too few: new models are not like those that calibrate; see "
        "fresh_residuals_are_exchangeable, and read further intervals as too narrow. Too many: "
        "intervals are wider than they need be.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@judge_check(predictions)
def fresh_residuals_are_exchangeable(
    context: dg.AssetCheckExecutionContext,
    predictions: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    catalog: Catalog,
) -> dg.AssetCheckResult:
    """Residuals of predictions rank among those that calibrate as if drawn from one pool."""
    corpus, _ = corpus_and_judge(context)
    return exchangeable(predictions, heldout_ratings, catalog.corpus(corpus).rating.std_error)


def exchangeable(
    predictions: pd.DataFrame, heldout_ratings: pd.DataFrame, std_error: StdErrorKind
) -> dg.AssetCheckResult:
    """Return the check that residuals of predictions rank as in their pool, by one error."""
    tests = rank_tests(predictions, heldout_ratings, std_error)
    by_judge = predictions[predictions["method"].ne(JUDGE_AND_VOTES)]
    n_older = int((by_judge["scored_at"].notna() & by_judge["vote_std_error"].isna()).sum())
    older = [f"Not ranked: {n_older} stored before vote_std_error was."] if n_older else []
    if tests.empty:
        none = "No scored prediction can be ranked yet: there is nothing to test."
        return check_result(" ".join([none, *older]), passed=True, n_scored=0)
    passed = bool(tests["p_value"].ge(SURPRISING).all())
    observed = [
        f"{row.method}, {row.of}: p {row.p_value:.3g}, {row.n_fresh} fresh against {row.n_pool}, "
        f"the fresh one larger in {row.superiority:.0%} of pairs."
        for row in tests.itertuples()
    ]
    each = strangeness(predictions, heldout_ratings, std_error)
    return check_result(
        " ".join([*observed, *older]),
        "Intervals of further new models may not hold: look for what these have in common (a "
        "family, a language, a time), and have people vote on models like them.",
        passed=passed,
        n_scored=len(each),
        models=dg.MetadataValue.json(each.to_dict("records")),
    )

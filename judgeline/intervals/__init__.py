"""Intervals of ratings: conformal thresholds, coverage, and the board."""

from judgeline.intervals.board import (
    OF_THE_JUDGE,
    WITHHELD,
    Bands,
    Leaderboard,
    join_newcomers,
    kept_intervals,
    kept_text,
    leads_apart,
    missed,
    rank_models,
    with_intervals,
    with_votes,
    withheld_reason,
    withhold,
)
from judgeline.intervals.conformal import (
    Calibrating,
    ConformalCalibration,
    StdErrorKind,
    bands_of,
    calibrate_intervals,
    calibrating_models,
    conformal_quantile,
    expected_half_width,
    nonconformity_scores,
    require_miscoverage,
    sampling_half_width,
)
from judgeline.intervals.differences import (
    Difference,
    RatedModels,
    compare_models,
    may_be_best,
    may_be_best_text,
)
from judgeline.intervals.judge_and_votes import (
    JudgeAndVotes,
    VotedRatings,
    rate_by_votes,
    rate_with_votes,
)
from judgeline.intervals.pooled import rate_pooled
from judgeline.intervals.promises import (
    RankTest,
    RunningCoverage,
    conformal_p_values,
    origin_shift,
    rank_sum_test,
    running_coverage,
)
from judgeline.intervals.refits import (
    JackknifeIntervals,
    RefitErrors,
    VarianceShares,
    jackknife_intervals,
    jackknife_plus,
    refit_errors,
    variance_by_source,
)

__all__ = [
    "OF_THE_JUDGE", "WITHHELD", "Bands", "Calibrating", "ConformalCalibration", "Difference",
    "JackknifeIntervals", "JudgeAndVotes", "Leaderboard", "RankTest", "RatedModels",
    "RefitErrors", "RunningCoverage", "StdErrorKind", "VarianceShares", "VotedRatings",
    "bands_of", "calibrate_intervals", "calibrating_models", "compare_models",
    "conformal_p_values", "conformal_quantile", "expected_half_width", "jackknife_intervals",
    "jackknife_plus", "join_newcomers", "kept_intervals", "kept_text", "leads_apart",
    "may_be_best", "may_be_best_text", "missed", "nonconformity_scores", "origin_shift",
    "rank_models", "rank_sum_test", "rate_by_votes", "rate_pooled", "rate_with_votes",
    "refit_errors", "require_miscoverage", "running_coverage", "sampling_half_width",
    "variance_by_source", "with_intervals", "with_votes", "withheld_reason", "withhold",
]  # fmt: skip

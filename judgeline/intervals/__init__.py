"""Intervals of ratings: conformal thresholds, coverage, and the board."""

from judgeline.intervals.board import (
    BEYOND,
    BY_JUDGE,
    COUNTS,
    FAR,
    OF_THE_JUDGE,
    WITHHELD,
    Leaderboard,
    base_of,
    join_newcomers,
    leading_evidence_text,
    leads_apart,
    rank_models,
    withheld_reason,
    withhold,
)
from judgeline.intervals.conformal import (
    Calibrating,
    ConformalCalibration,
    Skill,
    calibrate_intervals,
    calibrating_models,
    chosen_std_error,
    conformal_quantile,
    judge_skill,
    least_miscoverage,
    models_needed,
    nonconformity_scores,
    require_miscoverage,
    sampling_half_width,
)
from judgeline.intervals.differences import (
    Difference,
    RatedModels,
    compare_models,
    may_be_best,
)
from judgeline.intervals.judge_and_votes import (
    JudgeAndVotes,
    VotedModels,
    VotedRatings,
    judge_variance,
    rate_by_votes,
    rate_with_votes,
)
from judgeline.intervals.looks import (
    BROKEN_FROM,
    evidence_against,
    level_of_look,
    tail_ratio,
)
from judgeline.intervals.planning import (
    NARROWEST,
    Frontier,
    Mix,
    Prospect,
    Worth,
    cheapest_mix,
    effective_judges,
    interval_frontier,
    judge_worth,
    prospect_by_votes,
    vote_prospect,
)
from judgeline.intervals.pooled import rate_pooled
from judgeline.intervals.promises import (
    RunningCoverage,
    origin_shift,
    running_coverage,
)
from judgeline.intervals.refits import (
    RefitErrors,
    VarianceShares,
    refit_errors,
    variance_by_source,
)

__all__ = [
    "BEYOND", "BROKEN_FROM", "BY_JUDGE", "COUNTS", "FAR", "NARROWEST", "OF_THE_JUDGE", "WITHHELD",
    "Calibrating", "ConformalCalibration", "Difference", "Frontier", "JudgeAndVotes", "Leaderboard",
    "Mix", "Prospect", "RatedModels", "RefitErrors", "RunningCoverage", "Skill", "VarianceShares",
    "VotedModels", "VotedRatings", "Worth", "base_of", "calibrate_intervals", "calibrating_models",
    "cheapest_mix", "chosen_std_error", "compare_models", "conformal_quantile", "effective_judges",
    "evidence_against", "interval_frontier", "join_newcomers", "judge_skill", "judge_variance",
    "judge_worth", "leading_evidence_text", "leads_apart", "least_miscoverage", "level_of_look",
    "may_be_best", "models_needed", "nonconformity_scores", "origin_shift", "prospect_by_votes",
    "rank_models", "rate_by_votes", "rate_pooled", "rate_with_votes", "refit_errors",
    "require_miscoverage", "running_coverage", "sampling_half_width", "tail_ratio",
    "variance_by_source", "vote_prospect", "withheld_reason", "withhold",
]  # fmt: skip

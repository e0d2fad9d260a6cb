"""Score distributions, aggregation of two orders, and consistency of a judge."""

from judgeline.trust.consistency import (
    MOST_SUBSETS,
    ViolationCounts,
    count_violations,
    outcome_matrices,
    score_conflicts,
    violation_rates,
)
from judgeline.trust.distributions import (
    RELEASED_TEMPERATURE,
    ChoiceProbabilities,
    ScoreDistribution,
    TokenPosition,
    aggregate_orders,
    choice_probabilities,
    expected_score,
    perplexity,
    perplexity_outcome,
    score_distribution,
)

__all__ = [
    "MOST_SUBSETS", "RELEASED_TEMPERATURE", "ChoiceProbabilities", "ScoreDistribution",
    "TokenPosition", "ViolationCounts", "aggregate_orders", "choice_probabilities",
    "count_violations", "expected_score", "outcome_matrices", "perplexity", "perplexity_outcome",
    "score_conflicts", "score_distribution", "violation_rates",
]  # fmt: skip

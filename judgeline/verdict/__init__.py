"""Verdicts: values of an answer, its outcome, and the identity of a call."""

from judgeline.verdict.dictation import is_dictated, scripts
from judgeline.verdict.identity import (
    POOLED,
    completion_id,
    identity_hash,
    readable,
    slug,
    text_hash,
)
from judgeline.verdict.message import RubricError, unique_members
from judgeline.verdict.outcomes import (
    CRITERIA,
    criterion_difference,
    hard_outcome,
    mean_difference,
    sign_outcome,
)
from judgeline.verdict.rubric import (
    HIGHEST_SCORE,
    LOWEST_SCORE,
    RESPONSES,
    Rubric,
    explanation,
    parse_answer,
    require_own_scores,
)
from judgeline.verdict.short_answers import (
    CHOICES,
    LETTERS,
    ORDERS,
    Found,
    Kind,
    Pattern,
    first_value,
    last_value,
    member_value,
    pattern_of,
    reason_of_score,
    require_unstated,
    scores_on,
)

__all__ = [
    "CHOICES", "CRITERIA", "HIGHEST_SCORE", "LETTERS", "LOWEST_SCORE", "ORDERS", "POOLED",
    "RESPONSES", "Found", "Kind", "Pattern", "Rubric", "RubricError", "completion_id",
    "criterion_difference", "explanation", "first_value", "hard_outcome", "identity_hash",
    "is_dictated", "last_value", "mean_difference", "member_value", "parse_answer", "pattern_of",
    "readable", "reason_of_score", "require_own_scores", "require_unstated", "scores_on",
    "scripts", "sign_outcome", "slug", "text_hash", "unique_members",
]  # fmt: skip

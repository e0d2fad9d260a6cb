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
    RubricError,
    explanation,
    parse_answer,
    require_own_scores,
    unique_members,
)
from judgeline.verdict.short_answers import (
    LETTERS,
    parse_choice,
    parse_choice_object,
    parse_score,
    parse_score_object,
    reason_of_score,
)

__all__ = [
    "CRITERIA", "HIGHEST_SCORE", "LETTERS", "LOWEST_SCORE", "POOLED", "RESPONSES", "Rubric",
    "RubricError", "completion_id", "criterion_difference", "explanation", "hard_outcome",
    "identity_hash", "is_dictated", "mean_difference", "parse_answer", "parse_choice",
    "parse_choice_object", "parse_score", "parse_score_object", "readable", "reason_of_score",
    "require_own_scores", "scripts", "sign_outcome", "slug", "text_hash", "unique_members",
]  # fmt: skip

"""Quantitative judges: models that learn human scores from a judge's rationale."""

from judgeline.quantitative.curve import (
    Agreement,
    LearningCurve,
    learning_curve,
    preference_agreement,
    rating_agreement,
)
from judgeline.quantitative.folds import CrossFitted, cross_fitted_outcomes
from judgeline.quantitative.inputs import (
    Presentations,
    TooLittleToLearnError,
    base_logit,
    base_logit_of_scores,
    presentations,
    two_headed,
)
from judgeline.quantitative.judges import FORMS, QuantitativeJudge, base_judge, fit_judge
from judgeline.quantitative.penalty import N_FOLDS, PENALTIES

__all__ = [
    "FORMS",
    "N_FOLDS",
    "PENALTIES",
    "Agreement",
    "CrossFitted",
    "LearningCurve",
    "Presentations",
    "QuantitativeJudge",
    "TooLittleToLearnError",
    "base_judge",
    "base_logit",
    "base_logit_of_scores",
    "cross_fitted_outcomes",
    "fit_judge",
    "learning_curve",
    "preference_agreement",
    "presentations",
    "rating_agreement",
    "two_headed",
]

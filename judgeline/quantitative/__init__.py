"""Quantitative judges: models that learn human scores from a judge's rationale."""

from judgeline.quantitative.agreement import (
    confusion_matrix,
    preference_agreement,
    ranking_agreement,
    rating_agreement,
)
from judgeline.quantitative.battles import METRICS, Battles
from judgeline.quantitative.folds import CrossFitted, cross_fitted_outcomes
from judgeline.quantitative.inputs import (
    N_FOLDS,
    PENALTIES,
    Design,
    Presentations,
    TooLittleToLearnError,
    base_logit,
    base_logit_of_scores,
    presentations,
    two_headed,
)
from judgeline.quantitative.judges import QuantitativeJudge, base_judge, fit_judge
from judgeline.quantitative.trials import Labels, LearningCurve, Trials, cross_fitted, trials

__all__ = [
    "METRICS",
    "N_FOLDS",
    "PENALTIES",
    "Battles",
    "CrossFitted",
    "Design",
    "Labels",
    "LearningCurve",
    "Presentations",
    "QuantitativeJudge",
    "TooLittleToLearnError",
    "Trials",
    "base_judge",
    "base_logit",
    "base_logit_of_scores",
    "confusion_matrix",
    "cross_fitted",
    "cross_fitted_outcomes",
    "fit_judge",
    "preference_agreement",
    "presentations",
    "ranking_agreement",
    "rating_agreement",
    "trials",
    "two_headed",
]

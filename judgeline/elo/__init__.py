"""Ratings on the Elo scale: strengths, slopes, and the models left out one at a time."""

from judgeline.elo.anchors import (
    VOTES_WAIT,
    connected_components,
    cut_models,
    require_connected,
    settled_models,
    with_settled_votes,
)
from judgeline.elo.battles import Categorical, CodedBattles, code_battles
from judgeline.elo.beta import (
    CONSTANT,
    REVERSED,
    UNCERTAIN,
    BetaFit,
    BetaFolds,
    fit_beta,
    fit_beta_folds,
)
from judgeline.elo.placements import HEADLINE, JUDGE_METHODS, human_anchors
from judgeline.elo.plain import LEAST_BATTLES, Ties, rate_outcomes, style_difference
from judgeline.elo.ratings import (
    FEW_BATTLES,
    HeldOutRatings,
    Summary,
    kendall,
    rate,
    spearman,
    summarise,
)
from judgeline.elo.resampling import RatingSettings, keyed_rng
from judgeline.elo.strengths import (
    ELO_ORIGIN,
    ELO_PER_LOGIT,
    fit_strengths,
    rating_to_strength,
    strength_to_rating,
)
from judgeline.elo.surrogacy import fit_surrogacy, surrogacy_finding
from judgeline.elo.targets import ScoringMethod, is_baseline

__all__ = [
    "CONSTANT", "ELO_ORIGIN", "ELO_PER_LOGIT", "FEW_BATTLES", "HEADLINE", "JUDGE_METHODS",
    "LEAST_BATTLES", "REVERSED", "UNCERTAIN", "VOTES_WAIT", "BetaFit", "BetaFolds",
    "Categorical", "CodedBattles", "HeldOutRatings", "RatingSettings", "ScoringMethod",
    "Summary", "Ties", "code_battles", "connected_components", "cut_models", "fit_beta",
    "fit_beta_folds", "fit_strengths", "fit_surrogacy", "human_anchors", "is_baseline",
    "kendall", "keyed_rng", "rate", "rate_outcomes", "rating_to_strength", "require_connected",
    "settled_models", "spearman", "strength_to_rating", "style_difference", "summarise",
    "surrogacy_finding", "with_settled_votes",
]  # fmt: skip

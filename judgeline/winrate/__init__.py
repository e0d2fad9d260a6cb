"""Win rates: estimates from judge and labels, their intervals, and how many labels to buy."""

from judgeline.winrate.corrections import (
    AdjustedMean,
    AdjustedShares,
    adjusted_mean,
    adjusted_shares,
)
from judgeline.winrate.labels import LabelPlans, allocate_labels, judge_or_humans, plan_labels
from judgeline.winrate.models import (
    ADJUSTMENTS,
    EACH_MODEL,
    HEADLINE_RULE,
    STRONGEST,
    WEAKEST,
    ModelWinRates,
    WinRateCoverage,
    adjust_models,
    leave_out_coverage,
)
from judgeline.winrate.outcomes import (
    NO_VOTE,
    OUTCOMES,
    NoWinRateError,
    OutcomeTables,
    tabulate_outcomes,
)
from judgeline.winrate.powered import PoweredEstimate, power_tuned_estimate, power_tuned_half_width
from judgeline.winrate.rates import (
    RATE_RULE,
    RATES,
    LabelSplits,
    PassRates,
    pass_rates,
    split_of_labels,
)
from judgeline.winrate.strata import N_STRENGTHS, length_strata, strength_strata

__all__ = [
    "ADJUSTMENTS", "EACH_MODEL", "HEADLINE_RULE", "NO_VOTE", "N_STRENGTHS", "OUTCOMES", "RATES",
    "RATE_RULE", "STRONGEST", "WEAKEST", "AdjustedMean", "AdjustedShares", "LabelPlans",
    "LabelSplits", "ModelWinRates", "NoWinRateError", "OutcomeTables", "PassRates",
    "PoweredEstimate", "WinRateCoverage", "adjust_models", "adjusted_mean", "adjusted_shares",
    "allocate_labels", "judge_or_humans", "leave_out_coverage", "length_strata", "pass_rates",
    "plan_labels", "power_tuned_estimate", "power_tuned_half_width", "split_of_labels",
    "strength_strata", "tabulate_outcomes",
]  # fmt: skip

"""Reliability: agreement of judges, the gate, and drift."""

from judgeline.reliability.drift import (
    FALSE_ALARM,
    LEAST_BATTLES,
    THRESHOLD,
    UNITS,
    Drift,
    Fresh,
    Judgement,
    detect_drift,
)
from judgeline.reliability.gate import (
    CRITERIA,
    STRONG_JUDGE,
    WITHHOLD,
    Gate,
    Measurement,
    cohen_kappa,
    failures,
    hold_to,
    icc_average,
    kappa_of_scores,
    mean_pairwise_kappa,
    panel_measurements,
    pooled_variance,
    reliability_factor,
    single_run_reliability,
)
from judgeline.reliability.raters import RaterAgreement, rater_agreement

__all__ = [
    "CRITERIA", "FALSE_ALARM", "LEAST_BATTLES", "STRONG_JUDGE", "THRESHOLD", "UNITS",
    "WITHHOLD", "Drift", "Fresh", "Gate", "Judgement", "Measurement", "RaterAgreement",
    "cohen_kappa", "detect_drift", "failures", "hold_to", "icc_average", "kappa_of_scores",
    "mean_pairwise_kappa", "panel_measurements", "pooled_variance", "rater_agreement",
    "reliability_factor",
    "single_run_reliability",
]  # fmt: skip

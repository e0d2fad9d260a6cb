"""Reliability: agreement of judges, the gate, and drift."""

from judgeline.reliability.agreement import (
    STRONG_JUDGE,
    cohen_kappa,
    icc_average,
    kappa_of_scores,
    mean_pairwise_kappa,
    pooled_variance,
    reliability_factor,
    single_run_reliability,
)
from judgeline.reliability.drift import (
    FALSE_ALARM,
    LEAST_BATTLES,
    UNITS,
    Drift,
    Judgement,
    detect_drift,
)
from judgeline.reliability.gate import (
    CRITERIA,
    WITHHOLD,
    Gate,
    Measurement,
    failures,
    hold_to,
    panel_measurements,
)

__all__ = [
    "CRITERIA", "FALSE_ALARM", "LEAST_BATTLES", "STRONG_JUDGE", "UNITS", "WITHHOLD", "Drift",
    "Gate", "Judgement", "Measurement", "cohen_kappa", "detect_drift", "failures", "hold_to",
    "icc_average", "kappa_of_scores", "mean_pairwise_kappa", "panel_measurements",
    "pooled_variance", "reliability_factor", "single_run_reliability",
]  # fmt: skip

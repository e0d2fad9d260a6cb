"""Diagnostics of a judge: its biases, influential battles, and missing verdicts."""

from judgeline.diagnostics.influence import fewest_to_overtake, fit_influences
from judgeline.diagnostics.judge import (
    Diagnostics,
    diagnose_biases,
    diagnose_judge,
    expected_calibration_error,
    reliability_curve,
)
from judgeline.diagnostics.missing import (
    MAX_WIDTH,
    SCORED,
    battle_status,
    bound_missing,
    excess_p_values,
    length_bins,
    width_limit,
)

__all__ = [
    "MAX_WIDTH", "SCORED", "Diagnostics", "battle_status", "bound_missing", "diagnose_biases",
    "diagnose_judge", "excess_p_values", "expected_calibration_error", "fewest_to_overtake",
    "fit_influences", "length_bins", "reliability_curve", "width_limit",
]  # fmt: skip

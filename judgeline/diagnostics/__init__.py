"""Diagnostics of a judge: its biases, influential battles, and missing verdicts."""

from judgeline.diagnostics.influence import fewest_to_overtake, fit_influences, influence_of
from judgeline.diagnostics.judge import (
    Diagnostics,
    diagnose_biases,
    diagnose_judge,
    expected_calibration_error,
    fit_beta_with_ties,
    label_calibration,
    reliability_curve,
    sides_agree,
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
    "fit_beta_with_ties", "fit_influences", "influence_of", "label_calibration", "length_bins",
    "reliability_curve", "sides_agree", "width_limit",
]  # fmt: skip

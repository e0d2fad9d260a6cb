"""Reference-anchored Elo: gaps to one reference model, and how far they reach."""

from judgeline.reference.gaps import (
    LEAST_WITHIN,
    REACH,
    AnchoredElo,
    Reach,
    abstain,
    anchored_elo,
    anchored_elo_of_preferences,
    bootstrap_gap_std_error,
    compare_references,
    diagnose_reference,
    finite_population_factor,
    narrow_intervals,
    soft_counts,
    subset_std_error,
)

__all__ = [
    "LEAST_WITHIN", "REACH", "AnchoredElo", "Reach", "abstain", "anchored_elo",
    "anchored_elo_of_preferences", "bootstrap_gap_std_error", "compare_references",
    "diagnose_reference", "finite_population_factor", "narrow_intervals", "soft_counts",
    "subset_std_error",
]  # fmt: skip

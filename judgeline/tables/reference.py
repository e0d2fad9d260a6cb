"""Declared table of the reference: gaps to one model."""

import numpy as np

from judgeline.tables.rules import holds, unique
from judgeline.tables.schema import stops, table

_NUMBERS = ["gap", "lower", "upper", "std_error"]

REFERENCE_RATINGS = table(
    "reference_ratings",
    "rank model reference_model source n_prompts wins ties losses mean_preference win_share gap "
    "lower upper std_error factor flags",
    ["model"],
    stops(
        "gaps_are_finite",
        "A gap is a number within its interval; without one nothing after it means anything.",
        "Remake soft_outcomes; a preference outside [0, 1] got through.",
        unique("model", note="a model has one gap"),
        holds(
            "finite",
            lambda t: np.isfinite(t[_NUMBERS].to_numpy(dtype=float)).all(axis=1),
            "gap, bounds and error are finite",
        ),
        holds(
            "inside",
            lambda t: t["gap"].between(t["lower"], t["upper"]),
            "a gap lies within its interval",
        ),
    ),
)

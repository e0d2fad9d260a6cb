"""Declared tables of the reference: gaps to one model, its reach, and four rating systems."""

import numpy as np

from resources.tables.rules import cells, has_columns, holds, unique
from resources.tables.schema import Check, Table

REFERENCE_RATINGS = Table(
    "reference_ratings",
    "rank model reference_model source n_prompts wins ties losses mean_preference win_share gap "
    "lower upper std_error factor flags",
    key=["model"],
    checks=[
        Check(
            "gaps_are_finite",
            "A gap is a number within its interval: without one nothing that follows means "
            "anything.",
            [
                unique("model", note="a model has one gap"),
                holds(
                    "finite",
                    lambda t: np.isfinite(
                        t[["gap", "lower", "upper", "std_error"]].to_numpy(dtype=float)
                    ).all(axis=1),
                    "gap, bounds and error are finite",
                    cells(std_error=np.nan),
                ),
                holds(
                    "inside",
                    lambda t: t["gap"].between(t["lower"], t["upper"]),
                    "a gap lies within its interval",
                    cells(gap=1e6),
                ),
            ],
            remedy="Remake soft_outcomes; a preference outside [0, 1] got through.",
            blocking=True,
        )
    ],
)
REFERENCE_DIAGNOSTICS = Table(
    "reference_diagnostics",
    "diagnostic level value unit n threshold passed note",
    key=["diagnostic", "level"],
)
_SYSTEMS = "system judge model rating order_spread judge_spread n_battles note"
RATING_SYSTEMS = Table(
    "rating_systems",
    _SYSTEMS,
    key=["system", "judge", "model"],
    checks=[
        Check(
            "every_system_rates_every_model",
            "A comparison of systems is one of the same models, or says who is missing and why.",
            [
                has_columns(_SYSTEMS.split(), "no column is missing", exact=False),
                unique(
                    "system", "judge", "model", note="a system rates a model once for each judge"
                ),
                holds(
                    "explained",
                    lambda t: (
                        np.isfinite(t["rating"].to_numpy(dtype=float)) | t["note"].ne("").to_numpy()
                    ),
                    "a rating is a number, or a note says why there is none",
                    cells(rating=np.nan, note=""),
                ),
            ],
            remedy="Remake scored_battles or soft_outcomes of these judges, then rating_systems.",
        )
    ],
)

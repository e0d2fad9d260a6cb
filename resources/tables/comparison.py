"""Declared tables of the judges of a corpus side by side, and of rating systems."""

import numpy as np

from judgeline.report import COMPARISON_COLUMNS
from resources.tables.intervals import LEADERBOARD
from resources.tables.rules import at_least, has_columns, holds, n_rows, unique, within
from resources.tables.schema import Check, Table

_SCALES = {"spearman": (-1, 1), "kendall": (-1, 1), "kappa": (-1, 1), "coverage": (0, 1)}

JUDGE_COMPARISON = Table(
    "judge_comparison",
    COMPARISON_COLUMNS,
    key=["judge", "method"],
    checks=[
        Check(
            "comparison_is_sound",
            "Each judge has one row per method, with every figure on its scale.",
            [
                has_columns(COMPARISON_COLUMNS, "no column is missing"),
                n_rows(1, "a judge is compared"),
                unique("judge", "method", note="a judge has one row per method"),
                within("mae", 0, note="mae is positive"),
                *(
                    within(name, low, high, note=f"{name} lies in [{low}, {high}]")
                    for name, (low, high) in _SCALES.items()
                ),
                at_least("n_verdicts", "n_failed", "no more verdicts failed than there are"),
            ],
            remedy="Run the judges named here again, then the comparison.",
            blocking=True,
        )
    ],
)
POOLED_LEADERBOARD = Table(
    "pooled_leaderboard",
    [
        *LEADERBOARD.columns,
        *("residual", "std_error_analytic", "human_std_error", "judges", "n_scored"),
    ],
    key=["model"],
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
                ),
            ],
            remedy="Remake scored_battles or soft_outcomes of these judges, then rating_systems.",
        )
    ],
)

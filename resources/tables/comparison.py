"""The declared table of the judges of a corpus side by side."""

from resources.tables.rules import at_least, has_columns, n_rows, unique, within
from resources.tables.schema import Check, Table

_FIGURES = (
    "judge method n_models mae spearman kendall mean_beta threshold coverage median_width kappa "
    "n_verdicts n_failed n_scored"
)
_SCALES = {"spearman": (-1, 1), "kendall": (-1, 1), "kappa": (-1, 1), "coverage": (0, 1)}

JUDGE_COMPARISON = Table(
    "judge_comparison",
    _FIGURES,
    key=["judge", "method"],
    checks=[
        Check(
            "comparison_is_sound",
            "Each judge has one row per method, with every figure on its scale.",
            [
                has_columns(_FIGURES.split(), "no column is missing"),
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

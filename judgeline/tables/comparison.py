"""Declared tables of the judges of a corpus side by side."""

from judgeline.tables.elo import HELDOUT_RATINGS
from judgeline.tables.intervals import LEADERBOARD
from judgeline.tables.rules import at_least, has_columns, n_rows, unique, within
from judgeline.tables.schema import Table, stops, table

_COMPARISON = (
    "judge method n_models mae spearman kendall mean_beta threshold coverage median_width kappa "
    "n_verdicts n_failed n_scored"
)
COMPARISON_COLUMNS = tuple(_COMPARISON.split())
"""Columns of the comparison table, one row per judge and method."""

JUDGE_COMPARISON = table(
    "judge_comparison",
    COMPARISON_COLUMNS,
    ["judge", "method"],
    stops(
        "comparison_is_sound",
        "Each judge has one row per method, with every figure on its scale.",
        "Run the judges named here again, then the comparison.",
        has_columns(COMPARISON_COLUMNS, "no column is missing"),
        n_rows(1, "a judge is compared"),
        unique("judge", "method"),
        within("mae", 0),
        *(within(name, -1, 1) for name in ("spearman", "kendall", "kappa")),
        within("coverage", 0, 1),
        at_least("n_verdicts", "n_failed", "no more verdicts failed than there are"),
    ),
)
OF_RATINGS = [name for name in HELDOUT_RATINGS.columns if name not in LEADERBOARD.columns]
"""Columns of a pooled board that are of its held-out ratings alone."""
POOLED_LEADERBOARD = Table(
    "pooled_leaderboard",
    [*LEADERBOARD.columns, *OF_RATINGS, "judges", "n_scored"],
    key=["model"],
)

"""The tables of one judge that the report reads, and the columns it relies on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from judgeline.intervals import COUNTS, withheld_reason
from judgeline.report.battles import Evidence, Lead

COLUMNS: dict[str, str] = {
    "leaderboard": "rank best_rank model method rating lower upper evidence judge_rating "
    f"judge_lower judge_upper human_rating n_votes flags {' '.join(COUNTS)}",
    "heldout_ratings": "model method rating human_rating residual",
    "beta_folds": "held_out_model beta std_error n_battles status",
    "conformal_calibration": "method miscoverage threshold n_models n_splits n_calibration n_test "
    "coverage median_width width_min width_max note",
    "summary": "method n_models mae spearman kendall mean_beta",
    "judge_diagnostics": "diagnostic level value unit n",
    "scored_battles": "battle_id human_outcome score_difference",
    "missingness": "grouping level status n_battles share n_verdicts",
    "missing_bounds": "model method rating worst_rating best_rating half_width n_battles n_missing "
    "n_missing_other",
    "checks": "name passed observed remedy",
}
"""Columns that the report reads of each table; others are welcome and ignored."""


@dataclass(frozen=True)
class JudgeTables:
    """Tables, checks and provenance of one judge for the report; ratings in Elo points.

    Attributes
    ----------
    judge, display_name : str
        Slug and name of the judge; any text, it is escaped.
    leaderboard, heldout_ratings, beta_folds, conformal_calibration, summary : DataFrame
        The core's results of the same names, one column per field.
    judge_diagnostics, scored_battles : DataFrame
        Named diagnostics with units; the judged battles, one a row, or as many as `n_battles` says.
    missingness, missing_bounds : DataFrame or None
        Which battles have no score, by failure class, and what they could do to the ratings;
        None where a judge was run before there were such tables.
    checks : DataFrame or None
        One row per quality check: `name`, `passed`, `observed` and `remedy` (what to do);
        `asset` and `blocking` are shown where they are given.
    companions : mapping of str to DataFrame
        Tables of the companion methods by asset; those that are missing or empty are not shown.
    battles : sequence of Evidence
        The battles that move each model's rating most, strongest first.
    leads : sequence of Lead
        On which battles the first place rests.
    origin : mapping of str to str
        Prompt, judge, corpus and seeds behind the ratings.
    runs : DataFrame or None
        One row per table: `asset`, `made_at`, `run_id` and `code_version`.
    changed : str
        Sentence on ratings whose evidence or method is not that of the board before; or empty.

    Raises
    ------
    ValueError
        If a table lacks a column that the report reads, or the leaderboard is empty.
    """

    judge: str
    display_name: str
    leaderboard: pd.DataFrame
    heldout_ratings: pd.DataFrame
    beta_folds: pd.DataFrame
    conformal_calibration: pd.DataFrame
    summary: pd.DataFrame
    judge_diagnostics: pd.DataFrame
    scored_battles: pd.DataFrame
    missingness: pd.DataFrame | None = None
    missing_bounds: pd.DataFrame | None = None
    checks: pd.DataFrame | None = None
    companions: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    battles: Sequence[Evidence] = ()
    leads: Sequence[Lead] = ()
    origin: Mapping[str, str] = field(default_factory=dict)
    runs: pd.DataFrame | None = None
    changed: str = ""

    def __post_init__(self) -> None:
        for name, columns in COLUMNS.items():
            table = getattr(self, name)
            if table is not None:
                require_columns(table, columns.split(), f"{name} of judge {self.judge!r}")
        if self.leaderboard.empty:
            raise ValueError(f"leaderboard of judge {self.judge!r} is empty; rate models first")

    @property
    def ranking_method(self) -> str:
        """Method that the leaderboard is ranked by."""
        return str(self.leaderboard["method"].iloc[0])

    @property
    def withheld(self) -> str:
        """Why the judge gate withholds the ratings; empty where it does not."""
        return withheld_reason(str(self.leaderboard["flags"].iloc[0]))


def require_columns(table: pd.DataFrame, columns: Sequence[str], where: str) -> None:
    """Raise unless the table has the columns."""
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(
            f"{where} lacks {', '.join(missing)}; it has {', '.join(map(str, table.columns))}"
        )

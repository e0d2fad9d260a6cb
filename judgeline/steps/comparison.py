"""The judges of a corpus as one judge, and their figures side by side."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from judgeline.elo import HeldOutRatings, summarise
from judgeline.intervals import join_newcomers, rank_models, rate_pooled, withhold
from judgeline.io import (
    as_coded,
    as_table,
    common_battles,
    votes_that_wait,
    with_waiting_votes,
)
from judgeline.reliability import failures, hold_to
from judgeline.report import beyond_lines
from judgeline.steps.candidates import CANDIDATE, unrated_row, with_flag
from judgeline.steps.coding import ranking_options, rating_settings, units
from judgeline.steps.intervals import board_of, calibrated
from judgeline.steps.reliability import skill_measurements
from judgeline.steps.step import as_columns, with_newcomer
from judgeline.tables.comparison import JUDGE_COMPARISON, OF_RATINGS, POOLED_LEADERBOARD
from judgeline.verdict import POOLED

Tables = Mapping[str, pd.DataFrame]

BY_SOME = "not-by-all-judges"
"""Flag of a candidate that only some of the pooled judges have rated."""


def candidate_tables(boards: Tables, scores: Tables) -> dict[str, Tables]:
    """Return the scored battles of each candidate, by judge that has rated it."""
    found: dict[str, dict[str, pd.DataFrame]] = {}
    for judge, board in boards.items():
        for name, rating in board.loc[_are_new(board), ["model", "rating"]].to_numpy().tolist():
            own = found.setdefault(name, {})
            if np.isfinite(rating):
                own[judge] = scores[judge][scores[judge]["candidate"].eq(name)]
    return dict(sorted(found.items()))


def _are_new(board: pd.DataFrame) -> pd.Series:
    """Return which rows are of candidates."""
    return board["flags"].str.split(";").map(lambda flags: CANDIDATE in flags).astype(bool)


def pooled_board(
    common: Tables,
    settings: Any,
    candidates: Mapping[str, Tables] | None = None,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the board of judges pooled on their common battles, with its metadata."""
    if len(common) < 2:
        note = "pooling takes two judges with ratings on common battles: run another judge"
        return POOLED_LEADERBOARD.empty(), {"note": note}
    try:
        ratings = _ratings(common, settings)
    except ValueError as error:  # such as votes that do not connect the common battles
        return POOLED_LEADERBOARD.empty(), {"note": f"the judges cannot be pooled: {error}"}
    placed = {name: _place(common, settings, name, own) for name, own in (candidates or {}).items()}
    new = [with_flag(one, CANDIDATE, first=True) for one, _ in placed.values()]
    board = board_of(common[next(iter(common))], ratings, settings, POOLED)
    options = ranking_options(settings, POOLED)
    calibration = calibrated(ratings, settings)
    reason = failures(hold_to(skill_measurements(calibration, POOLED)), withholding=True)
    for one in new:
        alone = rank_models(one, calibration=ratings, **options)
        board = join_newcomers(board, alone, miscoverage=settings.miscoverage)
    if reason:
        board = withhold(board, reason, miscoverage=settings.miscoverage)
    rated = [as_table(one).query("method == @POOLED") for one in (ratings, *new)]
    of_ratings = pd.concat(rated).assign(new=_are_new)[["model", "new", *OF_RATINGS]]
    table = as_table(board).assign(new=_are_new).merge(of_ratings, on=["model", "new"])
    n_scored, judges = len(next(iter(common.values()))), ", ".join(sorted(common))
    return table.drop(columns="new").assign(judges=judges, n_scored=n_scored), {
        "evidence": "\n".join(text for text, _ in beyond_lines(as_table(board))),
        "not_placed": {name: why for name, (_, why) in placed.items() if why},
    }


def _place(common: Tables, settings: Any, name: str, own: Tables) -> tuple[HeldOutRatings, str]:
    """Return the rating of a candidate by all judges together, or a flag and why there is none."""
    unrated, shared = unrated_row(name, POOLED), common_battles(own)
    lacking = {"not rated by": {*common} - {*own}, "on other battles by": {*own} - {*shared}}
    if why := "; ".join(f"{how} {', '.join(sorted(who))}" for how, who in lacking.items() if who):
        return with_flag(unrated, BY_SOME), why
    tables = {judge: with_newcomer(common[judge], name, shared[judge]) for judge in common}
    try:
        return _ratings(tables, settings, [name]), ""
    except (ValueError, RuntimeError) as error:
        return with_flag(unrated, "not-placed"), str(error)


def _ratings(
    common: Tables, settings: Any, models: Collection[str] | None = None
) -> HeldOutRatings:
    battles = {name: as_coded(table, settings.hard_outcome) for name, table in common.items()}
    one = next(iter(common))
    cluster = units(common[one], settings)
    ratings = rate_pooled(battles, rating_settings(settings), cluster, models=models)
    return with_waiting_votes(ratings, votes_that_wait(common[one], battles[one]))


def compare(
    judge: str,
    heldout_ratings: pd.DataFrame,
    conformal_calibration: pd.DataFrame,
    judge_diagnostics: pd.DataFrame,
    verdicts: pd.DataFrame,
    scored_battles: pd.DataFrame,
) -> pd.DataFrame:
    """Return the rows of one judge in the comparison, one per method that was calibrated."""
    summary = as_table(summarise(as_columns(HeldOutRatings, heldout_ratings)))
    intervals = conformal_calibration[["method", "threshold", "coverage", "median_width"]]
    kappa = judge_diagnostics.loc[judge_diagnostics["diagnostic"].eq("cohen_kappa"), "value"]
    table = summary.merge(intervals, on="method", how="inner", validate="one_to_one").assign(
        judge=judge,
        kappa=kappa.iloc[0] if len(kappa) else np.nan,
        n_verdicts=len(verdicts),
        n_failed=int(verdicts["status"].ne("ok").sum()),
        n_scored=len(scored_battles),
    )
    return table[JUDGE_COMPARISON.columns]


def heldout_of(pooled: pd.DataFrame) -> pd.DataFrame:
    """Return the held-out ratings behind a board of pooled judges."""
    return pooled.assign(
        rating=pooled["judge_rating"],
        std_error=pooled["judge_std_error"],
        vote_std_error=pooled["vote_std_error"] / pooled["design_effect"].pow(0.5),
    )


def compare_pooled(pooled: pd.DataFrame, settings: Any) -> pd.DataFrame:
    """Return the row of the pooled judges in the comparison; none where they have no board."""
    if pooled.empty:
        return pd.DataFrame()
    calibration = calibrated(as_columns(HeldOutRatings, heldout_of(pooled)), settings)
    none = pd.DataFrame(columns=["diagnostic", "value", "status"])  # verdicts of its own
    row = compare(POOLED, heldout_of(pooled), calibration, none, none, none)
    return row.assign(n_scored=int(pooled["n_scored"].iloc[0]))

"""Evidence lines above a board: the worth of its judge, and the limits of its intervals.

One function makes them for report, terminal, figures and metadata.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from judgeline.elo.anchors import ENOUGH_VOTES
from judgeline.intervals import BEYOND, leading_evidence_text, may_be_best, withheld_reason
from judgeline.report.wording import groups_text, number, unvoted_text

_HELD_BEYOND = "strongest or weakest quarter hidden at once on 45 sets: .81 and .82 held of 90 %"


def evidence_lines(
    board: pd.DataFrame,
    calibration: pd.DataFrame,
    summary: pd.DataFrame,
    predictions: pd.DataFrame | None = None,
) -> list[tuple[str, bool]]:
    """Return the sentences on the judge behind a board, by the votes, and whether each warns.

    None of them counts intervals that calibrated one another: such a count cannot fail. Those of
    `predictions`, which were stated before people voted, are counted.
    """
    if withheld_reason(str(board["flags"].iloc[0])):
        return [(_first_text(board), False)]  # whose unvoted models have no rating
    method = str(board["method"].iloc[0])
    row = calibration.set_index("method").loc[method].to_dict()
    error = summary.set_index("method")["mae"].get(method, math.nan)
    lines = [(text, False) for text in (unvoted_text(board), _first_text(board))]
    lines += [(_error_text(error, row), False), _skill_line(row)]
    lines += [_groups_line(calibration, row, method), (_ledger_text(predictions, method), False)]
    if (board.get("n_votes", pd.Series(dtype=float)) >= ENOUGH_VOTES).any():
        leads = leading_evidence_text(int(row["n_models"]), float(row["miscoverage"]))
        lines.append((leads, False))
    lines += beyond_lines(board)
    return [(text, warns) for text, warns in lines if text]


def _error_text(error: float, row: dict[str, Any]) -> str:
    if math.isnan(error):
        return ""
    floor = row.get("floor", math.nan)  # not of earlier versions
    text = (
        f"Each model rated as if nobody had voted on it, the judge is {number(error)} Elo from "
        "people on average"
    )
    return text + (f"; a perfect judge would show {number(floor)}." if floor == floor else ".")


def _skill_line(row: dict[str, Any]) -> tuple[str, bool]:
    skill, lower, upper = (
        row.get(name, math.nan) for name in ("skill", "skill_lower", "skill_upper")
    )
    if math.isnan(skill):
        count = int(row["n_models"])
        return (
            f"Skill: not measured, with {count} models that have votes." if count else ""
        ), False
    text = (
        f"Skill {number(skill, 2)} ({number(lower, 2)} to {number(upper, 2)}): the share of what "
        "tells the models apart in people's votes that the judge knows without these"
    )
    if math.isnan(lower):
        return f"{text}. Its interval is unknown: too few models have votes.", True
    if lower <= 0:
        return f"{text}. The interval reaches 0: this judge may add nothing.", True
    return f"{text}.", False


def _groups_line(calibration: pd.DataFrame, row: dict[str, Any], method: str) -> tuple[str, bool]:
    if below := groups_text(calibration, method):
        return below, True
    tried = str(row.get("structured", ""))
    needed = math.ceil(1.5 * (1 / row["miscoverage"] - 1) - 1e-9)  # two thirds of them calibrate
    if tried:
        return f"Tried on models unlike those that calibrate: {tried}.", False
    return (
        f"Not tested on models unlike those that calibrate: {int(row['n_models'])} models with "
        f"votes, {needed} are needed at {100 * (1 - row['miscoverage']):g} %.",
        False,
    )


def _ledger_text(predictions: pd.DataFrame | None, method: str) -> str:
    """Return how many predictions of a method, made before people voted, held; empty for none."""
    if predictions is None or predictions.empty:
        return ""
    ends = np.isfinite(predictions[["lower", "upper"]].to_numpy(dtype=float)).all(axis=1)
    scored = predictions[predictions["method"].eq(method) & predictions["scored_at"].notna() & ends]
    if scored.empty:
        return ""
    promised = 100 * (1 - scored["miscoverage"].astype(float).mean())
    held = int(scored["covered"].astype(bool).sum())
    return (
        f"Of {len(scored)} predictions made before people voted, {held} held "
        f"({promised:.0f} % promised)."
    )


def _first_text(board: pd.DataFrame) -> str:
    """Return how many models may be the best, as a sentence."""
    best, n_rated = board[may_be_best(board["best_rank"])], int(board["best_rank"].notna().sum())
    if best.empty or n_rated < 2:
        return ""
    unrated = f"; {len(board) - n_rated} more have no rating" if n_rated < len(board) else ""
    if len(best) == 1:
        return f"{best['model'].iloc[0]} alone may be the best of the {n_rated} models{unrated}."
    return f"{len(best)} of {n_rated} models may be the best{unrated}."


def beyond_lines(board: pd.DataFrame, whole: pd.DataFrame | None = None) -> list[tuple[str, bool]]:
    """Return a warning of each model that the judge puts beyond all that people have rated.

    `whole` is the leaderboard that `board` has some rows of.
    """
    people = (board if whole is None else whole)["human_rating"].dropna().astype(float)
    lines = []
    for row in board[board["flags"].str.split(";").map(lambda flags: BEYOND in flags)].itertuples():
        if people.empty or pd.isna(row.judge_rating):
            continue
        above = row.judge_rating > people.max()
        end = people.max() if above else people.min()
        lines.append((
            f"{row.model} stands {'above' if above else 'below'} all {len(people)} models that "
            f"people have rated ({number(row.judge_rating)}, {'best' if above else 'worst'} of "
            f"them {number(end)}): no calibrating model stands there{_held_text(row)}. Some 30 "
            "votes on it close the gap: have people vote on its battles first.",
            True,
        ))  # fmt: skip
    return lines


def _held_text(row: Any) -> str:
    """Return how often such intervals hold; nothing of the whole line, which always does."""
    if math.isinf(row.judge_upper):
        return ""
    return f", and its interval holds less often than promised ({_HELD_BEYOND})"

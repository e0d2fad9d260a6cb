"""The leaderboard as the page shows it: words, badges and the small interval plots."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judgeline.elo import VOTES_WAIT
from judgeline.intervals import missed
from judgeline.report.grid import sort_key
from judgeline.report.wording import count, flag_words, number, rank_text, span

_NO_VOTES = "no human votes"


@dataclass(frozen=True)
class Standing:
    """One model's line; places on the small plot are percentages of its width."""

    rank: str
    model: str
    new: bool
    rating: str
    interval: str
    missed: bool
    human_rating: str
    together: str
    together_interval: str
    n_votes: str
    n_battles: str
    flags: str
    keys: dict[str, str]
    dot: float | None
    bar: tuple[float, float]  # left end and width
    diamond: float | None
    unbounded: bool


def standings_of(leaderboard: pd.DataFrame) -> list[Standing]:
    """Return one standing per row of the leaderboard, in its order."""
    shown = leaderboard[["lower", "upper", "rating", "human_rating"]].to_numpy(float)
    shown = shown[np.isfinite(shown)]
    low, high = (float(shown.min()), float(shown.max())) if shown.size else (0.0, 0.0)
    reach = (high - low) or 1.0
    rows = zip(leaderboard.to_dict("records"), missed(leaderboard).tolist(), strict=True)
    return [_standing(row, is_missed, low, reach) for row, is_missed in rows]


def _standing(row: Mapping[str, Any], is_missed: bool, low: float, reach: float) -> Standing:
    def place(rating: float) -> float | None:
        return round(100 * (rating - low) / reach, 2) if np.isfinite(rating) else None

    left, right = place(row["lower"]), place(row["upper"])
    new = bool(pd.isna(row["human_rating"])) and VOTES_WAIT not in row["flags"].split(";")
    flags = [word for word in flag_words(row["flags"]) if word != _NO_VOTES]  # it has a badge
    return Standing(
        rank=rank_text(row),
        model=str(row["model"]),
        new=new,
        rating=number(row["rating"]),
        interval=span(row["lower"], row["upper"]),
        missed=is_missed,
        human_rating=number(row["human_rating"]),
        together=number(row.get("judge_and_votes", np.nan)),
        together_interval=span(
            row.get("judge_and_votes_lower", np.nan), row.get("judge_and_votes_upper", np.nan)
        ),
        n_votes=count(row["n_votes"]),
        n_battles=count(row["n_battles"]),
        flags=", ".join(flags),
        keys=_keys(row),
        dot=place(row["rating"]),
        bar=(0.0, 100.0) if left is None or right is None else (left, round(right - left, 2)),
        diamond=place(row["human_rating"]),
        unbounded=left is None or right is None,
    )


def _keys(row: Mapping[str, Any]) -> dict[str, str]:
    fields = ("rank", "rating", "human_rating", "n_votes", "n_battles")
    keys = {field: sort_key(row[field]) for field in fields}
    keys["judge_and_votes"] = sort_key(row.get("judge_and_votes", np.nan))
    return {**keys, "width": sort_key(row["upper"] - row["lower"])}

"""Worth of a judge in votes, and ways to narrow an interval: `judgeline.plan`, `judgeline plan`.

What belongs here: tables and sentences. What does not: the numbers (`judgeline.intervals.planning`)
and which battles people are to vote on (`judgeline.voting`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.arrays import require
from judgeline.elo import HeldOutRatings
from judgeline.intervals import (
    BY_JUDGE,
    NARROWEST,
    Frontier,
    Mix,
    cheapest_mix,
    effective_judges,
    interval_frontier,
)
from judgeline.settings import Settings
from judgeline.steps.step import as_columns

CALLS = 2
"""Calls of a judge a battle: one in each order of presentation."""

_SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)
_VOTES = (10, 20, 50, 100, 200)


class Rated(NamedTuple):
    """Held-out ratings and leaderboard of one judge, as `rank` or a run of the lineage made them.

    `calls` is how often the judge is asked about a battle.
    """

    heldout_ratings: pd.DataFrame
    leaderboard: pd.DataFrame
    calls: int = CALLS


class Prices(NamedTuple):
    """What one call of a judge and one vote cost, in any one currency; NaN for unknown."""

    call: float = math.nan
    vote: float = math.nan


_UNKNOWN = Prices()


@dataclass(frozen=True)
class Plan:
    """What judges are worth, and what narrows the interval of one model.

    Attributes
    ----------
    judges : DataFrame
        A judge per row: models it was measured on, ``worth`` in votes a model with its lower limit
        ``at_least``, and ``enough_calls``, beyond which no call a model narrows an interval.
    frontier : DataFrame
        ``half_width`` (Elo points) of one model's interval by judge, ``n_calls`` and ``n_votes``,
        and the ``cost`` of these.
    mixes : DataFrame
        The cheapest calls and votes of one model for the half-width that was asked for, by judge.
    n_effective : float
        How many independent judges all of them are worth together; NaN for one judge.
    frontiers : dict of str to Frontier
        What the numbers are made of, by judge.
    """

    judges: pd.DataFrame
    frontier: pd.DataFrame
    mixes: pd.DataFrame
    n_effective: float
    frontiers: dict[str, Frontier] = field(repr=False)

    def as_record(self) -> dict[str, Any]:
        """Return sentences and tables as plain data, null where there is no number."""
        tables = {name: getattr(self, name) for name in ("judges", "frontier", "mixes")}
        known = {
            name: table.astype(object).where(table.notna(), None).to_dict("records")
            for name, table in tables.items()
        }
        return {"lines": self.lines(), "n_effective": self.n_effective, **known}

    def lines(self) -> list[str]:
        """Return the plan as sentences."""
        rows = self.judges.to_dict("records")
        lines = [_worth_text(row, self.frontiers[row["judge"]]) for row in rows]
        if self.n_effective == self.n_effective:
            count = len(self.judges)
            lines.append(
                f"{count} judges count as {self.n_effective:.1f} at least: that is what they are "
                "worth if all that their errors share is theirs, and none the noise of votes."
            )
        return lines + [_mix_text(row) for row in self.mixes.to_dict("records")]


def plan_of(
    rated: Mapping[str, Rated],
    settings: Settings,
    *,
    half_width: float | None = None,
    prices: Prices = _UNKNOWN,
    n_target_votes: float | None = None,
) -> Plan:
    """Return the plan of judges whose held-out ratings and leaderboards are known, by name."""
    for name, price in prices._asdict().items():
        is_price = math.isnan(price) or 0 <= price < math.inf
        require(is_price, f"the price of a {name}", price, "0 or more, finite")
    frontiers = {name: frontier_of(one, settings, n_target_votes) for name, one in rated.items()}
    judges, rows, mixes = [], [], []
    for name, frontier in frontiers.items():
        calls, n_models = rated[name].calls, len(_residuals(rated[name]))
        enough = calls * frontier.enough_battles()
        judges.append((name, n_models, *frontier.worth, enough))
        grid = [(max(1.0, round(share * frontier.n_usual)), 0) for share in _SHARES]
        grid += [(frontier.n_usual, votes) for votes in _VOTES]
        for n, votes in grid:
            cost = _cost(n * calls, votes, prices)
            rows.append((name, n * calls, votes, frontier.half_width(n, votes), cost))
        if half_width is not None:
            known = [0.0 if math.isnan(price) else price for price in prices]
            mix = cheapest_mix(
                frontier, half_width, battle_price=known[0] * calls, vote_price=known[1]
            )
            mixes.append((name, half_width, *_told(mix, calls, prices)))
    return Plan(
        pd.DataFrame(judges, columns=["judge", "n_models", "worth", "at_least", "enough_calls"]),
        pd.DataFrame(rows, columns=["judge", "n_calls", "n_votes", "half_width", "cost"]),
        pd.DataFrame(mixes, columns=["judge", "wanted", "n_calls", "n_votes", "cost", "reached"]),
        _effective(rated),
        frontiers,
    )


def frontier_of(rated: Rated, settings: Settings, n_target_votes: float | None = None) -> Frontier:
    """Return the sources of the width of one judge's intervals."""
    board, n_battles = rated.leaderboard, int(rated.leaderboard["n_battles"].sum()) // 2
    method = str(board["method"].iloc[0])
    voted = board[~board["evidence"].isin(["", BY_JUDGE]) & np.isfinite(board["upper"])]
    reach = ((voted["upper"] - voted["rating"]) / voted["std_error"]).median()
    has_resamples = rated.heldout_ratings["std_error"].notna().any()
    kind = settings.resolved(n_battles).std_error if has_resamples else "analytic"
    return interval_frontier(
        as_columns(HeldOutRatings, rated.heldout_ratings),
        method,
        miscoverage=settings.miscoverage,
        std_error=kind or "analytic",
        reach=float(reach),
        n_target_votes=n_target_votes,
    )


def _residuals(rated: Rated) -> pd.Series:
    table, method = rated.heldout_ratings, rated.leaderboard["method"].iloc[0]
    own = table[table["method"].eq(method) & table["residual"].notna()]
    return own.set_index("model")["residual"].astype(float)


def _effective(rated: Mapping[str, Rated]) -> float:
    if len(rated) < 2:
        return math.nan
    columns = {name: _residuals(one) for name, one in rated.items()}
    return effective_judges(pd.DataFrame(columns).dropna().to_numpy().T)


def _cost(n_calls: float, n_votes: float, prices: Prices) -> float:
    """Return what calls and votes cost; NaN where a price that counts is unknown."""
    parts = [n * price for n, price in zip((n_calls, n_votes), prices, strict=True) if n]
    return sum(parts)


def _told(mix: Mix, calls: int, prices: Prices) -> tuple[float, float, float, float]:
    cost = _cost(mix.n_battles * calls, mix.n_votes, prices)
    return mix.n_battles * calls, mix.n_votes, cost, mix.half_width


def _worth_text(row: Mapping[str, Any], frontier: Frontier) -> str:
    worth, least, calls = row["worth"], row["at_least"], row["enough_calls"]
    limit = f"at least {least:.0f}"
    known = f"{worth:.0f} votes a model ({limit})"
    text = known if math.isfinite(worth) else f"{limit} votes a model"
    if math.isinf(least):
        text = "more votes than these models can tell"
    text = f"{row['judge']} is worth {text}, by {row['n_models']} models with votes"
    if math.isfinite(calls):
        text += f"; beyond {calls:,.0f} calls a model nothing narrows"
    if not (math.isfinite(worth) and worth >= 1):
        return f"{text}."
    error, together = frontier.vote_noise / math.sqrt(worth), worth * frontier.design_effect
    text += f". Its own error, {error:.0f} Elo, is that of {worth:.0f} votes on a model"
    if round(together) > round(worth):
        text += ", each on a question of its own; of votes that share questions as these do it "
        text += f"takes {together:.0f}"
    return f"{text}."


def _mix_text(row: Mapping[str, Any]) -> str:
    cost = f", {row['cost']:,.2f} in all" if row["cost"] == row["cost"] else ""
    votes = f" and {row['n_votes']:,.0f} votes" if row["n_votes"] else " and no vote"
    return (
        f"To within {row['wanted']:g} Elo by {row['judge']}: {row['n_calls']:,.0f} calls{votes} on "
        f"the model{cost}."
    )


def frontier_note(frontiers: Mapping[str, Frontier]) -> str:
    """Return what the columns of frontiers assume, as sentences."""
    targets = sorted({round(one.n_target_votes) for one in frontiers.values()})
    return (
        "Without votes, a half-width is of an interval that must hold a human rating made of "
        f"{' or '.join(f'{votes:,}' for votes in targets)} votes, so it includes their noise. With "
        "votes, it must hold the rating that unlimited votes would give, by another calibration, "
        "so that the first votes may not narrow it. The judge's own error stands in its worth. "
        f"Calls count as narrowing while they are worth {100 * (NARROWEST - 1):.0f} %; votes count "
        "less by the design effect of shared questions, as on a board. The reach of intervals with "
        "votes is the board's median: `judgeline vote` foretells one model by its own."
    )

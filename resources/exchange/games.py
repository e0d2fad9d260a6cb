"""Stored verdicts of one judge as games: a battle's outcome in each order."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline import io
from judgeline.io import ArgumentError
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.verdict import CRITERIA, criterion_difference, sign_outcome

NEVER_ASKED = "never asked"


class Game(NamedTuple):
    """One order of a battle: A's share of the win, and A's six scores and B's, or None."""

    status: str
    outcome: float | None
    scores: tuple[float, ...] | None

    @property
    def is_ok(self) -> bool:
        """Whether the judge's answer could be read."""
        return self.status == "ok"


MISSING = Game(NEVER_ASKED, None, None)


class JudgedBattle(NamedTuple):
    """A battle, in the columns of battles, and its games by order."""

    battle: Mapping[str, Any]
    games: Mapping[str, Game]

    @property
    def pair(self) -> tuple[Game, Game]:
        """The game with A shown first and the one with B; one that never was is failed."""
        return self.games.get("AB", MISSING), self.games.get("BA", MISSING)


@dataclass(frozen=True)
class Account:
    """Counts of an export: battles with a verdict, and what was left out, not read or changed."""

    n_battles: int
    left_out: Counter[str] = field(default_factory=Counter)
    not_read: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)

    @property
    def n_written(self) -> int:
        """Battles in the file."""
        return self.n_battles - self.left_out.total()


def judged_battles(
    battles: pd.DataFrame, verdicts: pd.DataFrame
) -> tuple[list[JudgedBattle], Account]:
    """Return the judged battles and an account; the first replicate that was read counts."""
    known = verdicts.reset_index(drop=True)
    known = known[known["battle_id"].isin(battles["battle_id"])]
    ranked = known.assign(failed=known["status"].ne("ok")).sort_values(
        ["failed", "replicate"], kind="stable"
    )
    first = ranked.drop_duplicates(["battle_id", "order"]).sort_index()
    games: dict[str, dict[str, Game]] = {}
    for verdict in _records(first):
        games.setdefault(verdict["battle_id"], {})[verdict["order"]] = _game(verdict)
    rows = _records(battles[battles["battle_id"].isin(games)])
    judged = [JudgedBattle(row, games[row["battle_id"]]) for row in rows]
    account = Account(len(judged))
    unknown = len(verdicts) - len(known)
    account.not_read["verdicts on battles that are not in the sample"] = unknown
    account.not_read["verdicts of further replicates"] = len(known) - len(first)
    account.not_read["battles without a verdict"] = len(battles) - len(judged)
    return judged, account


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a table, None where a cell is null."""
    rows: list[dict[Any, Any]] = table.astype(object).where(table.notna(), None).to_dict("records")
    return rows


def _game(verdict: Mapping[str, Any]) -> Game:
    points = tuple(verdict[name] for name in SCORE_COLUMNS)
    scores = points if verdict["status"] == "ok" and None not in points else None
    outcome = verdict["recorded_outcome"]
    if outcome is None and scores is not None:
        sides = np.reshape(scores, (2, 1, len(CRITERIA)))
        [outcome] = sign_outcome(criterion_difference(*sides)).tolist()
    return Game(verdict["status"], outcome, scores)


def one_outcome(judged: JudgedBattle, account: Account) -> float | None:
    """Return A's share over both orders, published or their mean; None where an order failed."""
    games = [judged.games["mean"]] if "mean" in judged.games else list(judged.pair)
    failed = sorted({game.status for game in games if not game.is_ok})
    outcomes = [game.outcome for game in games if game.outcome is not None]
    if failed:
        account.changed[f"failed battles ({', '.join(failed)}), written as failed"] += 1
        return None
    if len(outcomes) < len(games):
        account.changed["verdicts without an outcome, written as failed"] += 1
        return None
    if len(games) > 1:
        account.changed["battles with both orders averaged into one"] += 1
    return sum(outcomes) / len(outcomes)


# Files that appear whole or not at all, and never in the place of another unasked


def require_free(paths: Mapping[str, Path], *, force: bool) -> None:
    """Raise unless files can be written: to a folder, and over nothing unless forced."""
    for path in paths.values():
        if path.is_dir():
            raise ValueError(f"{path} is a folder; name another place with --out")
        if path.exists() and not force:
            raise ValueError(f"{path} is there already; add --force to replace it")


def write_together(writers: Mapping[Path, Callable[[Path], object]]) -> None:
    """Write all files or none."""
    try:
        io.write_together(writers)
    except OSError as error:
        fault = f"cannot write {', '.join(map(str, writers))} ({error.strerror or error})"
        raise ArgumentError(f"{fault}; name another place with 'out'", "out") from error

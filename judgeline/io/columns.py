"""Scored battles as the estimators read them, and results of the core as tables."""

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.elo import VOTES_WAIT, HeldOutRatings, with_settled_votes
from judgeline.elo.battles import CodedBattles, code_battles

RANKS = ("rank", "best_rank", "worst_rank")


def as_table(columns: NamedTuple) -> pd.DataFrame:
    """Return a result of the core as a table with one column per field.

    Places that a model without a rating does not have are null, not numbers.
    """
    table = pd.DataFrame(columns._asdict())
    places = [name for name in RANKS if name in table]
    return table.astype(dict.fromkeys(places, "Int64"))


def as_numbers(column: pd.Series) -> np.ndarray[Any, Any]:
    """Return a column as floats, shape (n,), with NaN where a cell is null."""
    return column.to_numpy(dtype=float, na_value=np.nan)


def as_coded(
    scored_battles: pd.DataFrame, hard_outcome: str, *, every_vote: bool = False
) -> CodedBattles:
    """Return scored battles as the estimators read them, without votes that settle nothing.

    Models with too few votes count as models without: `settled_models` says from when on.

    Parameters
    ----------
    scored_battles : DataFrame
        The table of that name.
    hard_outcome : str
        ``"derived"`` for the outcome that follows from the scores, ``"recorded"`` for the one
        that the publisher of the verdicts states.
    every_vote : bool
        Whether to keep the votes on models that have too few.

    Raises
    ------
    ValueError
        If recorded outcomes are asked for and a battle has none.
    """
    column = {"derived": "judge_outcome", "recorded": "recorded_outcome"}[hard_outcome]
    outcome = as_numbers(scored_battles[column])
    if np.isnan(outcome).any():
        battle = scored_battles["battle_id"].iloc[int(np.argmax(np.isnan(outcome)))]
        raise ValueError(
            f"{int(np.isnan(outcome).sum())} of {outcome.size} scored battles have no {column}, "
            f"the first is {battle!r}; set 'hard_outcome: derived' for this corpus"
        )
    coded = code_battles(
        scored_battles["model_a"],
        scored_battles["model_b"],
        human_outcome=as_numbers(scored_battles["human_outcome"]),
        judge_outcome=outcome,
        score_difference=as_numbers(scored_battles["score_difference"]),
    )
    return coded if every_vote else with_settled_votes(coded)


def with_waiting_votes(ratings: HeldOutRatings, waiting: Collection[str]) -> HeldOutRatings:
    """Return ratings that say of some models that their votes wait, not that there are none.

    Parameters
    ----------
    ratings : HeldOutRatings
        Made of battles without the votes of those models.
    waiting : collection of str
        Those models.
    """
    waits = np.isin(ratings.model, list(waiting))
    told = [
        flags.replace("no-votes", VOTES_WAIT) if wait else flags
        for flags, wait in zip(ratings.flags.tolist(), waits.tolist(), strict=True)
    ]
    return ratings._replace(flags=np.array(told))


def votes_that_wait(scored_battles: pd.DataFrame, coded: CodedBattles) -> dict[str, int]:
    """Return how many votes there are on each model that has too few of them to count."""
    voted = scored_battles[scored_battles["human_outcome"].notna()]
    votes = pd.concat([voted["model_a"], voted["model_b"]]).value_counts()
    counted = set(np.array(coded.models)[coded.voted_models()].tolist())
    return {str(name): int(n) for name, n in votes.items() if name not in counted}

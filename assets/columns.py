"""Between stored tables and the columns that the core reads and returns."""

from collections.abc import Collection
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from judgeline.elo import VOTES_WAIT, CodedBattles, HeldOutRatings, code_battles, with_settled_votes

Columns = TypeVar("Columns", bound=NamedTuple)

RANKS = ("rank", "best_rank", "worst_rank")


def as_table(columns: NamedTuple) -> pd.DataFrame:
    """Return a result of the core as a table with one column per field.

    Places that a model without a rating does not have are null, not numbers.
    """
    table = pd.DataFrame(columns._asdict())
    places = [name for name in RANKS if name in table]
    return table.astype(dict.fromkeys(places, "Int64"))


def as_columns(kind: type[Columns], table: pd.DataFrame) -> Columns:
    """Return a stored table as the result of the core that it was made from."""
    require_columns(kind, table)
    return kind(**{field: table[field].to_numpy() for field in kind._fields})


def require_columns(kind: type[NamedTuple], table: pd.DataFrame) -> None:
    """Raise ValueError, with the remedy, if an earlier version made the table."""
    missing = [field for field in kind._fields if field not in table]
    if missing:
        raise ValueError(
            f"the stored {kind.__name__} lack {', '.join(missing)}: an earlier version made them; "
            "make them again with judgeline run"
        )


def as_numbers(column: pd.Series) -> np.ndarray[Any, Any]:
    """Return a column as floats, shape (n,), with NaN where a cell is null."""
    return column.to_numpy(dtype=float, na_value=np.nan)


def as_coded(
    scored_battles: pd.DataFrame, hard_outcome: str, *, every_vote: bool = False
) -> CodedBattles:
    """Return scored battles as the estimators read them, without votes that settle nothing.

    Models with too few votes count as models without: see `judgeline.elo.settled_models`.

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


def with_newcomer(scored_battles: pd.DataFrame, model: str, own: pd.DataFrame) -> pd.DataFrame:
    """Return a corpus's scored battles and those of a model that nobody voted on.

    A model of the corpus that bears its name, without votes, is not it: its battles are left out.

    Parameters
    ----------
    scored_battles, own : DataFrame
        Of the corpus, and of the newcomer, whose judge outcomes follow from the scores.
    model : str
        The newcomer.
    """
    is_other = scored_battles["model_a"].ne(model) & scored_battles["model_b"].ne(model)
    recorded = own["recorded_outcome"].fillna(own["judge_outcome"])
    own = own.assign(recorded_outcome=recorded, human_outcome=np.nan)
    return pd.concat([scored_battles[is_other], own[scored_battles.columns]], ignore_index=True)

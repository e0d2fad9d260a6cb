"""Between stored tables and the columns that the core reads and returns."""

from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from judgeline.battles import CodedBattles, code_battles

Columns = TypeVar("Columns", bound=NamedTuple)


def as_table(columns: NamedTuple) -> pd.DataFrame:
    """Return a result of the core as a table with one column per field.

    Places that a model without a rating does not have are null, not numbers.
    """
    table = pd.DataFrame(columns._asdict())
    places = [name for name in ("rank", "tier") if name in table]
    return table.astype(dict.fromkeys(places, "Int64"))


def as_columns(kind: type[Columns], table: pd.DataFrame) -> Columns:
    """Return a stored table as the result of the core that it was made from."""
    return kind(**{field: table[field].to_numpy() for field in kind._fields})


def as_numbers(column: pd.Series) -> np.ndarray[Any, Any]:
    """Return a column as floats, shape (n,), with NaN where a cell is null."""
    return column.to_numpy(dtype=float, na_value=np.nan)


def as_coded(scored_battles: pd.DataFrame, hard_outcome: str) -> CodedBattles:
    """Return scored battles as the estimators read them.

    Parameters
    ----------
    scored_battles : DataFrame
        The table of that name.
    hard_outcome : str
        ``"derived"`` for the outcome that follows from the scores, ``"recorded"`` for the one
        that the publisher of the verdicts states.

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
    return code_battles(
        scored_battles["model_a"],
        scored_battles["model_b"],
        human_outcome=as_numbers(scored_battles["human_outcome"]),
        judge_outcome=outcome,
        score_difference=as_numbers(scored_battles["score_difference"]),
    )

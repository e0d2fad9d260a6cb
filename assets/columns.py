"""Between stored tables and the columns that the core reads and returns."""

from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd

Columns = TypeVar("Columns", bound=NamedTuple)


def as_columns(kind: type[Columns], table: pd.DataFrame) -> Columns:
    """Return a stored table as the result of the core that it was made from."""
    require_columns(kind, table)
    return kind._make(table[field].to_numpy() for field in kind._fields)


def require_columns(kind: type[NamedTuple], table: pd.DataFrame) -> None:
    """Raise ValueError, with the remedy, if an earlier version made the table."""
    missing = [field for field in kind._fields if field not in table]
    if missing:
        raise ValueError(
            f"the stored {kind.__name__} lack {', '.join(missing)}: an earlier version made them; "
            "make them again with judgeline run"
        )


def with_newcomer(scored_battles: pd.DataFrame, model: str, own: pd.DataFrame) -> pd.DataFrame:
    """Return a corpus's scored battles and those of a model without votes.

    A model of the corpus that bears its name, without votes, is not it: its battles are left out.
    """
    is_other = scored_battles["model_a"].ne(model) & scored_battles["model_b"].ne(model)
    recorded = own["recorded_outcome"].fillna(own["judge_outcome"])
    own = own.assign(recorded_outcome=recorded, human_outcome=np.nan)
    return pd.concat([scored_battles[is_other], own[scored_battles.columns]], ignore_index=True)

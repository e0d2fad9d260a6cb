"""Ids looked up in other ids without a Python object per row."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

FURTHER_VOTE = "#vote-"
"""Separator of a battle's id and a vote's number in the id of a further vote."""


def battles_of(battle_id: pd.Series) -> pd.Series:
    """Return the battle's id of each row; a further vote's row has the id of its battle."""
    battles: pd.Series = battle_id.str.split(FURTHER_VOTE, regex=False).str[0]
    return battles


def is_among(column: pd.Series | pd.Index, ids: pd.Series | pd.Index) -> np.ndarray[Any, Any]:
    """Return which ids of a column, (n,), are among others; a null is among none."""
    own, others = (pa.array(one.astype("str"), from_pandas=True) for one in (column, ids))
    if isinstance(own, pa.ChunkedArray):
        own = own.combine_chunks()
    if isinstance(others, pa.ChunkedArray):
        others = others.combine_chunks()
    found = pc.is_in(own, value_set=others.cast(own.type), skip_nulls=True)
    return np.asarray(found.to_numpy(zero_copy_only=False))

"""Comparison of tables up to rounding errors, which differ between processors.

Sums run in another order on another processor. A table that differs by no more is the same table.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_ROUNDING = 1e-12


def differ_by_rounding_alone(new: pa.Table, stored: pa.Table) -> bool:
    """Return whether two tables are equal up to the rounding of their floats.

    Floats are equal if ``|new - stored| <= 1e-12 * (1 + |stored|)``: to twelve digits, or to 1e-12
    for a small difference of large numbers. Rounded numbers would not do: one last bit can move a
    number to the other side of where digits are cut. Types and all other values are equal exactly.
    """
    return (
        new.schema.equals(stored.schema)
        and _pandas_types(new) == _pandas_types(stored)
        and new.num_rows == stored.num_rows
        and all(map(_are_equal, new.columns, stored.columns))
    )


def _pandas_types(table: pa.Table) -> Any:
    return (table.schema.pandas_metadata or {}).get("columns")


def _are_equal(new: pa.ChunkedArray, stored: pa.ChunkedArray) -> bool:
    """Return whether columns are equal up to rounding; lists, such as embeddings, item by item."""
    if pa.types.is_list(new.type):
        lengths = pc.list_value_length(new).equals(pc.list_value_length(stored))
        return lengths and _are_equal(pc.list_flatten(new), pc.list_flatten(stored))
    if not pa.types.is_floating(new.type):
        return bool(new.equals(stored))
    numbers = (new.to_numpy(), stored.to_numpy())
    return new.is_null().equals(stored.is_null()) and np.allclose(
        *numbers, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True
    )

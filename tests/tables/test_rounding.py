import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.tables.rounding import differ_by_rounding_alone


def alike(new: pd.DataFrame, stored: pd.DataFrame) -> bool:
    tables = (pa.Table.from_pandas(one, preserve_index=False) for one in (new, stored))
    return differ_by_rounding_alone(*tables)


@given(
    st.lists(st.floats(-1e12, 1e12), max_size=30).flatmap(
        lambda terms: st.tuples(st.just(terms), st.permutations(terms))
    )
)
def test_sums_of_shares_in_another_order_are_alike(sums: tuple[list[float], list[float]]) -> None:
    size = math.fsum(map(abs, sums[0])) or 1.0
    new, stored = (sum(term / size for term in terms) for terms in sums)
    assert alike(pd.DataFrame({"share": [new]}), pd.DataFrame({"share": [stored]}))


@pytest.mark.parametrize("number", [1e-6, 0.154281282254, 1.0, 1234.5, 3e15, -7.0])
def test_floats_are_compared_at_twelve_digits(number: float) -> None:
    def at(factor: float) -> pd.DataFrame:
        return pd.DataFrame({"rating": [math.nan, math.inf, number * factor]})

    assert alike(at(1 + 2**-52), at(1))
    assert alike(at(1 - 2**-52), at(1))
    assert not alike(at(1 + 3e-6), at(1))
    assert not alike(at(1), at(1 - 3e-6))


def test_the_rounding_of_a_difference_is_that_of_its_terms() -> None:
    third = pd.DataFrame({"residual": [0.1 + 0.2 - 0.3]})
    assert third["residual"].iloc[0] > 0
    assert alike(third, pd.DataFrame({"residual": [0.0]}))
    assert not alike(pd.DataFrame({"residual": [3e-12]}), pd.DataFrame({"residual": [0.0]}))


STORED = pd.DataFrame(
    {
        "model": ["a", "b"],
        "rank": pd.array([1, None], dtype="Int64"),
        "rating": [1000.0, math.nan],
        "embedding": [[0.1, 0.2], []],
    }
)


@pytest.mark.parametrize(
    ("column", "cells", "expected"),
    [
        ("embedding", [[math.nextafter(0.1, 1), 0.2], []], True),
        ("embedding", [[0.1, 0.2000001], []], False),
        ("embedding", [[0.1], [0.2]], False),
        ("embedding", [[0.1, 0.2], None], False),
        ("model", ["a", "c"], False),
        ("rank", pd.array([2, None], dtype="Int64"), False),
        ("rank", [1.0, math.nan], False),
        ("rank", pd.array([1, 2], dtype="Int64"), False),
        ("rating", [math.nan, 1000.0], False),
        ("rating", [1000.0, math.inf], False),
        ("rating", [1000.0, 0.0], False),
        ("rating", np.float32([1000, math.nan]), False),
    ],
)
def test_all_else_is_equal_exactly(column: str, cells: object, expected: bool) -> None:
    assert alike(STORED, STORED)
    assert alike(STORED.assign(**{column: cells}), STORED) is expected


def test_rows_names_and_pandas_types_are_equal_exactly() -> None:
    whole = pd.DataFrame({"n": [1, 2]})
    for other in (
        whole.iloc[:1],
        whole.rename(columns={"n": "m"}),
        whole.astype("Int64"),
        whole.assign(more=1),
        whole.astype(float),
    ):
        assert not alike(other, whole)
        assert not alike(whole, other)

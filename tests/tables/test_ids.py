"""Ids looked up Arrow to Arrow: as pandas does it, row by row."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgeline.tables.ids import is_among

IDS = st.lists(st.sampled_from(["a", "b", "", "a\0b", "é", "e\u0301"]))


@given(column=IDS, ids=IDS)
def test_it_is_what_pandas_finds(column: list[str], ids: list[str]) -> None:
    found = is_among(pd.Series(column, dtype="str"), pd.Series(ids, dtype="str"))
    assert found.tolist() == [one in ids for one in column]


@pytest.mark.parametrize("ids", [["a"], ["a", None]])
def test_a_null_is_among_none(ids) -> None:
    column = pd.Series(["a", None, "b"], dtype="str")
    assert is_among(column, pd.Index(ids, dtype="str")).tolist() == [True, False, False]

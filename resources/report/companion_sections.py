"""Sections of the companion methods, each from its tables, where a judge has them."""

from collections.abc import Mapping

import pandas as pd

from resources.report.companions import Companion


def companions_of(tables: Mapping[str, pd.DataFrame], key: str) -> list[Companion]:
    """Return the companion sections of a judge.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        By asset.
    key : str
        Unique on the page; prefixes every id.
    """
    return []

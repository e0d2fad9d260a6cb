"""Costs of judging: calls, tokens and money, by judge and form."""

from functools import partial
from typing import Any

import pandas as pd

from judgeline.report.grid import Column, Grid, make_grid
from judgeline.report.wording import count, number, status_words

COST_COLUMNS = (
    "judge",
    "asset",
    "n_calls",
    "n_failed",
    "prompt_tokens",
    "completion_tokens",
    "price",
    "currency",
    "n_bought",
)
"""One row per judge and table of verdicts; prices are of these tokens at the configured price."""

_money = partial(number, digits=2)


def _currency(value: Any) -> str:
    return str(value)


_COLUMNS = (
    Column("judge", "Judge", "", numeric=False),
    Column("asset", "Asked for", "", status_words, numeric=False),
    Column("n_calls", "Calls", "answered", count),
    Column("n_failed", "Failed", "of them", count),
    Column("prompt_tokens", "Prompt tokens", "", count),
    Column("completion_tokens", "Answer tokens", "", count),
    Column("price", "Price", "of these tokens", _money),
    Column("currency", "Currency", "", _currency, numeric=False),
    Column("n_bought", "Bought", "by the last run", count),
)


def cost_grid(costs: pd.DataFrame | None) -> Grid | None:
    """Return the cost table, or None where nothing was asked."""
    if costs is None or costs.empty:
        return None
    return make_grid(costs, "One row per judge and table of verdicts", _COLUMNS)

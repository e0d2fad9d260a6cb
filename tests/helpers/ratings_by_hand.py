"""Held-out ratings written by hand, for what reads them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from judgeline.elo import HeldOutRatings


class Rated(NamedTuple):
    """One model by one method; `human` is None without votes."""

    model: str
    rating: float
    human: float | None
    std_error: float
    method: str = "soft"
    beta: float = math.nan
    bootstrap: float = math.nan
    human_error: float = math.nan
    vote_error: float = 0.0
    design_effect: float = 1.0
    outward: float = 0.0
    n_votes: int = 40
    flags: str = ""


def heldout_of(rows: Sequence[Rated]) -> HeldOutRatings:
    human = np.array([math.nan if row.human is None else row.human for row in rows])
    rating = np.array([row.rating for row in rows])
    return HeldOutRatings(
        model=np.array([row.model for row in rows]),
        method=np.array([row.method for row in rows]),
        basis=np.full(len(rows), ""),
        rating=rating,
        human_rating=human,
        residual=rating - human,
        std_error=np.array([row.bootstrap for row in rows]),
        std_error_analytic=np.array([row.std_error for row in rows]),
        human_std_error=np.array([row.human_error for row in rows]),
        vote_std_error=np.array([row.vote_error for row in rows]),
        design_effect=np.array([row.design_effect for row in rows]),
        outward=np.array([row.outward for row in rows]),
        beta=np.array([row.beta for row in rows]),
        n_battles=np.full(len(rows), 50),
        n_votes=np.array([0 if row.human is None else row.n_votes for row in rows]),
        flags=np.array([row.flags for row in rows]),
    )

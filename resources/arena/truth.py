"""The true ratings of the built-in arena: exact, from every question and pair, without a vote."""

import numpy as np
from numpy.typing import NDArray

from judgeline.elo import fit_strengths, strength_to_rating
from resources.arena.simulation import Arena, expected_outcome

_HOLDS_THE_ORIGIN = 1e-9  # a penalty this small moves no rating by a millionth of a point


def mean_outcomes(arena: Arena) -> NDArray[np.float64]:
    """Return the mean outcome of each model (row) against each other, shape (M, M)."""
    return np.stack(
        [
            expected_outcome(arena.quality[:, [m]], arena.quality).mean(axis=0)
            for m in range(len(arena.contestants))
        ]
    )


def true_ratings(arena: Arena) -> dict[str, float]:
    """Return the rating of every contestant that unlimited votes would give, in Elo points.

    The Bradley-Terry fit to the mean outcome of every pair over all questions: nothing is sampled.
    1500 is the mean of the voted models, as in a leaderboard. A held-out rating has the *other*
    voted models as its origin and lies further out by ``n_voted / (n_voted - 1)``.
    """
    wins = mean_outcomes(arena)
    np.fill_diagonal(wins, 0.0)
    strengths = fit_strengths(1.0 - np.eye(len(wins)), wins.sum(axis=1), l2=_HOLDS_THE_ORIGIN)
    strengths -= strengths[: arena.options.n_voted].mean()
    return dict(zip(arena.models, strength_to_rating(strengths).tolist(), strict=True))

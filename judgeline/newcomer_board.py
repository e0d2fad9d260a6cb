"""Newcomers beside the models of a corpus: their intervals, and one leaderboard of both."""

import numpy as np

from judgeline.conformal import (
    StdErrorKind,
    calibration_residuals,
    conformal_quantile,
    nonconformity_scores,
)
from judgeline.heldout import HeldOutRatings
from judgeline.leaderboard import Leaderboard, in_order, of_method, with_intervals


def rank_newcomers(
    heldout: HeldOutRatings,
    newcomers: HeldOutRatings,
    *,
    method: str = "soft",
    miscoverage: float = 0.1,
    std_error: StdErrorKind = "analytic",
) -> Leaderboard:
    """Return newcomers with the interval that every model without votes gets.

    Assumption: a newcomer is exchangeable with the models that people rated.

    Parameters
    ----------
    heldout : HeldOutRatings
        Leave-one-out ratings whose residuals calibrate: those of all models with votes.
    newcomers : HeldOutRatings
        Ratings of models without votes, as `judgeline.newcomers` places them.
    method : str
        The judge method that ranks.
    miscoverage : float
        Tolerated probability that an interval misses, in (0, 1).
    std_error : {"analytic", "bootstrap"}
        Which standard error scales the intervals.

    Returns
    -------
    Leaderboard
        Newcomers alone, best rating first; `join_newcomers` gives places among all. Intervals
        are the whole line where too few models calibrate.

    Raises
    ------
    ValueError
        If the ratings hold no such method, or a newcomer has a human rating.
    """
    table = of_method(newcomers, method)
    voted = table.model[np.isfinite(table.human_rating)]
    if voted.size:
        raise ValueError(f"{str(voted[0])!r} has votes; rank it among the models that have")
    scores = nonconformity_scores(*calibration_residuals(heldout, method, std_error))
    threshold = conformal_quantile(scores, miscoverage=miscoverage)
    spread = table.std_error_analytic if std_error == "analytic" else table.std_error
    return in_order(with_intervals(newcomers, table, spread, np.full(spread.size, threshold)))


def join_newcomers(board: Leaderboard, newcomers: Leaderboard) -> Leaderboard:
    """Return a leaderboard of both, with ranks and tiers over all.

    People's votes come first: a newcomer that has a human rating on the board by now is left out.
    Else, of it and a model of its name without votes, the rated one stands, and of two rated ones
    that with more battles: further answers do not rename what the judge has seen more of.

    Parameters
    ----------
    board : Leaderboard
        Of a corpus.
    newcomers : Leaderboard
        Of models that people have not rated, by the same method.

    Raises
    ------
    ValueError
        If two newcomers have one name, or they were rated by another method.
    """
    names = newcomers.model.tolist()
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"newcomer {twice!r} is there twice; give each its own name")
    if set(newcomers.method.tolist()) - set(board.method.tolist()):
        raise ValueError(
            f"newcomers are rated by {str(newcomers.method[0])!r}, the board by "
            f"{str(board.method[0])!r}; remake the ratings of the newcomers"
        )
    rated = np.isfinite(newcomers.rating)
    seen = dict(zip(newcomers.model[rated].tolist(), newcomers.n_battles[rated], strict=True))
    rows = zip(board.model.tolist(), board.human_rating, board.rating, board.n_battles, strict=True)
    stays = {
        name
        for name, human, rating, n_battles in rows
        if np.isfinite(human) or (np.isfinite(rating) and n_battles > seen.get(name, -1))
    }
    enters = np.array([name not in stays for name in names], dtype=bool)
    kept = np.array([name not in set(names) - stays for name in board.model.tolist()], dtype=bool)
    pairs = zip(board, newcomers, strict=True)
    return in_order(
        Leaderboard._make(np.concatenate([old[kept], new[enters]]) for old, new in pairs)
    )

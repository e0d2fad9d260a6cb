"""Newcomers beside the models of a corpus: one leaderboard of both."""

import numpy as np

from judgeline.intervals.board import Leaderboard, in_order


def join_newcomers(
    board: Leaderboard, newcomers: Leaderboard, *, miscoverage: float
) -> Leaderboard:
    """Return a leaderboard of both, with ranks over all.

    People's votes come first: a newcomer that has a human rating on the board by now is left out.
    Else, of it and a model of its name without votes, the rated one stands, and of two rated ones
    that with more battles: further answers do not rename what the judge has seen more of.

    Parameters
    ----------
    board : Leaderboard
        Of a corpus.
    newcomers : Leaderboard
        Of models that people have not rated, by the same method.
    miscoverage : float
        Tolerated probability of a miss that the intervals were made with.

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
    joined = Leaderboard._make(np.concatenate([old[kept], new[enters]]) for old, new in pairs)
    return in_order(joined, miscoverage=miscoverage)

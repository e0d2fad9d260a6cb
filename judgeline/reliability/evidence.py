"""Evidence that may be looked at after every epoch: bets on ranks of exchangeable values.

If values of one battle over epochs are exchangeable, the rank of each among those before it is
uniform and independent of earlier ranks, whatever the values' distribution (A. Renyi, 1962,
"Theorie des elements saillants d'une suite d'observations"). A stake on such ranks grows without
end only if the values are not exchangeable: V. Vovk, A. Gammerman and G. Shafer (2022),
"Algorithmic Learning in a Random World", chapter 8; A. Ramdas et al. (2023), arXiv:2210.01948.
"""

import hashlib

import numpy as np
from numpy.typing import ArrayLike

from judgeline.arrays import Bools, Floats, Ints, require

GUARD = 4
"""Epochs for which fresh battles may have moved before it is said that the panel did not."""

STAKES = (0.1, 0.25, 0.5, 0.8)
"""Shares of the capital that are staked on each rank, upwards and downwards."""

_YEAR = 52
_DECIMALS = 9  # values that are this much alike are equal


def tie_breaks(battle_id: ArrayLike, n_epochs: int, *, seed: int = 0) -> Floats:
    """Return uniform numbers (n_epochs, n), each a keyed hash of an epoch and the id of a battle.

    Neither a further epoch nor another battle changes them: past evidence is not drawn again.
    """
    rows = [[_uniform(f"{row}\x1f{name}", seed) for name in np.asarray(battle_id).tolist()]
            for row in range(n_epochs)]  # fmt: skip
    return np.array(rows, dtype=float).reshape(n_epochs, -1)


def _uniform(text: str, seed: int) -> float:
    """Return a number in [0, 1) by the first 53 bits of the BLAKE2b of a text."""
    digest = hashlib.blake2b(text.encode(), digest_size=8, key=str(seed).encode()).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2.0**53


def sequential_ranks(values: ArrayLike, ties: ArrayLike, *, strangeness: bool = False) -> Floats:
    """Return the rank of each value (t, n) among those of its column before it, from -1 to 1.

    -1 is below all of them, 1 above; a tie is broken by its uniform number in `ties` (t, n). NaN is
    left out: it has rank 0, as has the first of a column. With `strangeness` it is not the value
    that is ranked but its distance from the mean of all so far: a value of another distribution
    lies further away, in whichever direction.
    """
    table, breaks = np.round(np.asarray(values, float), _DECIMALS), np.asarray(ties, float)
    require(table.ndim == 2, "the number of axes of values", table.ndim, "2: epochs and battles")
    expected = f"that of values, {table.shape}"
    require(breaks.shape == table.shape, "the shape of ties", breaks.shape, expected)
    ranks = np.zeros(table.shape)
    for row in range(1, len(table)):
        seen = distance_from_mean(table[: row + 1]) if strangeness else table[: row + 1]
        earlier, now = seen[:-1], seen[-1]
        n_earlier, n_equal = np.isfinite(earlier).sum(axis=0), (earlier == now).sum(axis=0)
        n_below = (earlier < now).sum(axis=0)
        ranks[row] = _ranked(n_below, n_equal, n_earlier, breaks[row]) * np.isfinite(now)
    return ranks


def _ranked(n_below: Ints, n_equal: Ints, n_earlier: Ints, breaks: Floats) -> Floats:
    """Return ranks from -1 to 1; one of several equal values is placed among them at random."""
    below = n_below + np.floor(breaks * (n_equal + 1))
    return np.where(n_earlier > 0, 2 * below / np.maximum(n_earlier, 1) - 1, 0.0)


def stream_ranks(values: ArrayLike, epoch: ArrayLike, ties: ArrayLike, *, n_epochs: int) -> Floats:
    """Return the ranks of a stream's values (n,) among all before them, a row per epoch from 1.

    `epoch` (n,) does not fall and is below `n_epochs`; those of epoch 0 are compared with and have
    no row. `ties` (n,) has uniform numbers. NaN is left out, and rows are filled up with zeros.
    """
    known, place = np.round(np.asarray(values, float), _DECIMALS), np.asarray(epoch, dtype=int)
    is_known = np.isfinite(known)
    known, place, breaks = known[is_known], place[is_known], np.asarray(ties, float)[is_known]
    rows = np.zeros((n_epochs, known.size))
    for row in range(1, n_epochs):
        earlier, now = np.sort(known[place < row]), known[place == row]
        low, high = (np.searchsorted(earlier, now, side) for side in ("left", "right"))
        comes_before = np.tri(now.size, k=-1, dtype=bool)
        n_below = low + (comes_before & (now < now[:, None])).sum(axis=1)
        n_equal = high - low + (comes_before & (now == now[:, None])).sum(axis=1)
        n_earlier = earlier.size + np.arange(now.size)
        rows[row, : now.size] = _ranked(n_below, n_equal, n_earlier, breaks[place == row])
    return rows[1:, : np.bincount(place[place > 0], minlength=1).max()]


def distance_from_mean(values: Floats) -> Floats:
    """Return how far each value (t, n) is from the mean of its column, NaN left out."""
    n_known = np.maximum(np.isfinite(values).sum(axis=0), 1)
    distance: Floats = np.round(np.abs(values - np.nansum(values, axis=0) / n_known), _DECIMALS)
    return distance


def log_evidence(ranks: ArrayLike) -> Floats:
    """Return the natural logarithm of the evidence (t,) after each epoch, from ranks (t, n).

    The evidence is the capital of a bettor who has 1 to begin with. Shares of it wait for a change
    to begin, at each epoch one; from then on a part of the share is staked on every rank, up or
    down (`STAKES`). Under the null its expectation after each epoch is what it was before, so that
    it ever exceeds ``1 / a`` with probability at most a (J. Ville, 1939).
    """
    known = np.asarray(ranks, dtype=float)
    require(np.abs(known) <= 1, "ranks", known, "from -1 to 1")
    stakes = np.concatenate([STAKES, np.negative(STAKES)])
    growth = np.log1p(stakes[:, None, None] * known).sum(axis=2)
    begins = _begins(len(known))
    waiting = np.log1p(-np.minimum(np.cumsum(begins), 1))
    capital, after = np.full(stakes.size, -np.inf), np.zeros(len(known))
    for row, begin in enumerate(begins):
        capital = np.logaddexp(capital, np.log(begin)) + growth[:, row]
        betting = np.logaddexp.reduce(capital) - np.log(stakes.size)
        after[row] = np.logaddexp(betting, waiting[row])
    return after


def _begins(n_epochs: int) -> Floats:
    """Return the share that begins to bet at each epoch; of all that ever come they sum to 1.

    One half of it is 1 / (k (k + 1)), for changes soon, the other even within a year of 52 epochs,
    and half as much in each further year.
    """
    epoch = np.arange(1, n_epochs + 1)
    even = 0.5 ** (1 + (epoch - 1) // _YEAR) / _YEAR
    return (1 / (epoch * (epoch + 1.0)) + even) / 2


def name_verdicts(panel: ArrayLike, fresh: ArrayLike, *, guard: int = GUARD) -> list[str]:
    """Return after each epoch what has changed: ``none``, ``judge``, ``system`` or ``cannot tell``.

    `panel` (t,) tells whether what the judge says of its frozen panel had moved: its battles do
    not change, so that the judge did. `fresh` (t,) tells it of new battles, which move with the
    judge and with what it is shown (models, questions, voters): the system. If the panel has not
    moved `guard` epochs later, it was the system.
    """
    told, seen = ever(panel), ever(fresh)
    is_system = seen & (np.cumsum(seen) > guard)
    named = np.select([told, is_system, seen], ["judge", "system", "cannot tell"], "none")
    return [str(name) for name in named]


def ever(moved: ArrayLike) -> Bools:
    """Return after each epoch (t, ...) whether it has moved by then; it stays so."""
    return np.logical_or.accumulate(np.asarray(moved, dtype=bool), axis=0)

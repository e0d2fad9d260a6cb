"""Missing battles of a judge, and a test of whether they fall on models by chance.

A battle is scored if both orders have a usable answer, or if an average over both was
published. Every other battle is missing, for one stated reason. Nothing is filled in here.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

SCORED = "ok"
"""Status of an answer that was read, and of a battle that has a score."""

NOT_JUDGED = "not_judged"
"""Status of a battle that lacks a score, though no answer to it failed: none was ever asked."""

_ORDERS = ("AB", "BA", "mean")


def battle_status(
    battle: ArrayLike, order: ArrayLike, replicate: ArrayLike, status: ArrayLike, *, n_battles: int
) -> NDArray[np.str_]:
    """Return one status per battle: ``ok``, the class of its failure, or ``not_judged``.

    An order has failed if none of its replicates was read. A battle without a score takes the
    class of its first failed order, AB before BA, and there of the first replicate: one battle,
    one class, so that classes add up to the battles.

    Parameters
    ----------
    battle : array_like of int, shape (n,)
        Battle of each answer, from 0.
    order : array_like of str, shape (n,)
        ``AB``, ``BA``, or ``mean`` for a published average over both.
    replicate : array_like of int, shape (n,)
        Repetition of the same call, from 0.
    status : array_like of str, shape (n,)
        ``ok``, or the class of the failure.
    n_battles : int
        Number of battles, those without answers included.

    Returns
    -------
    ndarray of str, shape (n_battles,)

    Raises
    ------
    ValueError
        If the columns differ in length, an order is another, or a battle is outside `n_battles`.
    """
    place, shown = np.asarray(battle, dtype=np.int64), np.asarray(order, dtype=str)
    repeat, fate = np.asarray(replicate, dtype=np.int64), np.asarray(status, dtype=str)
    _require_answers(place, shown, {repeat.size, fate.size}, n_battles)
    key = place * len(_ORDERS) + np.select([shown == name for name in _ORDERS], range(3))
    read = np.bincount(key[fate == SCORED], minlength=n_battles * len(_ORDERS)) > 0
    failed = np.flatnonzero(~read[key])
    failed = failed[np.lexsort((repeat[failed], key[failed]))]
    battles, first = np.unique(place[failed], return_index=True)
    statuses = np.full(n_battles, NOT_JUDGED, dtype=np.result_type(fate, np.array([NOT_JUDGED])))
    statuses[battles] = fate[failed[first]]
    first_shown, second_shown, published = read.reshape(n_battles, len(_ORDERS)).T
    statuses[(first_shown & second_shown) | published] = SCORED
    return statuses


def _require_answers(
    battle: NDArray[np.int64], order: NDArray[np.str_], others: set[int], n_battles: int
) -> None:
    sizes = {battle.size, order.size, *others}
    if len(sizes) != 1:
        raise ValueError(f"columns of the answers have different lengths: {sorted(sizes)}")
    for row in np.flatnonzero(~np.isin(order, _ORDERS))[:1]:
        raise ValueError(f"order is {str(order[row])!r} in row {row}; expected AB, BA or mean")
    for row in np.flatnonzero((battle < 0) | (battle >= n_battles))[:1]:
        raise ValueError(f"battle is {battle[row]} in row {row}; expected 0 to {n_battles - 1}")


def length_bins(length: ArrayLike, *, n_bins: int = 4) -> NDArray[np.int64]:
    """Return the quantile bin of each length (n,), shortest first from 0; -1 where it is NaN.

    Equal lengths share a bin, so bins can be fewer, and less even, than the `n_bins` asked for.
    """
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins}")
    values = np.asarray(length, dtype=float)
    known = np.isfinite(values)
    bins = np.full(values.size, -1, dtype=np.int64)
    if known.any():
        edges = np.quantile(values[known], np.arange(1, n_bins) / n_bins)
        bins[known] = np.unique(np.searchsorted(edges, values[known]), return_inverse=True)[1]
    return bins


def excess_p_values(
    n_missing: ArrayLike, n_battles: ArrayLike, *, all_missing: int, all_battles: int
) -> Floats:
    """Return p-values of each model's number of missing battles, corrected for looking at them all.

    If which battles are missing has nothing to do with who fought them (any `all_missing` of
    the battles are as likely as any other), the number of a model's own among them is
    hypergeometric. The p-value is the chance of that many or more; Holm's correction keeps the
    chance of any false alarm over all models below the level, however the models' counts hang
    together (each battle is in two of them). Battles on one question may well fail together:
    then p-values come out too small.

    Parameters
    ----------
    n_missing, n_battles : array_like of int, shape (m,)
        Missing battles, and all battles, of each model.
    all_missing, all_battles : int
        Missing battles, and all battles, of the corpus.

    Returns
    -------
    ndarray of float, shape (m,)

    Raises
    ------
    ValueError
        If a part exceeds its whole.

    References
    ----------
    R. A. Fisher (1935), "The Logic of Inductive Inference", JRSS 98(1). S. Holm (1979), "A
    Simple Sequentially Rejective Multiple Test Procedure", Scand. J. Statist. 6(2).
    """
    from scipy.stats import hypergeom

    missing, battles = np.asarray(n_missing, dtype=np.int64), np.asarray(n_battles, dtype=np.int64)
    wrong = (missing > battles) | (missing > all_missing) | (battles > all_battles) | (missing < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{missing[row]} of {battles[row]} battles missing in row {row}, where "
            f"{all_missing} of {all_battles} are missing in all; a part exceeds its whole"
        )
    chance = np.asarray(hypergeom.sf(missing - 1, all_battles, all_missing, battles))
    order = np.argsort(chance, kind="stable")
    corrected = np.empty(chance.size)
    rising = np.maximum.accumulate(chance[order] * np.arange(chance.size, 0, -1))
    corrected[order] = np.minimum(rising, 1.0)
    return corrected

"""Which battles to judge: balanced over models, and stable when battles are added."""

import hashlib
import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import alike, require


class Appearances(NamedTuple):
    """In how many sampled battles a model appears: over models, and under uniform sampling.

    The uniform values are expectations for a uniform sample of the same size, in battles.
    """

    minimum: float
    median: float
    maximum: float
    uniform_minimum: float
    uniform_median: float
    uniform_maximum: float


def tiebreak_keys(battle_ids: Iterable[str], seed: int) -> NDArray[np.uint64]:
    """Return the keys (n,) that break ties: the same in every process and corpus size.

    A key is the first eight bytes of BLAKE2b of seed and id; another seed gives an unrelated order.
    """
    prefix = f"{seed}\x1f".encode()
    digests = [
        hashlib.blake2b(prefix + name.encode(), digest_size=8).digest() for name in battle_ids
    ]
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)


def balanced_sample(
    model_a: ArrayLike,
    model_b: ArrayLike,
    tiebreak: ArrayLike,
    *,
    n_battles: int,
    chosen: ArrayLike = (),
) -> NDArray[np.int64]:
    """Return battles that cover models evenly, chosen greedily one after the other.

    Each step takes, among the battles left, one whose rarer model has appeared least in the
    choice so far; the smallest tiebreak decides, then the position. A smaller sample is the
    beginning of a larger one, and a sample passed as ``chosen`` continues as if never left.

    Parameters
    ----------
    model_a, model_b : array_like of str, shape (n,)
        The models of each battle.
    tiebreak : array_like of int, shape (n,)
        Smaller is taken first among equals; see `tiebreak_keys`.
    n_battles : int
        Size of the sample, those already chosen included, at most ``n``.
    chosen : array_like of int, shape (c,)
        Positions of battles that were chosen before. They come first, in this order, and all
        stay even if there are more than ``n_battles``.

    Raises
    ------
    ValueError
        If the shapes differ, more battles are asked for than there are, or ``chosen`` repeats
        a position or points outside.
    """
    models = _model_codes(model_a, model_b)
    n = models.shape[1]
    _, keys = alike(model_a=models[0], tiebreak=tiebreak)
    order = np.argsort(keys, kind="stable")
    first = require_positions(chosen, n)
    require(0 <= n_battles <= n, "n_battles", n_battles, f"0 to {n}, the battles there are")
    further = list(islice(_evenly(models, order, first), max(n_battles - first.size, 0)))
    return np.concatenate([first, np.asarray(further, dtype=np.int64)])


def appearances(model_a: ArrayLike, model_b: ArrayLike, sampled: ArrayLike) -> Appearances:
    """Return how evenly the battles at sampled positions (k,) cover the models of all battles (n,).

    A uniform sample of the same size stands beside it.
    """
    models = _model_codes(model_a, model_b)
    n = models.shape[1]
    require(n, "the number of battles", n, "at least one")
    rows = require_positions(sampled, n)
    available = np.bincount(models.ravel())
    counts = np.bincount(models[:, rows].ravel(), minlength=available.size)
    uniform = available * rows.size / n
    return Appearances(
        *(float(of(part)) for part in (counts, uniform) for of in (np.min, np.median, np.max))
    )


def _evenly(
    models: NDArray[np.intp], order: NDArray[np.intp], chosen: NDArray[np.int64]
) -> Iterator[int]:
    """Yield the greedy choice of battles, one after the other.

    Only the two models of a battle taken change, so the heap gets two new entries a step and
    entries of older counts are skipped when they come up.
    """
    n_models = int(models.max(initial=-1)) + 1
    ranked = models[:, order]  # everything below is by rank of the tiebreak
    taken = np.isin(order, chosen).tolist()
    counts = np.bincount(models[:, chosen].ravel(), minlength=n_models).tolist()
    queues = [  # ranks of each model's battles, the best one last
        np.flatnonzero((ranked == model).any(axis=0))[::-1].tolist() for model in range(n_models)
    ]
    pairs, heap, changed = ranked.T.tolist(), list[tuple[int, int, int]](), {*range(n_models)}
    while True:
        for model in changed:
            queue = queues[model]
            while queue and taken[queue[-1]]:
                queue.pop()
            if queue:
                heapq.heappush(heap, (counts[model], queue[-1], model))
        count, rank, model = heapq.heappop(heap)
        while count != counts[model] or taken[rank]:
            count, rank, model = heapq.heappop(heap)
        taken[rank], changed = True, {*pairs[rank]}
        for model in pairs[rank]:
            counts[model] += 1
        yield int(order[rank])


def _model_codes(model_a: ArrayLike, model_b: ArrayLike) -> NDArray[np.intp]:
    first, second = alike(model_a=model_a, model_b=model_b)
    codes: dict[object, int] = {}
    both = [codes.setdefault(name, len(codes)) for name in (*first.tolist(), *second.tolist())]
    return np.asarray(both, dtype=np.intp).reshape(2, first.size)


def require_positions(rows: ArrayLike, n: int) -> NDArray[np.int64]:
    """Return positions of different battles among n, or raise naming the first bad one."""
    positions = np.asarray(rows).astype(np.int64)
    inside = (positions >= 0) & (positions < n)
    require(inside, "position", positions, f"one of the {n} battles, from 0")
    values, counts = np.unique(positions, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"the battle at position {values[counts > 1][0]} is chosen twice")
    return positions

"""Which battles to judge, balanced over models, and which battles a new model gets."""

import hashlib
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Ints, alike, alike_floats, require
from judgeline.elo.ratings import FEW_BATTLES

N_BANDS = 5
"""Bands of strength that opponents are spread over, where there are as many anchors."""


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
) -> Ints:
    """Return battles that cover models evenly, chosen greedily one after the other.

    Each step takes, among the battles left, one whose rarer model has appeared least in the
    choice so far; the smallest tiebreak decides, then the position. A smaller sample is the
    beginning of a larger one, and a sample passed as ``chosen`` continues as if never left.

    `tiebreak` (n,) is such as of `tiebreak_keys`. `n_battles` is the size of the sample, with those
    `chosen` before, whose positions come first, in their order, and stay even if there are more.
    """
    models = _model_codes(model_a, model_b)
    n = models.shape[1]
    _, keys = alike(model_a=models[0], tiebreak=tiebreak)
    order, sample = np.argsort(keys, kind="stable"), _positions(chosen, n).tolist()
    require(0 <= n_battles <= n, "n_battles", n_battles, f"0 to {n}, the battles there are")
    # only the two models of a battle taken change: their count, and their best battle left
    n_models = int(models.max(initial=-1)) + 1
    ranked = models[:, order]  # everything below is by rank of the tiebreak
    taken = np.isin(order, sample)
    counts = np.bincount(models[:, sample].ravel(), minlength=n_models).tolist()
    queues = [  # ranks of each model's battles, the best one last
        np.flatnonzero((ranked == model).any(axis=0))[::-1].tolist() for model in range(n_models)
    ]
    urgency, changed = np.empty(n_models, dtype=np.int64), list(range(n_models))
    while len(sample) < n_battles:
        for model in changed:
            queue = queues[model]
            while queue and taken[queue[-1]]:
                queue.pop()
            best = queue[-1] + order.size * counts[model] if queue else np.iinfo(np.int64).max
            urgency[model] = best
        rank = queues[int(urgency.argmin())][-1]
        taken[rank], changed = True, ranked[:, rank].tolist()
        for model in changed:
            counts[model] += 1
        sample.append(int(order[rank]))
    return np.asarray(sample, dtype=np.int64)


def appearances(model_a: ArrayLike, model_b: ArrayLike, sampled: ArrayLike) -> dict[str, float]:
    """Return in how many battles at sampled positions (k,) models appear: least, median and most.

    The uniform values are expectations for a uniform sample of that size.
    """
    models = _model_codes(model_a, model_b)
    n = models.shape[1]
    require(n, "the number of battles", n, "at least one")
    rows = _positions(sampled, n)
    available = np.bincount(models.ravel())
    counts = np.bincount(models[:, rows].ravel(), minlength=available.size)
    parts = {"": counts, "uniform_": available * rows.size / n}
    of = {"minimum": 0.0, "median": 0.5, "maximum": 1.0}
    return {
        kind + name: float(np.quantile(part, level))
        for kind, part in parts.items()
        for name, level in of.items()
    }


def _model_codes(model_a: ArrayLike, model_b: ArrayLike) -> NDArray[np.intp]:
    first, second = alike(model_a=model_a, model_b=model_b)
    codes: dict[object, int] = {}
    both = [codes.setdefault(name, len(codes)) for name in (*first.tolist(), *second.tolist())]
    return np.asarray(both, dtype=np.intp).reshape(2, first.size)


def _positions(rows: ArrayLike, n: int) -> Ints:
    positions = np.asarray(rows).astype(np.int64)
    inside = (positions >= 0) & (positions < n)
    require(inside, "position", positions, f"one of the {n} battles, from 0")
    values, counts = np.unique(positions, return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"the battle at position {values[counts > 1][0]} is chosen twice")
    return positions


class NeededBattles(NamedTuple):
    """Battles that a new model needs with one judge, and the interval they give.

    `n_battles` is what to judge; `wanted` is what the half-width alone would take, before the
    limits, and infinite if no number is enough. The interval after n battles reaches
    `threshold` times ``sqrt(noise^2 / n + excess_sd^2)`` Elo points to either side.
    """

    n_battles: int
    wanted: float
    noise: float
    excess_sd: float
    threshold: float

    def half_width(self, n_battles: int) -> float:
        """Return how far the interval is expected to reach after some battles, in Elo points."""
        if not self.threshold:
            return 0.0
        return self.threshold * math.hypot(self.noise / math.sqrt(n_battles), self.excess_sd)


def needed_battles(
    std_error: ArrayLike,
    n_battles: ArrayLike,
    *,
    threshold: float,
    half_width: float,
    max_battles: int,
    excess_sd: float = 0.0,
) -> NeededBattles:
    """Return how many battles bring a new model's interval to a half-width.

    A standard error at fixed anchors shrinks with the square root of the number of battles, so
    that the median of ``std_error * sqrt(n_battles)`` over the models that were held out foretells
    that of a new one, if it is like them and meets opponents like theirs. What the judge is wrong
    by beyond it, `excess_sd`, no battle averages out.

    `std_error` (m,) is the error by chance of each held-out model's residual, in Elo points, after
    `n_battles` (m,); errors that are not finite and positive are left out. `threshold` is the
    conformal one in spreads, infinite where too few models calibrate; `half_width` and `excess_sd`
    are in Elo points. At least `judgeline.elo.FEW_BATTLES` battles are needed, since below that a
    standard error is a guess. Where nothing is known of the noise, the threshold is infinite or
    the judge is wrong by too much, no number is enough, and ``max_battles`` are taken.

    References
    ----------
    W. G. Cochran (1977), Sampling Techniques, section 4.6: the size of a sample from a target for
    the half-width and an earlier estimate of the spread.
    """
    errors, counts = alike_floats(std_error=std_error, n_battles=n_battles)
    require(threshold >= 0, "threshold", threshold, "0 or more spreads")
    require(0 < half_width < math.inf, "half_width", half_width, "positive, finite Elo points")
    require(max_battles >= 1, "max_battles", max_battles, "at least 1")
    known = np.isfinite(errors) & (errors > 0) & (counts > 0)
    noise = float(np.median(errors[known] * np.sqrt(counts[known]))) if known.any() else math.inf
    wanted = 0.0
    if threshold > 0:
        room = (half_width / threshold) ** 2 - excess_sd**2
        wanted = noise**2 / room if room > 0 else math.inf
    n = max_battles if math.isinf(wanted) else math.ceil(wanted)
    return NeededBattles(min(max(n, FEW_BATTLES), max_battles), wanted, noise, excess_sd, threshold)


def strength_bands(strength: ArrayLike) -> Ints:
    """Return the band of each anchor: equally many anchors in each, the weakest in band 0.

    Strength (m,) is in any unit that rises with it; of equals the earlier one counts as weaker.
    With fewer anchors than bands each has a band of its own.
    """
    values = np.asarray(strength, dtype=float)
    require(values.ndim == 1, "the shape of strength", values.shape, "(m,)")
    require(np.isfinite(values), "strength", values, "finite")
    place = np.empty(values.size, dtype=np.int64)
    place[np.argsort(values, kind="stable")] = np.arange(values.size)
    return place * min(N_BANDS, values.size) // max(values.size, 1)


def choose_battles(
    band: ArrayLike,
    language: ArrayLike,
    question: ArrayLike,
    opponent: ArrayLike,
    tiebreak: ArrayLike,
    *,
    share: ArrayLike,
    n_battles: int,
    most_per_question: float = math.inf,
    chosen: ArrayLike = (),
) -> Ints:
    """Return battles of one new model, spread over opponents and questions, chosen greedily.

    Each step takes a possible battle whose band of strength has been met least; among those, one
    on the question asked least, then in the language that is furthest behind its share, then
    against the opponent met least; the smallest tiebreak decides, then the position. A question
    that was asked ``most_per_question`` times is possible no more. Bands are met evenly, so that
    no part of the scale is placed by guesswork; within a band no question is asked again before
    every other was asked, since battles on one answer share what that answer happens to be worth;
    and languages in proportion as far as that goes. A smaller choice is the beginning of a larger
    one, and a choice passed as ``chosen`` continues as if never left.

    Columns (n,) are of each possible battle: groups of any kind that can be sorted, `tiebreak` such
    as of `tiebreak_keys`, and the `share` of the battle's language in the corpus, above 0.
    `n_battles` and `chosen` are as of `balanced_sample`; where there are no more battles, all of
    them are taken.

    References
    ----------
    M. L. Balinski and H. P. Young (1982), Fair Representation: the method of Webster gives the
    next seat to the least ``(2 * seats + 1) / share``; it never takes a seat back as the house
    grows.
    """
    by = {"band": band, "question": question, "language": language, "opponent": opponent}
    *groups, keys, shares = alike(**by, tiebreak=tiebreak, share=np.asarray(share, dtype=float))
    require(np.isfinite(shares) & (shares > 0), "share", shares, "a language's share, above 0")
    require(n_battles >= 0, "n_battles", n_battles, "0 or more")
    require(most_per_question >= 1, "most_per_question", most_per_question, "at least 1")
    taken = _positions(chosen, keys.size).tolist()
    levels, asked, spoken = np.arange(len(groups)), 1, 2
    codes = np.array([np.unique(values, return_inverse=True)[1] for values in groups])
    met = np.zeros((levels.size, codes.max(initial=-1) + 1), dtype=np.int64)
    for row in taken:
        met[levels, codes[:, row]] += 1
    free = ~np.isin(np.arange(keys.size), taken)
    order = np.argsort(keys, kind="stable")
    while len(taken) < n_battles:
        left = order[(free & (met[asked, codes[asked]] < most_per_question))[order]]
        if not left.size:
            break
        for level in levels.tolist():
            behind = met[level, codes[level, left]]
            if level == spoken:
                behind = (2 * behind + 1) / shares[left]
            left = left[behind == behind.min()]
        taken.append(int(left[0]))
        free[left[0]] = False
        met[levels, codes[:, left[0]]] += 1
    return np.asarray(taken, dtype=np.int64)

"""Are fresh residuals like those that calibrated the intervals? Rank tests, exact where small.

Conformal intervals promise their coverage if a new model is exchangeable with the models that
calibrate them. Once its votes arrive the assumption can be tested: among exchangeable scores every
order is equally likely, whatever they are distributed as, so a test of ranks needs no other one.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from judgeline.elo.rank_correlation import average_ranks

Floats = NDArray[np.float64]
Alternative = Literal["two-sided", "greater", "less"]

EXACT_WORK = 50_000_000
"""Additions up to which a null distribution is counted out instead of approximated."""


class RankTest(NamedTuple):
    """Fresh scores against a pool.

    `superiority` is the share of pairs in which the fresh score is the larger, ties counting
    half: one half where neither is larger. `p_value` is the chance of ranks as far out as these
    if all scores are exchangeable; `is_exact` says whether it was counted out.
    """

    superiority: float
    p_value: float
    is_exact: bool
    n_fresh: int
    n_pool: int


def rank_sum_test(
    fresh: ArrayLike, pool: ArrayLike, *, alternative: Alternative = "two-sided"
) -> RankTest:
    """Return how surprising the ranks of fresh scores are among those of a pool.

    Assumption: under the hypothesis all scores are exchangeable. Nothing else is assumed; with
    ties (mean ranks) the test stays exact, since it conditions on them.

    Parameters
    ----------
    fresh : array_like, shape (m,)
        Scores of models whose votes arrived after their prediction. Infinite ones rank last.
    pool : array_like, shape (n,)
        Scores of the models that calibrate, in the same unit.
    alternative : {"two-sided", "greater", "less"}
        Whether fresh scores are shifted either way, larger or smaller than the pool's.

    Returns
    -------
    RankTest
        Exact where counting takes at most `EXACT_WORK` additions; else by the normal
        approximation with corrections for ties and for continuity.

    Raises
    ------
    ValueError
        If there is no score on one side, one is NaN, or the alternative is unknown.

    References
    ----------
    F. Wilcoxon (1945), Biometrics Bulletin 1(6); H. B. Mann and D. R. Whitney (1947), Ann. Math.
    Statist. 18(1). Exact with ties: B. Streitberg and J. Roehmel (1986), Statistical Software
    Newsletter 12(1). For conformal residuals: A. K. Kuchibhotla (2020), arXiv:2005.06095.
    """
    new, old = _require_scores(fresh, "fresh"), _require_scores(pool, "pool")
    if alternative not in ("two-sided", "greater", "less"):
        raise ValueError(f"alternative must be two-sided, greater or less, got {alternative!r}")
    ranks = np.rint(2 * average_ranks(np.concatenate([new, old]))).astype(np.int64)  # no halves
    total = int(ranks[: new.size].sum())
    superiority = (total / 2 - new.size * (new.size + 1) / 2) / (new.size * old.size)
    p_value = _exact(ranks, new.size, total, alternative)
    is_exact = p_value is not None
    if p_value is None:
        p_value = _approximate(ranks, new.size, total, alternative)
    return RankTest(superiority, p_value, is_exact, new.size, old.size)


def _require_scores(scores: ArrayLike, name: str) -> Floats:
    values = np.asarray(scores, dtype=float)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"{name} must have shape (n,) with at least one score, got {values.shape}")
    if np.isnan(values).any():
        raise ValueError(f"{name} holds {int(np.isnan(values).sum())} NaN in {values.size}")
    return values


def _exact(
    ranks: NDArray[np.int64], n_fresh: int, total: int, alternative: Alternative
) -> float | None:
    """Count the choices of ranks that are as far out; None where that is too much work."""
    size, everything = ranks.size, int(ranks.sum())
    few = min(n_fresh, size - n_fresh)  # the sum of the others is what is left of everything
    largest = int(np.sort(ranks)[size - few :].sum())
    if size * few * largest > EXACT_WORK:
        return None
    ways = np.zeros((few + 1, largest + 1))  # ways[k, s]: choices of k ranks with sum s
    ways[0, 0] = 1.0
    for rank in ranks.tolist():
        ways[1:, rank:] += ways[:-1, : largest + 1 - rank].copy()
    chance = ways[few] / math.comb(size, few)
    sums = np.arange(largest + 1)
    if few != n_fresh:
        sums = everything - sums
    centre = n_fresh * (size + 1)  # of the doubled ranks
    far = {
        "two-sided": np.abs(sums - centre) >= abs(total - centre),
        "greater": sums >= total,
        "less": sums <= total,
    }[alternative]
    return min(float(chance[far].sum()), 1.0)


def _approximate(
    ranks: NDArray[np.int64], n_fresh: int, total: int, alternative: Alternative
) -> float:
    size = ranks.size
    _, tied = np.unique(ranks, return_counts=True)
    correction = float((tied.astype(float) ** 3 - tied).sum()) / (size * (size - 1))
    variance = n_fresh * (size - n_fresh) / 12 * (size + 1 - correction)
    if variance <= 0:
        return 1.0  # all scores are equal: no order to be surprised at
    gap = total / 2 - n_fresh * (size + 1) / 2
    away = {"two-sided": abs(gap), "greater": gap, "less": -gap}[alternative] - 0.5
    p_value = float(ndtr(-away / math.sqrt(variance)))
    return min(2 * p_value, 1.0) if alternative == "two-sided" else p_value


def conformal_p_values(fresh: ArrayLike, pool: ArrayLike) -> Floats:
    """Return each fresh score's p-value: how large a share of scores is at least as strange.

    If a score is exchangeable with the pool, its p-value is at most u with probability at most
    u. The p-values of several scores share the pool and so depend on each other: they are for
    reading one by one; `rank_sum_test` is for all together.

    Parameters
    ----------
    fresh : array_like, shape (m,)
        Nonconformity scores; larger is stranger.
    pool : array_like, shape (n,)
        Scores of the models that calibrate, in the same unit.

    Returns
    -------
    ndarray, shape (m,)
        ``(1 + #{pool >= fresh}) / (n + 1)``.

    Raises
    ------
    ValueError
        If there is no score on one side, or one is NaN.

    References
    ----------
    V. Vovk, A. Gammerman and G. Shafer (2005), Algorithmic Learning in a Random World; S. Bates
    et al. (2023), "Testing for outliers with conformal p-values", Ann. Statist. 51(1),
    arXiv:2104.08279, on their dependence.
    """
    new, old = _require_scores(fresh, "fresh"), _require_scores(pool, "pool")
    at_least = old.size - np.searchsorted(np.sort(old), new, side="left")
    return np.asarray((1 + at_least) / (old.size + 1))

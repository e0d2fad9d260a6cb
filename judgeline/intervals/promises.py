"""Stated intervals against later votes: coverage, ranks of errors, the zero of the scale."""

import math
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from judgeline.arrays import Floats, alike_floats, require
from judgeline.elo.ratings import average_ranks
from judgeline.intervals.conformal import COVERAGE_TAIL, coverage_limits

Alternative = Literal["two-sided", "greater", "less"]

EXACT_WORK = 50_000_000
"""Additions up to which a null distribution is counted out instead of approximated."""


class RunningCoverage(NamedTuple):
    """One row per promise: how many of the predictions that made it were kept.

    `nominal` is the chance that conformal intervals of `n_calibration` models hold: a little
    above ``1 - miscoverage``, since a rank is a whole number. `lower` and `upper` are the shares
    that chance allows to predictions from pools of their own (binomial), `shared_lower` and
    `shared_upper` to predictions that share one pool (beta-binomial, always wider).
    """

    miscoverage: Floats
    n_predictions: NDArray[np.int64]
    n_covered: NDArray[np.int64]
    coverage: Floats
    nominal: Floats
    lower: Floats
    upper: Floats
    shared_lower: Floats
    shared_upper: Floats


def running_coverage(
    covered: ArrayLike, miscoverage: ArrayLike, *, n_calibration: int
) -> RunningCoverage:
    """Return the coverage of predictions by promised miscoverage, with its limits by chance.

    Assumption: the models predicted are exchangeable with those that calibrated, and each
    counts once. Intervals that are the whole line promise nothing: leave them out.

    Parameters
    ----------
    covered : array_like of bool, shape (n,)
        Whether each prediction's interval held the human rating.
    miscoverage : array_like, shape (n,)
        What each tolerated, in (0, 1).
    n_calibration : int
        Models that calibrated them, at the least.

    Returns
    -------
    RunningCoverage
        Rows by miscoverage. Each limit is passed by chance in at most one count of 200.

    Raises
    ------
    ValueError
        If the lengths differ, a miscoverage is out of range or `n_calibration` is negative.

    References
    ----------
    C. J. Clopper and E. S. Pearson (1934), Biometrika 26(4), for exact binomial tails; V. Vovk
    (2012), "Conditional validity of inductive conformal predictors", arXiv:1209.2673, for
    predictions that share a pool.
    """
    from scipy.stats import binom

    held, promised = alike_floats(covered=covered, miscoverage=miscoverage)
    possible = (promised > 0) & (promised < 1)
    require(possible, "miscoverage", promised, "strictly between 0 and 1")
    require(n_calibration >= 0, "n_calibration", n_calibration, "0 or more")
    levels, of_level = np.unique(promised, return_inverse=True)
    count = np.bincount(of_level, minlength=levels.size)
    kept = np.bincount(of_level, held, levels.size).astype(np.int64)
    # the exact chance that an interval holds, 1 where too few models calibrate it
    nominal = 1 - np.floor((n_calibration + 1) * levels + 1e-9) / (n_calibration + 1)
    lower, upper = (
        binom.ppf(p, count, nominal) / count for p in (COVERAGE_TAIL, 1 - COVERAGE_TAIL)
    )
    shared = coverage_limits(np.full(levels.size, n_calibration), count, miscoverage=levels)
    return RunningCoverage(levels, count, kept, kept / count, nominal, lower, upper, *shared)


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
    """Return the rank-sum test of fresh nonconformity scores against those of a pool.

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
    known = get_args(Alternative)
    require(alternative in known, "alternative", alternative, " or ".join(known))
    ranks = np.rint(2 * average_ranks(np.concatenate([new, old]))).astype(np.int64)  # no halves
    total = int(ranks[: new.size].sum())
    superiority = (total / 2 - new.size * (new.size + 1) / 2) / (new.size * old.size)
    null = _null_distribution(ranks, new.size)
    if null is None:
        p_value = _approximate(ranks, new.size, total, alternative)
        return RankTest(superiority, p_value, False, new.size, old.size)
    sums, chance = null
    centre = new.size * (ranks.size + 1)  # of the doubled ranks
    far = {
        "two-sided": np.abs(sums - centre) >= abs(total - centre),
        "greater": sums >= total,
        "less": sums <= total,
    }[alternative]
    return RankTest(superiority, min(float(chance[far].sum()), 1.0), True, new.size, old.size)


def _require_scores(scores: ArrayLike, name: str) -> Floats:
    values = np.asarray(scores, dtype=float)
    fits = values.ndim == 1 and values.size > 0
    require(fits, f"the shape of {name}", values.shape, "(n,), of at least one score")
    require(~np.isnan(values), name, values, "a number")
    return values


def _null_distribution(
    ranks: NDArray[np.int64], n_fresh: int
) -> tuple[NDArray[np.int64], Floats] | None:
    """Return the possible sums of `n_fresh` ranks and their probabilities; None if too many."""
    size = ranks.size
    few = min(n_fresh, size - n_fresh)  # the sum of the others is what is left of everything
    largest = int(np.sort(ranks)[size - few :].sum())
    if size * few * largest > EXACT_WORK:
        return None
    ways = np.zeros((few + 1, largest + 1))  # ways[k, s]: choices of k ranks with sum s
    ways[0, 0] = 1.0
    for rank in ranks.tolist():
        ways[1:, rank:] += ways[:-1, : largest + 1 - rank].copy()
    sums = np.arange(largest + 1)
    return sums if few == n_fresh else ranks.sum() - sums, ways[few] / math.comb(size, few)


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
    """Return each fresh score's p-value, ``(1 + #{pool >= fresh}) / (n + 1)``, shape (m,).

    If a score is exchangeable with the pool, its p-value is at most u with probability at most u.
    The p-values of several scores share the pool and so depend on each other: read them one by one,
    and take `rank_sum_test` for all together. ValueError for an empty side or a NaN.

    References
    ----------
    V. Vovk, A. Gammerman and G. Shafer (2005), Algorithmic Learning in a Random World; S. Bates
    et al. (2023), "Testing for outliers with conformal p-values", Ann. Statist. 51(1),
    arXiv:2104.08279, on their dependence.
    """
    new, old = _require_scores(fresh, "fresh"), _require_scores(pool, "pool")
    at_least = old.size - np.searchsorted(np.sort(old), new, side="left")
    return np.asarray((1 + at_least) / (old.size + 1))


def origin_shift(then: ArrayLike, then_as_now: ArrayLike, now: ArrayLike) -> float:
    """Return how far the zero of a model's human rating moved as others got votes.

    A model that is held out is rated relative to the mean of its anchors. Its rating among the
    anchors of `then` is its rating among those of `now` plus this shift: the mean strength of the
    latter less that of the former. With strengths ``s`` of zero mean over n models, one that is
    held out is rated ``s_i - mean_(j != i) s_j = s_i n / (n - 1)``, which is turned round here.
    An anchor that is gone stands where it stood, relative to those that are left. Refits without
    a model move the others a little, which is left out.

    Parameters
    ----------
    then : array_like, shape (A,)
        Human ratings of the anchors then, when the model had no votes; Elo points.
    then_as_now : array_like, shape (A,)
        Those of the same anchors now, NaN for one that is gone.
    now : array_like, shape (B,)
        Human ratings of all anchors now, when the model has votes.

    Returns
    -------
    float
        In Elo points; zero up to rounding where the anchors are the same, NaN where none is left.

    Raises
    ------
    ValueError
        If the first two differ in length, or a rating of `then` or `now` is not finite.
    """
    old, same = alike_floats(then=then, then_as_now=then_as_now)
    new = np.asarray(now, dtype=float)
    for name, ratings in (("then", old), ("now", new)):
        require(np.isfinite(ratings), name, ratings, "a finite human rating; leave the anchor out")
    left = np.isfinite(same)
    if not left.any():
        return float("nan")
    before = old * (old.size - 1) / old.size
    factor = new.size / (new.size + 1)
    moved = (same[left] * factor - before[left]).mean()
    return float(new.mean() * factor - np.where(left, same * factor, before + moved).mean())

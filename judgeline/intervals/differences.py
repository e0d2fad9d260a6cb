"""Differences of two ratings: an interval, one of three answers, and the votes that would tell.

What belongs here: comparing two models of one board, and which models may be its best. What does
not: ranks of all models at once (`judgeline.intervals.board`).
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from judgeline.arrays import Bools, Floats, alike_floats, require
from judgeline.elo.anchors import ENOUGH_VOTES
from judgeline.intervals.board import BY_JUDGE
from judgeline.intervals.conformal import (
    conformal_quantile,
    nonconformity_scores,
    require_miscoverage,
)

Answer = Literal["a above", "b above", "cannot tell"]

LEAST_VOTED = 8
"""Models with votes below which two models without votes are not compared."""

_WIDEST = 4096.0  # Elo points: no margin that anybody states is that large
MOST_VOTES = 1_000_000
"""Votes beyond which no plan is made."""


class RatedModels(NamedTuple):
    """M models of a board, by the names of its columns; Elo points, NaN for what does not exist.

    `rating` with `lower`, `upper` and `std_error` is each model's best estimate, and `evidence`
    what that rests on; ``judge`` alone is a model without votes of its own. `judge_std_error` and
    `vote_std_error` (of one vote on each of `n_battles` judged battles) are the model's own parts
    of the judge's spread.
    """

    model: NDArray[np.str_]
    evidence: NDArray[np.str_]
    rating: Floats
    lower: Floats
    upper: Floats
    std_error: Floats
    judge_rating: Floats
    judge_std_error: Floats
    vote_std_error: Floats
    human_rating: Floats
    human_std_error: Floats
    n_battles: Floats
    n_votes: Floats

    @property
    def by_judge(self) -> Bools:
        """Return which models have no votes of their own."""
        return np.asarray(self.evidence == BY_JUDGE)

    @property
    def residual(self) -> Floats:
        """Return judge minus human ratings; NaN for models that do not calibrate."""
        return self.judge_rating - self.human_rating

    def spread(self, calibrates: Bools) -> Floats:
        """Return ``sqrt(judge_std_error^2 + vote_std_error^2 + excess_sd^2)``; NaN without.

        ``excess_sd^2`` is the mean of ``residual^2 - judge_std_error^2 - human_std_error^2`` of the
        calibrating models, and 0 where that is negative.
        """
        own = np.where(self.judge_std_error > 0, self.judge_std_error, math.nan)
        excess = self.residual**2 - self.judge_std_error**2 - self.human_std_error**2
        known = excess[calibrates & np.isfinite(excess)]
        common = max(float(known.mean()), 0.0) if known.size else 0.0
        return np.asarray(np.sqrt(own**2 + self.vote_std_error**2 + common))


@dataclass(frozen=True)
class Difference:
    """Rating of model a minus that of model b, Elo points, with its interval and answer.

    `threshold` is the half-width in units of the pair's spread where both ratings are the judge's,
    else NaN; `n_calibrating` models with votes made it. `votes_a` and `votes_b` more votes on the
    models would tell which is above, if the difference stays: 0 where that is told, infinite where
    no number below `MOST_VOTES` would. `calls` more judged battles on each would: infinite where
    none would, NaN where a model has votes. Where no such number is found or it is above `n_cast`,
    the votes of the whole board, `margin_then` is the least margin that as many more votes would
    tell, and `margin_now` that which the next look tells without; else both are NaN. `reason` says
    why there is no interval, and `note` adds a caveat about the two models. A model is above if it
    is by more than minus the `margin`.
    """

    model_a: str
    model_b: str
    difference: float
    lower: float
    upper: float
    answer: Answer
    evidence_a: str
    evidence_b: str
    threshold: float
    n_calibrating: int
    miscoverage: float
    votes_a: float = 0.0
    votes_b: float = 0.0
    reason: str = ""
    note: str = ""
    calls: float = math.nan
    margin: float = 0.0
    n_cast: float = 0.0
    margin_then: float = math.nan
    margin_now: float = math.nan

    def lines(self) -> list[str]:
        """Return the answer, its evidence and the votes still needed as sentences."""
        above = {
            "a above": f"{self.model_a} is above {self.model_b}",
            "b above": f"{self.model_b} is above {self.model_a}",
            "cannot tell": f"Cannot tell which of {self.model_a} and {self.model_b} is above",
        }[self.answer]
        by, low, high = self.difference, self.lower, self.upper
        if self.answer == "b above":  # how far the one that is above leads
            by, low, high = -by, -high, -low
        ends = f"{low:+.0f} to {high:+.0f}"
        ends = "the whole line" if self.reason else ends
        promised = f"{100 * (1 - self.miscoverage):g} % interval"
        rests = f"{self.model_a}: {self.evidence_a}; {self.model_b}: {self.evidence_b}."
        if math.isfinite(self.threshold):
            rests = (
                f"Both are rated by the judge alone; {self.n_calibrating} models with votes say "
                "how far two such ratings err together."
            )
        lines = [f"{above}: {by:+.0f} Elo ({promised}: {ends}).", rests]
        if self.reason:
            lines.append(f"{self.reason[0].upper()}{self.reason[1:]}.")
        lines += [self.votes_text()] * (self.answer == "cannot tell")
        return lines + [self.note] * bool(self.note)

    def votes_text(self) -> str:
        """Return how many votes on which model would tell, in a sentence."""
        wanted = (self.votes_a, self.model_a), (self.votes_b, self.model_b)
        if math.isinf(self.votes_a + self.votes_b):
            apart = f"{abs(self.difference + self.margin):.1f} Elo"
            apart += " from the margin" if self.margin else " apart"
            return (
                f"Votes will not tell: at {apart}, the two need more than {MOST_VOTES:,} further "
                "votes."
            )
        needed = [f"{_two_digits(votes):,} more votes on {name}" for votes, name in wanted if votes]
        return f"About {' and '.join(needed)} would tell, if the difference stays."


def compare_models(
    models: RatedModels,
    a: int,
    b: int,
    *,
    miscoverage: float = 0.1,
    margin: float = 0.0,
    widening: float = 1.0,
    later: float | None = None,
) -> Difference:
    """Return the difference of two models' ratings with an interval that holds the true one.

    Two ratings by the judge alone: see `difference_by_judge`. Else the interval joins those of the
    two ratings (`joined_interval`), which are calibrated already.

    Parameters
    ----------
    models : RatedModels
        All models of the board; those with a residual calibrate.
    a, b : int
        Rows of the two models.
    miscoverage : float
        Tolerated probability that the interval misses, in (0, 1).
    margin : float
        Elo points by which a may be below b and still count as above.
    widening : float
        Factor on the interval's two parts, for another error (`judgeline.intervals.looks`).
    later : float, optional
        Factor at the next look, at which more votes, calls or another margin tell; the same.

    Returns
    -------
    Difference
        The whole line, with `reason`, where too few models calibrate.

    Raises
    ------
    ValueError
        If both are one model, one has no rating, or `miscoverage` is out of range.

    References
    ----------
    G. Y. Zou and A. Donner (2008), "Construction of confidence limits about effect measures: A
    general approach", Statistics in Medicine 27(10), for the joined intervals.
    """
    require_miscoverage(miscoverage)
    names = str(models.model[a]), str(models.model[b])
    require(a != b, "the second model", names[1], "another model than the first")
    for row, name in zip((a, b), names, strict=True):
        if not math.isfinite(models.rating[row]):
            raise ValueError(
                f"model {name!r} has no rating to compare; its flags on the leaderboard say why"
            )
    difference = float(models.rating[a] - models.rating[b])
    lower, upper, threshold, n_calibrating, reason = _bounds(models, a, b, miscoverage)
    difference_below = difference - lower
    if widening != 1:
        lower, upper = (difference + widening * (end - difference) for end in (lower, upper))
    answer: Answer = (
        "a above" if lower > -margin else "b above" if upper < -margin else "cannot tell"
    )
    further: dict[str, Any] = {}
    if answer == "cannot tell":
        later = widening if later is None else later
        options = {"miscoverage": miscoverage, "margin": margin, "widening": later}
        further = _what_tells(models, a, b, later * difference_below, threshold, options)
    evidence = str(models.evidence[a]), str(models.evidence[b])
    return Difference(
        *names, difference, lower, upper, answer, *evidence, threshold, n_calibrating, miscoverage,
        reason=reason, margin=margin, **further,
    )  # fmt: skip


def _what_tells(
    models: RatedModels, a: int, b: int, below: float, threshold: float, options: dict[str, float]
) -> dict[str, float]:
    """Return the votes, calls and margins that would tell, by their names in `Difference`.

    `below` is how far the next look's interval reaches below the difference.
    """
    difference, margin = float(models.rating[a] - models.rating[b]), options["margin"]
    votes = votes_that_tell(models, a, b, **options)
    reach = abs(difference + margin) / options["widening"] / threshold
    n_cast = float(models.n_votes.sum()) / 2
    told = {"votes_a": votes[0], "votes_b": votes[1], "n_cast": n_cast,
            "calls": calls_that_tell(models, a, b, reach=reach)}  # fmt: skip
    if sum(votes) <= n_cast:
        return told
    now = math.floor(below - difference) + 1.0 if math.isfinite(below) else math.inf
    low = float(math.floor(max(margin, -difference)))
    high = min(now, low + _WIDEST)

    def is_told(at: float) -> bool:
        """Return whether as many more votes as were cast tell a margin (Elo points)."""
        return sum(votes_that_tell(models, a, b, **{**options, "margin": at})) <= n_cast

    then = high if high == now or is_told(high) else math.nan
    while then - low > 1:  # votes tell more of a larger margin
        middle = float((low + then) // 2)
        low, then = (low, middle) if is_told(middle) else (middle, then)
    return {**told, "margin_then": then, "margin_now": now}


class _Bounds(NamedTuple):
    """Ends of a difference, Elo points; threshold and models behind it, and why it has no ends."""

    lower: float
    upper: float
    threshold: float = math.nan
    n_calibrating: int = 0
    reason: str = ""


def _bounds(models: RatedModels, a: int, b: int, miscoverage: float) -> _Bounds:
    if models.by_judge[a] and models.by_judge[b]:
        found, reason = difference_by_judge(models, a, b, miscoverage=miscoverage), ""
        if found.n_calibrating < LEAST_VOTED:
            reason = (
                f"neither model has votes of its own, and {found.n_calibrating} models with votes "
                f"are too few to say how far the judge errs on a pair, which takes {LEAST_VOTED}: "
                "have people vote on more models"
            )
        elif math.isinf(found.upper):
            reason = (
                f"{found.n_calibrating} models with votes have too few pairs for "
                f"{100 * (1 - miscoverage):g} % coverage, or the judge's spread is unknown: raise "
                "the miscoverage or have people vote on more models"
            )
        return _Bounds(*found, reason)
    endless = [row for row in (a, b) if not math.isfinite(models.upper[row] - models.lower[row])]
    whose = " and ".join(str(models.model[row]) for row in endless)
    reason = f"the interval of {whose} is the whole line: have people vote on it"
    return _Bounds(*joined_interval(models, a, b), reason=reason * bool(endless))


class JudgeInterval(NamedTuple):
    """Ends of a difference by the judge, Elo points; its threshold, and from how many models."""

    lower: float
    upper: float
    threshold: float
    n_calibrating: int


def difference_by_judge(
    models: RatedModels, a: int, b: int, *, miscoverage: float = 0.1
) -> JudgeInterval:
    """Return the interval of the difference of two judge ratings, as if neither had votes.

    Assumption: the two models are exchangeable with the models that have votes. Half-width:
    `pair_threshold` times ``sqrt(S_a^2 + S_b^2)``, S the `spread`, both from the voted models other
    than the two. It is the whole line below `LEAST_VOTED` such models.
    """
    calibrates = np.isfinite(models.residual)
    calibrates[[a, b]] = False
    spread = models.spread(calibrates)
    n = int(calibrates.sum())
    threshold = math.inf
    if n >= LEAST_VOTED:
        columns = models.residual[calibrates], spread[calibrates]
        threshold = pair_threshold(*columns, miscoverage=miscoverage)
    half = threshold * float(np.hypot(spread[a], spread[b]))
    half = half if math.isfinite(half) else math.inf
    difference = float(models.judge_rating[a] - models.judge_rating[b])
    return JudgeInterval(difference - half, difference + half, threshold, n)


def pair_threshold(residual: ArrayLike, spread: ArrayLike, *, miscoverage: float) -> float:
    """Return how many spreads the error of a difference between two fresh models stays below.

    Scores are ``|e_k - e_l| / sqrt(S_k^2 + S_l^2)`` of all pairs of n models. The threshold is
    their conformal quantile, or the two-sided quantile of Student's t with n - 1 degrees of
    freedom, whichever is larger: pairs share models, and few models tell little.

    Parameters
    ----------
    residual : array_like, shape (n,)
        Judge rating minus human rating, Elo points.
    spread : array_like, shape (n,)
        Spread of each residual, Elo points; a model without one is infinitely strange.
    miscoverage : float
        Tolerated probability of a miss, in (0, 1).

    Returns
    -------
    float
        Threshold without unit; ``inf`` below two models, or where pairs are too few.

    Raises
    ------
    ValueError
        If the columns differ in shape, a residual is not finite, or `miscoverage` is out of range.

    References
    ----------
    J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman (2018), arXiv:1604.04173, for
    the quantile; departs in that pairs are not independent.
    """
    require_miscoverage(miscoverage)
    error, own = alike_floats(residual=residual, spread=spread)
    if error.size < 2:
        return math.inf
    k, other = np.triu_indices(error.size, 1)
    scores = nonconformity_scores(error[k] - error[other], np.hypot(own[k], own[other]))
    by_rank = conformal_quantile(scores, miscoverage=miscoverage)
    return max(by_rank, float(stdtrit(error.size - 1, 1 - miscoverage / 2)))


def joined_interval(models: RatedModels, a: int, b: int) -> tuple[float, float]:
    """Return the interval of a difference from those of its two ratings, Elo points.

    The lower end is ``d - sqrt((rating_a - lower_a)^2 + (upper_b - rating_b)^2)``, the upper one
    mirrored: half-widths add as standard deviations do. Assumption: independent errors. Source:
    Zou and Donner (2008), as of `compare_models`.
    """
    difference = models.rating[a] - models.rating[b]
    below, above = models.rating - models.lower, models.upper - models.rating
    lower = difference - np.hypot(below[a], above[b])
    return float(lower), float(difference + np.hypot(above[a], below[b]))


def calls_that_tell(models: RatedModels, a: int, b: int, *, reach: float) -> float:
    """Return the further judged battles of each model that bring the pair's spread below `reach`.

    Calls lower `judge_std_error` alone, as the inverse root of the battles judged. NaN for a reach
    that is NaN or zero, infinite where what remains is wider than the reach.
    """
    pair, known = [a, b], np.isfinite(models.residual)
    known[pair] = False
    judge = float(np.square(models.judge_std_error[pair]).sum())
    left = reach**2 - float(np.square(models.spread(known)[pair]).sum()) + judge
    if math.isnan(left) or not reach:
        return math.nan
    more = float(models.n_battles[pair].max()) * (judge / left - 1) if left > 0 else math.inf
    return float(math.ceil(max(more, 1))) if more <= MOST_VOTES else math.inf


def votes_that_tell(
    models: RatedModels,
    a: int,
    b: int,
    *,
    miscoverage: float = 0.1,
    margin: float = 0.0,
    widening: float = 1.0,
) -> tuple[float, float]:
    """Return the fewest further votes on two models that bring the half-width below ``|d|``.

    d is the difference plus `margin`, and half-widths are `widening` times the models'. N votes on
    a model turn its half-width h into ``z / sqrt((z / h)^2 + N / w)``. z is the half-
    width of models with votes in their standard errors, and ``w = n_battles vote_std_error^2`` the
    variance of a rating by a single vote. The division over both models minimises ``N_a + N_b``
    (J. Neyman (1934), J. R. Stat. Soc. 97(4)).

    Assumption: the difference stays, votes are on battles like those that there are, and half-
    widths stay as many standard errors as they are.

    Returns
    -------
    tuple of float
        Whole numbers; both infinite where more than `MOST_VOTES` are needed. A model whose interval
        is the whole line gets `ENOUGH_VOTES` in all at least.
    """
    rows = np.array([a, b])
    square = float(models.rating[a] - models.rating[b] + margin) ** 2
    half = widening * (models.upper - models.lower) / 2
    reach = _reach(models, half, miscoverage)[rows]
    vote = (models.n_battles * models.vote_std_error**2)[rows]
    if not np.isfinite(vote).all():  # no judged battle says what a vote on these models is worth
        return math.inf, math.inf
    half, before = half[rows], np.where(models.by_judge, 0.0, models.n_votes)[rows]
    bounded = np.isfinite(half)
    precision = np.where(bounded, (reach / half) ** 2, before / vote)
    least = np.where(bounded, 1.0, np.maximum(ENOUGH_VOTES - before, 1))
    plans = []
    for one, other in ((0, 1), (1, 0)):  # votes on one model alone
        left = square - half[other] ** 2
        if left > 0:
            needed = vote[one] * (reach[one] ** 2 / left - precision[one])
            plans.append(np.where(np.arange(2) == one, needed, -math.inf))
    if square > 0:
        weight = reach * np.sqrt(vote)
        plans.append(weight * weight.sum() / square - vote * precision)
    whole = [np.where(p > -math.inf, np.maximum(np.floor(p) + 1, least), 0.0) for p in plans]
    within = [plan for plan in whole if plan.sum() <= MOST_VOTES]  # no plan holds NaN
    if not within:
        return math.inf, math.inf
    # of plans with as many votes, the one for the wider interval
    best = min(within, key=lambda plan: (plan.sum(), -half[plan > 0].max()))
    return float(best[0]), float(best[1])


def _reach(models: RatedModels, half: Floats, miscoverage: float) -> Floats:
    """Return the half-widths of models with votes in standard errors; of others their median."""
    reach = np.where(models.by_judge, math.nan, half / models.std_error)
    known = reach[np.isfinite(reach)]
    usual = float(np.median(known)) if known.size else float(ndtri(1 - miscoverage / 2))
    return np.where(np.isfinite(reach), reach, usual)


def may_be_best(best_rank: ArrayLike) -> Bools:
    """Return which models may be the best: those whose best rank is 1 (M,).

    Ranks are of all models at once, so that the set holds the best model at their promise
    (`judgeline.intervals.board.rank_intervals`); a model without a rank is not in it.
    """
    return np.asarray(np.asarray(best_rank, dtype=float) == 1)


def _two_digits(votes: float) -> int:
    """Return a number of votes rounded up to two digits."""
    unit = int(10 ** max(math.floor(math.log10(votes)) - 1, 0))
    return math.ceil(votes / unit) * unit

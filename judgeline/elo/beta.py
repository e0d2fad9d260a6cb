"""The slope of a judge, from score difference to the log-odds of a vote, for every fold."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.arrays import Bools, Floats, Ints, alike_floats, require
from judgeline.elo.approximation import FEW, Derivatives, derivatives_near, sums_without
from judgeline.elo.battle_counts import Sums
from judgeline.elo.battles import CodedBattles

CONSTANT = "constant-scores"
"""Status of folds of a judge whose scores tell nothing of the models: they never differ."""
REVERSED, UNCERTAIN = "contradicts-humans", "votes-cannot-tell"
"""Status of folds whose slope is not positive: by two standard errors below 0, or by less."""
_STD_ERRORS = 2
_ALL_AGAINST = 6  # a coin gives so many votes, all against the scores, with .016; 2 errors are .023
_MAX_ITERATIONS = 200
_TOLERANCE = 1e-13  # of beta, or of ten standard errors where beta is lost in them
_TINY = np.finfo(float).tiny
_LARGEST = 1e60  # beta
_LEVEL = 1e-12  # of the likelihood's slope at zero, relative to its largest possible value


class BetaFit(NamedTuple):
    """A judge's slope in logits per rubric point, or the reason why it has none.

    `status` is ``ok``; `REVERSED` (the likelihood is highest two standard errors below zero or
    lower, or all of six votes or more are against the scores); `UNCERTAIN` (it is highest at zero
    or nearer below: people may agree with the judge); ``separable`` (scores predict every vote,
    the slope has no upper end); ``no-decisive-votes`` (no decisive vote on a battle with unequal
    scores). `beta` and `std_error` are NaN unless it is ``ok``. `slope` and `slope_std_error`
    are of either sign, for sentences alone: no rating is made of them. A slope without an end is
    infinite, with a NaN error, and NaN if there is no decisive vote.
    """

    beta: float
    std_error: float
    n_battles: int
    status: str
    slope: float
    slope_std_error: float

    @property
    def votes_that_tell(self) -> int:
        """Decisive votes that would put a slope such as this two standard errors from 0.

        ``n (2 std_error / slope)^2``, since errors fall with the root of n; 0 without a slope, or
        for a slope of 0, which no number of votes tells from 0.
        """
        if np.isinf(self.slope):
            return _ALL_AGAINST
        if not abs(self.slope) > 0:
            return 0
        return math.ceil(self.n_battles * (_STD_ERRORS * self.slope_std_error / self.slope) ** 2)


class BetaFolds(NamedTuple):
    """One row per held-out model: the slope fitted on all other models' decisive votes.

    `status` as of `BetaFit`, or `CONSTANT` where all battles have one score difference.
    """

    held_out_model: NDArray[np.str_]
    beta: Floats
    std_error: Floats
    n_battles: Ints
    status: NDArray[np.str_]


def fit_beta(
    score_difference: ArrayLike, human_outcome: ArrayLike, count: ArrayLike | None = None
) -> BetaFit:
    """Return the maximum-likelihood slope of human outcomes on score differences.

    Maximises ``sum log sigmoid(beta * s * (2 y - 1))`` over battles with a decisive vote. The
    standard error is that of the inverse Fisher information.

    Scores (n,) are of A minus B in rubric points, outcomes (n,) A's share of the human win: ties
    (0.5) and missing votes (NaN) are left out. `count` (n,) says how many battles are in each row,
    one by default. ValueError if a vote is none of 1, 0.5, 0 and NaN, or a score of a decisive
    battle is not finite.
    """
    score, outcome = alike_floats(score_difference=score_difference, human_outcome=human_outcome)
    decisive = (outcome == 0) | (outcome == 1)
    known = decisive | (outcome == 0.5) | np.isnan(outcome)
    require(known, "human_outcome", outcome, "1, 0.5, 0 or NaN")
    finite = np.isfinite(score) | ~decisive
    require(finite, "score_difference", score, "a finite score of a decisive battle")
    weight = None if count is None else np.asarray(count)[decisive]
    margin, place = np.unique(score[decisive] * (2 * outcome[decisive] - 1), return_inverse=True)
    return _fit_margins(margin, np.bincount(place, weight, margin.size).astype(np.int64))


def _fit_margins(margin: Floats, n_alike: Ints) -> BetaFit:
    """Return the slope of decisive votes; a positive margin agrees with its vote."""
    total = margin * n_alike
    share = np.array([total.sum() / max(np.abs(total).sum(), _TINY)])
    agree, against = (np.array([n_alike[side].sum()]) for side in (margin > 0, margin < 0))
    turn = _turns(share)

    def derivatives(size: Floats) -> tuple[Floats, Floats]:
        """Return slope and information of the log-likelihood at sizes of beta."""
        miss = expit(-size[0] * turn * margin)
        bent = miss * (1 - miss)
        return turn * (margin @ (n_alike * miss)), np.array([margin**2 @ (n_alike * bent)])

    slope, error = _slopes(derivatives, agree, against, share)
    [status], n_battles = _statuses(agree, against, slope, error), int(n_alike.sum())
    usable = (float(slope[0]), float(error[0])) if status == "ok" else (np.nan, np.nan)
    return BetaFit(*usable, n_battles, str(status), float(slope[0]), float(error[0]))


def fit_beta_folds(battles: CodedBattles) -> BetaFolds:
    """Return the slope of every leave-one-model-out fold, in the order of ``battles.models``.

    A fold is fitted on the decisive votes on battles without its model, so that a model without
    votes gets the slope of all votes. RuntimeError if an iteration does not converge.

    References
    ----------
    Kargi and Salinas (2026), arXiv:2606.13221, Algorithm 1.
    """
    on_grid = battles.denominator > 0
    folds = _folds_on_grid(Sums.of(battles)) if on_grid else _folds_of_continuous(battles)
    scores = battles.score_difference
    constant = (scores == scores[:1]).all() & (folds.n_battles > 0)
    return folds._replace(
        beta=np.where(constant, np.nan, folds.beta),
        std_error=np.where(constant, np.nan, folds.std_error),
        status=np.where(constant, CONSTANT, folds.status),
    )


def _turns(slope_at_zero: Floats) -> Floats:
    """Return -1 where the likelihood rises towards slopes below zero (F,), else 1."""
    return np.where(slope_at_zero < -_LEVEL, -1.0, 1.0)


def _slopes(
    derivatives: Derivatives, n_agree: Ints, n_against: Ints, slope_at_zero: Floats
) -> tuple[Floats, Floats]:
    """Return each fold's slope of either sign and its error, from the `derivatives` of its size.

    `slope_at_zero` is relative to its largest possible value; as far as `_turns` says so, the
    derivatives are of the turned likelihood.
    """
    size, std_error = _solve(derivatives, (n_agree > 0) & (n_against > 0))
    size[(np.abs(slope_at_zero) <= _LEVEL) & (n_agree > 0)] = 0.0
    size[(n_agree > 0) ^ (n_against > 0)] = np.inf
    return _turns(slope_at_zero) * size, std_error


def _statuses(n_agree: Ints, n_against: Ints, slope: Floats, std_error: Floats) -> NDArray[np.str_]:
    """Return each fold's status (F,)."""
    below = np.where(n_agree > 0, slope <= -_STD_ERRORS * std_error, n_against >= _ALL_AGAINST)
    return np.select(
        [n_agree + n_against == 0, n_against == 0, slope > 0, below],
        ["no-decisive-votes", "separable", "ok", REVERSED],
        default=UNCERTAIN,
    )


def _solve(
    derivatives: Derivatives, fit: Bools, low: float = 0.0, high: float | None = None
) -> tuple[Floats, Floats]:
    """Return the root of the likelihood's slope, and its error, in every fold to fit."""
    beta, std_error = np.full(fit.size, np.nan), np.full(fit.size, np.nan)
    if not fit.any():
        return beta, std_error
    highs = np.full(fit.size, 0.25 if high is None else high)
    while high is None and (below := fit & (derivatives(highs)[0] > 0)).any():
        highs[below] *= 2
        if highs.max() > _LARGEST:
            raise RuntimeError(
                f"beta has no upper bound below {_LARGEST:.0e} logits per rubric point: "
                "score_difference is nearly 0 everywhere; give scores in rubric points"
            )
    with np.errstate(over="ignore", divide="ignore"):  # steps end in the bracket
        roots = _newton(derivatives, fit, np.full(fit.size, low), highs)
        beta[fit], std_error[fit] = roots[fit], 1 / np.sqrt(derivatives(roots)[1][fit])
    return beta, std_error


def _newton(derivatives: Derivatives, fit: Bools, low: Floats, high: Floats) -> Floats:
    """Return the roots of all folds by Newton steps inside a shrinking bracket."""
    beta, moving = (low + high) / 2, fit.copy()
    for _ in range(_MAX_ITERATIONS):
        slope, information = derivatives(beta)
        low, high = np.where(slope > 0, beta, low), np.where(slope > 0, high, beta)
        proposed = beta + slope / np.maximum(information, _TINY)
        inside = (proposed >= low) & (proposed <= high)
        following = np.where(inside, proposed, (low + high) / 2)
        spread = 1 / np.sqrt(np.maximum(information, _TINY))
        settled = np.abs(following - beta) <= _TOLERANCE * np.maximum(np.abs(beta), 10 * spread)
        beta = np.where(moving, following, beta)
        moving &= ~settled
        if not moving.any():
            return beta
    raise RuntimeError(
        f"beta of {int(moving.sum())} folds did not converge after {_MAX_ITERATIONS} "
        "iterations; check the score differences for extreme values"
    )


def _folds_on_grid(sums: Sums) -> BetaFolds:
    """Fit all folds on counts of the margin ``s * (2 y - 1)``, the same whichever model is A."""
    counts, differences = sums.scores, sums.differences
    reach = differences.size // 2
    margins = counts[:, :, 2] + counts[:, ::-1, 0]
    folds = margins.sum(axis=0) // 2 - margins  # every battle stands in two models' rows
    agree, against = folds[:, reach + 1 :], folds[:, :reach][:, ::-1]
    step, both = differences[reach + 1 :], (agree + against).astype(float)
    share = (agree - against) @ step / np.maximum(both @ step, _TINY)
    turn = _turns(share)
    first = np.where(turn[:, None] > 0, agree, against)

    def derivatives(size: Floats) -> tuple[Floats, Floats]:
        """Return slope and information of the log-likelihood at sizes of beta."""
        hit = expit(size[:, None] * step)
        return (first - both * hit) @ step, (both * hit * (1 - hit)) @ step**2

    sides = agree.sum(axis=1), against.sum(axis=1)
    slope, error = _slopes(derivatives, *sides, share)
    status = _statuses(*sides, slope, error)
    beta, std_error = (np.where(status == "ok", part, np.nan) for part in (slope, error))
    return BetaFolds(sums.names, beta, std_error, folds.sum(axis=1), status)


def _folds_of_continuous(battles: CodedBattles) -> BetaFolds:
    """Fit all folds together if there are many votes and slopes lie close, else each by itself."""
    decided = battles.take((battles.human_outcome == 0) | (battles.human_outcome == 2))
    margin: Floats = decided.rubric_points() * (decided.human_outcome.astype(float) - 1)
    n_alike = np.ones(len(decided), dtype=np.int64) if decided.count is None else decided.count
    names = np.array(decided.models)
    if len(decided) * names.size > FEW:
        together = _by_interpolation(decided, margin, _fit_margins(margin, n_alike))
        if together is not None:
            return BetaFolds(names, *together)
    fits = []
    for code in range(names.size):
        kept = (decided.model_a != code) & (decided.model_b != code)
        fits.append(_fit_margins(margin[kept], n_alike[kept])[:4])
    return BetaFolds(names, *map(np.array, zip(*fits, strict=True)))


def _by_interpolation(
    decided: CodedBattles, margin: Floats, pooled: BetaFit
) -> tuple[Floats, Floats, Ints, NDArray[np.str_]] | None:
    """Fit all folds around the pooled slope; None where one has none or lies too far from it."""
    terms = margin > 0, margin < 0, np.ones(margin.size), margin, np.abs(margin)
    at_zero = (
        sums_without(decided, term.astype(float), lambda _, part: part, np.zeros(1))
        for term in terms
    )
    *counts, total, largest = (sums[:, 0] for sums in at_zero)
    n_agree, n_against, n_battles = (np.rint(sums).astype(np.int64) for sums in counts)
    rises = total > _LEVEL * np.maximum(largest, _TINY)
    if pooled.status != "ok" or not (rises & (n_agree > 0) & (n_against > 0)).all():
        return None
    if (near := derivatives_near(decided, margin, pooled.beta)) is None:
        return None
    beta, std_error = _solve(near[0], rises, *near[1:])
    return beta, std_error, n_battles, np.full(rises.size, "ok")

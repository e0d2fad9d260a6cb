"""Bradley-Terry strengths by Newton, placings of one model among fixed anchors, the Elo scale.

The gradient needs only how often each pair met and how much each model won in total, so any
kind of target - votes, hard outcomes, soft outcomes, smoothed ones - is the same fit.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.special import expit

from judgeline.arrays import Floats, require

ELO_PER_LOGIT = 400 / math.log(10)
"""Elo points per natural logit: 400 points are odds of ten to one."""
ELO_ORIGIN = 1500.0
"""Rating of a model of strength zero, in Elo points."""
_GRADIENT_TOLERANCE = 1e-8  # wins, of a finished fit
_STEP_TOLERANCE = 1e-10  # logits, of its last step
_MAX_ITERATIONS = 100
_MAX_STEP = 4.0  # logits; a longer Newton step leaves the region where the quadratic holds
_PLACING_STEPS = 200
_PLACING_TOLERANCE = 1e-12  # logits
_SHARE_ROUNDING = 2.0**-29  # of a battle's squared outcome: see `exact_share`
_FAR = 200.0  # logits beyond every anchor: no finite placement, and no overflow of odds


def strength_to_rating(strength: ArrayLike) -> Floats:
    """Return ratings in Elo points, ``1500 + (400 / ln 10) * strength``, of strengths in logits."""
    return ELO_ORIGIN + ELO_PER_LOGIT * np.asarray(strength, dtype=float)


def rating_to_strength(rating: ArrayLike) -> Floats:
    """Return strengths in logits of ratings in Elo points: the inverse of `strength_to_rating`."""
    return (np.asarray(rating, dtype=float) - ELO_ORIGIN) / ELO_PER_LOGIT


def fit_strengths(
    n_battles: ArrayLike, wins: ArrayLike, *, l2: float = 0.01, start: ArrayLike | None = None
) -> Floats:
    """Return strengths (M,) of mean zero, in logits, by penalised Bradley-Terry likelihood.

    Maximises ``sum_battles [y log p + (1 - y) log(1 - p)] - l2 * |strength|^2`` with
    ``p = sigmoid(strength_a - strength_b)`` and ``y`` in [0, 1] (a tie is one half).

    `n_battles` (M, M) says how often two models met, symmetric with a diagonal of zeros; `wins`
    (M,) each model's share of the win summed over its battles. Without a penalty strengths exist
    only if no group of models beat all others throughout: RuntimeError if they do not exist.
    `start` (M,) are strengths to begin with, zeros by default.

    References
    ----------
    R. A. Bradley and M. E. Terry (1952), Biometrika 39; W.-L. Chiang et al. (2024), "Chatbot
    Arena", arXiv:2403.04132.
    """
    counts, won = np.asarray(n_battles, dtype=float), np.asarray(wins, dtype=float)
    _require_totals(counts, won, l2)
    strengths = np.zeros(won.size) if start is None else np.array(start, dtype=float)
    strengths -= strengths.mean()
    for _ in range(_MAX_ITERATIONS):
        gradient, step, information = _newton_step(counts, won, l2, strengths)
        if gradient <= _GRADIENT_TOLERANCE and np.abs(step).max() <= _STEP_TOLERANCE:
            if l2 == 0 and np.linalg.eigvalsh(curvature(information, 0))[0] <= _GRADIENT_TOLERANCE:
                raise _undetermined(l2)
            return strengths
        strengths = _ascended(counts, won, l2, strengths, step)
        strengths -= strengths.mean()
    gradient, step, _ = _newton_step(counts, won, l2, strengths)
    rounding = np.finfo(float).eps * max(float(counts.sum(axis=1).max()), 1.0)
    if gradient <= max(_GRADIENT_TOLERANCE, 8 * rounding) and np.abs(step).max() < 1e-8:
        return strengths  # only rounding keeps it from a smaller step
    raise _undetermined(l2, f" after {_MAX_ITERATIONS} iterations, at a gradient of {gradient:.1e}")


def _undetermined(l2: float, when: str = "") -> RuntimeError:
    return RuntimeError(
        f"strengths are not determined{when}: some models win or lose every battle against the "
        f"rest, or share none with them, and l2 = {l2:g} does not hold them; use a larger penalty "
        "or add battles that connect them"
    )


def _require_totals(counts: Floats, won: Floats, l2: float) -> None:
    shape = (won.size, won.size)
    require(counts.shape == shape, "the shape of n_battles", counts.shape, f"{shape}, as of wins")
    require(l2 >= 0, "l2", l2, "0 or more")
    require(np.isfinite(counts) & (counts >= 0), "n_battles", counts, "a finite number, 0 or more")
    require(counts == counts.T, "n_battles", counts, "as many of i with j as of j with i")
    diagonal = np.diagonal(counts)
    require(diagonal == 0, "the diagonal of n_battles", diagonal, "0: no model meets itself")
    met = counts.sum(axis=1)
    slack = 1e-9 * np.maximum(met, 1.0)
    possible = (won >= -slack) & (won <= met + slack)
    require(possible, "wins", won, "between 0 and the model's battles")
    total = counts.sum() / 2
    adds_up = abs(won.sum() - total) <= 1e-9 * (1 + total)
    require(adds_up, "the sum of wins", float(won.sum()), f"the {total:g} battles")


def curvature(information: Floats, l2: float) -> Floats:
    """Return the negative Hessian of the log-likelihood with the origin held."""
    diagonal = information.sum(axis=1)
    stiffness = max(float(diagonal.mean()), 2 * l2) / information.shape[0]
    hessian: Floats = stiffness - information
    np.fill_diagonal(hessian, hessian.diagonal() + (diagonal + 2 * l2))
    return hessian


def solver(hessian: Floats) -> Callable[[Floats], Floats]:
    """Return the function that solves equations with a positive definite matrix, factored once."""
    # LAPACK is called directly: the checks around it take longer than these small matrices
    factor, failed = dpotrf(hessian, lower=0, clean=0)
    if failed:
        raise np.linalg.LinAlgError(f"minor {failed} of the curvature is not positive definite")
    return lambda right: np.asarray(dpotrs(factor, right, lower=0)[0])


def _newton_step(
    counts: Floats, won: Floats, l2: float, strengths: Floats
) -> tuple[float, Floats, Floats]:
    """Return the largest gradient, the Newton step (M,) and the pairs' information (M, M)."""
    chance = expit(strengths[:, None] - strengths)
    expected = counts * chance
    gradient = won - expected.sum(axis=1) - 2 * l2 * strengths
    gradient, information = gradient - gradient.mean(), expected * (1 - chance)
    try:
        step = solver(curvature(information, l2))(gradient)
    except np.linalg.LinAlgError as error:
        raise _undetermined(l2) from error
    return float(np.abs(gradient).max()), step - step.mean(), information


def _ascended(counts: Floats, won: Floats, l2: float, strengths: Floats, step: Floats) -> Floats:
    """Take the Newton step, shortened until the likelihood does not fall.

    It rises anyway where no gap moves by more than 1.79 logits: F. Bach (2010), Electronic
    Journal of Statistics 4, on the self-concordance of logistic likelihoods.
    """

    def value(at: Floats) -> float:
        softplus = np.logaddexp(0, at[:, None] - at)
        pairs = 0.5 * (counts * (softplus + softplus.T)).sum()
        # log p = d/2 - log(2 cosh(d/2)) and log(1 - p) = -d/2 - log(2 cosh(d/2)) for a gap d
        linear = 0.5 * (at * (won - (counts.sum(axis=1) - won))).sum()
        return float(linear - 0.5 * pairs - l2 * (at**2).sum())

    largest = float(np.abs(step).max())
    if largest < 0.5:
        return strengths + step
    scale, before = min(1.0, _MAX_STEP / largest), value(strengths)
    while scale > 1e-6 and value(strengths + scale * step) < before:
        scale /= 2
    return strengths + scale * step


def place_models(
    wins: ArrayLike,
    n_battles: ArrayLike,
    anchors: ArrayLike,
    *,
    l2: float = 0.01,
    start: float | None = None,
) -> Floats:
    """Return the strengths (R,) that maximise each row's own penalised likelihood, anchors fixed.

    Maximises ``sum_battles [y log p + (1 - y) log(1 - p)] - l2 * strength^2`` with ``p =
    sigmoid(strength - anchor)`` from wins (R,), battles (R, M) and anchors (M,) or (R, M), in
    logits. NaN for a row without battles, or of wins or losses only without a penalty.
    """
    won, counts = np.asarray(wins, dtype=float), np.asarray(n_battles, dtype=float)
    fixed, total = np.asarray(anchors, dtype=float), counts.sum(axis=1)
    bounded = total > 0 if l2 > 0 else (won > 0) & (won < total)
    rows = np.flatnonzero(bounded & np.isfinite(won))
    strengths = np.full(won.size, np.nan)
    if rows.size:
        held = fixed[rows] if fixed.ndim == 2 else fixed
        strengths[rows] = _newton(won[rows], counts[rows], held, l2, start)
    return strengths


def _newton(won: Floats, counts: Floats, anchors: Floats, l2: float, start: float | None) -> Floats:
    """Newton inside a bracket that shrinks; the slope falls with the strength."""
    middle = (counts * anchors).sum(axis=1) / counts.sum(axis=1)
    reach = 8.0 + np.abs(anchors).max(initial=0.0)
    low, high = middle - reach - _FAR, middle + reach + _FAR
    strength = middle if start is None else np.full(middle.size, start)
    odds_of_anchors = np.exp(anchors)
    moving = np.ones(won.size, dtype=bool)  # a finished row rests, so that rows do not mix
    for _ in range(_PLACING_STEPS):
        odds = np.exp(strength)[:, None]
        chance = odds / (odds + odds_of_anchors)
        expected = counts * chance
        slope = won - expected.sum(axis=1) - 2 * l2 * strength
        bend = (expected * (1 - chance)).sum(axis=1) + 2 * l2
        low, high = np.where(slope > 0, strength, low), np.where(slope > 0, high, strength)
        step = np.clip(slope / np.maximum(bend, np.finfo(float).tiny), -4.0, 4.0)
        following = strength + step
        outside = (following < low) | (following > high)
        following = np.where(outside, (low + high) / 2, following)
        size = np.maximum(1.0, np.abs(following))
        settled = np.abs(following - strength) <= _PLACING_TOLERANCE * size
        strength = np.where(moving, following, strength)
        moving &= ~settled
        if not moving.any():
            return strength
    raise RuntimeError(
        f"placing {int(moving.sum())} of {won.size} models did not converge after "
        f"{_PLACING_STEPS} iterations (largest step {np.abs(step[moving]).max():.1e} logits)"
    )


def analytic_std_error(
    residual_sum: ArrayLike, residual_squares: ArrayLike, information: ArrayLike, n: ArrayLike
) -> Floats:
    """Return the closed form of the bootstrap standard error at fixed anchors, in logits.

    ``sqrt(sum r^2 - (sum r)^2 / n) / information``: one Newton step turns a resample into a sum of
    residuals over the curvature (B. Efron and R. J. Tibshirani 1993, section 21). NaN below 2
    battles.
    """
    count = np.asarray(n, dtype=float)
    first, second = np.asarray(residual_sum, dtype=float), np.asarray(residual_squares, dtype=float)
    spread = second - first**2 / np.where(count > 0, count, math.nan)
    rounding = np.maximum(1e-12 * second, _SHARE_ROUNDING * count)
    root = np.sqrt(np.where(spread < rounding, 0.0, spread)) / np.asarray(information, dtype=float)
    return np.where(count >= 2, root, math.nan)

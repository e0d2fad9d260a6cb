"""Place one model among anchors whose strengths stay fixed: one dimension, many at once."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_MAX_ITERATIONS = 200
_TOLERANCE = 1e-12  # logits
_SHARE_ROUNDING = (
    2.0**-29
)  # of a battle's squared outcome: see `judgeline.verdict.outcomes.exact_share`
_FAR = 200.0  # logits beyond every anchor: no finite placement, and no overflow of odds


def place_models(
    wins: ArrayLike,
    n_battles: ArrayLike,
    anchors: ArrayLike,
    *,
    l2: float = 0.01,
    start: float | None = None,
) -> Floats:
    """Return the strengths that maximise each model's own penalised likelihood.

    Maximises ``sum_battles [y log p + (1 - y) log(1 - p)] - l2 * strength^2`` over one
    strength per row, with ``p = sigmoid(strength - anchor)``.

    Parameters
    ----------
    wins : array_like, shape (R,)
        Total wins of the model placed in each row.
    n_battles : array_like, shape (R, M)
        Battles of the model against each anchor.
    anchors : array_like, shape (M,) or (R, M)
        Anchor strengths in logits, held fixed.
    l2 : float
        Penalty on the squared strength, per squared logit.
    start : float, optional
        Strength from which to start every row, in logits.

    Returns
    -------
    ndarray, shape (R,)
        Strengths in logits on the anchors' scale; NaN where the model has no battle, or no
        penalty holds a model that won or lost every battle.

    Raises
    ------
    RuntimeError
        If the iteration does not converge.
    """
    won = np.asarray(wins, dtype=float)
    counts = np.asarray(n_battles, dtype=float)
    fixed = np.asarray(anchors, dtype=float)
    total = counts.sum(axis=1)
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
    for _ in range(_MAX_ITERATIONS):
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
        settled = np.abs(following - strength) <= _TOLERANCE * np.maximum(1.0, np.abs(following))
        strength = np.where(moving, following, strength)
        moving &= ~settled
        if not moving.any():
            return strength
    raise RuntimeError(
        f"placing {int(moving.sum())} of {won.size} models did not converge after "
        f"{_MAX_ITERATIONS} iterations (largest step {np.abs(step[moving]).max():.1e} logits)"
    )


def analytic_std_error(
    residual_sum: ArrayLike, residual_squares: ArrayLike, information: ArrayLike, n: ArrayLike
) -> Floats:
    """Return the closed form of the bootstrap standard error at fixed anchors.

    One Newton step from the estimate turns a resample of the model's battles into a sum of
    residuals over the curvature; its standard deviation over resamples is exact.

    Parameters
    ----------
    residual_sum : array_like
        Sum over the model's battles of outcome minus expected outcome, in wins.
    residual_squares : array_like
        Sum of the squares of the same residuals, in squared wins.
    information : array_like
        ``sum p (1 - p)`` plus the penalty's curvature ``2 * l2``, in wins per logit.
    n : array_like
        Number of battles of the model.

    Returns
    -------
    ndarray
        ``sqrt(sum r^2 - (sum r)^2 / n) / information`` in logits; NaN for fewer than two
        battles, whose spread nothing can tell.

    References
    ----------
    B. Efron and R. J. Tibshirani (1993), An Introduction to the Bootstrap, section 21.
    """
    count = np.asarray(n, dtype=float)
    first, second = np.asarray(residual_sum, dtype=float), np.asarray(residual_squares, dtype=float)
    spread = second - first**2 / np.where(count > 0, count, math.nan)
    rounding = np.maximum(1e-12 * second, _SHARE_ROUNDING * count)
    root = np.sqrt(np.where(spread < rounding, 0.0, spread)) / np.asarray(information, dtype=float)
    return np.where(count >= 2, root, math.nan)

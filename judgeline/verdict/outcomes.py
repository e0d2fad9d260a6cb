"""From rubric scores to score differences and outcomes of battles; A first, always.

An outcome is A's share of the win: 1 if A is preferred, 0 if B is, 0.5 for a tie.
"""

import numpy as np
from numpy.typing import ArrayLike

from judgeline.arrays import Floats, require

CRITERIA: tuple[str, ...] = (
    "adherence",
    "helpfulness",
    "factuality",
    "completeness",
    "clarity",
    "fluency",
)
"""The six rubric criteria, in the order of every score array's last axis."""


def _without_nan(values: ArrayLike, name: str) -> Floats:
    numbers = np.asarray(values, dtype=float)
    remedy = "a number; leave out battles without a parsed verdict in both orders"
    require(~np.isnan(numbers), name, numbers, remedy)
    return numbers


def criterion_difference(scores_a: ArrayLike, scores_b: ArrayLike) -> Floats:
    """Return the mean over criteria of A's score minus B's, for one presentation order.

    Scores (n, 6) from 1 to 10 in the order of `CRITERIA` give rubric points (n,) in [-9, 9];
    another shape, NaN or a score outside [1, 10] is a `ValueError`.
    """
    ours, theirs = _without_nan(scores_a, "scores_a"), _without_nan(scores_b, "scores_b")
    for name, scores in (("scores_a", ours), ("scores_b", theirs)):
        shape = (len(ours) if ours.ndim else 0, len(CRITERIA))
        require(scores.shape == shape, f"the shape of {name}", scores.shape, f"(n, {shape[1]})")
        require((scores >= 1) & (scores <= 10), name, scores, "rubric scores in [1, 10]")
    return np.asarray((ours - theirs).sum(axis=1) / len(CRITERIA))


def mean_difference(difference_ab: ArrayLike, difference_ba: ArrayLike) -> Floats:
    """Return the mean score difference, in rubric points, of battles judged in both orders.

    NaN is a `ValueError`: a battle counts as scored only if both orders parsed.
    """
    first = _without_nan(difference_ab, "difference_ab")
    return (first + _without_nan(difference_ba, "difference_ba")) / 2


def sign_outcome(score_difference: ArrayLike) -> Floats:
    """Return the outcome by the sign of a score difference: 1.0, 0.0, or 0.5 where it is zero."""
    return np.asarray((np.sign(_without_nan(score_difference, "score_difference")) + 1) / 2)


def hard_outcome(difference_ab: ArrayLike, difference_ba: ArrayLike) -> Floats:
    """Return the judge's outcome, 1.0, 0.5 or 0.0, of battles (n,) judged in both orders.

    The sign of the mean difference decides; a mean of zero, or two orders of strictly
    opposite signs, is a tie (the judge followed the position, not the completions). Source: Kargi
    and Salinas (2026), arXiv:2606.13221, section on hard labels.
    """
    first = np.asarray(difference_ab, dtype=float)
    second = np.asarray(difference_ba, dtype=float)
    outcome = sign_outcome(mean_difference(first, second))
    return np.where(first * second < 0, 0.5, outcome)


def smooth_outcome(outcome: ArrayLike, level: float) -> Floats:
    """Return outcomes in [0, 1] as `level` for a win of A, ``1 - level`` for one of B, else 0.5."""
    require(0.5 < level <= 1, "smoothing level", level, "above 0.5, at most 1")
    return 0.5 + (level - 0.5) * np.sign(_without_nan(outcome, "outcome") - 0.5)

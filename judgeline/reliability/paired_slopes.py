"""The change of a judge's slope between two judgements of the same battles, on one set of votes.

Unlike the slope that calibrates ratings, this one may be negative: a judge that turned against
people has changed as far as a judge can, and no alarm may hang on its slope being above zero.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.elo.beta import BetaFit, fit_beta
from judgeline.reliability.paired import (
    LEAST_BATTLES,
    PairedChange,
    known_in_all,
    mean_change,
    refused,
    too_few,
)

_NO_CHANGE = 1e-9  # standard errors, below which a change is lost in rounding

Floats = NDArray[np.float64]


def beta_change(
    score_before: ArrayLike, score_after: ArrayLike, human_outcome: ArrayLike
) -> PairedChange:
    """Return the change of a judge's slope on the same votes, on either side of zero.

    A slope here may be negative, as that of a judge that turned against people is. The test is
    a score test: with the margin ``m = s (2 y - 1)`` and the one slope ``b`` that fits both
    judgements together, a battle's pull on it is ``m sigma(-b m)``, and without a change the
    pulls of its two judgements have one mean. Exchanging a battle's judgements leaves ``b`` as it
    is and turns the sign of the difference, which is thus exactly symmetric, whatever the number
    of battles; neither slope needs to exist. `std_error` is that of the sum of differences times
    the change per unit of that sum, the mean inverse information of both fits between ``b`` and
    their slopes, so that `z` is the score's and ``change / std_error`` at once.

    Parameters
    ----------
    score_before, score_after : array_like, shape (n,)
        Judge score of A minus B at the baseline and now, in rubric points; battles with NaN are
        left out.
    human_outcome : array_like, shape (n,)
        A's share of the human win; only decisive votes, 1 and 0, count.

    Returns
    -------
    PairedChange
        Logits per rubric point; `p_value` by Student's t. A slope that has no end, since scores
        predict every vote or contradict every one, is NaN with a note, and so are change and
        error; the test stands. Where that is so both times, in one direction, there is no test, nor
        where all scores are equal.

    Raises
    ------
    ValueError
        If the lengths differ or a vote is none of 1, 0.5, 0 and NaN.

    References
    ----------
    D. D. Boos (1992), "On Generalized Score Tests", The American Statistician 46(4). B. Efron
    (1969), JASA 64(328), on t under symmetry.
    """
    votes = np.asarray(human_outcome, dtype=float)
    kept = known_in_all(score_before, score_after, votes)
    first, second = (np.asarray(score, dtype=float)[kept] for score in (score_before, score_after))
    votes = votes[kept]
    n_battles = fit_beta(first, votes).n_battles  # names a vote without a meaning
    if n_battles < LEAST_BATTLES:
        return too_few(n_battles, "with a decisive vote ")
    decisive = votes != 0.5
    margins = [score[decisive] * (2 * votes[decisive] - 1) for score in (first, second)]
    slopes, common = [_slope(margin) for margin in margins], _slope(np.concatenate(margins))
    note = _without_slope(slopes)
    if not math.isfinite(common.beta) or not all(margin.any() for margin in margins):
        return refused(note, n_battles, slopes[0].beta)
    told = mean_change(*(_pull(common.beta, margin) for margin in margins))
    change = slopes[1].beta - slopes[0].beta
    std_error = told.std_error * _per_pull(slopes, told, change)
    return told._replace(
        baseline=slopes[0].beta,
        now=slopes[1].beta,
        change=change,
        std_error=std_error,
        note="; ".join(filter(None, [note, told.note])),
    )


def _slope(margin: Floats) -> BetaFit:
    """Return the slope of margins, which may be zero or negative; NaN where it has no end."""
    wins = np.ones(margin.size)
    fit, turned = fit_beta(margin, wins), fit_beta(-margin, wins)
    if turned.status == "ok":
        return turned._replace(beta=-turned.beta)
    if fit.status == turned.status == "contradicts-humans":  # balanced: the slope is flat
        return BetaFit(0.0, 2 / float(np.linalg.norm(margin)), margin.size, "ok")
    return fit


def _without_slope(slopes: list[BetaFit]) -> str:
    """Return which of two judgements has no slope, and why; nothing where both have one."""
    reasons = {
        "separable": "scores predict every vote, so that it has no end",
        "contradicts-humans": "scores contradict every vote, so that it has no end",
        "no-decisive-votes": "scores are equal in every battle with a decisive vote",
    }
    return "; ".join(
        f"there is no slope {when}: {reasons[slope.status]}"
        for when, slope in zip(("at the baseline", "now"), slopes, strict=True)
        if slope.status != "ok"
    )


def _pull(beta: float, margin: Floats) -> Floats:
    """Return what each battle adds to the slope of the likelihood at a slope."""
    pull: Floats = margin * expit(-beta * margin)
    return pull


def _per_pull(slopes: list[BetaFit], told: PairedChange, change: float) -> float:
    """Return by how much slopes differ for a difference of one between mean pulls."""
    if abs(told.z) > _NO_CHANGE:
        return change / told.change
    return told.n_battles * sum(fit.std_error**2 for fit in slopes) / 2  # the limit at no change

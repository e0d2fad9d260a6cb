"""Jackknife+ intervals of every model's human rating: what the study holds the board's against."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats
from judgeline.elo import HEADLINE, CodedBattles, strength_to_rating
from judgeline.elo.placements import averaged
from judgeline.intervals import conformal_quantile
from judgeline.intervals.refits import fold_of


class JackknifeIntervals(NamedTuple):
    """One row per model: the ends of its interval, in Elo points; infinite where too few models."""

    model: NDArray[np.str_]
    lower: Floats
    upper: Floats


def jackknife_plus(
    prediction: ArrayLike, residual: ArrayLike, *, miscoverage: float
) -> tuple[float, float]:
    """Return the ends of the jackknife+ interval of one fresh response.

    Parameters
    ----------
    prediction : array_like, shape (n,)
        Of the fresh response, by the fit without each calibrating one.
    residual : array_like, shape (n,)
        Each calibrating response less its own prediction by that fit; NaN counts as infinite.
    miscoverage : float
        The interval holds the fresh response with probability at least ``1 - 2 miscoverage`` if it
        is exchangeable with the n others and the fit is symmetric in them; about
        ``1 - miscoverage`` where fits are stable.

    References
    ----------
    R. F. Barber, E. J. Candes, A. Ramdas and R. J. Tibshirani (2021), "Predictive Inference with
    the Jackknife+", Annals of Statistics 49(1), equation 1.2 and theorem 1. arXiv:1905.02928.
    """
    centre, reach = np.asarray(prediction, dtype=float), np.abs(np.asarray(residual, dtype=float))
    known = np.isfinite(centre + reach)
    below, above = (np.where(known, sign * centre + reach, np.inf) for sign in (-1, 1))
    lower, upper = (conformal_quantile(end, miscoverage=miscoverage) for end in (below, above))
    return -lower, upper


def jackknife_intervals(
    battles: CodedBattles, *, method: str = HEADLINE, miscoverage: float = 0.1, l2: float = 0.01
) -> JackknifeIntervals:
    """Return jackknife+ intervals of every model's human rating.

    For a model m and each calibrating model i everything is fitted without the votes on both:
    slopes, rulers, weights and anchors. That fit predicts m, and its miss on i is the residual.
    Its zero, the mean of the anchors without i, is moved to that of m's fold; where other models
    have no votes left without i either, i's residual is infinite.

    Assumption: models are exchangeable; then `jackknife_plus` has the guarantee, up to what i's
    votes move the anchors among which people place m, and to the votes between m and i, which
    m's human rating has and i's residual lacks. Residuals are not scaled, as in the paper:
    a model with few battles has an interval as wide as one with many. ``auto`` stands for what it
    is on the board.

    Parameters
    ----------
    battles : CodedBattles
        Judged battles, with votes on some. One placement of all models is made for each with votes.
    method : str
        A judge method of `judgeline.elo.rate`.
    miscoverage : float
        As of `jackknife_plus`.
    l2 : float
        Penalty on squared strengths, per squared logit.

    Returns
    -------
    JackknifeIntervals
        Rows in the order of ``battles.models``.

    Raises
    ------
    ValueError
        If nobody voted, the method is unknown, or votes do not connect the voted models.
    """
    voted = battles.voted_models()
    names = [method] * voted.size
    if method == HEADLINE:
        names = np.where(averaged(voted), "average", "gap").tolist()
    whole = fold_of(battles, set(names), l2, may_fail=False)
    without = {}
    for i in np.flatnonzero(voted).tolist():
        own = (battles.model_a == i) | (battles.model_b == i)
        outcome = np.where(own, -1, battles.human_outcome).astype(np.int8)
        without[i] = fold_of(replace(battles, human_outcome=outcome), set(names), l2)
    ends = []
    for m, name in enumerate(names):
        others = np.array([i for i in without if i != m], dtype=int)
        own = without.get(m, whole)
        residual = (own.judge[name] - own.human)[others]
        place_of = np.searchsorted(np.flatnonzero(voted), others)
        zero = whole.anchors[m][place_of] / max(others.size - 1, 1)
        prediction = np.array([without[i].judge[name][m] for i in others.tolist()]) - zero
        ends.append(jackknife_plus(prediction, residual, miscoverage=miscoverage))
    lower, upper = strength_to_rating(np.array(ends).reshape(-1, 2).T)
    return JackknifeIntervals(np.array(battles.models), lower, upper)

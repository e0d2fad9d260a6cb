"""Ruler recalibration: map judge ratings onto the human scale by what other models show.

A judge's ruler is often stretched: its ratings are right in order and wrong in spacing. A
straight line from judge to human ratings of the anchor models takes the stretch out; the
line that maps a model never saw that model.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.elo import ELO_ORIGIN

Floats = NDArray[np.float64]


class Ruler(NamedTuple):
    """Lines ``human = intercept + slope * judge``, one per model, each fitted without it.

    `intercept` is in Elo points, `slope` in human Elo points per judge Elo point.
    """

    intercept: Floats
    slope: Floats


def fit_ruler(judge_rating: Floats, human_rating: Floats) -> Ruler:
    """Return each model's least-squares line through the other models' ratings.

    Parameters
    ----------
    judge_rating : ndarray, shape (M,)
        Leave-one-out judge ratings in Elo points; NaN where there is none.
    human_rating : ndarray, shape (M,)
        Leave-one-out human ratings in Elo points; NaN for models without votes.

    Returns
    -------
    Ruler
        Lines of shape (M,); NaN where fewer than three other models have both ratings or
        their judge ratings are all equal.
    """
    return _fit(judge_rating, human_rating, through_origin=False)


def fit_scale(judge_rating: Floats, human_rating: Floats) -> Ruler:
    """Return each model's line through 1500 Elo points on both scales: a slope alone.

    Parameters
    ----------
    judge_rating, human_rating : ndarray, shape (M,)
        As in `fit_ruler`.

    Returns
    -------
    Ruler
        Lines of shape (M,); NaN where fewer than two other models have both ratings or
        their judge ratings are all 1500.
    """
    return _fit(judge_rating, human_rating, through_origin=True)


def _fit(judge_rating: Floats, human_rating: Floats, *, through_origin: bool) -> Ruler:
    """Fit every leave-one-out line from sums less the model's own term."""
    paired = np.isfinite(judge_rating) & np.isfinite(human_rating)
    x = np.where(paired, judge_rating - ELO_ORIGIN, 0.0)
    y = np.where(paired, human_rating - ELO_ORIGIN, 0.0)
    n, sx, sy, sxx, sxy = (
        total.sum() - total for total in (paired.astype(float), x, y, x * x, x * y)
    )
    if through_origin:
        centre_x, centre_y, least = np.zeros(x.size), np.zeros(x.size), 2
    else:
        centre_x, centre_y, least = sx / np.maximum(n, 1), sy / np.maximum(n, 1), 3
    spread = sxx - n * centre_x**2
    usable = (n >= least) & (spread > 1e-12 * np.maximum(sxx, 1.0))
    slope = np.where(usable, (sxy - n * centre_x * centre_y) / np.where(usable, spread, 1), np.nan)
    intercept = ELO_ORIGIN + centre_y - slope * (ELO_ORIGIN + centre_x)
    return Ruler(intercept, slope)

"""The Elo scale: an affine view of Bradley-Terry strengths, and nothing else."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

ELO_PER_LOGIT = 400 / math.log(10)
"""Elo points per natural logit: 400 points are odds of ten to one."""

ELO_ORIGIN = 1500.0
"""Rating of a model of strength zero, in Elo points."""


def strength_to_rating(strength: ArrayLike) -> NDArray[np.float64]:
    """Return ratings in Elo points of Bradley-Terry strengths in natural logits.

    Parameters
    ----------
    strength : array_like, any shape
        Strengths in logits, relative to the mean of the models they were fitted with.

    Returns
    -------
    ndarray, same shape
        ``1500 + (400 / ln 10) * strength``, in Elo points.
    """
    return ELO_ORIGIN + ELO_PER_LOGIT * np.asarray(strength, dtype=float)


def rating_to_strength(rating: ArrayLike) -> NDArray[np.float64]:
    """Return Bradley-Terry strengths in natural logits of ratings in Elo points.

    Parameters
    ----------
    rating : array_like, any shape
        Ratings in Elo points.

    Returns
    -------
    ndarray, same shape
        Strengths in logits; the inverse of `strength_to_rating`.
    """
    return (np.asarray(rating, dtype=float) - ELO_ORIGIN) / ELO_PER_LOGIT

"""How simulated humans vote: by true quality, with ties, and with an exactly known mean."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

DISCERNMENT = 5.0
"""Log-odds of preferring a perfect completion to a worthless one."""

TIE_SHARE = 0.6
"""Ties between equals are half of this."""


def expected_outcome(quality_a: ArrayLike, quality_b: ArrayLike) -> NDArray[np.float64]:
    """Return the mean vote, ``sigmoid(DISCERNMENT * (quality_a - quality_b))``, ties one half."""
    gap = np.asarray(quality_a, dtype=float) - np.asarray(quality_b, dtype=float)
    mean: NDArray[np.float64] = expit(DISCERNMENT * gap)
    return mean


def cast_votes(
    quality_a: ArrayLike, quality_b: ArrayLike, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return votes of 1, 0.5 or 0 whose mean is exactly `expected_outcome`.

    With p that mean, a tie has probability ``2 * TIE_SHARE * p * (1 - p)`` and takes half of it
    from either side.
    """
    mean = expected_outcome(quality_a, quality_b)
    tie = 2 * TIE_SHARE * mean * (1 - mean)
    draw = rng.random(mean.shape)
    return np.where(draw < mean - tie / 2, 1.0, np.where(draw < mean + tie / 2, 0.5, 0.0))

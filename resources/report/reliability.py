"""How often humans agree with a judge, against how often its calibrated scores say so."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import norm

MIN_VOTES = 10
"""Fewest decisive votes on unequal scores that make a diagram."""

_BINS = 10
_COVERAGE = 0.95


def reliability_bins(
    score_difference: ArrayLike, human_outcome: ArrayLike, *, beta: float
) -> pd.DataFrame:
    """Return predicted and observed agreement in bins of equal mass.

    Predicted is the logistic function of ``beta * |score_difference|``, observed the share
    of decisive votes on the side the judge scored higher.

    Parameters
    ----------
    score_difference : array_like, shape (n,)
        Judge score of A minus B, in rubric points; battles with equal scores are left out.
    human_outcome : array_like, shape (n,)
        A's share of the human win; ties (0.5) and missing votes (NaN) are left out.
    beta : float
        Slope in logits per rubric point, positive.

    Returns
    -------
    DataFrame
        `predicted`, `observed` and its Wilson interval `lower`, `upper` (shares in [0, 1]), `n`;
        ten bins, five battles a bin at least, and no rows below `MIN_VOTES`.

    References
    ----------
    E. B. Wilson (1927), "Probable Inference, the Law of Succession, and Statistical
    Inference", JASA 22(158).
    """
    score, outcome = np.asarray(score_difference, float), np.asarray(human_outcome, float)
    decisive = ((outcome == 0) | (outcome == 1)) & (score != 0)
    margin = score[decisive] * (2 * outcome[decisive] - 1)
    margin = margin[np.argsort(np.abs(margin), kind="stable")]
    if margin.size < MIN_VOTES:
        return _bins([])
    return _bins(
        [
            (expit(beta * np.abs(part)).mean(), (part > 0).mean(), part.size)
            for part in np.array_split(margin, min(_BINS, margin.size // 5))
        ]
    )


def _bins(rows: list[tuple[float, float, int]]) -> pd.DataFrame:
    bins = pd.DataFrame(rows, columns=["predicted", "observed", "n"])
    z = norm.ppf((1 + _COVERAGE) / 2)
    share, n = bins["observed"], bins["n"]
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # At a share of 0 or 1 the exact end is the share itself; rounding must not cross it.
    lower, upper = np.minimum(centre - half, share), np.maximum(centre + half, share)
    return bins.assign(lower=lower, upper=upper)

"""Conformal thresholds by band: coverage among models that are alike, not only over all.

No table of the lineage uses it: its intervals have one threshold for all models, since a band
needs nine models of its own for a finite one at 90 %, and most corpora have a few dozen in all. It
is for who has a corpus of many rated models, doubts that weak and strong ones, or families, are
missed equally often, and reads `heldout_ratings` with the thresholds computed here.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.intervals.conformal import conformal_quantile


class MondrianThresholds(NamedTuple):
    """One row per band, in the order of their names.

    `threshold` is in the unit of the scores and rests on `n_models` models; `is_own` tells
    whether they are the band's own. If not, the band has too few and gets the threshold of all.
    """

    band: NDArray[np.str_]
    threshold: NDArray[np.float64]
    n_models: NDArray[np.int64]
    is_own: NDArray[np.bool_]


def mondrian_thresholds(
    nonconformity: ArrayLike,
    band: ArrayLike,
    *,
    miscoverage: float,
    least_models: int | None = None,
) -> MondrianThresholds:
    """Return the threshold of each band's fresh nonconformity scores.

    If the scores of a band and a fresh one of that band are exchangeable, the fresh one exceeds
    the band's own threshold with probability at most `miscoverage`: within the band, not only on
    average. The threshold of all models promises this for a small band only if all are
    exchangeable across bands, which is what bands were made to doubt.

    A band has to be known of a fresh model: its family, language or judged rating, never its
    human one. With ratings that are fitted together, exchangeability holds but approximately.

    Parameters
    ----------
    nonconformity : array_like, shape (n,)
        Calibration scores in one common unit; larger is stranger.
    band : array_like of str, shape (n,)
        Band of each model.
    miscoverage : float
        Tolerated probability of a miss, in (0, 1).
    least_models : int, optional
        Models that a band needs for a threshold of its own; by default, and at the least, the
        number from which it is finite, ``ceil(1 / miscoverage) - 1``.

    Returns
    -------
    MondrianThresholds
        A row per band; thresholds are ``inf`` where even all models are too few.

    Raises
    ------
    ValueError
        If there is no score, the lengths differ, a score is NaN, or `miscoverage` is not
        strictly between 0 and 1.

    References
    ----------
    V. Vovk, A. Gammerman and G. Shafer (2005), "Algorithmic Learning in a Random World",
    section 4.5, on Mondrian predictors. V. Vovk (2012), "Conditional Validity of Inductive
    Conformal Predictors", arXiv:1209.2673.
    """
    scores, bands = np.asarray(nonconformity, dtype=float), np.asarray(band).astype(str)
    if scores.ndim != 1 or scores.shape != bands.shape or not scores.size:
        raise ValueError(
            f"nonconformity {scores.shape} and band {bands.shape} must be one score and one band "
            "for each of at least one model"
        )
    pooled = conformal_quantile(scores, miscoverage=miscoverage)
    finite_from = math.ceil(1 / miscoverage - 1e-9) - 1
    least = max(finite_from, least_models or 0)
    names, place, counts = np.unique(bands, return_inverse=True, return_counts=True)
    own = counts >= least
    thresholds = [
        conformal_quantile(scores[place == number], miscoverage=miscoverage) if is_own else pooled
        for number, is_own in enumerate(own)
    ]
    return MondrianThresholds(names, np.array(thresholds), np.where(own, counts, scores.size), own)


def bands_of(value: ArrayLike, *, n_bands: int) -> NDArray[np.str_]:
    """Return bands of about equally many models, in order of a value such as a judged rating.

    Parameters
    ----------
    value : array_like, shape (n,)
        What the bands are made of; equal values share a band.
    n_bands : int
        Number of bands, at least 1.

    Returns
    -------
    ndarray of str, shape (n,)
        ``"1"`` for the lowest band, and so on.

    Raises
    ------
    ValueError
        If a value is NaN, or there is no band.
    """
    values = np.asarray(value, dtype=float)
    if n_bands < 1:
        raise ValueError(f"n_bands must be at least 1, got {n_bands}")
    if np.isnan(values).any():
        raise ValueError(f"value holds {int(np.isnan(values).sum())} NaN in {values.size}")
    below = np.searchsorted(np.sort(values), values, side="left")
    return (below * n_bands // max(values.size, 1) + 1).astype(str)

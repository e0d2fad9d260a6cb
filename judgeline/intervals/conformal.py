"""Conformal intervals as pure functions of arrays: thresholds, half-widths, chance limits."""

import math
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.elo.strengths import ELO_PER_LOGIT

Floats = NDArray[np.float64]

StdErrorKind = Literal["analytic", "bootstrap"]

COVERAGE_TAIL = 0.005
"""Probability beyond either of the limits that `coverage_limits` gives."""


def conformal_quantile(
    nonconformity: ArrayLike, *, miscoverage: float, alike: ArrayLike | None = None
) -> float:
    """Return the threshold that a fresh nonconformity score stays below, at a stated rate.

    If the ``n`` calibration scores and the fresh one are exchangeable, the fresh score
    exceeds the threshold with probability at most `miscoverage`. The threshold is the
    ``ceil((n + 1) (1 - miscoverage))``-th smallest score, never an interpolation.

    Parameters
    ----------
    nonconformity : array_like, shape (n,)
        Calibration scores in one common unit, such as standard errors; larger is stranger.
    miscoverage : float
        Tolerated probability of a miss, in (0, 1); 0.1 asks for 90 % coverage.
    alike : array_like of bool, shape (n,), optional
        Scores of the fresh model's band, known of it without votes (Mondrian conformal): coverage
        then holds within the band. All scores count where the band has too few.

    Returns
    -------
    float
        Threshold in the unit of the scores; ``inf`` when ``n < 1 / miscoverage - 1``.

    Raises
    ------
    ValueError
        If the scores are not one-dimensional or hold NaN, `alike` has another length, or
        `miscoverage` is not strictly between 0 and 1.

    References
    ----------
    J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman (2018), "Distribution-
    Free Predictive Inference for Regression", JASA 113(523), Algorithm 2. arXiv:1604.04173.
    V. Vovk (2012), "Conditional Validity of Inductive Conformal Predictors", arXiv:1209.2673.
    """
    scores = np.asarray(nonconformity, dtype=float)
    if scores.ndim != 1:
        raise ValueError(f"nonconformity must have shape (n,), got {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"nonconformity holds {np.isnan(scores).sum()} NaN in {scores.size}")
    require_miscoverage(miscoverage)
    if alike is not None:
        band = np.asarray(alike, dtype=bool)
        if band.shape != scores.shape:
            raise ValueError(f"alike has shape {band.shape}, nonconformity {scores.shape}")
        scores = scores[band] if n_above_threshold(int(band.sum()), miscoverage) >= 0 else scores
    n_above = n_above_threshold(scores.size, miscoverage)
    return math.inf if n_above < 0 else float(np.sort(scores)[scores.size - 1 - n_above])


def require_miscoverage(miscoverage: float) -> None:
    """Raise ValueError unless a miscoverage lies strictly between 0 and 1."""
    if not 0 < miscoverage < 1:
        raise ValueError(f"miscoverage must lie strictly between 0 and 1, got {miscoverage}")


def n_above_threshold(n_scores: int, miscoverage: float) -> int:
    """Return how many scores lie above the threshold; -1 when there are too few for any.

    Counting from above keeps the rank exact: in floats (99 + 1) * (1 - 0.45) is
    55.00000000000001, and its ceiling one rank too far.
    """
    return math.floor((n_scores + 1) * miscoverage + 1e-9) - 1


def nonconformity_scores(residual: ArrayLike, std_error: ArrayLike) -> Floats:
    """Return absolute residuals (n,) in units of their standard errors (n,), both in Elo points.

    A model without a positive standard error counts as infinitely strange: it can only widen
    intervals. ValueError for a residual that is not finite, or an error negative or infinite.
    """
    error, spread = np.asarray(residual, dtype=float), np.asarray(std_error, dtype=float)
    wrong = ~np.isfinite(error) | (spread < 0) | np.isinf(spread)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"residual {error[row]:g} with standard error {spread[row]:g} in row {row}: every "
            "calibration model needs a residual, and a standard error that is not negative"
        )
    known = spread > 0
    return np.where(known, np.abs(error) / np.where(known, spread, 1.0), math.inf)


def interval_half_width(threshold: ArrayLike, std_error: ArrayLike) -> Floats:
    """Return how far intervals reach to either side of a rating."""
    reach, spread = np.broadcast_arrays(np.asarray(threshold, float), np.asarray(std_error, float))
    known = spread > 0
    return np.where(known, reach * np.where(known, spread, 1.0), math.inf)


def coverage_limits(
    n_calibration: ArrayLike, n_test: ArrayLike, *, miscoverage: ArrayLike
) -> tuple[Floats, Floats]:
    """Return between which shares coverage on one split lies by chance.

    If calibration and test models are exchangeable, the number of covered test models is
    beta-binomial. The mean over several splits spreads less: the limits err on the quiet side.

    Source: A. N. Angelopoulos and S. Bates (2021), arXiv:2107.07511.
    """
    from scipy.stats import betabinom

    calibration = np.asarray(n_calibration, dtype=float)
    test = np.asarray(n_test, dtype=float)
    n_above = np.floor((calibration + 1) * np.asarray(miscoverage, dtype=float) + 1e-9)
    infinite = n_above < 1
    beyond = np.where(infinite, 1, n_above)
    spread = betabinom(test, np.maximum(calibration + 1 - beyond, 1), beyond)
    lower = np.where(infinite, 1.0, spread.ppf(COVERAGE_TAIL) / test)
    upper = np.where(infinite, 1.0, spread.ppf(1 - COVERAGE_TAIL) / test)
    return lower, upper


def expected_half_width(half_width: float, n_battles: float, n_planned: float) -> float:
    """Return the half-width, in Elo points, to expect of an interval after more battles.

    Standard errors shrink with the square root of the number of battles; the conformal threshold is
    taken to stay. It grows where judge and humans differ by more than sampling: then this is the
    best to hope for. ValueError for a number of battles that is not positive.
    """
    for name, value in (("n_battles", n_battles), ("n_planned", n_planned)):
        if not value > 0:
            raise ValueError(f"{name} is {value}; it must be positive")
    return half_width * math.sqrt(n_battles / n_planned)


def sampling_half_width(n_battles: float, *, miscoverage: float) -> float:
    """Return the half-width, in Elo points, that the sampling of battles alone leaves to a rating.

    A normal interval of decisive outcomes against equal anchors, where the Bradley-Terry
    information per battle is largest, 1/4 per squared logit. Judges that err, unequal opponents and
    few calibrating models widen it; soft outcomes narrow it. ValueError if a setting is out of
    range. Source: R. A. Bradley and M. E. Terry (1952), Biometrika 39.
    """
    if not n_battles > 0:
        raise ValueError(f"n_battles is {n_battles}; it must be positive")
    require_miscoverage(miscoverage)
    std_error = ELO_PER_LOGIT * 2 / math.sqrt(n_battles)
    return NormalDist().inv_cdf(1 - miscoverage / 2) * std_error


def bands_of(value: ArrayLike, *, n_bands: int) -> NDArray[np.str_]:
    """Return bands ``"1"``, ``"2"``, ... of about equally many models, lowest values first, (n,).

    Equal values share a band; ValueError for a NaN or for no band.
    """
    values = np.asarray(value, dtype=float)
    if n_bands < 1:
        raise ValueError(f"n_bands must be at least 1, got {n_bands}")
    if np.isnan(values).any():
        raise ValueError(f"value holds {int(np.isnan(values).sum())} NaN in {values.size}")
    below = np.searchsorted(np.sort(values), values, side="left")
    return (below * n_bands // max(values.size, 1) + 1).astype(str)

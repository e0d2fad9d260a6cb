"""How a judge's outcomes and probabilities agree with votes, battle by battle."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

Floats = NDArray[np.float64]


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> float:
    """Return Cohen's kappa of two raters' outcomes in three classes: A, tie, B.

    Parameters
    ----------
    first, second : array_like, shape (n,)
        Outcomes in [0, 1]; above one half is A, below is B, one half a tie.

    Returns
    -------
    float
        1 for perfect agreement, 0 for chance agreement; NaN when both raters put everything
        in one same class, so that chance alone agrees throughout.

    Raises
    ------
    ValueError
        If there is no battle, the lengths differ or an outcome is NaN.

    References
    ----------
    J. Cohen (1960), Educational and Psychological Measurement 20(1).
    """
    ours, theirs = _classes(first, "first"), _classes(second, "second")
    if ours.size != theirs.size or not ours.size:
        raise ValueError(f"kappa needs equally many outcomes, got {ours.size} and {theirs.size}")
    table = np.bincount(3 * ours + theirs, minlength=9).reshape(3, 3) / ours.size
    chance = float(table.sum(axis=1) @ table.sum(axis=0))
    if chance >= 1:
        return float("nan")
    return float((np.trace(table) - chance) / (1 - chance))


def _classes(outcome: ArrayLike, name: str) -> NDArray[np.intp]:
    values = np.asarray(outcome, dtype=float)
    if np.isnan(values).any():
        raise ValueError(f"{name} holds {int(np.isnan(values).sum())} NaN in {values.size}")
    return (np.sign(values - 0.5) + 1).astype(np.intp)


class Binned(NamedTuple):
    """Battles in bins: `low` and `high` bounds, mean of `x`, mean of `y`, and battles `n`."""

    low: Floats
    high: Floats
    mean_x: Floats
    mean_y: Floats
    n: NDArray[np.int64]


def equal_mass_bins(x: ArrayLike, y: ArrayLike, *, n_bins: int) -> Binned:
    """Return bins of about equally many battles, in order of `x`.

    Battles with the same `x` share a bin, so that no figure depends on the order of rows.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        What the bins are made of, and what is averaged in them.
    n_bins : int
        Number of bins; fewer where there are fewer distinct values.

    Returns
    -------
    Binned
        Bins in ascending `x`, cut where every ``n / n_bins`` battles fall, ties kept together.

    Raises
    ------
    ValueError
        If there is no battle.
    """
    values, targets = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if not values.size:
        raise ValueError("no battles to put in bins")
    order = np.argsort(values, kind="stable")
    cuts = np.arange(1, n_bins) * values.size // n_bins
    starts = np.searchsorted(values[order], values[order[cuts]], side="left")
    parts = np.split(order, np.unique(starts[starts > 0]))
    return Binned(
        np.array([values[part].min() for part in parts]),
        np.array([values[part].max() for part in parts]),
        np.array([values[part].mean() for part in parts]),
        np.array([targets[part].mean() for part in parts]),
        np.array([part.size for part in parts]),
    )


def reliability(score_difference: ArrayLike, human_outcome: ArrayLike, beta: float) -> Binned:
    """Return predicted against observed preference on decisive battles, in ten bins.

    Parameters
    ----------
    score_difference : array_like, shape (n,)
        Judge score of A minus B in rubric points.
    human_outcome : array_like, shape (n,)
        Votes; only decisive ones (0 or 1) count.
    beta : float
        Slope in logits per rubric point.

    Returns
    -------
    Binned
        `mean_x`: mean of ``sigmoid(beta |s|)``; `mean_y`: share of votes for the side that
        the judge scored higher (half of the votes where scores are equal).

    References
    ----------
    M. P. Naeini, G. Cooper and M. Hauskrecht (2015), AAAI, on calibration in bins.
    """
    score, outcome = np.asarray(score_difference, float), np.asarray(human_outcome, float)
    decisive = (outcome == 0) | (outcome == 1)
    score, outcome = score[decisive], outcome[decisive]
    agrees = np.where(score == 0, 0.5, (score > 0) == (outcome == 1))
    return equal_mass_bins(expit(beta * np.abs(score)), agrees, n_bins=10)


def expected_calibration_error(bins: Binned) -> float:
    """Return the mean gap between predicted and observed preference over battles.

    Parameters
    ----------
    bins : Binned
        From `reliability`.

    Returns
    -------
    float
        Expected calibration error, a probability in [0, 1].
    """
    return float((bins.n * np.abs(bins.mean_x - bins.mean_y)).sum() / bins.n.sum())

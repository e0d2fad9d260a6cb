"""Errors of statements that are looked at again and again: levels of looks, and an e-process.

What belongs here: how the error of one look is made that of all. What does not: intervals
(`judgeline.intervals.differences`), and records of looks (`judgeline.io.ledgers`).
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from judgeline.arrays import Floats, alike_floats, require
from judgeline.intervals.conformal import n_above_threshold, require_miscoverage

STAKES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Shares of the capital that the five bettors of `evidence_against` put on a miss."""

LEAST_OF_LOOKS = 1e-6
"""Least error of all looks: fewer misses than one in a million no number of models can tell."""

BROKEN_FROM = 20.0
"""Evidence from which a promise counts as broken: a kept one comes that far at most once in 20."""


def level_of_look(error: float, look: int, planned: int | None = None) -> float:
    """Return the error that one look may spend, so that all looks together keep `error`.

    ``error / (look (look + 1))`` for any number of looks, whose sum is `error` in the limit, or
    ``error / planned`` for a planned number.

    Parameters
    ----------
    error : float
        Probability that any look answers wrongly, in [`LEAST_OF_LOOKS`, 1/2).
    look : int
        Number of this look, from 1.
    planned : int, optional
        Number of looks after which there are no more.

    Returns
    -------
    float
        Probability in (0, error].

    Raises
    ------
    ValueError
        If a value is out of range, or `look` is beyond those planned.

    References
    ----------
    K. K. G. Lan and D. L. DeMets (1983), "Discrete sequential boundaries for clinical trials",
    Biometrika 70(3), for spending; the union bound holds under any dependence between looks.
    """
    limits = f"{LEAST_OF_LOOKS:g} or more, below 1/2, such as 0.05"
    require(LEAST_OF_LOOKS <= error < 0.5, "error", error, limits)
    require(look >= 1, "look", look, "1 or more")
    if planned is None:
        return error / (look * (look + 1))
    limit = f"at most {planned}, as many as were planned; begin another ledger"
    require(look <= planned, "look", look, limit)
    return error / planned


def tail_ratio(level: float, *, miscoverage: float, n_calibrating: int) -> float:
    """Return the factor from a half-width at `miscoverage` to one with `level` beyond each end.

    Ratio of quantiles of Student's t with ``n_calibrating - 1`` degrees of freedom, of the models
    with votes beside the two that are compared. Assumption:
    beyond the ranks that so few models have, errors have no heavier tails than that. Where the
    models are too few for any rank, intervals are those of votes, and the quantiles are normal.
    """
    require_miscoverage(miscoverage)
    ends = np.array([level, miscoverage / 2])  # lower ends: 1 less a tiny level is 1
    # a row of a leaderboard is calibrated by the other one of two models too
    too_few = n_above_threshold(n_calibrating + 1, miscoverage) < 0
    beyond, within = ndtri(ends) if too_few else stdtrit(n_calibrating - 1, ends)
    return float(beyond / within)


def evidence_against(missed: ArrayLike, miscoverage: ArrayLike) -> Floats:
    """Return the evidence against a promise of coverage after each of R releases.

    ``E_r = mean over c of prod_(s <= r) (1 + (c / a_s) (missed_s - a_s))`` with stakes c and
    miscoverage a. While the promise is kept, its expectation is at most 1 and it reaches 20 at any
    time with probability at most 1/20.

    Parameters
    ----------
    missed : array_like, shape (R,)
        Share of each release's predictions that missed. Predictions of one release may depend on
        each other: they count once.
    miscoverage : array_like, shape (R,)
        Promised probability of a miss, in (0, 1).

    Returns
    -------
    Floats, shape (R,)
        Evidence without unit; below 1 it speaks for the promise.

    Raises
    ------
    ValueError
        If the lengths differ or a value is out of range.

    References
    ----------
    G. Shafer (2021), "Testing by betting", JRSS A 184(2); J. Ville (1939) for the bound.
    Assumption: given what came before, a prediction misses with its promised probability at most.
    """
    share, promised = alike_floats(missed=missed, miscoverage=miscoverage)
    require((share >= 0) & (share <= 1), "missed", share, "a share between 0 and 1")
    require((promised > 0) & (promised < 1), "miscoverage", promised, "strictly between 0 and 1")
    stakes = np.array(STAKES)[:, None]
    return np.asarray(np.cumprod(1 + stakes / promised * (share - promised), axis=1).mean(axis=0))

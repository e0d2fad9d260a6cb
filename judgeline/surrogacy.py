"""Surrogacy: whether the score difference carries all that votes know about two models.

Soft targets are unbiased only if, given the score difference, the vote no longer depends on
which models met. The test adds the gap between the models' human strengths to the fit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.battles import CodedBattles
from judgeline.bradley_terry import fit_strengths
from judgeline.tally import tally_outcomes

Floats = NDArray[np.float64]

_PARTS = 5
_MAX_ITERATIONS = 60
_SINGULAR = 1e12


class Surrogacy(NamedTuple):
    """Fit of decisive votes on ``beta * s + gamma * (strength_a - strength_b)``.

    `beta` is in logits per rubric point. `gamma` is a share: near 0 the judge's score carries
    the model gap, near 1 it adds nothing to it. Standard errors are inverse Fisher
    information with the strengths taken as known.
    """

    beta: float
    gamma: float
    gamma_std_error: float
    n_battles: int


def fit_surrogacy(
    battles: CodedBattles, rng: np.random.Generator, *, l2: float = 0.01
) -> Surrogacy:
    """Return how much the models' human strengths add to the judge's score difference.

    Strengths come from votes on the other four fifths of the battles, so that no vote helps
    to predict itself; battles with a model that these do not hold are left out.

    Parameters
    ----------
    battles : CodedBattles
        Judged battles with votes.
    rng : numpy.random.Generator
        Assigns battles to fifths.
    l2 : float
        Penalty of the strengths' fits, per squared logit.

    Returns
    -------
    Surrogacy
        The two slopes; `gamma` above two standard errors warns that soft targets compress
        the ruler.

    Raises
    ------
    ValueError
        If fewer than ten votes are decisive.
    RuntimeError
        If the fit does not converge (votes separable by score and strengths), or score
        differences and strengths cannot be told apart.
    """
    voted = battles.take(battles.human_outcome >= 0)
    part = rng.permutation(len(voted)) % _PARTS
    gap = np.empty(len(voted))
    for held_out in range(_PARTS):
        rest = voted.take(part != held_out)
        strengths = np.where(rest.voted_models(), _human_strengths(rest, l2), np.nan)
        rows = part == held_out
        gap[rows] = strengths[voted.model_a[rows]] - strengths[voted.model_b[rows]]
    decisive = (voted.human_outcome != 1) & np.isfinite(gap)  # no gap to an unseen model
    if decisive.sum() < 10:
        raise ValueError(f"{int(decisive.sum())} decisive votes: at least 10 are needed")
    design = np.column_stack([voted.rubric_points(), gap])[decisive]
    slopes, covariance = _logistic(design, voted.human_outcome[decisive] / 2)
    error = float(np.sqrt(covariance[1, 1]))
    return Surrogacy(float(slopes[0]), float(slopes[1]), error, int(decisive.sum()))


def _human_strengths(battles: CodedBattles, l2: float) -> Floats:
    votes = tally_outcomes(battles).human
    wins = (votes @ np.array([0.0, 0.5, 1.0])).sum(axis=1)
    return fit_strengths(votes.sum(axis=2), wins, l2=l2)


def _logistic(design: Floats, outcome: Floats) -> tuple[Floats, Floats]:
    """Fit a logistic regression without intercept by Newton; return slopes and covariance."""
    slopes = np.zeros(design.shape[1])
    for _ in range(_MAX_ITERATIONS):
        chance = expit(design @ slopes)
        gradient = design.T @ (outcome - chance)
        information = design.T @ (design * (chance * (1 - chance))[:, None])
        if np.linalg.cond(information) > _SINGULAR:
            raise RuntimeError(
                "score differences and strengths cannot be told apart: they are proportional, or "
                "one of them does not vary"
            )
        step = np.linalg.solve(information, gradient)
        slopes = slopes + step
        if np.abs(step).max() <= 1e-10 * max(1.0, np.abs(slopes).max()):
            return slopes, np.asarray(np.linalg.inv(information))
        if np.abs(slopes).max() > 1e6:
            break
    raise RuntimeError(
        f"votes on scores and strengths did not converge (slopes {slopes.round(2).tolist()}); "
        "they may be separable"
    )

"""What calibration labels are worth, and how to divide them between the human outcomes."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.winrate.counts import bernoulli_variance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Allocation(NamedTuple):
    """Calibration battles that humans call lost and won, the pilot included."""

    n_lost: Ints
    n_won: Ints


class LabelVariance(NamedTuple):
    """Variance of a win rate times the number of labelled battles, squared shares.

    `adjusted`: the labels calibrate the judge. `direct`: they are averaged themselves.
    """

    adjusted: Floats
    direct: Floats


def allocate_calibration(
    n_total: int,
    *,
    judge_share: ArrayLike,
    pilot_lost_right: ArrayLike,
    pilot_won_right: ArrayLike,
    n_pilot: int,
) -> Allocation:
    """Return how to divide calibration battles between the two human outcomes.

    The class that contributes more variance gets more: the ratio of the printed rule, in which
    the judge's shares stand for those of humans. It approximates the best division
    (`calibration_plan.plan_by_human_outcome`) for a judge that is mostly right.

    Parameters
    ----------
    n_total : int
        Calibration battles in all, at least twice the pilot's.
    judge_share : array_like
        Share of test battles that the judge calls won, in [0, 1].
    pilot_lost_right, pilot_won_right : array_like
        Of `n_pilot` battles that humans call lost, and of as many they call won, those that the
        judge calls the same; shapes that broadcast with `judge_share`.
    n_pilot : int
        Pilot battles per class, from 1.

    Returns
    -------
    Allocation
        Whole numbers that sum to `n_total`, each at least `n_pilot`.

    Raises
    ------
    ValueError
        If a number is out of range or NaN.

    References
    ----------
    C. Lee et al. (2025), arXiv:2511.21140, the adaptive allocation.
    """
    if not 1 <= n_pilot <= n_total / 2:
        raise ValueError(
            f"n_pilot is {n_pilot} and n_total {n_total}; need 1 <= n_pilot <= n_total / 2"
        )
    share = _between(judge_share, 0, 1, "judge_share")
    lost_right = _between(pilot_lost_right, 0, n_pilot, "pilot_lost_right")
    won_right = _between(pilot_won_right, 0, n_pilot, "pilot_won_right")
    error_ratio = (n_pilot - lost_right + 1) / (n_pilot - won_right + 1)
    # m / (1 + (1/p - 1) sqrt(kappa)), written so that a share of 0 needs no division by it.
    of_won = share / (share + (1 - share) * np.sqrt(error_ratio))
    n_won = np.clip(np.round(n_total * of_won), n_pilot, n_total - n_pilot).astype(np.int64)
    return Allocation(n_total - n_won, n_won)


def label_variance(
    win_rate: ArrayLike,
    *,
    specificity: ArrayLike,
    sensitivity: ArrayLike,
    labels_per_test_battle: float = 0.0,
) -> LabelVariance:
    """Return what a label is worth for calibrating a judge, and when averaged directly.

    Calibration labels are divided in the best way; variances are asymptotic.

    Parameters
    ----------
    win_rate, specificity, sensitivity : array_like
        In [0, 1], shapes that broadcast; specificity + sensitivity above 1.
    labels_per_test_battle : float
        Calibration battles per test battle, from 0; 0 stands for test battles without end.

    Returns
    -------
    LabelVariance
        Of the broadcast shape; calibrating wins where `adjusted` is below `direct`.

    Raises
    ------
    ValueError
        If a share is out of range or the judge is no better than chance.

    References
    ----------
    C. Lee et al. (2025), arXiv:2511.21140, the comparison with human evaluation alone.
    """
    wins = _between(win_rate, 0, 1, "win_rate")
    right_lost = _between(specificity, 0, 1, "specificity")
    right_won = _between(sensitivity, 0, 1, "sensitivity")
    if not 0 <= labels_per_test_battle < math.inf:
        raise ValueError(f"labels_per_test_battle is {labels_per_test_battle}; need 0 or more")
    skill = right_lost + right_won - 1
    if not np.all(skill > 0):
        raise ValueError(
            f"specificity + sensitivity is {float(np.min(skill)) + 1:.4g}, at most 1: the judge "
            "is no better than chance, and its labels are worth nothing here"
        )
    spread = (1 - wins) * np.sqrt(bernoulli_variance(right_lost)) + wins * np.sqrt(
        bernoulli_variance(right_won)
    )
    sampling = bernoulli_variance(wins * right_won + (1 - wins) * (1 - right_lost))
    adjusted = (spread**2 + labels_per_test_battle * sampling) / skill**2
    return LabelVariance(adjusted, np.broadcast_to(bernoulli_variance(wins), adjusted.shape))


def winning_range(accuracy: float) -> tuple[float, float] | None:
    """Return the win rates at which calibrating a judge beats averaging the labels.

    For specificity and sensitivity both equal to `accuracy`, and test battles without end.

    Parameters
    ----------
    accuracy : float
        In (0.5, 1].

    Returns
    -------
    tuple of float, or None
        Ends of an open interval of win rates around one half; None up to an accuracy of
        1/2 + 1/(2 sqrt 2), about 0.854, where direct labels are never worse.

    Raises
    ------
    ValueError
        If `accuracy` is outside of (0.5, 1].

    References
    ----------
    C. Lee et al. (2025), arXiv:2511.21140.
    """
    if not 0.5 < accuracy <= 1:
        raise ValueError(f"accuracy must lie in (0.5, 1], got {accuracy}")
    reach = 0.5 - 1 / (4 * (2 * accuracy - 1) ** 2)
    if reach <= 0:
        return None
    return 0.5 - math.sqrt(reach), 0.5 + math.sqrt(reach)


def _between(values: ArrayLike, low: float, high: float, name: str) -> Floats:
    numbers = np.asarray(values, dtype=float)
    outside = ~((numbers >= low) & (numbers <= high))
    if outside.any():
        raise ValueError(f"{name} holds {numbers[outside].flat[0]:g}; need [{low:g}, {high:g}]")
    return numbers

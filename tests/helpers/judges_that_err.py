"""Simulated judges with known errors, and the published division of labels."""

import numpy as np
from scipy.stats import binom

from judgeline.winrate import AdjustedMean, adjusted_mean
from judgeline.winrate.labels import JudgeCounts


def play_judge(
    rng: np.random.Generator,
    win_rate: float,
    *,
    n_replications: int,
    n_test: int = 1000,
    n_lost: int | np.ndarray = 100,
    n_won: int | np.ndarray = 100,
    specificity: float = 0.7,
    sensitivity: float = 0.9,
) -> JudgeCounts:
    """Return counts of shape (n_replications,) with fixed numbers per human outcome."""
    size = n_replications
    share = win_rate * sensitivity + (1 - win_rate) * (1 - specificity)
    return JudgeCounts(
        np.full(size, n_test),
        rng.binomial(n_test, share, size),
        np.broadcast_to(n_lost, size),
        rng.binomial(n_lost, specificity, size),
        np.broadcast_to(n_won, size),
        rng.binomial(n_won, sensitivity, size),
    )


def outcome_tables(counts: JudgeCounts) -> tuple[np.ndarray, np.ndarray]:
    """Return counts as tables of test and calibration battles, in one stratum, without ties."""
    n, x, m0, k0, m1, k1 = np.broadcast_arrays(*counts)
    none = np.zeros_like(n)
    test = np.stack([x, none, n - x], axis=-1)
    cells = [k1, none, m0 - k0, none, none, none, m1 - k1, none, k0]
    known = np.stack(cells, axis=-1).reshape(*n.shape, 3, 3)
    return test[..., None, :], known[..., None, :, :]


def adjusted(counts: JudgeCounts, *, miscoverage: float = 0.05) -> AdjustedMean:
    """Return the published correction of battles without ties."""
    return adjusted_mean(*outcome_tables(counts), miscoverage=miscoverage)


def coverage(lower: np.ndarray, upper: np.ndarray, truth: float) -> float:
    return float(((lower <= truth) & (truth <= upper)).mean())


# ------------------------------------------------------------------ published division

N_PILOT, N_LABELS, Q0, Q1 = 10, 200, 0.7, 0.9


def allocate_calibration(
    n_total: int,
    *,
    judge_share: np.ndarray | float,
    lost_right: np.ndarray | float,
    won_right: np.ndarray | float,
    n_pilot: int = N_PILOT,
) -> tuple[np.ndarray, np.ndarray]:
    """Labels of lost and won battles by the adaptive rule of Lee et al. (2025), pilot included."""
    error_ratio = (n_pilot - np.asarray(lost_right) + 1) / (n_pilot - np.asarray(won_right) + 1)
    share = np.asarray(judge_share)
    # m / (1 + (1/p - 1) sqrt(kappa)), written so that a share of 0 needs no division by it.
    of_won = share / (share + (1 - share) * np.sqrt(error_ratio))
    n_won = np.clip(np.round(n_total * of_won), n_pilot, n_total - n_pilot).astype(np.int64)
    return n_total - n_won, n_won


def spread(win_rate: float, n_lost: np.ndarray, n_won: np.ndarray) -> np.ndarray:
    """Standard error of the estimate without smoothing, from the true rates."""
    share = win_rate * Q1 + (1 - win_rate) * (1 - Q0)
    variance = share * (1 - share) / 1000 + (1 - win_rate) ** 2 * Q0 * (1 - Q0) / n_lost
    return np.sqrt(variance + win_rate**2 * Q1 * (1 - Q1) / n_won)


def gain_in_theory(win_rate: float) -> float:
    """Expected relative gain over an even split, the noise of the pilot enumerated."""
    right = np.arange(N_PILOT + 1)
    share = win_rate * Q1 + (1 - win_rate) * (1 - Q0)
    plan = allocate_calibration(
        N_LABELS, judge_share=share, lost_right=right[:, None], won_right=right
    )
    odds = np.outer(binom.pmf(right, N_PILOT, Q0), binom.pmf(right, N_PILOT, Q1))
    even = spread(win_rate, np.array(100), np.array(100))
    return float(1 - (odds * spread(win_rate, *plan)).sum() / even)


def adaptive(rng: np.random.Generator, win_rate: float, n_replications: int) -> JudgeCounts:
    """Counts when a pilot of ten per class divides 200 labels; the pilot is kept."""
    size = n_replications
    test = rng.binomial(1000, win_rate * Q1 + (1 - win_rate) * (1 - Q0), size)
    lost_right, won_right = rng.binomial(N_PILOT, Q0, size), rng.binomial(N_PILOT, Q1, size)
    n_lost, n_won = allocate_calibration(
        N_LABELS, judge_share=test / 1000, lost_right=lost_right, won_right=won_right
    )
    more_lost = rng.binomial(n_lost - N_PILOT, Q0)
    more_won = rng.binomial(n_won - N_PILOT, Q1)
    right = (lost_right + more_lost, won_right + more_won)
    return JudgeCounts(np.full(size, 1000), test, n_lost, right[0], n_won, right[1])

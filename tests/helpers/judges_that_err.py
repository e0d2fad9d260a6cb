"""What simulated judges with known errors should give, and the gain of dividing labels well."""

import numpy as np
from scipy.stats import binom

from judgeline.winrate import AdjustedMean, adjusted_mean, allocate_labels
from judgeline.winrate.labels import JudgeCounts
from papers.correct_reporting import (
    N_LABELS,
    N_PILOT,
    Q0,
    Q1,
    outcome_tables,
)


def adjusted(counts: JudgeCounts, *, miscoverage: float = 0.05) -> AdjustedMean:
    """Return the published correction of battles without ties."""
    return adjusted_mean(*outcome_tables(counts), miscoverage=miscoverage)


def coverage(lower: np.ndarray, upper: np.ndarray, truth: float) -> float:
    return float(((lower <= truth) & (truth <= upper)).mean())


# ------------------------------------------------------------------ published division


def spread(win_rate: float, n_lost: np.ndarray, n_won: np.ndarray) -> np.ndarray:
    """Standard error of the estimate without smoothing, from the true rates."""
    share = win_rate * Q1 + (1 - win_rate) * (1 - Q0)
    variance = share * (1 - share) / 1000 + (1 - win_rate) ** 2 * Q0 * (1 - Q0) / n_lost
    return np.sqrt(variance + win_rate**2 * Q1 * (1 - Q1) / n_won)


def gain_in_theory(win_rate: float) -> float:
    """Expected relative gain over an even split, the noise of the pilot enumerated."""
    right = np.arange(N_PILOT + 1)
    share = win_rate * Q1 + (1 - win_rate) * (1 - Q0)
    pilot = JudgeCounts(1.0, share, N_PILOT, right[:, None], N_PILOT, right)
    plan = allocate_labels(N_LABELS, pilot)
    odds = np.outer(binom.pmf(right, N_PILOT, Q0), binom.pmf(right, N_PILOT, Q1))
    even = spread(win_rate, np.array(100), np.array(100))
    return float(1 - (odds * spread(win_rate, *plan)).sum() / even)

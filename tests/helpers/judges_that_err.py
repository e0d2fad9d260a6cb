"""Simulated judges with known errors, and the interval's misprinted variants."""

import numpy as np

from judgeline.winrate.adjusted_means import AdjustedMean, adjusted_mean
from judgeline.winrate.counts import JudgeCounts, JudgeRates, normal_quantile


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


def printed_interval(
    rates: JudgeRates,
    *,
    miscoverage: float,
    shift_sign: float = 1.0,
    divide_inside: bool = False,
    clip_first: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of smoothed rates written out as in print, misprints on request."""
    z = normal_quantile(miscoverage)
    p, q0, q1, n, m0, m1 = rates
    skill = q0 + q1 - 1
    theta = (p + q0 - 1) / skill
    if clip_first:
        theta = np.clip(theta, 0, 1)
    shift = 2 * z**2 * (-(1 - theta) * q0 * (1 - q0) / m0 + theta * q1 * (1 - q1) / m1)
    variance = p * (1 - p) / n + (1 - theta) ** 2 * q0 * (1 - q0) / m0
    variance = variance + theta**2 * q1 * (1 - q1) / m1
    root = np.sqrt(variance / skill) if divide_inside else np.sqrt(variance) / skill
    centre = theta + shift_sign * shift
    return np.clip(centre - z * root, 0, 1), np.clip(centre + z * root, 0, 1)


MISPRINTS: dict[str, dict[str, float | bool]] = {
    "the shift subtracted": {"shift_sign": -1.0},
    "the skill inside of the root": {"divide_inside": True},
    "both": {"shift_sign": -1.0, "divide_inside": True},
}

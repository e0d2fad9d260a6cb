"""Battles on which each of five estimators of one binary win rate holds."""

import numpy as np

from judgeline.winrate.labels import JudgeCounts
from papers.correct_reporting import Q0, Q1

SPECIFICITY, SENSITIVITY = Q0, Q1
N_REPLICATIONS = 4000


def sample(
    rng: np.random.Generator, test: np.ndarray, calibration: np.ndarray, *, m: int = 2000
) -> JudgeCounts:
    """Counts of random battles; tables of probabilities by (human, judge), losses first."""
    judged = rng.multinomial(5000, test.ravel(), N_REPLICATIONS).reshape(-1, 2, 2)
    labelled = rng.multinomial(m, calibration.ravel(), N_REPLICATIONS).reshape(-1, 2, 2)
    by_human = labelled.sum(axis=2)
    return JudgeCounts(
        np.full(N_REPLICATIONS, 5000),
        judged[:, :, 1].sum(axis=1),
        by_human[:, 0],
        labelled[:, 0, 0],
        by_human[:, 1],
        labelled[:, 1, 1],
    )


def table(win_rate: float) -> np.ndarray:
    """Probabilities of (human, judge) when the judge errs alike at every win rate."""
    return np.array(
        [
            [(1 - win_rate) * SPECIFICITY, (1 - win_rate) * (1 - SPECIFICITY)],
            [win_rate * (1 - SENSITIVITY), win_rate * SENSITIVITY],
        ]
    )


SAME = table(0.6)
SHIFTED_VERDICTS = np.stack(
    [SAME[:, 0] / SAME[:, 0].sum() * 0.3, SAME[:, 1] / SAME[:, 1].sum() * 0.7], 1
)

"""Five estimators of one binary win rate side by side, and battles on which each of them holds."""

from typing import NamedTuple

import numpy as np

from judgeline.winrate.labels import JudgeCounts, JudgeRates, judge_rates

ESTIMATORS: tuple[str, ...] = (
    "naive", "calibration_only", "difference", "conditional", "misclassification_adjusted",
)  # fmt: skip
"""The order of the rows of `WinRatePeers`.

``naive``: the judge's win rate on test battles, unbiased only for a judge whose two errors
cancel. ``calibration_only``: the humans' on calibration battles; one population.
``difference`` (prediction-powered): naive plus the humans' minus the judge's on calibration
battles; one population. ``conditional``: the share of human wins among battles that the judge
calls won, and lost, weighed by its verdicts on test battles; verdicts mean the same in both.
``misclassification_adjusted``: as `adjusted_mean`; the judge errs alike in both.
"""


class WinRatePeers(NamedTuple):
    """Estimates and plug-in standard errors, shape (5, ...): rows as `ESTIMATORS`."""

    win_rate: np.ndarray
    std_error: np.ndarray


def compare_estimators(counts: JudgeCounts) -> WinRatePeers:
    """Return five estimates of the test battles' win rate; only the last is clipped."""
    rates = judge_rates(JudgeCounts(*(np.asarray(part, dtype=float) for part in counts)))
    rows = [
        (rates.share, np.sqrt(binomial(rates.share, rates.n_test))),
        calibration_only(rates),
        difference(rates),
        conditional(rates),
        (np.clip(rates.win_rate, 0, 1), delta_method(rates)),
    ]
    return WinRatePeers(*(np.stack(column) for column in zip(*rows, strict=True)))


def binomial(share: np.ndarray, n: np.ndarray) -> np.ndarray:
    return share * (1 - share) / n


def delta_method(rates: JudgeRates) -> np.ndarray:
    variance = binomial(rates.share, rates.n_test)
    variance = variance + (1 - rates.win_rate) ** 2 * binomial(rates.specificity, rates.n_lost)
    variance = variance + rates.win_rate**2 * binomial(rates.sensitivity, rates.n_won)
    return np.sqrt(variance) / rates.skill


def calibration_only(rates: JudgeRates) -> tuple[np.ndarray, np.ndarray]:
    total = rates.n_lost + rates.n_won
    share = rates.n_won / total
    return share, np.sqrt(binomial(share, total))


def difference(rates: JudgeRates) -> tuple[np.ndarray, np.ndarray]:
    total = rates.n_lost + rates.n_won
    underrated = (1 - rates.sensitivity) * rates.n_won / total  # human 1, judge 0
    overrated = (1 - rates.specificity) * rates.n_lost / total  # human 0, judge 1
    mean = underrated - overrated
    variance = (underrated + overrated - mean**2) / total
    return rates.share + mean, np.sqrt(binomial(rates.share, rates.n_test) + variance)


def conditional(rates: JudgeRates) -> tuple[np.ndarray, np.ndarray]:
    right, wrong = rates.sensitivity * rates.n_won, (1 - rates.specificity) * rates.n_lost
    missed, rejected = (1 - rates.sensitivity) * rates.n_won, rates.specificity * rates.n_lost
    if_won, if_lost = right / (right + wrong), missed / (missed + rejected)
    win_rate = rates.share * if_won + (1 - rates.share) * if_lost
    variance = (
        (if_won - if_lost) ** 2 * binomial(rates.share, rates.n_test)
        + rates.share**2 * binomial(if_won, right + wrong)
        + (1 - rates.share) ** 2 * binomial(if_lost, missed + rejected)
    )
    return win_rate, np.sqrt(variance)


# ------------------------------------------------------------------ simulated battles

SPECIFICITY, SENSITIVITY = 0.7, 0.9
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

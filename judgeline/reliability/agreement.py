"""Agreement of judges: of one with itself over runs, and with the others."""

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

STRONG_JUDGE = 0.90
"""Least ICC(3,k) of a judge whose ratings may be shown."""


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> float:
    """Return Cohen's kappa (1960, Educational and Psychological Measurement 20(1)) of two raters.

    Outcomes (n,) in [0, 1] are of three classes: above one half A, below B, one half a tie. 1 is
    perfect agreement, 0 chance agreement; NaN when both raters put everything in one same class, so
    that chance alone agrees throughout. No battle, different lengths or NaN are a `ValueError`.
    """
    return _kappa(_classes(first, "first"), _classes(second, "second"), 3)


def kappa_of_scores(first: ArrayLike, second: ArrayLike) -> float:
    """Return Cohen's kappa of two raters whose every score is a class, as `cohen_kappa` does.

    Scores (n,) are equal or differ, by however much: two neighbours on a fine scale disagree.
    """
    columns = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    missing = sum(int(np.isnan(column).sum()) for column in columns)
    if missing:
        raise ValueError(f"scores hold {missing} NaN; leave out what one of the two did not score")
    names, classes = np.unique(np.concatenate(columns), return_inverse=True)
    return _kappa(classes[: columns[0].size], classes[columns[0].size :], names.size)


def _kappa(ours: NDArray[np.intp], theirs: NDArray[np.intp], n_classes: int) -> float:
    if ours.size != theirs.size or not ours.size:
        raise ValueError(f"kappa needs equally many outcomes, got {ours.size} and {theirs.size}")
    counts = np.bincount(n_classes * ours + theirs, minlength=n_classes**2)
    table = counts.reshape(n_classes, n_classes) / ours.size
    chance = float(table.sum(axis=1) @ table.sum(axis=0))
    if chance >= 1:
        return float("nan")
    return float((np.trace(table) - chance) / (1 - chance))


def _classes(outcome: ArrayLike, name: str) -> NDArray[np.intp]:
    values = np.asarray(outcome, dtype=float)
    if np.isnan(values).any():
        raise ValueError(f"{name} holds {int(np.isnan(values).sum())} NaN in {values.size}")
    return (np.sign(values - 0.5) + 1).astype(np.intp)


def mean_pairwise_kappa(outcome: ArrayLike) -> float:
    """Return Cohen's kappa of outcomes (judges, battles), averaged over all pairs of judges.

    Fewer than two judges, NaN, or two judges that put everything in one same class, where kappa is
    undefined, are a `ValueError`. Source: R. J. Light (1971), Psychological Bulletin 76(5).
    """
    rows = np.asarray(outcome, dtype=float)
    if rows.ndim != 2 or rows.shape[0] < 2:
        raise ValueError(f"outcome must have shape (judges >= 2, battles), got {rows.shape}")
    pairs = list(combinations(range(rows.shape[0]), 2))
    kappas = np.array([cohen_kappa(rows[i], rows[j]) for i, j in pairs])
    if np.isnan(kappas).any():
        first, second = pairs[int(np.argmax(np.isnan(kappas)))]
        raise ValueError(
            f"judges {first} and {second} put all {rows.shape[1]} battles in one class: their "
            "kappa is undefined; compare them on battles that differ"
        )
    return float(kappas.mean())


def icc_average(panel: ArrayLike) -> float:
    """Return ICC(3,k), the reliability of a judge's mean over k runs, of a panel (prompts, runs).

    From the mean squares of the two-way analysis of variance it is
    ``(MS_prompts - MS_error) / MS_prompts``, consistency: constant offsets between runs do not
    count. At most 1; negative when runs differ more than prompts do. It assumes that runs differ
    by no more than a constant and independent errors of one variance. A panel with a missing cell,
    one run or one prompt, or without variance between prompts is a `ValueError`.

    References
    ----------
    P. E. Shrout and J. L. Fleiss (1979), "Intraclass Correlations: Uses in Assessing Rater
    Reliability", Psychological Bulletin 86(2), case 3 with k raters; equal to Cronbach's alpha.
    """
    scores = _panel(panel)
    n, k = scores.shape
    centred = scores - scores.mean()
    prompt, run = centred.mean(axis=1), centred.mean(axis=0)
    rest = centred - prompt[:, None] - run
    rounding = (1e-12 * np.abs(scores).max()) ** 2
    between = float(k * prompt @ prompt / (n - 1))
    if between <= rounding:
        raise ValueError(
            f"the {n} prompts have one and the same mean over {k} runs: without variance between "
            "prompts no reliability is defined; judge prompts that differ"
        )
    return (between - float((rest**2).sum() / ((n - 1) * (k - 1)))) / between


def _panel(panel: ArrayLike) -> Floats:
    scores = np.asarray(panel, dtype=float)
    if scores.ndim != 2:
        raise ValueError(f"panel must have shape (prompts, runs), got {scores.shape}")
    if scores.shape[1] < 2:
        raise ValueError(f"panel has {scores.shape[1]} run: judge each prompt at least twice")
    if scores.shape[0] < 2:
        raise ValueError(f"panel has {scores.shape[0]} prompt: judge at least two prompts")
    missing = np.argwhere(~np.isfinite(scores))
    if missing.size:
        raise ValueError(
            f"panel misses {len(missing)} of {scores.size} cells (first at prompt "
            f"{missing[0][0]}, run {missing[0][1]}); leave out such prompts or judge them again"
        )
    return scores


def single_run_reliability(average: float, n_runs: int) -> float:
    """Return the reliability of one run, ICC(3,1), from that of the mean of several.

    ``rho / (k - (k - 1) rho)``, the Spearman-Brown formula backwards: C. Spearman (1910) and
    W. Brown (1910), British Journal of Psychology 3(3). An `average` above 1 or NaN, or no run,
    raises `ValueError`.
    """
    if not average <= 1:
        raise ValueError(f"average must be a reliability of at most 1, got {average}")
    if n_runs < 1:
        raise ValueError(f"n_runs must be at least 1, got {n_runs}")
    return average / (n_runs - (n_runs - 1) * average)


def reliability_factor(kappa: float) -> float:
    """Return ``sqrt(kappa)``, the factor of the standard error of a rating pooled over many judges.

    This is the square root of what `pooled_variance` tends to as judges are added, with their mean
    pairwise kappa in the place of their correlation: a standard error of one judge comes in, and
    the floor that no number of such judges gets below goes out. It is therefore small for judges
    who disagree: it rewards pooling them and says nothing about whether they are right. It is
    applied once and never together with `pooled_variance`. A kappa outside (0, 1] is a
    `ValueError`.

    References
    ----------
    "Robust LLM-based Scoring via Reference-Anchored Elo Estimation" (2025): 0.85 for its mean kappa
    of about 0.72. One sentence takes a second square root, which its own tables contradict.
    """
    if not 0 < kappa <= 1:
        raise ValueError(
            f"kappa must lie in (0, 1], got {kappa}; judges who agree no more than by chance "
            "cannot be pooled: screen them first"
        )
    return float(np.sqrt(kappa))


def pooled_variance(variance: float, correlation: float, n_judges: int) -> float:
    """Return ``s^2 (rho + (1 - rho) / J)``: the variance of the mean of J equally good ratings.

    `variance` is that of one judge's rating, in squared Elo points; `correlation` rho that between
    two judges' ratings of one model. A negative variance, no judge, or a rho outside ``[-1 / (J -
    1), 1]`` is a `ValueError`.
    """
    if n_judges < 1:
        raise ValueError(f"n_judges must be at least 1, got {n_judges}")
    if not variance >= 0:
        raise ValueError(f"variance must be at least 0, got {variance}")
    least = -1 / (n_judges - 1) if n_judges > 1 else -1.0
    if not least <= correlation <= 1:
        raise ValueError(
            f"correlation of {n_judges} judges must lie in [{least:.3g}, 1], got {correlation}"
        )
    return variance * (correlation + (1 - correlation) / n_judges)

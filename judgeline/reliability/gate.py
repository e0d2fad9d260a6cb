"""The judge gate: criteria with limits, and the agreement of runs and judges that it measures."""

import math
from collections.abc import Callable, Collection, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, alike_floats, require

AT_LEAST, AT_MOST = "at least", "at most"

STRONG_JUDGE = 0.90
"""Least ICC(3,k) of a judge whose ratings may be shown."""


class Criterion(NamedTuple):
    """Where a criterion's limit lies by default, and on which side of it a judge passes."""

    direction: str
    threshold: float


CRITERIA: dict[str, Criterion] = {
    # Strong judges, whose ratings may be pooled: "Robust LLM-based Scoring via Reference-Anchored
    # Elo Estimation" (2025). An average of k runs flatters a judge that is asked once.
    "icc_average": Criterion(AT_LEAST, STRONG_JUDGE),
    # "Poor" below it: T. K. Koo and M. Y. Li (2016), J. Chiropractic Medicine 15(2). More than
    # half of what tells one battle's score from another's is then chance.
    "single_run_reliability": Criterion(AT_LEAST, 0.5),
    # At 0 and below the judge knows no more of a model than people's mean rating: A. H.
    # Murphy (1988), Monthly Weather Review 116(12).
    "skill": Criterion(AT_LEAST, 0.0),
    # An interval that reaches 0 cannot tell the judge from that.
    "skill_lower": Criterion(AT_LEAST, 0.0),
    # No better than "slight" up to it: J. R. Landis and G. G. Koch (1977), Biometrics 33(1). It is
    # as low where single votes are noisy, however good the judge: `skill` tells the two apart.
    "kappa": Criterion(AT_LEAST, 0.2),
    # "Moderate" from it on: Landis and Koch (1977).
    "run_kappa": Criterion(AT_LEAST, 0.4),
    # Ours: a tenth of the battles missing, hardly at random, moves ratings as far as a judge does.
    "parse_rate": Criterion(AT_LEAST, 0.9),
    # GPT-4 in L. Zheng et al. (2023), "Judging LLM-as-a-Judge", arXiv:2306.05685, table 2, kept
    # its verdict in 65 % of swapped pairs; a coin in half of the decisive ones.
    "position_flip_rate": Criterion(AT_MOST, 0.35),
    # Ours, in rubric points: of the order of the differences that decide battles.
    "position_effect": Criterion(AT_MOST, 1.0),
    # The uncorrected 70B judge of Y. Wang et al. (2025), TrustJudge, arXiv:2509.21117, has 0.23.
    "conflict_ratio": Criterion(AT_MOST, 0.25),
    # Ours, of triples: a coin without ties breaks a quarter of them.
    "non_transitivity_ratio": Criterion(AT_MOST, 0.1),
}
"""Criteria by name, in the order of every table."""

WITHHOLD: tuple[str, ...] = ("single_run_reliability", "skill", "parse_rate")
"""Criteria whose failure withholds ratings by default; the others inform."""


class Measurement(NamedTuple):
    """A criterion's value in its own unit, NaN where it could not be measured; why, or on what."""

    value: float
    note: str


class Gate(NamedTuple):
    """One row per criterion, in their order.

    `threshold` is NaN where none is set. `passed` is 1 or 0, and NaN for a criterion without a
    measurement or a threshold. `note` says why there is none, or what the value rests on.
    """

    criterion: NDArray[np.str_]
    value: Floats
    threshold: Floats
    direction: NDArray[np.str_]
    passed: Floats
    withholds: NDArray[np.bool_]
    note: NDArray[np.str_]


def hold_to(
    measured: Mapping[str, Measurement],
    *,
    thresholds: Mapping[str, float | None] | None = None,
    withhold: Collection[str] = WITHHOLD,
) -> Gate:
    """Return how a judge stands against each criterion; a value on its threshold passes.

    An absent criterion was not measured. `thresholds` take the place of the default ones, None for
    no limit; a failed criterion of `withhold` withholds ratings. A name that is no criterion, or a
    threshold that is not finite, is a `ValueError`.
    """
    limits = {name: criterion.threshold for name, criterion in CRITERIA.items()}
    limits |= {name: math.nan if t is None else t for name, t in (thresholds or {}).items()}
    for name in (*measured, *limits, *withhold):
        if name not in CRITERIA:
            raise ValueError(f"{name!r} is no criterion; the criteria are {', '.join(CRITERIA)}")
        if math.isinf(limits[name]):
            raise ValueError(f"the threshold of {name} is infinite; set it to null for no limit")
    rows = []
    for name, (direction, _) in CRITERIA.items():
        value, note = measured.get(name, Measurement(math.nan, "not measured"))
        beyond = value - limits[name] if direction == AT_LEAST else limits[name] - value
        passed = math.nan if math.isnan(beyond) else float(beyond >= 0)
        rows.append((name, value, limits[name], direction, passed, name in withhold, note))
    return Gate(*(np.array(column) for column in zip(*rows, strict=True)))


def failures(gate: Gate, *, withholding: bool) -> str:
    """Return the criteria that a judge fails, such as ``skill -0.12 < 0.00``; empty for none.

    Either those that withhold ratings are listed, or those that only inform.
    """
    failed = (gate.passed == 0) & (gate.withholds == withholding)
    return ", ".join(_words(gate, row) for row in np.flatnonzero(failed))


def _words(gate: Gate, row: int) -> str:
    value, threshold = float(gate.value[row]), float(gate.threshold[row])
    sign = "<" if gate.direction[row] == AT_LEAST else ">"
    digits = 2  # more where two would make a failure look like a pass
    while digits < 6 and f"{value:.{digits}f}" == f"{threshold:.{digits}f}":
        digits += 1
    return f"{gate.criterion[row]} {value:.{digits}f} {sign} {threshold:.{digits}f}"


def panel_measurements(score_difference: ArrayLike, outcome: ArrayLike) -> dict[str, Measurement]:
    """Return ``icc_average``, ``single_run_reliability`` and ``run_kappa`` of repeated runs.

    Score differences, in rubric points, and outcomes are of one shape (battles, runs). Battles
    without a score in every run are left out, and counted in the note. A measurement that the runs
    do not determine is NaN, with the reason.
    """
    scores, outcomes = alike_floats(2, score_difference=score_difference, outcome=outcome)
    whole = np.isfinite(scores).all(axis=1) & np.isfinite(outcomes).all(axis=1)
    n_runs = scores.shape[1]
    basis = f"{int(whole.sum())} of {len(scores)} battles in {n_runs} runs"
    scores, outcomes = scores[whole], outcomes[whole]
    figures: dict[str, Callable[[], float]] = {
        "icc_average": lambda: icc_average(scores),
        "single_run_reliability": lambda: single_run_reliability(icc_average(scores), n_runs),
        "run_kappa": lambda: mean_pairwise_kappa(outcomes.T),
    }
    if len(scores) < 2 or n_runs < 2:
        return dict.fromkeys(figures, Measurement(math.nan, f"too few scores: {basis}"))
    measured = {}
    for name, figure in figures.items():
        try:
            measured[name] = Measurement(figure(), basis)
        except ValueError as reason:
            measured[name] = Measurement(math.nan, str(reason))
    return measured


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> float:
    """Return Cohen's kappa (1960, Educational and Psychological Measurement 20(1)) of two raters.

    Outcomes (n,) in [0, 1] are of three classes: above one half A, below B, one half a tie. 1 is
    perfect agreement, 0 chance agreement; NaN when both raters put everything in one same class, so
    that chance alone agrees throughout. No battle, different lengths or NaN are a `ValueError`.
    """
    columns = alike_floats(first=first, second=second)
    for name, column in zip(("first", "second"), columns, strict=True):
        require(~np.isnan(column), name, column, "a number; leave out battles without one")
    ours, theirs = (np.sign(np.array(columns) - 0.5) + 1).astype(np.intp)
    return _kappa(ours, theirs, 3)


def kappa_of_scores(first: ArrayLike, second: ArrayLike) -> float:
    """Return Cohen's kappa of two raters whose every score is a class, as `cohen_kappa` does.

    Scores (n,) are equal or differ, by however much: two neighbours on a fine scale disagree.
    """
    ours, theirs = alike_floats(first=first, second=second)
    scores = np.concatenate([ours, theirs])
    require(~np.isnan(scores), "score", scores, "a score; leave out what one of the two did not")
    names, classes = np.unique(scores, return_inverse=True)
    return _kappa(classes[: ours.size], classes[ours.size :], names.size)


def _kappa(ours: NDArray[np.intp], theirs: NDArray[np.intp], n_classes: int) -> float:
    require(ours.size, "the number of outcomes", 0, "at least one")
    counts = np.bincount(n_classes * ours + theirs, minlength=n_classes**2)
    table = counts.reshape(n_classes, n_classes) / ours.size
    chance = float(table.sum(axis=1) @ table.sum(axis=0))
    if chance >= 1:
        return float("nan")
    return float((np.trace(table) - chance) / (1 - chance))


def mean_pairwise_kappa(outcome: ArrayLike) -> float:
    """Return Cohen's kappa of outcomes (judges, battles), averaged over all pairs of judges.

    Fewer than two judges, NaN, or two judges that put everything in one same class, where kappa is
    undefined, are a `ValueError`. Source: R. J. Light (1971), Psychological Bulletin 76(5).
    """
    rows = np.asarray(outcome, dtype=float)
    has_pairs = rows.ndim == 2 and len(rows) >= 2
    require(has_pairs, "the shape of outcome", rows.shape, "(judges >= 2, battles)")
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
    scores = np.asarray(panel, dtype=float)
    is_panel = scores.ndim == 2 and min(scores.shape) >= 2
    remedy = "(prompts >= 2, runs >= 2): judge each of two prompts or more at least twice"
    require(is_panel, "the shape of panel", scores.shape, remedy)
    missing = "a number; leave out such prompts or judge them again"
    require(np.isfinite(scores), "panel", scores, missing)
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


def single_run_reliability(average: float, n_runs: int) -> float:
    """Return the reliability of one run, ICC(3,1), from that of the mean of several.

    ``rho / (k - (k - 1) rho)``, the Spearman-Brown formula backwards: C. Spearman (1910) and
    W. Brown (1910), British Journal of Psychology 3(3). An `average` above 1 or NaN, or no run,
    raises `ValueError`.
    """
    require(average <= 1, "average", average, "a reliability of at most 1")
    require(n_runs >= 1, "n_runs", n_runs, "at least 1")
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
    remedy = "a kappa in (0, 1]: judges who agree no more than by chance cannot be pooled"
    require(0 < kappa <= 1, "kappa", kappa, f"{remedy}; screen them first")
    return float(np.sqrt(kappa))


def pooled_variance(variance: float, correlation: float, n_judges: int) -> float:
    """Return ``s^2 (rho + (1 - rho) / J)``: the variance of the mean of J equally good ratings.

    `variance` is that of one judge's rating, in squared Elo points; `correlation` rho that between
    two judges' ratings of one model. A negative variance, no judge, or a rho outside ``[-1 / (J -
    1), 1]`` is a `ValueError`.
    """
    require(n_judges >= 1, "n_judges", n_judges, "at least 1")
    require(variance >= 0, "variance", variance, "at least 0")
    least = -1 / (n_judges - 1) if n_judges > 1 else -1.0
    possible = f"{least:.3g} to 1 for {n_judges} judges"
    require(least <= correlation <= 1, "correlation", correlation, possible)
    return variance * (correlation + (1 - correlation) / n_judges)

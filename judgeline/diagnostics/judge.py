"""Named diagnostics of one judge on one corpus, each with its unit and battle count."""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.arrays import Floats, Ints, require
from judgeline.elo.battles import CodedBattles, chunks
from judgeline.elo.beta import BetaFit, BetaFolds, fit_beta
from judgeline.elo.ratings import HeldOutRatings
from judgeline.elo.resampling import keyed_rng
from judgeline.elo.sums import add_counts
from judgeline.elo.surrogacy import fit_surrogacy
from judgeline.reliability.gate import cohen_kappa

NEAR_TIE = 0.3
"""Battles with a smaller absolute score difference, in rubric points, show verbosity bias."""

BUDGETS: tuple[int, ...] = (5, 10, 20, 50, 100)
"""Annotation budgets at which the slope's stability is tried, in votes per model."""

LEAST_LANGUAGE_VOTES = 50
"""Decisive votes that a language needs for a slope of its own."""


class Diagnostics(NamedTuple):
    """One row per diagnostic and level (a bin, language or budget; empty for the whole).

    `value` is in `unit`; `n` counts the battles, or models, behind it.
    """

    diagnostic: NDArray[np.str_]
    level: NDArray[np.str_]
    value: Floats
    unit: NDArray[np.str_]
    n: Ints


class Binned(NamedTuple):
    """Battles in bins: `low` and `high` bounds, mean of `x`, mean of `y`, and battles `n`."""

    low: Floats
    high: Floats
    mean_x: Floats
    mean_y: Floats
    n: Ints


_SLOPE, _POINTS = "logits per rubric point", "rubric points"
_Votes = tuple[Floats, Floats, Ints | None]  # score differences, human outcomes, battles of each
_Row = tuple[str, str, float, str, int]


def diagnose_judge(
    battles: CodedBattles,
    beta_folds: BetaFolds,
    heldout: HeldOutRatings,
    *,
    difference_ab: ArrayLike | None = None,
    difference_ba: ArrayLike | None = None,
    length_a: ArrayLike | None = None,
    length_b: ArrayLike | None = None,
    language: ArrayLike | None = None,
    same_family: Collection[str] = (),
    l2: float = 0.01,
    seed: int = 0,
) -> Diagnostics:
    """Return every diagnostic that the given columns allow; the others are absent, not NaN.

    Parameters
    ----------
    battles, beta_folds, heldout : CodedBattles, BetaFolds, HeldOutRatings
        The n scored battles, with their votes, and the slopes and ratings made of them.
    difference_ab, difference_ba : array_like, shape (n,), optional
        Score of A minus B with A, respectively B, shown first, in rubric points; NaN where
        unpublished. Position needs both.
    length_a, length_b : array_like, shape (n,), optional
        Lengths of the completions, in characters. Verbosity needs both.
    language : array_like of str, shape (n,), optional
        Language of each battle, None where unknown.
    same_family : collection of str
        Models of the judge's own family.
    l2 : float
        Penalty of the strengths behind the surrogacy test, per squared logit.
    seed : int
        Seed of the random subsets.

    Returns
    -------
    Diagnostics
        One row per diagnostic and level. Of counted battles, which may have been turned so that
        alike ones are one, only slopes, reliability and residuals.
    """
    votes = score, human, count = _by_score(battles)
    pooled, is_single = fit_beta(*votes), count is None
    columns = (difference_ab, difference_ba, length_a, length_b)
    return _table(
        [
            *(_agreement(battles, score, human) if is_single else ()),
            *_slopes(votes, pooled, beta_folds),
            *_reliability(votes, pooled),
            *_residuals(heldout),
            *_same_family(battles, heldout, list(same_family)),
            *_surrogacy(battles, l2, seed),
            *(_budgets(battles, score, human, seed) if is_single else ()),
            *_biases(score, *columns),
            *(() if language is None else _languages(score, human, np.asarray(language, object))),
        ]
    )


def _by_score(battles: CodedBattles) -> _Votes:
    """Return score differences and votes, and of counted battles how many have the same two."""
    if battles.count is None:
        human = np.where(battles.human_outcome < 0, np.nan, battles.human_outcome / 2)
        return battles.rubric_points(), human, None
    shares, parts = np.array([0.0, 0.5, 1.0, np.nan]), [*chunks(len(battles))]
    scores = np.unique([s for part in parts for s in np.unique(battles.score_difference[part])])
    total = np.zeros(scores.size * shares.size, dtype=np.int64)
    for part in parts:
        key = np.searchsorted(scores, battles.score_difference[part]) * shares.size
        add_counts(total, key + (battles.human_outcome[part] & 3), battles.weights(part))
    met = np.flatnonzero(total)
    points = scores[met // shares.size] / (battles.denominator or 1)
    return points, shares[met % shares.size], total[met]


def diagnose_biases(
    score_difference: ArrayLike,
    *,
    difference_ab: ArrayLike | None = None,
    difference_ba: ArrayLike | None = None,
    length_a: ArrayLike | None = None,
    length_b: ArrayLike | None = None,
) -> Diagnostics:
    """Return the diagnostics of `diagnose_judge` on position and verbosity, which need no votes."""
    score = np.asarray(score_difference, dtype=float)
    return _table(_biases(score, difference_ab, difference_ba, length_a, length_b))


def _table(rows: Iterable[_Row]) -> Diagnostics:
    columns = list(zip(*rows, strict=True)) or [()] * len(Diagnostics._fields)
    return Diagnostics(*map(np.array, columns))


def _agreement(battles: CodedBattles, score: Floats, human: Floats) -> Iterator[_Row]:
    voted = np.isfinite(human)
    judge = battles.judge_outcome[voted] / 4
    n = int(voted.sum())
    yield "cohen_kappa", "", cohen_kappa(judge, human[voted]), "kappa", n
    # which model is called A says nothing; where it goes with strength, chance agreement does
    both = (np.concatenate([side, 1 - side]) for side in (judge, human[voted]))
    yield "kappa_both_ways", "", cohen_kappa(*both), "kappa", n
    yield "mean_absolute_score", "", float(np.abs(score).mean()), _POINTS, score.size
    verdict = battles.judge_outcome / 4 - 0.5
    decided = verdict != 0
    if decided.any():
        apart = float((verdict * score < 0)[decided].mean())
        yield "verdict_score_disagreement", "", apart, "share", int(decided.sum())
    decisive = voted & (human != 0.5)
    if not decisive.any():
        return
    size = np.abs(score[decisive])
    agrees = np.where(score[decisive] == 0, 0.5, (score[decisive] > 0) == (human[decisive] == 1))
    yield "decisive_agreement", "", float(agrees.mean()), "share", int(decisive.sum())
    bins = equal_mass_bins(size, agrees, n_bins=5)
    for low, high, _, share, of_bin in zip(*map(np.ndarray.tolist, bins), strict=True):
        yield "decisive_agreement_by_score", f"{low:.3f}..{high:.3f}", share, "share", of_bin
    if np.ptp(size) > 0 and np.ptp(agrees) > 0:
        correlation = float(np.corrcoef(size, agrees)[0, 1])
        yield "score_agreement_correlation", "", correlation, "Pearson r", int(decisive.sum())


def _slopes(votes: _Votes, pooled: BetaFit, folds: BetaFolds) -> Iterator[_Row]:
    score, human, count = votes
    yield "beta_pooled", "", pooled.beta, _SLOPE, pooled.n_battles
    # a tie is half of a win for either side: each vote stands there twice
    voted = np.isfinite(human)
    tie, doubled = human[voted] == 0.5, np.tile(score[voted], 2)
    sides = np.concatenate([np.where(tie, 1.0, human[voted]), np.where(tie, 0.0, human[voted])])
    with_ties = fit_beta(doubled, sides, None if count is None else np.tile(count[voted], 2))
    yield "beta_with_ties", "", with_ties.beta, _SLOPE, with_ties.n_battles // 2
    known = folds.beta[np.isfinite(folds.beta)]
    if known.size:
        spread = float(known.std(ddof=1)) if known.size > 1 else float("nan")
        yield "beta_fold_sd", "", spread, _SLOPE, known.size


def _reliability(votes: _Votes, pooled: BetaFit) -> Iterator[_Row]:
    if pooled.status != "ok":
        return
    score, human, count = votes
    bins = reliability_curve(score, human, pooled.beta, count)
    for _, _, predicted, observed, n in zip(*map(np.ndarray.tolist, bins), strict=True):
        yield "reliability", f"{predicted:.4f}", observed, "share", n
    error = expected_calibration_error(bins)
    yield "expected_calibration_error", "", error, "probability", int(bins.n.sum())


def _residuals(heldout: HeldOutRatings) -> Iterator[_Row]:
    for method in ("hard", "soft"):
        rows = (heldout.method == method) & np.isfinite(heldout.residual)
        residual, human = heldout.residual[rows], heldout.human_rating[rows]
        if residual.size < 4:
            continue
        bins = equal_mass_bins(human, residual, n_bins=4)
        for quartile, (value, n) in enumerate(zip(bins.mean_y, bins.n, strict=True), start=1):
            yield f"residual_{method}_by_human_rating", f"Q{quartile}", float(value), "Elo", int(n)
        if np.ptp(residual) > 0 and np.ptp(human) > 0:
            correlation = float(np.corrcoef(residual, human)[0, 1])
            yield f"residual_{method}_human_correlation", "", correlation, "Pearson r", human.size


def _same_family(
    battles: CodedBattles, heldout: HeldOutRatings, same_family: list[str]
) -> Iterator[_Row]:
    """Yield the mean soft residual of the judge's family minus that of other models, Elo points.

    Its standard error takes residuals within either group to be independent and of one spread.
    """
    rows = (heldout.method == "soft") & np.isfinite(heldout.residual)
    residual, own = heldout.residual[rows], np.isin(heldout.model[rows], same_family)
    sizes = np.array([own.sum(), (~own).sum()])
    if sizes.min() < 1 or residual.size < 3:
        return
    means = np.array([residual[own].mean(), residual[~own].mean()])
    spread = np.sqrt(((residual - np.where(own, *means)) ** 2).sum() / (residual.size - 2))
    of_family = np.isin(battles.models, same_family)
    met = of_family[battles.model_a] | of_family[battles.model_b]
    n = int(met.sum() if battles.count is None else battles.count[met].sum())
    yield "same_family_excess", "", float(means[0] - means[1]), "Elo", n
    error = float(spread * np.sqrt((1 / sizes).sum()))
    yield "same_family_excess_std_error", "", error, "Elo", n


def _surrogacy(battles: CodedBattles, l2: float, seed: int) -> Iterator[_Row]:
    try:
        fit = fit_surrogacy(battles, keyed_rng(seed, "surrogacy"), l2=l2)
    except (ValueError, RuntimeError) as reason:
        yield "surrogacy_gamma", f"not fitted: {reason}", float("nan"), "share", 0
        return
    yield "surrogacy_gamma", "", fit.gamma, "share of the model gap", fit.n_battles
    yield "surrogacy_gamma_std_error", "", fit.gamma_std_error, "share", fit.n_battles


def _budgets(battles: CodedBattles, score: Floats, human: Floats, seed: int) -> Iterator[_Row]:
    """Yield the slope's spread over 20 random subsets of each annotation budget."""
    voted = np.flatnonzero(np.isfinite(human))
    n_models = int(battles.voted_models().sum())
    rng = keyed_rng(seed, "annotation budget")
    for budget in BUDGETS:
        size = budget * n_models
        if size > voted.size // 2:
            return
        subsets = (rng.choice(voted, size, replace=False) for _ in range(20))
        slopes = np.array([fit_beta(score[rows], human[rows]).beta for rows in subsets])
        known = slopes[np.isfinite(slopes)]
        if known.size > 1:
            spread = float(known.std(ddof=1))
            yield "beta_sd_at_budget", f"{budget}", spread, _SLOPE, size


def _biases(score: Floats, *columns: ArrayLike | None) -> Iterator[_Row]:
    """Yield the rows that both orders' differences, and both completions' lengths, allow."""
    first, second, length_a, length_b = (
        None if column is None else np.asarray(column, float) for column in columns
    )
    if first is not None and second is not None:
        both = np.isfinite(first) & np.isfinite(second)
        first, second = first[both], second[both]
        towards_first = np.concatenate([first, -second])
        chosen = towards_first[towards_first != 0] > 0
        flips = (first * second)[(first != 0) & (second != 0)] < 0
        if first.size:
            yield "position_first_score", "", float(towards_first.mean()), _POINTS, first.size
        if chosen.size:
            yield "position_first_preferred", "", float(chosen.mean()), "share", chosen.size
        if flips.size:
            yield "position_flip_rate", "", float(flips.mean()), "share", flips.size
    if length_a is not None and length_b is not None:
        more = length_a - length_b
        near = (np.abs(score) <= NEAR_TIE) & (score != 0) & (more != 0) & np.isfinite(more)
        if near.any():
            longer = (score[near] > 0) == (more[near] > 0)
            yield "verbosity_longer_preferred", "", float(longer.mean()), "share", longer.size


def _languages(score: Floats, human: Floats, language: NDArray[np.object_]) -> Iterator[_Row]:
    names = sorted(name for name in set(language.tolist()) if isinstance(name, str))
    place = {name: code for code, name in enumerate(names)}
    codes = np.array([place.get(name, -1) for name in language.tolist()]) if names else language
    for code, name in enumerate(names):
        mine = codes == code
        fit = fit_beta(score[mine], human[mine])
        if fit.status == "ok" and fit.n_battles >= LEAST_LANGUAGE_VOTES:
            yield "beta_by_language", name, fit.beta, _SLOPE, fit.n_battles
            yield "beta_by_language_std_error", name, fit.std_error, _SLOPE, fit.n_battles


def equal_mass_bins(
    x: ArrayLike, y: ArrayLike, *, n_bins: int, count: ArrayLike | None = None
) -> Binned:
    """Return at most `n_bins` of about equally many battles; those with equal `x` share one.

    `count` says how many battles each pair of values stands for; one by default.
    """
    values, targets = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    require(values.size, "the number of battles", 0, "some to put in bins")
    times = np.ones(values.size, dtype=np.int64) if count is None else np.asarray(count)
    ordered, place = np.unique(values, return_inverse=True)
    each = np.bincount(place, times)
    n_until = np.cumsum(each)
    marks = np.arange(1, n_bins) * int(n_until[-1]) // n_bins
    starts = np.unique(np.r_[0, np.searchsorted(n_until, marks, side="right")])
    n = np.add.reduceat(each, starts)
    sums = np.add.reduceat(np.bincount(place, times * targets), starts)
    means = np.add.reduceat(each * ordered, starts) / n
    high = ordered[np.r_[starts[1:], ordered.size] - 1]
    return Binned(ordered[starts], high, means, sums / n, n.astype(np.int64))


def reliability_curve(
    score_difference: ArrayLike,
    human_outcome: ArrayLike,
    beta: float,
    count: ArrayLike | None = None,
) -> Binned:
    """Return predicted against observed preference on decisive battles, in ten bins.

    `mean_x` is the mean of ``sigmoid(beta |s|)``, beta in logits per rubric point; `mean_y` the
    share of votes for the side that the judge scored higher (half of the votes where scores are
    equal). `count` says how many battles are in each row; one by default. Source: M. P. Naeini,
    G. Cooper and M. Hauskrecht (2015), AAAI, on calibration in bins.
    """
    score, outcome = np.asarray(score_difference, float), np.asarray(human_outcome, float)
    decisive = (outcome == 0) | (outcome == 1)
    score, outcome = score[decisive], outcome[decisive]
    agrees = np.where(score == 0, 0.5, (score > 0) == (outcome == 1))
    each = None if count is None else np.asarray(count)[decisive]
    return equal_mass_bins(expit(beta * np.abs(score)), agrees, n_bins=10, count=each)


def expected_calibration_error(bins: Binned) -> float:
    """Return the mean gap, in [0, 1], between predicted and observed preference over battles."""
    return float((bins.n * np.abs(bins.mean_x - bins.mean_y)).sum() / bins.n.sum())

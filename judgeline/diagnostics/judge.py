"""Named diagnostics of one judge on one corpus, each with its unit and battle count."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.arrays import Floats, Ints, require
from judgeline.elo.battle_counts import add_counts
from judgeline.elo.battles import CodedBattles, chunks
from judgeline.elo.beta import BetaFit, BetaFolds, fit_beta
from judgeline.elo.ratings import HeldOutRatings
from judgeline.elo.resampling import keyed_rng
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
_Votes = tuple[Floats, Floats, Floats, Ints | None]
"""Score differences, outcomes by people and by the judge, and battles of each."""
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
    label: ArrayLike | None = None,
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
    label : array_like, shape (n,), optional
        A's share of the win by the label that the judge gave, which says the side that it chose; by
        default its outcome.
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
    votes = score, human, judge, count = _by_score(battles, label)
    pooled, is_single = fit_beta(score, human, count), count is None
    columns = (difference_ab, difference_ba, length_a, length_b)
    return _table(
        [
            *(_agreement(battles, score, human) if is_single else ()),
            *(_sides(score, human, judge) if is_single else ()),
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


def _by_score(battles: CodedBattles, label: ArrayLike | None) -> _Votes:
    """Return score differences and outcomes, and of counted battles how many have the same ones."""
    told = battles.judge_outcome
    if label is not None:
        share = np.asarray(label, float)
        quarter = np.round(4 * share)  # 0.6 is still a side that was taken
        side = np.where(share > 0.5, np.maximum(quarter, 3), np.minimum(quarter, 1))
        told = np.where(share == 0.5, 2, side).astype(np.int8)
    if battles.count is None:
        human = np.where(battles.human_outcome < 0, np.nan, battles.human_outcome / 2)
        return battles.rubric_points(), human, told / 4, None
    shares, parts = np.array([0.0, 0.5, 1.0, np.nan]), [*chunks(len(battles))]
    scores = np.unique([s for part in parts for s in np.unique(battles.score_difference[part])])
    total = np.zeros(scores.size * 20, dtype=np.int64)  # four votes (one is none), five outcomes
    for part in parts:
        place = np.searchsorted(scores, battles.score_difference[part])
        key = (place * 4 + (battles.human_outcome[part] & 3)) * 5 + told[part]
        add_counts(total, key, battles.weights(part))
    met = np.flatnonzero(total)
    points = scores[met // 20] / (battles.denominator or 1)
    judge: Floats = met % 5 / 4
    return points, shares[met // 5 % 4], judge, total[met]


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
    yield "vote_agreement", "", float(agrees.mean()), "share", int(decisive.sum())
    yield from _by_size("vote_agreement_by_score", equal_mass_bins(size, agrees, n_bins=5))


def _sides(score: Floats, human: Floats, judge: Floats) -> Iterator[_Row]:
    """Yield agreement where people and the judge chose a side, however its scores differ."""
    sided, agrees = sides_agree(human, judge)
    if not sided.any():
        return
    size, n = np.abs(score[sided]), int(sided.sum())
    yield "decisive_agreement", "", float(agrees.mean()), "share", n
    yield from _by_size("decisive_agreement_by_score", quantile_bins(size, agrees, n_bins=5))
    if np.ptp(size) > 0 and np.ptp(agrees) > 0:
        correlation = float(np.corrcoef(size, agrees)[0, 1])
        yield "score_agreement_correlation", "", correlation, "Pearson r", n


def _by_size(name: str, bins: Binned) -> Iterator[_Row]:
    for low, high, _, share, n in zip(*map(np.ndarray.tolist, bins), strict=True):
        yield name, f"{low:.3f}..{high:.3f}", share, "share", n


def _slopes(votes: _Votes, pooled: BetaFit, folds: BetaFolds) -> Iterator[_Row]:
    score, human, _, count = votes
    yield "beta_pooled", "", pooled.beta, _SLOPE, pooled.n_battles
    with_ties = fit_beta_with_ties(score, human, count)
    yield "beta_with_ties", "", with_ties.beta, _SLOPE, with_ties.n_battles // 2
    known = folds.beta[np.isfinite(folds.beta)]
    if known.size:
        spread = float(known.std(ddof=1)) if known.size > 1 else float("nan")
        yield "beta_fold_sd", "", spread, _SLOPE, known.size


def fit_beta_with_ties(score: Floats, human: Floats, count: Ints | None = None) -> BetaFit:
    """Return the slope on all votes (n,), a tie as half of a win for either side.

    Each vote stands there twice, so that `n_battles` is twice their number.
    """
    voted = np.isfinite(human)
    tie, doubled = human[voted] == 0.5, np.tile(score[voted], 2)
    sides = np.concatenate([np.where(tie, 1.0, human[voted]), np.where(tie, 0.0, human[voted])])
    return fit_beta(doubled, sides, None if count is None else np.tile(count[voted], 2))


def _reliability(votes: _Votes, pooled: BetaFit) -> Iterator[_Row]:
    if pooled.status != "ok":
        return
    score, human, judge, count = votes
    bins = reliability_curve(score, human, pooled.beta, count)
    for _, _, predicted, observed, n in zip(*map(np.ndarray.tolist, bins), strict=True):
        yield "reliability", f"{predicted:.4f}", observed, "share", n
    name, by_label = "expected_calibration_error", sides_agree(human, judge)[0].any()
    errors = {f"{name}_of_votes": bins}
    if by_label:
        errors[name] = label_calibration(score, human, judge, pooled.beta, count)
    for of, binned in errors.items():
        yield of, "", expected_calibration_error(binned), "probability", int(binned.n.sum())


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
    """Yield how much higher the judge's family stands by soft residuals, at equal human rating.

    A least-squares coefficient, Elo points: what the method does to all strong models is not the
    family's. Its standard error takes residuals to be independent and of one spread.
    """
    rows = (heldout.method == "soft") & np.isfinite(heldout.residual)
    residual, human = heldout.residual[rows], heldout.human_rating[rows]
    own = np.isin(heldout.model[rows], same_family)
    design = np.column_stack([own, np.ones(own.size), human - human.mean() if own.size else human])
    if own.size < 5 or np.linalg.matrix_rank(design) < 3:
        return
    coefficients, (squares, *_), *_ = np.linalg.lstsq(design, residual)
    variance = squares / (own.size - 3) * np.linalg.inv(design.T @ design)[0, 0]
    of_family = np.isin(battles.models, same_family)
    met = of_family[battles.model_a] | of_family[battles.model_b]
    n = int(met.sum() if battles.count is None else battles.count[met].sum())
    yield "same_family_excess", "", float(coefficients[0]), "Elo", n
    yield "same_family_excess_std_error", "", float(np.sqrt(variance)), "Elo", n


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

    def starts(_: Floats, n_until: Floats) -> Ints:
        """Return the first value of each bin, by the number of battles up to each value."""
        marks = np.arange(1, n_bins) * int(n_until[-1]) // n_bins
        return np.unique(np.r_[0, np.searchsorted(n_until, marks, side="right")])

    return _binned(x, y, count, starts)


def quantile_bins(
    x: ArrayLike, y: ArrayLike, *, n_bins: int, count: ArrayLike | None = None
) -> Binned:
    """Return at most `n_bins`, bounded by quantiles of `x` and closed above, as `pandas.qcut` does.

    Quantiles are interpolated; equal ones are one. `count` as for `equal_mass_bins`.
    """

    def starts(ordered: Floats, n_until: Floats) -> Ints:
        """Return the first value of each bin between the quantiles of ascending values."""
        at = (n_until[-1] - 1) * np.arange(n_bins + 1) / n_bins
        low, high = (
            ordered[np.searchsorted(n_until, end, side="right")]
            for end in (np.floor(at), np.ceil(at))
        )
        edges = np.unique(low + (high - low) * (at % 1))
        return np.unique(np.maximum(np.searchsorted(edges, ordered), 1), return_index=True)[1]

    return _binned(x, y, count, starts)


def _binned(
    x: ArrayLike, y: ArrayLike, count: ArrayLike | None, starts_of: Callable[[Floats, Floats], Ints]
) -> Binned:
    """Return the bins that start at some places of the ordered values of `x`.

    `starts_of` finds these from the values and the number of battles up to each.
    """
    values, targets = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    require(values.size, "the number of battles", 0, "some to put in bins")
    times = np.ones(values.size, dtype=np.int64) if count is None else np.asarray(count)
    ordered, place = np.unique(values, return_inverse=True)
    each = np.bincount(place, times)
    starts = starts_of(ordered, np.cumsum(each))
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


def label_calibration(
    score_difference: ArrayLike,
    human_outcome: ArrayLike,
    judge_outcome: ArrayLike,
    beta: float,
    count: ArrayLike | None = None,
) -> Binned:
    """Return predicted against observed agreement where people and the judge chose a side.

    As `reliability_curve`, but of the side that `judge_outcome` chose, A's share of the win, in
    ten bins by quantile. Source: the program of Kargi and Salinas (2026), arXiv:2606.13221.
    """
    score = np.abs(np.asarray(score_difference, float))
    sided, agrees = sides_agree(human_outcome, judge_outcome)
    each = None if count is None else np.asarray(count)[sided]
    return quantile_bins(expit(beta * score[sided]), agrees, n_bins=10, count=each)


def sides_agree(
    human_outcome: ArrayLike, judge_outcome: ArrayLike
) -> tuple[NDArray[np.bool_], Floats]:
    """Return which battles people and the judge decided, and of these 1 where alike, else 0."""
    human, judge = np.asarray(human_outcome, float), np.asarray(judge_outcome, float)
    sided = np.isin(human, (0, 1)) & (judge != 0.5)
    return sided, ((judge[sided] > 0.5) == (human[sided] == 1)).astype(float)


def expected_calibration_error(bins: Binned) -> float:
    """Return the mean gap, in [0, 1], between predicted and observed preference over battles."""
    return float((bins.n * np.abs(bins.mean_x - bins.mean_y)).sum() / bins.n.sum())

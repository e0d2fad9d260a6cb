"""Whether adjusted win rates keep their promise: votes hidden at random, then looked at."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.adjusted import adjusted_win_rate
from judgeline.adjusted_means import adjusted_mean, can_be_corrected
from judgeline.adjusted_shares import OUTCOMES
from judgeline.battle_strata import MIN_STRATUM_VOTES, first_strata
from judgeline.judge_counts import JudgeCounts, is_better_than_chance, normal_quantile
from judgeline.outcome_tables import (
    LOSS,
    NO_VOTE,
    WIN,
    Design,
    OutcomeTables,
    decisive_counts,
)
from judgeline.streams import keyed_rng
from judgeline.win_rate_peers import ESTIMATORS, compare_estimators

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CALIBRATION_SHARE = 0.1
N_SPLITS = 100

COMPARED: tuple[str, ...] = ("mean_outcome", "mean_outcome_by_strength", *ESTIMATORS)
"""The order of the estimators: those that adjusted win rates show, then those without ties."""

WITHOUT_TIES, TIES_HALF = "without ties", "ties half"


class SplitCoverage(NamedTuple):
    """One row per model (`grouping` ``model``, `level` its name) or all, and estimator.

    `n_battles` test battles and `n_labelled` calibration battles of a split, summed over models in
    the row of all. `truth` is what the estimator is held to, on the hidden votes: ``ties
    half``, their mean outcome, or ``without ties``, wins among wins and losses. `n_kept` splits
    count, `n_dropped` do not: the judge is no better than chance on their calibration battles,
    or a class is absent from them. `bias` and `rmse` are the mean, and the root of the mean
    square, of estimate minus truth over splits; `mean_width` that of the interval;
    `win_rate_coverage` the share of splits whose interval holds the truth, `miscoverage` the
    share tolerated that does not. Shares of battles; NaN without a split that counts.
    """

    grouping: NDArray[np.str_]
    level: NDArray[np.str_]
    estimator: NDArray[np.str_]
    truth: NDArray[np.str_]
    n_battles: Ints
    n_labelled: Ints
    n_kept: Ints
    n_dropped: Ints
    bias: Floats
    rmse: Floats
    mean_width: Floats
    win_rate_coverage: Floats
    miscoverage: Floats


def split_coverage(
    tables: OutcomeTables,
    *,
    miscoverage: float,
    seed: int = 0,
    stream: tuple[str, ...] = (),
    n_splits: int = N_SPLITS,
    calibration_share: float = CALIBRATION_SHARE,
) -> SplitCoverage:
    """Return bias, width and coverage of seven estimators over random splits.

    Of a model's voted battles a share is drawn without replacement to calibrate; the votes of
    the rest are hidden, ties among them, as they would be were nobody asked. The first two
    estimators count ties half, and so does their truth. The other five are for battles without
    ties and are held to the share of wins among hidden wins and losses; they leave out ties
    where they can be seen, those of the judge and those of humans in calibration. Where humans
    tie, hidden ties stay among their test battles, and what that costs them shows here.

    Only counts matter, hence a split is one draw of a multivariate hypergeometric distribution.
    Given the battles, splits are independent draws, so that a number of hits is binomial; what
    they tell is how the interval fares when *these* battles are divided at random. Two things
    they cannot tell: how it fares for battles whose votes were not hidden at random, and for
    battles of other questions, since battles of one question land on both sides. Since the
    truth is that of the test battles and not of a population behind them, intervals cover a
    little more often than promised.

    Parameters
    ----------
    tables : OutcomeTables
        From `tabulate_outcomes`; its strata are those of ``mean_outcome_by_strength``, sparse
        ones taken together by the votes that calibrate a split on average.
    miscoverage : float
        Tolerated share of misses, in (0, 1).
    seed, stream
        Seed of the analysis, and what it is for; each model has draws of its own.
    n_splits : int
        Splits per model, from 1.
    calibration_share : float
        Share of the battles that calibrate, in (0, 1).

    Returns
    -------
    SplitCoverage
        Seven rows for all models together, then seven for each that has two votes. Empty if
        none has.

    Raises
    ------
    ValueError
        If an option is out of range.

    References
    ----------
    Those of `compare_estimators`; the truth is that of a finite population, as in W. G. Cochran
    (1977), "Sampling Techniques", chapter 2.
    """
    if n_splits < 1:
        raise ValueError(f"n_splits must be at least 1, got {n_splits}")
    if not 0 < calibration_share < 1:
        raise ValueError(f"calibration_share must lie in (0, 1), got {calibration_share}")
    normal_quantile(miscoverage)
    votes = tables.own[..., :NO_VOTE]
    cells = votes.reshape(len(votes), -1)
    voted = np.flatnonzero(cells.sum(axis=1) > 1)
    n_labelled = np.clip(np.rint(calibration_share * cells.sum(axis=1)), 1, None).astype(np.int64)
    labelled = np.array(
        [
            keyed_rng(seed, *stream, tables.models[model]).multivariate_hypergeometric(
                cells[model], n_labelled[model], size=n_splits
            )
            for model in voted
        ]
    ).reshape(-1, n_splits, *votes.shape[1:])
    scores = _scores(labelled, votes[voted][:, None] - labelled, miscoverage)
    sizes = (cells[voted].sum(axis=1) - n_labelled[voted], n_labelled[voted])
    return _summarised([tables.models[model] for model in voted], *sizes, scores, miscoverage)


class _Scores(NamedTuple):
    """Estimate minus truth, width and hit, shape (7, models, splits); NaN where dropped."""

    error: Floats
    width: Floats
    hit: Floats


def _scores(labelled: Ints, hidden: Ints, miscoverage: float) -> _Scores:
    """Return how the estimators fare; shapes (models, splits, s, 3, 3), judge then humans."""
    test = hidden.sum(axis=-1)
    by_human = hidden.sum(axis=(2, 3))
    truth = by_human @ np.array(OUTCOMES) / by_human.sum(axis=-1)
    whole = [(slice(at, at + 1), [0]) for at in range(len(test))]
    apart = [(place, _strata_of(labelled[place], test[place])) for place, _ in whole]
    parts = [
        _scored(_means_of_splits(labelled, test, ways, miscoverage), truth)
        for ways in (whole, apart)
    ]
    parts.append(_scores_without_ties(labelled.sum(axis=2), hidden.sum(axis=2), miscoverage))
    return _Scores(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _strata_of(labelled: Ints, test: Ints) -> list[int]:
    """Return where a model's strata begin, by the votes that its splits have on average."""
    total = Design(test.sum(axis=(0, 1)), labelled.sum(axis=(0, 1)), "own")
    return first_strata(total, least=MIN_STRATUM_VOTES * labelled.shape[1])


def _means_of_splits(
    labelled: Ints, test: Ints, ways: list[tuple[slice, list[int]]], miscoverage: float
) -> Floats:
    """Return corrected mean outcomes and their ends, shape (3, 1, models, splits)."""
    ends = np.full((3, 1, *test.shape[:2]), np.nan)
    for place, starts in ways:
        said, known = (np.add.reduceat(part[place], starts, axis=2) for part in (test, labelled))
        kept = can_be_corrected(said, known)
        found = adjusted_mean(said[kept], known[kept], miscoverage=miscoverage)
        ends[:, 0, place][:, kept] = found.win_rate, found.lower, found.upper
    return ends


def _scores_without_ties(labelled: Ints, hidden: Ints, miscoverage: float) -> _Scores:
    """Return how the five estimators fare; shapes (models, splits, 3, 3)."""
    by_human = hidden.sum(axis=-2)
    n_decisive = by_human[..., WIN] + by_human[..., LOSS]
    counts = decisive_counts(hidden.sum(axis=-1), labelled)
    kept = is_better_than_chance(counts) & (n_decisive > 0)
    usable = JudgeCounts(*(np.asarray(values)[kept] for values in counts))
    peers = compare_estimators(usable)
    reach = normal_quantile(miscoverage) * peers.std_error
    ends = np.full((3, len(ESTIMATORS), *kept.shape), np.nan)
    ends[:, :, kept] = peers.win_rate, peers.win_rate - reach, peers.win_rate + reach
    adjusted = adjusted_win_rate(usable, miscoverage=miscoverage)
    ends[1:, -1, kept] = adjusted.lower, adjusted.upper
    return _scored(ends, by_human[..., WIN] / np.maximum(n_decisive, 1))


def _scored(ends: Floats, truth: Floats) -> _Scores:
    """Return the scores of estimates and the ends of their intervals, stacked in this order."""
    estimate, lower, upper = ends
    hit = np.where(np.isnan(estimate), np.nan, (lower <= truth) & (truth <= upper))
    return _Scores(estimate - truth, upper - lower, hit)


def _summarised(
    models: list[str], n_battles: Ints, n_labelled: Ints, scores: _Scores, miscoverage: float
) -> SplitCoverage:
    places = [np.arange(len(models)), *(np.array([i]) for i in range(len(models)))]
    names = [("all", ""), *(("model", model) for model in models)]
    rows = [
        (
            *name,
            estimator,
            WITHOUT_TIES if estimator in ESTIMATORS else TIES_HALF,
            int(n_battles[place].sum()),
            int(n_labelled[place].sum()),
            *_means(*(part[at, place] for part in scores)),
            miscoverage,
        )
        for name, place in zip(names, places, strict=True)
        if place.size
        for at, estimator in enumerate(COMPARED)
    ]
    if not rows:
        texts, whole, shares = np.array([], dtype=str), np.array([], dtype=int), np.array([])
        return SplitCoverage(*[texts] * 4, *[whole] * 4, *[shares] * 5)
    return SplitCoverage(*(np.array(column) for column in zip(*rows, strict=True)))


def _means(error: Floats, width: Floats, hit: Floats) -> tuple[int | float, ...]:
    kept = ~np.isnan(error)
    n_kept = int(kept.sum())
    if not n_kept:
        return (0, kept.size, np.nan, np.nan, np.nan, np.nan)
    return (
        n_kept,
        kept.size - n_kept,
        float(error[kept].mean()),
        float(np.sqrt((error[kept] ** 2).mean())),
        float(width[kept].mean()),
        float(hit[kept].mean()),
    )

"""Whether adjusted win rates keep their promise: votes hidden at random, then looked at."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.adjusted import adjusted_win_rate
from judgeline.judge_counts import JudgeCounts, is_better_than_chance, normal_quantile
from judgeline.outcome_tables import LOSS, WIN, OutcomeTables
from judgeline.streams import keyed_rng
from judgeline.win_rate_peers import ESTIMATORS, compare_estimators

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CALIBRATION_SHARE = 0.1
N_SPLITS = 100


class SplitCoverage(NamedTuple):
    """One row per model (`grouping` ``model``, `level` its name) or all, and estimator.

    `n_battles` test battles and `n_labelled` calibration battles of a split, summed over models
    in the row of all. `n_kept` splits count, `n_dropped` do not: the judge is no better than
    chance on their calibration battles, or a class is absent from them. `bias` and `rmse` are
    the mean, and the root of the mean square, of estimate minus truth over splits;
    `mean_width` that of the interval; `win_rate_coverage` the share of splits whose interval
    holds the truth, `miscoverage` the share tolerated that does not. Shares of battles; NaN
    without a split that counts.
    """

    grouping: NDArray[np.str_]
    level: NDArray[np.str_]
    estimator: NDArray[np.str_]
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
    """Return bias, width and coverage of the five estimators over random splits.

    Of a model's voted battles, ties of judge and humans left out, a share is drawn without
    replacement to calibrate; the votes of the rest are hidden, and their share of wins is the
    truth. Only counts matter, hence a split is one draw of a multivariate hypergeometric
    distribution. Given the battles, splits are independent draws, so that a number of hits is
    binomial; what they tell is how the interval fares when *these* battles are divided at
    random. Two things they cannot tell: how it fares for battles whose votes were not hidden at
    random, and for battles of other questions, since battles of one question land on both sides.
    Since the truth is that of the test battles and not of a population behind them, intervals
    cover a little more often than promised.

    Parameters
    ----------
    tables : OutcomeTables
        From `tabulate_outcomes`.
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
        Five rows for all models together, then five for each that has decisive votes. Empty if
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
    cells = tables.own.sum(axis=1)[:, [WIN, WIN, LOSS, LOSS], [WIN, LOSS, WIN, LOSS]]
    voted = np.flatnonzero(cells.sum(axis=1) > 1)
    n_labelled = np.clip(np.rint(calibration_share * cells.sum(axis=1)), 1, None).astype(np.int64)
    labelled = np.array(
        [
            keyed_rng(seed, *stream, tables.models[model]).multivariate_hypergeometric(
                cells[model], n_labelled[model], size=n_splits
            )
            for model in voted
        ]
    ).reshape(-1, n_splits, 4)
    scores = _scores(labelled, cells[voted][:, None, :] - labelled, miscoverage)
    sizes = (cells[voted].sum(axis=1) - n_labelled[voted], n_labelled[voted])
    return _summarised([tables.models[model] for model in voted], *sizes, scores, miscoverage)


class _Scores(NamedTuple):
    """Estimate minus truth, width and hit, shape (5, models, splits); NaN where dropped."""

    error: Floats
    width: Floats
    hit: Floats


def _scores(labelled: Ints, test: Ints, miscoverage: float) -> _Scores:
    """Return how the five estimators fare; cells (won, wrongly won, missed, lost) last."""
    truth = (test[..., 0] + test[..., 2]) / test.sum(axis=-1)
    counts = JudgeCounts(
        test.sum(axis=-1),
        test[..., 0] + test[..., 1],
        labelled[..., 1] + labelled[..., 3],
        labelled[..., 3],
        labelled[..., 0] + labelled[..., 2],
        labelled[..., 0],
    )
    kept = is_better_than_chance(counts)
    usable = JudgeCounts(*(np.asarray(values)[kept] for values in counts))
    peers = compare_estimators(usable)
    reach = normal_quantile(miscoverage) * peers.std_error
    lower, upper = peers.win_rate - reach, peers.win_rate + reach
    adjusted = adjusted_win_rate(usable, miscoverage=miscoverage)
    lower[-1], upper[-1] = adjusted.lower, adjusted.upper
    hit = (lower <= truth[kept]) & (truth[kept] <= upper)
    scores = _Scores(*(np.full((len(ESTIMATORS), *kept.shape), np.nan) for _ in range(3)))
    scores.error[:, kept] = peers.win_rate - truth[kept]
    scores.width[:, kept] = upper - lower
    scores.hit[:, kept] = hit
    return scores


def _summarised(
    models: list[str], n_battles: Ints, n_labelled: Ints, scores: _Scores, miscoverage: float
) -> SplitCoverage:
    places = [np.arange(len(models)), *(np.array([i]) for i in range(len(models)))]
    names = [("all", ""), *(("model", model) for model in models)]
    rows = [
        (
            *name,
            estimator,
            int(n_battles[place].sum()),
            int(n_labelled[place].sum()),
            *_means(*(part[at, place] for part in scores)),
            miscoverage,
        )
        for name, place in zip(names, places, strict=True)
        if place.size
        for at, estimator in enumerate(ESTIMATORS)
    ]
    if not rows:
        texts, whole, shares = np.array([], dtype=str), np.array([], dtype=int), np.array([])
        return SplitCoverage(*[texts] * 3, *[whole] * 4, *[shares] * 5)
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

"""Coverage of win rates by leaving out models: each voted model as if it were new."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.winrate.models import ModelWinRates, adjust_models
from judgeline.winrate.outcomes import OutcomeTables, normal_quantile
from judgeline.winrate.powered import (
    MIN_CALIBRATING_VOTES,
    HeldOutModels,
    conformal_spread,
    difference_estimates,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

EACH_MODEL, STRONGEST, WEAKEST = "each model", "strongest third", "weakest third"
"""Models left out at a time: one, or a third by the judge's win rate. Only the threshold leaves a
third out; an estimate rests on all voted battles without its own model."""


class WinRateCoverage(NamedTuple):
    """One row per estimator and models left out at a time (`left_out`); shares of battles.

    Truth is the human win rate of each voted model, as the estimator treats ties (`truth`).
    `n_models` models have an estimate and `n_without` none. `bias`, `mean_absolute_error` and
    `mean_width` are means over models; `win_rate_coverage` is the share of models whose interval
    holds the truth, to be compared with 1 - `miscoverage`.
    """

    estimator: NDArray[np.str_]
    left_out: NDArray[np.str_]
    truth: NDArray[np.str_]
    n_models: Ints
    n_without: Ints
    bias: Floats
    mean_absolute_error: Floats
    mean_width: Floats
    win_rate_coverage: Floats
    miscoverage: Floats


def leave_out_coverage(
    tables: OutcomeTables, *, by_strength: OutcomeTables, miscoverage: float
) -> WinRateCoverage:
    """Return error, width and coverage of each estimator over models, the votes on each hidden.

    Leaving out one model at a time, ``difference`` holds a share of models that follows almost
    from their number alone, for its threshold is a rank among them: this row measures error and
    width. Leaving out the strongest or the weakest third can fail, since the threshold then comes
    from models unlike the third; an estimate still rests on all voted battles without its own
    model. ``prediction-powered`` needs the model's own votes and has no row. The interval of
    ``naive`` is its sampling error alone.

    `by_strength` has the battles of `tables` in strata by `strength_strata`.

    Returns
    -------
    WinRateCoverage
        Rows of ``naive``, ``difference``, ``mean-outcome``, ``ternary`` and ``binary`` for one
        model at a time, then ``difference`` for either third. Empty if no model has
        `MIN_CALIBRATING_VOTES` votes.
    """
    rates = adjust_models(
        tables, by_length=None, by_strength=by_strength, miscoverage=miscoverage, hidden=True
    )
    estimates = difference_estimates(by_strength)
    rows = [_naive(rates, miscoverage)]
    rows += [(way, EACH_MODEL, _shown(rates, way)) for way in _LEFT_OUT_ALONE]
    rows += [
        ("difference", name, _third_left_out(estimates, third, miscoverage))
        for name, third in _thirds(rates, estimates.calibrating)
    ]
    return _summary(rows if estimates.calibrating.any() else [], miscoverage)


_LEFT_OUT_ALONE = ("difference", "mean-outcome", "ternary", "binary")


class _Intervals(NamedTuple):
    """Truth, estimate and interval of each model, NaN without an estimate."""

    truth: Floats
    estimate: Floats
    lower: Floats
    upper: Floats


def _rows_of(rates: ModelWinRates, estimator: str) -> ModelWinRates:
    rows = (rates.estimator == estimator) & (rates.n_votes >= MIN_CALIBRATING_VOTES)
    return ModelWinRates(*(column[rows] for column in rates))


def _shown(rates: ModelWinRates, estimator: str) -> _Intervals:
    rows = _rows_of(rates, estimator)
    ends = (rows.win_rate, rows.win_rate_lower, rows.win_rate_upper)
    return _Intervals(rows.human_win_rate, *ends)


def _naive(rates: ModelWinRates, miscoverage: float) -> tuple[str, str, _Intervals]:
    rows = _rows_of(rates, "difference")
    share = rows.naive_win_rate
    reach = normal_quantile(miscoverage) * np.sqrt(share * (1 - share) / rows.n_battles)
    intervals = _Intervals(rows.human_win_rate, share, share - reach, share + reach)
    return "naive", EACH_MODEL, intervals


def _thirds(rates: ModelWinRates, calibrating: Bools) -> list[tuple[str, Bools]]:
    """Return the strongest and the weakest third of the calibrating models, as the judge ranks."""
    naive = rates.naive_win_rate[rates.estimator == "difference"]
    order = np.argsort(np.where(calibrating, naive, -np.inf), kind="stable")[::-1]
    n, among = int(calibrating.sum()), np.arange(calibrating.size)
    return [
        (STRONGEST, np.isin(among, order[: n // 3])),
        (WEAKEST, np.isin(among, order[n - n // 3 : n])),
    ]


def _third_left_out(models: HeldOutModels, third: Bools, miscoverage: float) -> _Intervals:
    others = np.tile(models.calibrating & ~third, (third.size, 1))
    half_width = conformal_spread(models, others, miscoverage=miscoverage).half_width
    estimate = np.clip(models.win_rate, 0, 1)
    lower, upper = (np.clip(models.win_rate + side * half_width, 0, 1) for side in (-1, 1))
    return _Intervals(*(part[third] for part in (models.human_win_rate, estimate, lower, upper)))


def _summary(rows: list[tuple[str, str, _Intervals]], miscoverage: float) -> WinRateCoverage:
    columns: list[list[object]] = [[] for _ in WinRateCoverage._fields]
    for estimator, left_out, (truth, estimate, lower, upper) in rows:
        ties = "without ties" if estimator == "binary" else "ties half"
        has = np.isfinite(estimate) & np.isfinite(truth)
        error, width = (estimate - truth)[has], (upper - lower)[has]
        held = ((lower <= truth) & (truth <= upper))[has]
        parts = (error, np.abs(error), width, held)
        means = [float(part.mean()) if has.any() else np.nan for part in parts]
        counts = (int(has.sum()), int((~has).sum()))
        row = (estimator, left_out, ties, *counts, *means, miscoverage)
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    kinds = ["str"] * 3 + ["int64"] * 2 + ["float"] * 5
    return WinRateCoverage(
        *(np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True))
    )

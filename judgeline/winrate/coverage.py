"""Coverage of win rates by leaving out models: each voted model as if it were new."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.arrays import Bools, Floats, Ints
from judgeline.winrate.models import ModelWinRates, adjust_models
from judgeline.winrate.outcomes import OutcomeTables, normal_quantile
from judgeline.winrate.powered import MIN_CALIBRATING_VOTES, conformal_spread, difference_estimates

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

    Parameters
    ----------
    tables, by_strength : OutcomeTables
        From `tabulate_outcomes`, without strata and in those of `strength_strata`.
    miscoverage : float
        Tolerated share of misses of each interval, in (0, 1).

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
    models = difference_estimates(by_strength)
    rows = []
    for way in ("naive", "difference", "mean-outcome", "ternary", "binary"):
        of = (rates.estimator == ("difference" if way == "naive" else way)) & (
            rates.n_votes >= MIN_CALIBRATING_VOTES
        )
        intervals = (rates.win_rate[of], rates.win_rate_lower[of], rates.win_rate_upper[of])
        if way == "naive":
            share = rates.naive_win_rate[of]
            reach = np.sqrt(share * (1 - share) / rates.n_battles[of])
            reach = normal_quantile(miscoverage) * reach
            intervals = (share, share - reach, share + reach)
        rows.append(_summary(way, EACH_MODEL, rates.human_win_rate[of], *intervals))
    for name, third in _thirds(rates, models.calibrating):
        others = np.tile(models.calibrating & ~third, (third.size, 1))
        half_width = conformal_spread(models, others, miscoverage=miscoverage).half_width
        ends = (models.win_rate, models.win_rate - half_width, models.win_rate + half_width)
        clipped = (np.clip(end, 0, 1)[third] for end in ends)
        rows.append(_summary("difference", name, models.human_win_rate[third], *clipped))
    rows = [(*row, miscoverage) for row in rows] if models.calibrating.any() else []
    kinds = ["str"] * 3 + ["int64"] * 2 + ["float"] * 5
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return WinRateCoverage(*map(np.array, columns, kinds))


def _thirds(rates: ModelWinRates, calibrating: Bools) -> list[tuple[str, Bools]]:
    """Return the strongest and the weakest third of the calibrating models, as the judge ranks."""
    naive = rates.naive_win_rate[rates.estimator == "difference"]
    order = np.argsort(np.where(calibrating, naive, -np.inf), kind="stable")[::-1]
    n, among = int(calibrating.sum()), np.arange(calibrating.size)
    thirds = {STRONGEST: order[: n // 3], WEAKEST: order[n - n // 3 : n]}
    return [(name, np.isin(among, third)) for name, third in thirds.items()]


def _summary(
    estimator: str, left_out: str, truth: Floats, estimate: Floats, lower: Floats, upper: Floats
) -> tuple[str | int | float, ...]:
    """Return a row, but for the miscoverage, from intervals of models, NaN without an estimate."""
    has = np.isfinite(estimate) & np.isfinite(truth)
    error, width = (estimate - truth)[has], (upper - lower)[has]
    held = ((lower <= truth) & (truth <= upper))[has]
    parts = (error, np.abs(error), width, held)
    means = [float(part.mean()) if has.any() else np.nan for part in parts]
    ties = "without ties" if estimator == "binary" else "ties half"
    return estimator, left_out, ties, int(has.sum()), int((~has).sum()), *means

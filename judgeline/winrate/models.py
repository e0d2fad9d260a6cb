"""Win rates of every model: the headline, the published corrections beneath it, coverage."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.arrays import Bools, Floats, Ints
from judgeline.winrate.corrections import adjusted_mean, adjusted_shares, require_possible
from judgeline.winrate.outcomes import (
    LOSS,
    MIN_OWN_VOTES,
    NO_VOTE,
    OUTCOMES,
    TIE,
    WIN,
    Design,
    NoWinRateError,
    OutcomeTables,
    decisive,
    design_of,
    has_own_votes,
    normal_quantile,
    pooled,
    require_battles,
)
from judgeline.winrate.powered import (
    MIN_CALIBRATING_VOTES,
    Estimate,
    conformal_spread,
    difference_estimates,
    power_tuned_estimate,
    power_tuned_half_width,
    transfer_design,
    transported,
)
from judgeline.winrate.strata import merge_sparse_strata

HEADLINE_RULE = (
    f"A model with at least {MIN_OWN_VOTES} votes won and {MIN_OWN_VOTES} lost shows "
    "'prediction-powered', every other model 'difference'."
)
LABEL_SHIFT = "valid under label shift with a judge that errs alike on all models"
BASIS = {
    "prediction-powered": f"valid if its voted battles are a random part of them. {HEADLINE_RULE}",
    "difference": f"valid if the judge errs on it as on the voted models. {HEADLINE_RULE}",
    "mean-outcome": LABEL_SHIFT,
    "ternary": LABEL_SHIFT,
    "binary": LABEL_SHIFT,
    "binary-by-length": LABEL_SHIFT + ", within shorter and longer answers",
}
"""Rows of a model in their order, and the assumption of each. The first two are
of `powered`; ``difference`` has strata by `strength_strata`. ``mean-outcome``
is the published correction with ties half, ``ternary`` that of the 3 x 3 confusion matrix,
``binary`` leaves ties out and is only for people who never tie, ``binary-by-length`` is it in
strata of shorter and longer answers."""

ADJUSTMENTS = tuple(BASIS)
TRANSPORTED = "transported: calibrated on votes for other models, as if the judge erred alike"
_WITHOUT_TIES = (
    "does not apply: people tie {} of {} calibration battles, and test battles that they would tie "
    "are still in; see the mean-outcome row"
)


class ModelWinRates(NamedTuple):
    """One row per model and estimator, shares of battles; NaN with a `status` not ok.

    `headline` marks the row to show of a model, `basis` states the assumption of the row and the
    rule of the headline. `n_battles` test battles have, or pretend to have, the judge's outcome
    alone, and `n_labelled` have a vote and calibrate: of the model itself (``own``), or of
    ``others`` (`calibration`). `n_ties` of both are left out of the row. `naive_win_rate` is the
    judge's own on the test battles. `human_win_rate` is that of the model's `n_votes` battles
    with a vote, NaN without. `std_error` is the unit of the interval, `miscoverage` its level.
    `sensitivity` and `specificity` are shares of calibration battles, strata taken together.
    """

    model: NDArray[np.str_]
    estimator: NDArray[np.str_]
    headline: NDArray[np.bool_]
    basis: NDArray[np.str_]
    calibration: NDArray[np.str_]
    n_battles: Ints
    n_labelled: Ints
    n_ties: Ints
    n_votes: Ints
    naive_win_rate: Floats
    win_rate: Floats
    win_rate_lower: Floats
    win_rate_upper: Floats
    std_error: Floats
    specificity: Floats
    sensitivity: Floats
    human_win_rate: Floats
    miscoverage: Floats
    status: NDArray[np.str_]
    note: NDArray[np.str_]


def adjust_models(
    tables: OutcomeTables,
    *,
    by_length: OutcomeTables | None,
    by_strength: OutcomeTables,
    miscoverage: float,
    hidden: bool = False,
) -> ModelWinRates:
    """Return the naive, the estimated and the human win rate of every model.

    A win is a battle that the model won against an opponent that people voted on. `HEADLINE_RULE`
    names the row to show.

    Parameters
    ----------
    tables : OutcomeTables
        From `tabulate_outcomes`; its strata are taken together.
    by_length, by_strength : OutcomeTables
        Of the same battles in strata by `length_strata` and `strength_strata`; None where
        lengths are unknown.
    miscoverage : float
        Tolerated share of misses of each interval, in (0, 1).
    hidden : bool
        Treat each model in turn as if it had no votes, to measure the errors of that.

    Returns
    -------
    ModelWinRates
        Rows for each model in the order of `ADJUSTMENTS`. `status` is ``ok``, or the reason of
        a missing estimate: ``no-battles``, ``no-votes``, ``few-own-votes``, ``one-question``,
        ``no-ties``, ``all-ties``, ``class-absent``, ``no-lengths``, ``chance``, or ``refuted``: a
        published correction whose interval lies outside of [0, 1] before it is clipped. `note`
        says it in words.

    References
    ----------
    Those of `power_tuned_estimate`, `adjusted_mean` and `adjusted_shares`.
    """
    normal_quantile(miscoverage)
    heldout = difference_estimates(by_strength)
    transferred = transported(heldout, "voted models", miscoverage=miscoverage)
    given = {"binary-by-length": by_length or tables, "difference": by_strength}
    rows = []
    for model, name in enumerate(tables.models):
        own = has_own_votes(tables.own[model]) and not hidden
        shown = "prediction-powered" if own else "difference"
        for way, basis in BASIS.items():
            of = given.get(way, tables)
            row = _row(of, model, own, way, transferred[model], miscoverage)
            rows.append((name, way, way == shown, basis, *row))
    return ModelWinRates(*(np.array(column) for column in zip(*rows, strict=True)))


def _row(
    tables: OutcomeTables, model: int, own: bool, way: str, given: Estimate, miscoverage: float
) -> tuple[str | int | float, ...]:
    """Return a row after its basis; `own` says whether the model's own votes count."""
    battles, with_ties = tables.own[model], not way.startswith("binary")
    votes = battles[:, :, :NO_VOTE].sum(axis=(0, 1))
    if way == "difference":
        design = transfer_design(tables, model)
    elif way == "prediction-powered":
        design = Design(battles.sum(axis=2), battles[:, :, :NO_VOTE], "own")
    else:
        design = design_of(tables, model, hidden=not own)
    status, estimate = "ok", given
    try:
        if way == "prediction-powered" and not own:
            text = (
                f"{votes[WIN]} of its own votes are won and {votes[LOSS]} lost; {MIN_OWN_VOTES} of "
                "each are needed (or they are hidden): see the difference row"
            )
            raise NoWinRateError("few-own-votes", text)
        require_battles(design, int(tables.n_questions[model]))
        if way != "difference":
            estimate = _estimate(design, way, miscoverage)
        note = _note(design, int(votes.sum()), way, estimate)
    except NoWinRateError as refusal:
        status, estimate, note = refusal.status, Estimate(), str(refusal)
    return (
        design.calibration,
        *_counts(design, way, with_ties),
        int(votes.sum()),
        _win_rate(design.test.sum(axis=0), with_ties),
        *estimate[:4],
        *_accuracies(design, with_ties),
        _win_rate(votes, with_ties),
        miscoverage,
        status,
        note,
    )


def _counts(design: Design, estimator: str, with_ties: bool) -> tuple[int, int, int]:
    """Return test battles, calibration battles, and the ties of both that the row leaves out."""
    n_test, n_labelled = int(design.test.sum()), int(design.labelled.sum())
    if estimator == "difference":
        return n_test, n_labelled // 2, 0  # both views of a battle
    left = decisive(design)
    counts = (n_test, n_labelled) if with_ties else (int(left.test.sum()), int(left.labelled.sum()))
    return *counts, n_test + n_labelled - sum(counts)


def _note(design: Design, n_votes: int, estimator: str, estimate: Estimate) -> str:
    notes = [estimate.note] if estimate.note else []
    if design.calibration == "others":
        notes.append(TRANSPORTED)
        hidden = "its own votes are hidden here: human_win_rate is made of them, without judge"
        notes += [hidden] if n_votes else []
    if estimator == "difference":
        n_parts, n_strata = len(merge_sparse_strata(design).test), len(design.test)
        few = f"too few votes in some strata: {n_strata} are taken together to {n_parts}"
        notes += [few] if n_parts < n_strata else []
    tied = int(design.labelled[..., TIE].sum())
    if tied and estimator.startswith("binary"):
        notes.append(_WITHOUT_TIES.format(tied, int(design.labelled.sum())))
    return "; ".join(notes)


def _win_rate(outcomes: Ints, with_ties: bool) -> float:
    weight = np.array([1, int(with_ties), 1]) * outcomes
    return float(weight @ OUTCOMES / weight.sum()) if weight.sum() else np.nan


def _accuracies(design: Design, with_ties: bool) -> tuple[float, float]:
    """Return specificity and sensitivity, of battles that the row does not leave out."""
    table = design.labelled.sum(axis=0)
    table = table if with_ties else np.delete(table, TIE, axis=0)
    lost, won = table[:, LOSS].sum(), table[:, WIN].sum()
    return (
        float(table[-1, LOSS] / lost) if lost else np.nan,
        float(table[0, WIN] / won) if won else np.nan,
    )


def _estimate(design: Design, way: str, miscoverage: float) -> Estimate:
    test, labelled = (part.sum(axis=0) for part in design[:2])
    quantile = normal_quantile(miscoverage)
    if way == "prediction-powered":
        powered = power_tuned_estimate(labelled, test - labelled.sum(axis=1))
        n_labels, variance = int(labelled.sum()), powered.variance
        half_width = power_tuned_half_width(variance, n_labels, miscoverage=miscoverage)
        return Estimate.around(powered.win_rate, half_width, math.sqrt(variance))
    if way == "ternary":
        shares = adjusted_shares(test, labelled, miscoverage=miscoverage)
        require_possible(shares.centre, quantile * shares.std_error)
        return Estimate(*shares[:4])
    if way == "binary-by-length" and len(design.test) == 1:
        raise NoWinRateError("no-lengths", "some answer has no length; see the binary row")
    design = decisive(design) if way.startswith("binary") else design
    design = design if way == "binary-by-length" else pooled(design)
    mean = adjusted_mean(design.test, design.labelled, miscoverage=miscoverage)
    win_rate, lower, upper, std_error, _, centre = map(float, mean)
    require_possible(centre, quantile * std_error)
    return Estimate(win_rate, lower, upper, std_error)


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

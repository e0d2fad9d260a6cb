"""Win rates of every model as judged, and as adjusted for what the judge gets wrong."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.adjusted import adjusted_win_rate
from judgeline.adjusted_means import adjusted_mean, can_be_corrected
from judgeline.adjusted_shares import OUTCOMES, TernaryCounts, adjusted_shares
from judgeline.adjusted_strata import stratified_win_rate
from judgeline.battle_strata import merge_sparse_strata
from judgeline.judge_counts import JudgeCounts, is_better_than_chance, normal_quantile
from judgeline.outcome_tables import (
    LOSS,
    NO_VOTE,
    TIE,
    WIN,
    Design,
    OutcomeTables,
    decisive_counts,
    design_of,
    pooled,
)
from judgeline.win_rate_refusals import (
    refused_binary,
    refused_mean,
    refused_strata,
    refused_ternary,
    too_little,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ADJUSTMENTS: tuple[str, ...] = (
    "mean-outcome",
    "mean-outcome-by-strength",
    "ternary",
    "binary",
    "binary-by-length",
    "binary-by-strength",
)
"""``mean-outcome``: ties count half, from the judge's mean outcome and the share of ties among
votes; the judge itself need not tie. ``mean-outcome-by-strength``: the same within strata of how
much stronger than its opponent the judge finds the model over all of their battles, weighed by
their shares of the test battles. ``ternary``: ties count half, by the judge's confusion matrix
of wins, ties and losses, which a judge that hardly ever ties does not have. ``binary``: ties
left out, those of the judge in test battles and those of either in calibration; only for people
who never tie, since the test battles that they would tie are not known. ``binary-by-length`` and
``binary-by-strength``: the binary estimate within strata, of shorter and longer answers of the
model, and of strength."""

TRANSPORTED = "transported: calibrated on votes for other models, as if the judge erred alike"
_WITHOUT_TIES = (
    "does not apply: people tie {} of {} calibration battles, and test battles that they would tie "
    "are still in; see the mean-outcome rows"
)


class ModelWinRates(NamedTuple):
    """One row per model and way of adjusting, shares of battles; NaN with a `status` not ok.

    `headline` marks the one row per model to be shown. `n_battles` test battles have, or pretend to
    have, the judge's verdict alone, and `n_labelled` have a vote and calibrate it: of the model
    itself, or of `others` (`calibration`). `n_ties` of both are left out of the row: in test
    battles ties of the judge, for those of people are not known there. `naive_win_rate` is the
    judge's own on the test battles, `win_rate` the adjusted one. `human_win_rate` is that of
    the model's `n_votes` battles with a vote, NaN without; both treat ties as the row does.
    `miscoverage` is that of the interval. `sensitivity` and `specificity` are shares of
    calibration battles, strata taken together.
    """

    model: NDArray[np.str_]
    estimator: NDArray[np.str_]
    headline: NDArray[np.bool_]
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
) -> ModelWinRates:
    """Return the naive, the adjusted and the human win rate of every model.

    A win is a battle that the model won against an opponent that people voted on. The interval
    of the adjusted win rate assumes independent battles, and that the judge errs alike, given
    the human outcome, in test and calibration battles of one stratum.

    Where the votes on other models calibrate, the share of wins may differ from theirs, but the
    judge's errors may not, and without strata they do: the battles that a strong model wins are
    clearer than those that it loses, so that the judge finds its wins and misses its losses.
    One correction for all then moves the win rate away from one half where none is due.
    ``mean-outcome-by-strength`` compares it with battles of models as far apart, and is what is
    shown of such a model; where its own votes calibrate, ``mean-outcome`` is. Without ties they
    are ``binary-by-strength`` and ``binary``. With them the binary rows do not apply, as their
    notes say: battles that people would tie stay among the test battles. Strata with few votes
    are taken together in ``mean-outcome-by-strength``, which is noted.

    Parameters
    ----------
    tables : OutcomeTables
        From `tabulate_outcomes`; its strata are taken together.
    by_length, by_strength : OutcomeTables
        Of the same battles in strata by `length_strata` and `strength_strata`; None where
        lengths are unknown.
    miscoverage : float
        Tolerated share of misses of each interval, in (0, 1).

    Returns
    -------
    ModelWinRates
        Six rows for each model, in the order of `ADJUSTMENTS`. `status` is ``ok``, or why
        there is no estimate: ``no-battles``, ``no-votes``, ``one-question``, ``no-ties``,
        ``all-ties``, ``class-absent``, ``no-lengths`` or ``chance``; `note` says it in words.

    Raises
    ------
    ValueError
        If `miscoverage` is out of range.

    References
    ----------
    Those of `adjusted_win_rate`, `adjusted_shares` and `stratified_win_rate`.
    """
    normal_quantile(miscoverage)
    given = {"binary-by-length": by_length}
    given |= dict.fromkeys(("mean-outcome-by-strength", "binary-by-strength"), by_strength)
    rows = []
    for model, name in enumerate(tables.models):
        own = [_row(given.get(way) or tables, model, way, miscoverage) for way in ADJUSTMENTS]
        shown = _headline(own)
        rows += [
            (name, way, at == shown, *row)
            for at, (way, row) in enumerate(zip(ADJUSTMENTS, own, strict=True))
        ]
    return ModelWinRates(*(np.array(column) for column in zip(*rows, strict=True)))


def _headline(rows: list[tuple[str | int | float, ...]]) -> int:
    """Return which of a model's rows is shown: never one because of its value."""
    shown = "mean-outcome" if rows[0][0] == "own" else "mean-outcome-by-strength"
    return ADJUSTMENTS.index(shown)


class _Estimate(NamedTuple):
    win_rate: float = np.nan
    lower: float = np.nan
    upper: float = np.nan
    std_error: float = np.nan


def _row(
    tables: OutcomeTables, model: int, estimator: str, miscoverage: float
) -> tuple[str | int | float, ...]:
    design, own = design_of(tables, model), tables.own[model]
    n_questions = int(tables.n_questions[model])
    with_ties = not estimator.startswith("binary")
    refused = too_little(design, n_questions) or _REFUSED[estimator](design)
    estimate = _Estimate()
    if refused is None:
        try:
            estimate = _ADJUST[estimator](design, miscoverage)
        except _NoBetterThanChanceError as error:
            refused = ("chance", str(error))
    test, votes = design.test.sum(axis=0), own[:, :, :NO_VOTE].sum(axis=(0, 1))
    status, note = refused or ("ok", _note(design, own, estimator))
    return (
        design.calibration,
        int(test.sum()) - (0 if with_ties else int(test[TIE])),
        int(design.labelled.sum()) - (0 if with_ties else _labelled_ties(design)),
        0 if with_ties else int(test[TIE]) + _labelled_ties(design),
        int(votes.sum()),
        _win_rate(test, with_ties),
        *estimate,
        *_accuracies(design, with_ties),
        _win_rate(votes, with_ties),
        miscoverage,
        status,
        note,
    )


def _note(design: Design, own: Ints, estimator: str) -> str:
    notes = [TRANSPORTED] if design.calibration == "others" else []
    if design.calibration == "others" and own[:, :, :NO_VOTE].sum():
        notes.append("its own votes are hidden here: human_win_rate is made of them, without judge")
    tied = int(design.labelled[..., TIE].sum())
    if tied and estimator.startswith("binary"):
        notes.append(_WITHOUT_TIES.format(tied, int(design.labelled.sum())))
    if estimator == "mean-outcome-by-strength":
        n_parts, n_strata = len(merge_sparse_strata(design).test), len(design.test)
        few = f"too few votes in some strata: {n_strata} are taken together to {n_parts}"
        notes += [few] if n_parts < n_strata else []
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


def _labelled_ties(design: Design) -> int:
    table = design.labelled.sum(axis=0)
    return int(table.sum() - table[[WIN, WIN, LOSS, LOSS], [WIN, LOSS, WIN, LOSS]].sum())


# ------------------------------------------------------------------ the estimates


class _NoBetterThanChanceError(ValueError):
    """No correction can be made."""


def _mean(design: Design, miscoverage: float) -> _Estimate:
    merged = merge_sparse_strata(design)
    if not can_be_corrected(merged.test, merged.labelled):
        raise _NoBetterThanChanceError(
            "the judge's mean outcome is no higher where people say won than where they say lost, "
            "as observed or smoothed by one battle a side: the judge is no better than chance; "
            "label more battles or withhold this judge"
        )
    found = adjusted_mean(merged.test, merged.labelled, miscoverage=miscoverage)
    ends = (found.win_rate, found.lower, found.upper, found.std_error)
    return _Estimate(*(float(value) for value in ends))


def _pooled_mean(design: Design, miscoverage: float) -> _Estimate:
    return _mean(pooled(design), miscoverage)


def _ternary(design: Design, miscoverage: float) -> _Estimate:
    counts = TernaryCounts(design.test.sum(axis=0), design.labelled.sum(axis=0))
    try:
        found = adjusted_shares(counts, miscoverage=miscoverage)
    except ValueError as error:  # all else that it refuses was looked at before
        raise _NoBetterThanChanceError(str(error)) from error
    return _Estimate(found.win_rate, found.lower, found.upper, found.std_error)


def _binary(design: Design, miscoverage: float) -> _Estimate:
    counts = decisive_counts(design.test.sum(axis=0), design.labelled.sum(axis=0))
    _require_skill(counts)
    found = adjusted_win_rate(counts, miscoverage=miscoverage)
    ends = (found.win_rate, found.lower, found.upper, found.std_error)
    return _Estimate(*(float(value) for value in ends))


def _in_strata(design: Design, miscoverage: float) -> _Estimate:
    counts = decisive_counts(design.test, design.labelled)
    used = np.asarray(counts.n_test) > 0
    counts = JudgeCounts(*(np.asarray(values)[used] for values in counts))
    _require_skill(counts)
    found = stratified_win_rate(counts, miscoverage=miscoverage)
    return _Estimate(found.win_rate, found.lower, found.upper, found.std_error)


def _require_skill(counts: JudgeCounts) -> None:
    if not is_better_than_chance(counts).all():
        raise _NoBetterThanChanceError(
            "specificity + sensitivity is at most 1, as observed or smoothed by one battle a "
            "side: the judge is no better than chance; label more battles or withhold this judge"
        )


_ADJUST: dict[str, Callable[[Design, float], _Estimate]] = {
    "mean-outcome": _pooled_mean,
    "mean-outcome-by-strength": _mean,
    "ternary": _ternary,
    "binary": _binary,
    "binary-by-length": _in_strata,
    "binary-by-strength": _in_strata,
}
_REFUSED: dict[str, Callable[[Design], tuple[str, str] | None]] = {
    "mean-outcome": refused_mean,
    "mean-outcome-by-strength": refused_mean,
    "ternary": refused_ternary,
    "binary": refused_binary,
    "binary-by-length": refused_strata,
    "binary-by-strength": refused_strata,
}
